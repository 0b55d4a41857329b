package artifacts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/shards"
)

const (
	edgePath = "edges.parquet"
	rowPath  = "rows.arrow"
)

// Shards writes a random edge shard and an Arrow row file to an empty store, as a stage
// commits them, and reads them as stages do and as plain bytes: once each in every round,
// in turn. A record batch of rows is charged to b, some 16 MiB; on the heap are a few MiB.
func Shards(ctx context.Context, store storage.Store, b *mem.Budget, edges, rows int64, schema shards.RowSchema, rounds int) ([]Measured, error) {
	c, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	batch, err := newBatch(b, schema.Width)
	if err != nil {
		return nil, err
	}
	defer batch.free()
	return measure(ctx, c, rounds, []step{
		{"edges written", edgePath, edges, func(int) (time.Duration, error) { return writeEdges(ctx, c, edges) }},
		{"edges read", edgePath, edges, reading(ctx, c, edgePath, readEdges)},
		{"the same bytes", edgePath, edges, reading(ctx, c, edgePath, plain)},
		{"rows written", rowPath, rows, timed(func(int) error { return batch.write(ctx, c, rowPath, schema, rows) })},
		{"rows read", rowPath, rows, reading(ctx, c, rowPath, batch.read)},
		{"the same bytes", rowPath, rows, reading(ctx, c, rowPath, plain)},
	})
}

// blockRows is the number of destinations of the measured shard.
const blockRows = 1 << 20

// writeEdges commits a shard of one block, whose sources are four apart on average, as
// those of a block of ogbn-papers100M are. What it takes to draw the edges does not count.
func writeEdges(ctx context.Context, c *catalog.Catalog, edges int64) (took time.Duration, err error) {
	start := time.Now()
	f, err := c.Create(ctx, catalog.Describe(catalog.KindEdges, edgePath).In(0))
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	nodes := max(8*edges, blockRows)
	m := shards.EdgeMeta{Hi: blockRows, NumNodes: nodes, BlockRows: blockRows}
	w, err := shards.NewEdgeWriter(f, m)
	if err != nil {
		return 0, err
	}
	took += time.Since(start)
	src, dst := make([]uint32, shards.EdgePageRows), make([]uint32, shards.EdgePageRows)
	var page shards.EdgePage
	last := uint32(0)
	for at := int64(0); at < edges; at += int64(len(src)) {
		n := min(int64(len(src)), edges-at)
		for i := range n {
			h := rng.Hash(uint64(at + i))
			last += uint32(rng.Below(h, 7)) + 1
			src[i], dst[i] = last, uint32(h)%blockRows
		}
		start = time.Now()
		page.Src, page.Dst = src[:n], dst[:n]
		if err := errors.Join(ctx.Err(), page.Encode(m), w.WritePage(&page)); err != nil {
			return 0, err
		}
		took += time.Since(start)
	}
	start = time.Now()
	if f.Rows, err = w.Close(); err != nil {
		return 0, err
	}
	err = c.Commit(ctx, f)
	return took + time.Since(start), err
}

func readEdges(r storage.Reader) error {
	e, err := shards.OpenEdges(r, edgePath)
	if err != nil {
		return err
	}
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	for {
		if _, err := e.Read(src, dst); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// batch is a record batch of random values.
type batch struct {
	width  int
	ids    *mem.Array[int64]
	values *mem.Array[float32]
}

func newBatch(b *mem.Budget, width int) (_ *batch, err error) {
	if width < 1 {
		return nil, fmt.Errorf("rows of %d columns cannot be measured", width)
	}
	m := &batch{width: width}
	rows := int64(shards.BatchRows(width))
	if m.ids, err = mem.Alloc[int64](b, rows, "the ids of a record batch"); err != nil {
		return nil, err
	}
	if m.values, err = mem.Alloc[float32](b, rows*int64(width)+shards.RowSlack, "a record batch"); err != nil {
		m.free()
		return nil, err
	}
	for i := range m.values.S {
		m.values.S[i] = float32(rng.Normal(uint64(i)))
	}
	return m, nil
}

func (m *batch) free() {
	m.ids.Free()
	m.values.Free()
}

// write commits rows of the batch's values, the same in every record batch.
func (m *batch) write(ctx context.Context, c *catalog.Catalog, path string, schema shards.RowSchema, rows int64) error {
	f, err := c.Create(ctx, catalog.Describe(catalog.KindSmoothed, path).In(0))
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := shards.NewRowWriter(f, schema, nil)
	if err != nil {
		return err
	}
	for at := int64(0); at < rows; at += int64(len(m.ids.S)) {
		n := min(int64(len(m.ids.S)), rows-at)
		for i := range n {
			m.ids.S[i] = at + i
		}
		if err := errors.Join(ctx.Err(), w.Write(m.ids.S[:n], nil, m.values.S[:n*int64(m.width)])); err != nil {
			return err
		}
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return c.Commit(ctx, f)
}

func (m *batch) read(r storage.Reader) error {
	in, err := shards.OpenRows(r, rowPath)
	if err != nil {
		return err
	}
	b := shards.RowBatch{ID: m.ids.S[:0]}
	for i := range in.NumBatches() {
		b.Values = m.values.S[:0]
		if err := in.ReadBatch(i, &b); err != nil {
			return err
		}
	}
	return nil
}
