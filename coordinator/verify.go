package coordinator

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
)

const (
	// mostVerified bounds the number of files that are read at a time.
	mostVerified = 16
	// fileMemory is the heap that reading a file needs, in bytes: buffers, and a row group of the node table, which is decoded as a whole. A
	// file of edges needs a third of that.
	fileMemory = 24 << 20
)

// Verified counts what was read and compared.
type Verified struct {
	Files int
	Bytes int64
	// OfFiles and OfBytes count all parts together: the files that the catalogue lists.
	OfFiles int
	OfBytes int64
}

// Verify reads every catalogued file again. It compares the bytes with the checksum, the rows with the count of the entry, and the counts
// with the graph summary. It compares the record rec with the catalogue, and reads the journal. It continues after a damaged file; the
// error joins all findings, wraps [seal.ErrCorrupt] and names the files.
//
// It reads the files of one part only. The part with the graph summary, or the first part if there is no summary, also checks what belongs
// to no single file: counts, record and journal.
//
// It reads as many files at a time as threads may run and as the budget b has memory for.
func Verify(ctx context.Context, cat *catalog.Catalog, rec *Record, part share.Part, b *mem.Budget) (v Verified, err error) {
	if err := part.Validate(); err != nil {
		return v, failure.As(failure.ErrOption, err)
	}
	atOnce := int(max(1, min(int64(runtime.GOMAXPROCS(0)), mostVerified, b.Free()/fileMemory)))
	release, err := b.ReserveHeap(int64(atOnce)*fileMemory, "reading files")
	if err != nil {
		return v, err
	}
	defer release()
	entries, rest := filesOf(cat.All(), part, &v)
	m := progress.Start(ctx, "verify", v.Bytes, "bytes")
	defer m.Done()
	wrong := make([]error, len(entries)) // in the order of the catalogue
	if err := share.Each(atOnce, len(entries), func(i int) error {
		if err := verifyFile(ctx, cat, entries[i]); err != nil && !remade(ctx, cat, entries[i]) {
			wrong[i] = registry.Explain(err, cat)
		}
		m.Add(entries[i].Bytes)
		return ctx.Err()
	}); err != nil {
		return v, err
	}
	found := slices.DeleteFunc(wrong, func(err error) bool { return err == nil })
	if rest {
		more, err := verifyRest(ctx, cat, rec)
		if err != nil {
			return v, err
		}
		found = append(found, more...)
	}
	return v, errors.Join(found...)
}

// filesOf returns the entries of a part. rest reports whether the part also checks what belongs to no single file.
func filesOf(all []catalog.Entry, part share.Part, v *Verified) (entries []catalog.Entry, rest bool) {
	sizes := make([]int64, len(all))
	for i, e := range all {
		sizes[i] = e.Bytes
		v.OfFiles++
		v.OfBytes += e.Bytes
	}
	rest = part.I <= 1 && !slices.ContainsFunc(all, isSummary)
	for _, i := range part.Items(sizes) {
		e := all[i]
		entries = append(entries, e)
		v.Files++
		v.Bytes += e.Bytes
		rest = rest || isSummary(e)
	}
	return entries, rest
}

func isSummary(e catalog.Entry) bool { return e.Path == shards.SummaryPath }

// verifyRest checks what belongs to no single file.
func verifyRest(ctx context.Context, cat *catalog.Catalog, rec *Record) (found []error, err error) {
	found = append(found, verifyCounts(ctx, cat, rec.Plan), rec.Check(cat))
	damaged, err := VerifyJournal(ctx, cat.Store())
	if err != nil {
		return nil, err
	}
	found = append(found, damaged...)
	if len(rec.missing()) < len(rec.Wanted) {
		found = append(found, cat.Check(ctx, rec.State == Complete))
	}
	return found, nil
}

// remade reports whether a missing file is one that its reader makes again.
func remade(ctx context.Context, cat *catalog.Catalog, e catalog.Entry) bool {
	if !isHops(e) || !stage.HasShards(cat) {
		return false
	}
	_, err := cat.Store().Stat(ctx, e.Path)
	return errors.Is(err, storage.ErrNotExist)
}

func verifyFile(ctx context.Context, cat *catalog.Catalog, e catalog.Entry) (err error) {
	if err := cat.Verify(ctx, e); err != nil {
		return err
	}
	count := registry.KindOf(e.Kind).Rows
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
func verifyCounts(ctx context.Context, cat *catalog.Catalog, p plan.Options) error {
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
		catalog.KindLSI: true, catalog.KindHops: !noShards, catalog.KindReversedHops: !noShards, catalog.KindEdges: noShards,
		catalog.KindReversed: noShards,
	}
	var found []error
	for _, kind := range []string{
		catalog.KindEdges, catalog.KindReversed, catalog.KindHops, catalog.KindReversedHops,
		catalog.KindNodes, catalog.KindLSI,
	} {
		if got[kind] != want[kind] && !(optional[kind] && got[kind] == 0) {
			found = append(found, fmt.Errorf("coordinator: files of kind %s hold %d rows, %s says %d: %w",
				kind, got[kind], shards.SummaryPath, want[kind], seal.ErrCorrupt))
		}
	}
	return errors.Join(found...)
}
