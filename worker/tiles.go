package worker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/internal/mem"
	"ndls/shards"
	"ndls/spmv"
)

// tileBytes is the length of a tile's row.
const tileBytes = shards.TileColumns * 4

// tiles gives access to the tiles of one kind as columns of all rows.
type tiles struct {
	cat      *shards.Catalog
	kind     string
	prefix   string
	width    int
	rows     int64
	interval int64 // rows of an interval
	ofTile   map[[2]int32]shards.Entry
}

func (j *job) tiles(kind, prefix string, width int, s shards.Summary) *tiles {
	t := &tiles{
		cat: j.cat, kind: kind, prefix: prefix, width: width, rows: s.Nodes, interval: s.IntervalRows,
		ofTile: map[[2]int32]shards.Entry{},
	}
	for _, e := range j.cat.Entries(kind) {
		t.ofTile[[2]int32{e.Interval, e.Block}] = e
	}
	return t
}

func (t *tiles) granules() int { return (t.width + spmv.Granule - 1) / spmv.Granule }

func (t *tiles) intervals() int { return int((t.rows + t.interval - 1) / t.interval) }

// bounds are the rows of an interval.
func (t *tiles) bounds(interval int) (lo, hi int64) {
	lo = int64(interval) * t.interval
	return lo, min(lo+t.interval, t.rows)
}

func (t *tiles) entry(interval, granule int) (shards.Entry, error) {
	e, ok := t.ofTile[[2]int32{int32(interval), int32(granule)}]
	lo, hi := t.bounds(interval)
	if !ok || e.Rows != hi-lo || e.Bytes != (hi-lo)*tileBytes {
		return e, fmt.Errorf("worker: the catalogue lacks the whole tile %s: %w",
			shards.TilePath(t.prefix, interval, granule), shards.ErrCorrupt)
	}
	return e, nil
}

// complete says whether all intervals of a granule are committed.
func (t *tiles) complete(granule int) bool {
	for i := range t.intervals() {
		if _, err := t.entry(i, granule); err != nil {
			return false
		}
	}
	return true
}

// firstMissing is the first granule that is not complete, granules() if all are.
func (t *tiles) firstMissing() int {
	g := 0
	for g < t.granules() && t.complete(g) {
		g++
	}
	return g
}

// Width implements lsi.Columns.
func (t *tiles) Width() int { return t.width }

// Load implements lsi.Columns: checked against the catalogue's checksums.
func (t *tiles) Load(ctx context.Context, granule int, rows spmv.Rows, at int) error {
	buf := make([]byte, 1024*tileBytes)
	for i := range t.intervals() {
		e, err := t.entry(i, granule)
		if err != nil {
			return err
		}
		if err := t.loadTile(ctx, e, i, rows, at, buf); err != nil {
			return err
		}
	}
	return nil
}

func (t *tiles) loadTile(ctx context.Context, e shards.Entry, interval int, rows spmv.Rows, at int, buf []byte) (err error) {
	r, err := t.cat.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	lo, hi := t.bounds(interval)
	for lo < hi {
		part := buf[:min(int64(len(buf)), (hi-lo)*tileBytes)]
		if _, err := io.ReadFull(r, part); err != nil {
			return fmt.Errorf("worker: %s: %w", e.Path, err)
		}
		for ; len(part) > 0; part = part[tileBytes:] {
			copy(mem.AsBytes(rows.Row(lo)[at:at+shards.TileColumns]), part)
			lo++
		}
	}
	// The last read tells whether the checksum held.
	if _, err := r.Read(buf[:1]); err != io.EOF {
		return fmt.Errorf("worker: %s: %w", e.Path, err)
	}
	return nil
}

// store commits rows as granules first, first+1, … below last, one granule
// after the other: each open file holds buffers.
func (t *tiles) store(ctx context.Context, first, last int, rows spmv.Rows) error {
	for granule := first; granule < min(first+rows.Stride/spmv.Granule, last); granule++ {
		for i := range t.intervals() {
			if err := t.storeTile(ctx, i, granule, rows, (granule-first)*spmv.Granule); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *tiles) storeTile(ctx context.Context, interval, granule int, rows spmv.Rows, at int) error {
	f, err := t.create(ctx, interval, granule)
	if err != nil {
		return err
	}
	defer f.Abort()
	lo, hi := t.bounds(interval)
	if err := writeTile(f, rows, lo, hi, at); err != nil {
		return err
	}
	return t.cat.Commit(ctx, f)
}

// create starts the file of one tile; the caller writes all its rows.
func (t *tiles) create(ctx context.Context, interval, granule int) (*shards.File, error) {
	f, err := t.cat.Create(ctx, t.kind, shards.TilePath(t.prefix, interval, granule), int32(interval), int32(granule))
	if err != nil {
		return nil, err
	}
	lo, hi := t.bounds(interval)
	f.Rows = hi - lo
	return f, nil
}

func writeTile(w io.Writer, rows spmv.Rows, lo, hi int64, at int) error {
	buf := make([]byte, 0, 1024*tileBytes)
	for ; lo < hi; lo++ {
		buf = append(buf, mem.AsBytes(rows.Row(lo)[at:at+shards.TileColumns])...)
		if len(buf) == cap(buf) || lo+1 == hi {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

// visitRows reads columns [0, width) of the rows of an interval, of tiles from
// granule first on, batch by batch: values is row-major, batch rows or fewer,
// and valid during the call. Every tile is verified before the first row.
func (t *tiles) visitRows(ctx context.Context, b *mem.Budget, interval, first, width, batch int,
	visit func(row int64, values []float32) error,
) error {
	granules := (width + spmv.Granule - 1) / spmv.Granule
	readers := make([]io.ReaderAt, granules)
	for g := range granules {
		e, err := t.entry(interval, first+g)
		if err != nil {
			return err
		}
		if err := t.cat.Verify(ctx, e); err != nil {
			return err
		}
		r, err := t.cat.Open(ctx, e)
		if err != nil {
			return err
		}
		defer r.Close()
		readers[g] = r
	}
	lo, hi := t.bounds(interval)
	batch = int(min(int64(batch), hi-lo))
	values, err := mem.Alloc[float32](b, int64(batch)*int64(width), "record batch")
	if err != nil {
		return err
	}
	defer values.Free()
	column, err := mem.Alloc[float32](b, int64(batch)*shards.TileColumns, "tile rows")
	if err != nil {
		return err
	}
	defer column.Free()
	for row := lo; row < hi; {
		n := int(min(int64(batch), hi-row))
		for g, r := range readers {
			part := column.S[:n*shards.TileColumns]
			if _, err := r.ReadAt(mem.AsBytes(part), (row-lo)*tileBytes); err != nil && err != io.EOF {
				return fmt.Errorf("worker: %s: %w", shards.TilePath(t.prefix, interval, first+g), err)
			}
			c := min(spmv.Granule, width-g*spmv.Granule)
			for i := range n {
				copy(values.S[i*width+g*spmv.Granule:][:c], part[i*shards.TileColumns:])
			}
		}
		if err := visit(row, values.S[:n*width]); err != nil {
			return err
		}
		row += int64(n)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
