package coordinator

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

// Verify reads every catalogued file again: its bytes against the checksum, its
// rows against the count of its entry, and the counts against the graph
// summary. It goes on after a damaged file; the error joins all findings, wraps
// [seal.ErrCorrupt] and names the files.
func Verify(ctx context.Context, cat *catalog.Catalog) (files int, bytes int64, err error) {
	entries := cat.Entries("")
	for _, e := range entries {
		bytes += e.Bytes
	}
	m := progress.Start(ctx, "verify", bytes, "bytes")
	defer m.Done()
	var found []error
	for _, e := range entries {
		if err := verifyFile(ctx, cat, e); err != nil {
			if ctx.Err() != nil {
				return files, bytes, ctx.Err()
			}
			found = append(found, err)
		}
		files++
		m.Add(e.Bytes)
	}
	found = append(found, verifyCounts(ctx, cat))
	return files, bytes, errors.Join(found...)
}

func verifyFile(ctx context.Context, cat *catalog.Catalog, e catalog.Entry) (err error) {
	if err := cat.Verify(ctx, e); err != nil {
		return err
	}
	count, ok := counters[e.Kind]
	if !ok {
		return nil
	}
	r, err := cat.Open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	rows, err := count(r, e.Path)
	if err == nil && rows != e.Rows {
		err = fmt.Errorf("coordinator: %s holds %d rows, the catalogue says %d: %w", e.Path, rows, e.Rows, seal.ErrCorrupt)
	}
	return err
}

// counters read a file of their kind to the end and count its rows.
var counters = map[string]func(storage.Reader, string) (int64, error){
	catalog.KindEdges: countEdges,
	catalog.KindNodes: func(r storage.Reader, name string) (n int64, err error) {
		err = shards.ReadNodes(r, name, func(_ int64, b shards.NodeBatch) error { n += int64(len(b.ID)); return nil })
		return n, err
	},
	catalog.KindLSI: func(r storage.Reader, name string) (n int64, err error) {
		err = shards.ReadLSI(r, name, func(_ int64, b shards.LSIBatch) error { n += int64(len(b.ID)); return nil })
		return n, err
	},
	catalog.KindSmoothed: countRows, catalog.KindSoftLabels: countRows, catalog.KindPredictions: countRows,
}

func countEdges(r storage.Reader, name string) (n int64, err error) {
	edges, err := shards.OpenEdges(r, name)
	if err != nil {
		return 0, err
	}
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	for {
		got, err := edges.Read(src, dst)
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func countRows(r storage.Reader, name string) (n int64, err error) {
	rows, err := shards.OpenRows(r, name)
	if err != nil {
		return 0, err
	}
	var b shards.RowBatch
	for i := range rows.NumBatches() {
		if err := rows.ReadBatch(i, &b); err != nil {
			return n, err
		}
		n += int64(len(b.ID))
	}
	return n, nil
}

// verifyCounts compares the rows of all files of a kind with the graph.
func verifyCounts(ctx context.Context, cat *catalog.Catalog) error {
	if _, ok := cat.Lookup(shards.SummaryPath); !ok {
		return nil
	}
	sum, err := shards.ReadSummary(ctx, cat)
	if err != nil {
		return err
	}
	want := map[string]int64{
		catalog.KindEdges: 2 * sum.Edges, catalog.KindHops: 2 * sum.Edges, catalog.KindNodes: sum.Nodes, catalog.KindLSI: sum.Nodes,
	}
	got := map[string]int64{}
	for _, e := range cat.Entries("") {
		got[e.Kind] += e.Rows
	}
	var found []error
	for _, kind := range []string{catalog.KindEdges, catalog.KindHops, catalog.KindNodes, catalog.KindLSI} {
		optional := kind == catalog.KindLSI || kind == catalog.KindHops
		if got[kind] != want[kind] && !(optional && got[kind] == 0) {
			found = append(found, fmt.Errorf("coordinator: files of kind %s hold %d rows, %s says %d: %w",
				kind, got[kind], shards.SummaryPath, want[kind], seal.ErrCorrupt))
		}
	}
	return errors.Join(found...)
}
