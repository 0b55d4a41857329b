package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/stage"
)

// mostVerified bounds how many files are read at a time: each has buffers.
const mostVerified = 16

// Verify reads every catalogued file again, as many at a time as threads may run: its bytes against the checksum, its
// rows against the count of its entry, and the counts against the graph
// summary. It compares the record rec with the catalogue, and reads the journal. It goes
// on after a damaged file; the error joins all findings, wraps [seal.ErrCorrupt] and
// names the files.
func Verify(ctx context.Context, cat *catalog.Catalog, rec *Record) (files int, bytes int64, err error) {
	entries := cat.All()
	for _, e := range entries {
		bytes += e.Bytes
	}
	m := progress.Start(ctx, "verify", bytes, "bytes")
	defer m.Done()
	wrong := make([]error, len(entries)) // in the order of the catalogue
	if err := share.Each(min(runtime.GOMAXPROCS(0), mostVerified), len(entries), func(i int) error {
		if err := verifyFile(ctx, cat, entries[i]); err != nil {
			wrong[i] = stage.Explain(err, cat)
		}
		m.Add(entries[i].Bytes)
		return ctx.Err()
	}); err != nil {
		return 0, bytes, err
	}
	files = len(entries)
	found := slices.DeleteFunc(wrong, func(err error) bool { return err == nil })
	found = append(found, verifyCounts(ctx, cat, rec.Plan), rec.Check(cat))
	journal, err := VerifyJournal(ctx, cat.Store())
	if err != nil {
		return files, bytes, err
	}
	found = append(found, journal.Damaged...)
	if len(rec.missing()) < len(rec.Wanted) {
		found = append(found, cat.Check(ctx, rec.State == Complete))
	}
	return files, bytes, errors.Join(found...)
}

func verifyFile(ctx context.Context, cat *catalog.Catalog, e catalog.Entry) (err error) {
	if err := cat.Verify(ctx, e); err != nil {
		return err
	}
	count := stage.KindOf(e.Kind).Rows
	if count == nil {
		return nil
	}
	r, err := cat.Open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	rows, err := count(r, e.Path)
	if err == nil && rows != e.Rows {
		err = seal.Corrupt(e.Path, "it holds %d rows, the catalogue says %d", rows, e.Rows)
	}
	return err
}

// verifyCounts compares the rows of all files of a kind with the graph.
func verifyCounts(ctx context.Context, cat *catalog.Catalog, p control.Plan) error {
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
	if sum.Directed {
		for _, kind := range []string{catalog.KindEdges, catalog.KindHops, catalog.KindReversed, catalog.KindReversedHops} {
			want[kind] = sum.Edges
		}
	}
	got := map[string]int64{}
	for _, e := range cat.Entries("") {
		got[e.Kind] += e.Rows
	}
	noShards := p.Partition.NoShards()
	optional := map[string]bool{
		catalog.KindLSI: true, catalog.KindHops: !noShards, catalog.KindReversedHops: !noShards, catalog.KindEdges: noShards, catalog.KindReversed: noShards,
	}
	var found []error
	for _, kind := range []string{catalog.KindEdges, catalog.KindReversed, catalog.KindHops, catalog.KindReversedHops, catalog.KindNodes, catalog.KindLSI} {
		if got[kind] != want[kind] && !(optional[kind] && got[kind] == 0) {
			found = append(found, fmt.Errorf("coordinator: files of kind %s hold %d rows, %s says %d: %w",
				kind, got[kind], shards.SummaryPath, want[kind], seal.ErrCorrupt))
		}
	}
	return errors.Join(found...)
}
