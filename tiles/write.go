package tiles

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
)

// tooLarge is the least value that float16 rounds to infinity.
const tooLarge = 65520

// Group holds the caller's rows of tiles of one interval while they are written. Writes to tiles that are committed or no longer needed are
// ignored.
type Group struct {
	m     *Matrix
	first int // first panel
	files []*catalog.File
	buf   [][]byte // by panel
}

// Create creates the tiles of panels [first, last) of an interval. Abort or Commit ends the group.
func (m *Matrix) Create(ctx context.Context, interval, first, last int) (*Group, error) {
	g := &Group{m: m, first: first, files: make([]*catalog.File, last-first), buf: make([][]byte, last-first)}
	for i := range g.files {
		if m.committed(interval, first+i) || m.isNeedless(interval, first+i) {
			continue
		}
		f, err := m.cat.Create(ctx, m.describe(interval, first+i))
		if err != nil {
			g.Abort()
			return nil, err
		}
		g.files[i] = f
	}
	return g, nil
}

// Whole reports whether all tiles of the group are committed, so that nothing is left to write.
func (g *Group) Whole() bool {
	return !slices.ContainsFunc(g.files, func(f *catalog.File) bool { return f != nil })
}

// Write appends stored rows of a panel. Different panels may be written at the same time.
func (g *Group) Write(panel int, rows []byte) error {
	f := g.files[panel-g.first]
	if f == nil {
		return nil
	}
	_, err := f.Write(rows)
	return err
}

// Put appends rows of a panel: columns [at, at+16) of values, which has width columns. Columns past the width are zero. float16 values
// are rounded to nearest; for values that are too large, the error wraps [failure.ErrData]. Different panels may be put at the same time.
func (g *Group) Put(panel int, values []float32, width, at int) error {
	f := g.files[panel-g.first]
	if f == nil {
		return nil
	}
	if width == packed.PanelColumns && g.m.Encode == nil && !g.m.Half {
		_, err := f.Write(mem.AsBytes(values)) // values are stored unchanged
		return err
	}
	buf := g.buf[panel-g.first][:0]
	var row [packed.PanelColumns]float32
	for ; len(values) > 0; values = values[width:] {
		copy(row[:], values[at:min(at+packed.PanelColumns, width)])
		if g.m.Encode != nil {
			buf = g.m.Encode(buf, panel, row[:])
			continue
		}
		if !g.m.Half {
			buf = append(buf, mem.AsBytes(row[:])...)
			continue
		}
		for _, x := range row {
			if !(math.Abs(float64(x)) < tooLarge) {
				return failure.Of(failure.ErrData, "%s: the value %g of panel %d is too large for float16, whose largest value is 65504: use --smoothed-precision float32, or scale the features down before you import them", g.m.Prefix, x, panel)
			}
		}
		buf = slices.Grow(buf, 2*len(row))[:len(buf)+2*len(row)]
		half.Encode(buf[len(buf)-2*len(row):], row[:])
	}
	g.buf[panel-g.first] = buf
	_, err := f.Write(buf)
	return err
}

// Commit makes the tiles durable, all or none.
func (g *Group) Commit(ctx context.Context) error {
	var files []*catalog.File
	for _, f := range g.files {
		if f != nil {
			files = append(files, f)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return g.m.cat.Commit(ctx, files...)
}

// Abort drops files that are not committed. g may be nil.
func (g *Group) Abort() {
	if g == nil {
		return
	}
	for _, f := range g.files {
		if f != nil {
			f.Abort()
		}
	}
}

// Store commits the caller's rows as panels [first, last), at most [Together]; each thread takes a panel. rows puts all of them in order,
// some at a time, with 16·(last−first) values a row.
func (m *Matrix) Store(ctx context.Context, first, last int, rows func(put func(rows []float32) error) error) error {
	w := &storing{m: m, first: first, last: last, at: m.first}
	defer func() { w.group.Abort() }()
	if err := w.begin(ctx); err != nil {
		return err
	}
	return rows(func(rows []float32) error { return w.put(ctx, rows) })
}

// storing divides rows into the tiles of one interval after the other.
type storing struct {
	m           *Matrix
	first, last int
	interval    int
	at          int64 // number of rows so far
	group       *Group
}

// begin creates the tiles of the present interval, and commits those of intervals without rows.
func (w *storing) begin(ctx context.Context) (err error) {
	for ; w.interval < w.m.Intervals(); w.interval++ {
		lo, hi := w.m.Mine(w.interval)
		if lo == hi && w.m.last-w.m.first < w.m.NumRows() {
			continue // the interval belongs to another worker, or to none
		}
		if w.group, err = w.m.Create(ctx, w.interval, w.first, w.last); err != nil || w.at < hi {
			return err
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *storing) commit(ctx context.Context) error {
	g := w.group
	w.group = nil
	if err := g.Commit(ctx); err != nil || w.m.stored == nil {
		return err
	}
	return w.m.stored(ctx, w.interval, w.first, w.last)
}

func (w *storing) put(ctx context.Context, rows []float32) error {
	width := (w.last - w.first) * packed.PanelColumns
	for len(rows) > 0 {
		if w.interval == w.m.Intervals() {
			return fmt.Errorf("there are more rows than the %d of %s", w.m.NumRows(), w.m.Prefix)
		}
		_, hi := w.m.Mine(w.interval)
		n := min(int64(len(rows)/width), hi-w.at)
		if err := share.Each(w.m.threads, w.last-w.first, func(k int) error {
			return w.group.Put(w.first+k, rows[:n*int64(width)], width, k*packed.PanelColumns)
		}); err != nil {
			return err
		}
		rows, w.at = rows[n*int64(width):], w.at+n
		if w.at < hi {
			continue
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
		w.interval++
		if err := w.begin(ctx); err != nil {
			return err
		}
	}
	return nil
}
