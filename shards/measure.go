package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/storage"
)

// Measured is how long the rounds of a measurement took.
type Measured struct {
	What    string
	Rows    int64     // edges or rows of a round
	Bytes   int64     // their size in the file
	Seconds []float64 // of each round
}

// Measure writes a random edge shard and an Arrow row file to an empty store,
// as a stage commits them, and reads them as stages do and as plain bytes: once
// each in every round, in turn. A record batch of rows is charged to b, some
// 16 MiB; on the heap are a few MiB.
func Measure(ctx context.Context, store storage.Store, b *mem.Budget, edges, rows int64, schema RowSchema, rounds int) ([]Measured, error) {
	c, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	batch, err := newMeasuredBatch(b, schema)
	if err != nil {
		return nil, err
	}
	defer batch.free()
	const edgePath, rowPath = "edges.parquet", "rows.arrow"
	steps := []struct {
		what, path string
		rows       int64
		do         func() (time.Duration, error)
	}{
		{"edges written", edgePath, edges, func() (time.Duration, error) { return writeMeasuredEdges(ctx, c, edgePath, edges) }},
		{"edges read", edgePath, edges, func() (time.Duration, error) { return timed(c, ctx, edgePath, readMeasuredEdges) }},
		{"the same bytes", edgePath, edges, func() (time.Duration, error) { return timed(c, ctx, edgePath, ReadPlain) }},
		{"rows written", rowPath, rows, func() (time.Duration, error) { return batch.write(ctx, c, rowPath, rows) }},
		{"rows read", rowPath, rows, func() (time.Duration, error) { return timed(c, ctx, rowPath, batch.read) }},
		{"the same bytes", rowPath, rows, func() (time.Duration, error) { return timed(c, ctx, rowPath, ReadPlain) }},
	}
	all := make([]Measured, len(steps))
	for range rounds {
		for i, s := range steps {
			took, err := s.do()
			if err != nil {
				return nil, err
			}
			e, _ := c.Lookup(s.path)
			all[i].What, all[i].Rows, all[i].Bytes = s.what, s.rows, e.Bytes
			all[i].Seconds = append(all[i].Seconds, took.Seconds())
		}
	}
	return all, nil
}

// timed opens a file of the catalogue and measures how long it takes to read.
func timed(c *catalog.Catalog, ctx context.Context, path string, read func(r storage.Reader) error) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e, _ := c.Lookup(path)
	start := time.Now()
	r, err := c.Open(ctx, e)
	if err != nil {
		return 0, err
	}
	err = errors.Join(read(r), r.Close())
	return time.Since(start), err
}

// ReadPlain reads a file from start to end by aligned transfers of
// direct.BufferSize and looks at nothing: what a reader is measured against.
func ReadPlain(r storage.Reader) error {
	buf := direct.AlignedBytes(direct.BufferSize)
	for off := int64(0); off < r.Size(); off += int64(len(buf)) {
		if _, err := r.ReadAt(buf, off); err != nil && err != io.EOF {
			return fmt.Errorf("shards: plain read: %w", err)
		}
	}
	return nil
}

// measuredBlock is the number of destinations of the measured shard.
const measuredBlock = 1 << 20

// writeMeasuredEdges commits a shard of one block, whose sources are four apart
// on average, as those of a block of ogbn-papers100M are. What it takes to draw
// the edges does not count.
func writeMeasuredEdges(ctx context.Context, c *catalog.Catalog, path string, edges int64) (took time.Duration, err error) {
	start := time.Now()
	f, err := c.Create(ctx, catalog.Describe(catalog.KindEdges, path).In(0))
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	nodes := max(8*edges, measuredBlock)
	w, err := NewEdgeWriter(f, EdgeMeta{Hi: measuredBlock, NumNodes: nodes, BlockRows: measuredBlock})
	if err != nil {
		return 0, err
	}
	took += time.Since(start)
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	last := uint32(0)
	for at := int64(0); at < edges; at += int64(len(src)) {
		n := min(int64(len(src)), edges-at)
		for i := range n {
			h := rng.Hash(uint64(at + i))
			last += uint32(rng.Below(h, 7)) + 1
			src[i], dst[i] = last, uint32(h)%measuredBlock
		}
		start = time.Now()
		if err := errors.Join(ctx.Err(), w.Write(src[:n], dst[:n])); err != nil {
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

func readMeasuredEdges(r storage.Reader) error {
	e, err := OpenEdges(r, "edges.parquet")
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

// measuredBatch is a record batch of random values.
type measuredBatch struct {
	schema RowSchema
	ids    *mem.Array[int64]
	values *mem.Array[float32]
}

func newMeasuredBatch(b *mem.Budget, s RowSchema) (_ *measuredBatch, err error) {
	if !s.valid() {
		return nil, fmt.Errorf("shards: impossible row schema %+v", s)
	}
	m := &measuredBatch{schema: s}
	rows := int64(BatchRows(s.Width))
	if m.ids, err = mem.Alloc[int64](b, rows, "the ids of a record batch"); err != nil {
		return nil, err
	}
	if m.values, err = mem.Alloc[float32](b, rows*int64(s.Width)+RowSlack, "a record batch"); err != nil {
		m.ids.Free()
		return nil, err
	}
	for i := range m.values.S {
		m.values.S[i] = float32(rng.Normal(uint64(i)))
	}
	return m, nil
}

func (m *measuredBatch) free() {
	m.ids.Free()
	m.values.Free()
}

func (m *measuredBatch) write(ctx context.Context, c *catalog.Catalog, path string, rows int64) (time.Duration, error) {
	start := time.Now()
	f, err := c.Create(ctx, catalog.Describe(catalog.KindSmoothed, path).In(0))
	if err != nil {
		return 0, err
	}
	defer f.Abort()
	w, err := NewRowWriter(f, m.schema)
	if err != nil {
		return 0, err
	}
	for at := int64(0); at < rows; at += int64(len(m.ids.S)) {
		n := min(int64(len(m.ids.S)), rows-at)
		for i := range n {
			m.ids.S[i] = at + i
		}
		if err := errors.Join(ctx.Err(), w.Write(m.ids.S[:n], nil, m.values.S[:n*int64(m.schema.Width)])); err != nil {
			return 0, err
		}
	}
	if f.Rows, err = w.Close(); err != nil {
		return 0, err
	}
	err = c.Commit(ctx, f)
	return time.Since(start), err
}

func (m *measuredBatch) read(r storage.Reader) error {
	in, err := OpenRows(r, "rows.arrow")
	if err != nil {
		return err
	}
	b := RowBatch{ID: m.ids.S[:0]}
	for i := range in.NumBatches() {
		b.Values = m.values.S[:0]
		if err := in.ReadBatch(i, &b); err != nil {
			return err
		}
	}
	return nil
}
