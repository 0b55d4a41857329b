package export

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

// edgeBatch is the number of edges that are read from a shard, or made for a writer, at a time.
const edgeBatch = 1 << 16

// edgesKind is the kind of the files that edges are read from: shards, or hop streams where a run
// directory has no shards.
func edgesKind(cat *catalog.Catalog) string {
	if len(cat.Entries(catalog.KindEdges)) == 0 {
		return catalog.KindHops
	}
	return catalog.KindEdges
}

// edgeFiles reads the directed edges of a run directory: both directions of each edge where edges
// have no directions.
type edgeFiles struct {
	cat      *catalog.Catalog
	weighted bool
	stream   *shards.HopStream // nil where there are shards
	free     func()
}

// openEdges opens the files that have the edges. Hop streams are read ahead, which takes
// [shards.ReadAheadBytes] of the budget. The caller closes what it gets.
func openEdges(ctx context.Context, cat *catalog.Catalog, weighted bool, b *mem.Budget) (*edgeFiles, error) {
	f := &edgeFiles{cat: cat, weighted: weighted, free: func() {}}
	if edgesKind(cat) == catalog.KindEdges {
		return f, nil
	}
	if err := b.Reserve(shards.ReadAheadBytes, "reading edges"); err != nil {
		return nil, err
	}
	f.free = func() { b.Release(shards.ReadAheadBytes) }
	var err error
	if f.stream, err = shards.OpenHopStream(ctx, cat); err != nil {
		f.free()
		return nil, err
	}
	return f, nil
}

func (f *edgeFiles) close() {
	if f.stream != nil {
		f.stream.Close()
	}
	f.free()
}

// rows is the number of directed edges.
func (f *edgeFiles) rows() int64 { return countRows(f.cat, edgesKind(f.cat)) }

// each visits the edges by node, some at a time, with their weights where the graph has weights. They
// come in the order of the shards, or in that of the hop streams: strip by strip, those of a strip
// by source.
func (f *edgeFiles) each(ctx context.Context, visit func(src, dst []uint32, weights []float32) error) error {
	if f.stream != nil {
		return f.eachOfStream(ctx, visit)
	}
	src, dst := make([]uint32, edgeBatch), make([]uint32, edgeBatch)
	var weights []float32
	if f.weighted {
		weights = make([]float32, edgeBatch)
	}
	return eachFile(ctx, f.cat, catalog.KindEdges, func(e catalog.Entry, file storage.Reader, _ int64) error {
		edges, err := shards.OpenEdges(file, e.Path)
		if err != nil {
			return err
		}
		for {
			n, err := edges.ReadWeighted(src, dst, weights)
			if n > 0 {
				err := visit(src[:n], dst[:n], weights[:min(n, len(weights))])
				if errors.Is(err, seal.ErrCorrupt) {
					err = fmt.Errorf("%s: %w", e.Path, err)
				}
				if err != nil {
					return err
				}
			}
			if err == io.EOF {
				return ctx.Err()
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
	})
}

// eachOfStream is each of hop streams.
func (f *edgeFiles) eachOfStream(ctx context.Context, visit func(src, dst []uint32, weights []float32) error) error {
	var (
		src, dst []uint32
		weights  []float32
	)
	flush := func() error {
		if len(src) == 0 {
			return ctx.Err()
		}
		err := visit(src, dst, weights)
		src, dst, weights = src[:0], dst[:0], weights[:0]
		return errors.Join(err, ctx.Err())
	}
	for strip := range f.stream.Strips() {
		frames, err := f.stream.Open(ctx, strip, 0, uint32(f.stream.NumNodes()))
		if err != nil {
			return err
		}
		for {
			frame, err := frames.Next()
			if err == io.EOF {
				break
			}
			if err == nil {
				first := uint32(strip) * packed.StripRows
				frame.Visit(func(s, row uint32) { src, dst = append(src, s), append(dst, first+row) })
				for i := range len(frame.Weights) / packed.WeightBytes {
					weights = append(weights, frame.Weight(i))
				}
				if len(src) >= edgeBatch {
					err = flush()
				}
			}
			if err != nil {
				return errors.Join(err, frames.Close())
			}
		}
		if err := frames.Close(); err != nil {
			return err
		}
	}
	return flush()
}
