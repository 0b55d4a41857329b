package worker

import (
	"context"
	"encoding/binary"
	"fmt"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
)

// tiles gives access to the tiles of one kind as columns of all rows.
type tiles struct {
	cat    *catalog.Catalog
	budget *mem.Budget
	kind   string
	prefix string
	width  int
	half   bool    // float16, else float32
	starts []int64 // the stored rows before each interval, then all
	ofTile map[[2]int32]catalog.Entry
	// first and last are the stored rows that the task reads and writes: all, or, where
	// workers share them, some, which are then committed as pieces of tiles, of partKind.
	first, last int64
	partKind    string
	pieces      map[[2]int32][]piece
	// done are intervals whose tiles are not needed any more.
	done map[int32]bool
}

// tiles gives the tiles of a kind that hold a row for every node.
func (j *job) tiles(kind, prefix string, width int, s shards.Summary) *tiles {
	starts := []int64{0}
	for lo := int64(0); lo < s.Nodes; lo += s.IntervalRows {
		starts = append(starts, min(lo+s.IntervalRows, s.Nodes))
	}
	t := j.tilesOf(kind, prefix, width, starts, kind == catalog.KindFeatures && s.HalfFeatures())
	t.first, t.last = j.span(s.Nodes)
	return t
}

// tilesOf gives tiles with a row for some nodes; starts counts those before each
// interval.
func (j *job) tilesOf(kind, prefix string, width int, starts []int64, half bool) *tiles {
	t := &tiles{
		cat: j.cat, budget: j.budget, kind: kind, prefix: prefix, width: width, half: half, starts: starts,
		ofTile: map[[2]int32]catalog.Entry{}, last: starts[len(starts)-1],
	}
	for _, e := range j.cat.Entries(kind) {
		t.ofTile[[2]int32{e.Interval, e.Block}] = e
	}
	return t
}

// share makes stored rows [first, last) those of the task, and looks for pieces of
// tiles of a kind.
func (t *tiles) share(kind string, first, last int64) *tiles {
	t.first, t.last, t.partKind, t.pieces = first, last, kind, map[[2]int32][]piece{}
	for _, e := range t.cat.Entries(kind) {
		if p, ok := t.pieceOf(e); ok {
			at := [2]int32{e.Interval, e.Block}
			t.pieces[at] = append(t.pieces[at], p)
		}
	}
	return t
}

// piecePath is where stored rows [lo, hi) of a tile lie.
func (t *tiles) piecePath(interval, granule int, lo, hi int64) string {
	return fmt.Sprintf("%s.rows-%d-%d", shards.TilePath(t.prefix, interval, granule, t.half), lo, hi)
}

func (t *tiles) pieceOf(e catalog.Entry) (p piece, ok bool) {
	return piece{e.Lo, e.Hi, e}, e.Rows == e.Hi-e.Lo && e.Bytes == e.Rows*t.rowBytes()
}

// rowBytes is the length of a tile's row.
func (t *tiles) rowBytes() int64 { return int64(shards.TileRowBytes(t.half)) }

func (t *tiles) granules() int { return packed.Panels(t.width) }

func (t *tiles) intervals() int { return len(t.starts) - 1 }

// bounds are the stored rows of an interval.
func (t *tiles) bounds(interval int) (lo, hi int64) { return t.starts[interval], t.starts[interval+1] }

// rows is the number of stored rows.
func (t *tiles) rows() int64 { return t.starts[t.intervals()] }

// mine are the stored rows of an interval that are the task's.
func (t *tiles) mine(interval int) (lo, hi int64) {
	lo, hi = t.bounds(interval)
	return max(lo, min(t.first, hi)), min(hi, max(t.last, lo))
}

// whole says whether a tile is there in one file.
func (t *tiles) whole(interval, granule int) (catalog.Entry, bool) {
	e, ok := t.ofTile[[2]int32{int32(interval), int32(granule)}]
	lo, hi := t.bounds(interval)
	return e, ok && e.Rows == hi-lo && e.Bytes == (hi-lo)*t.rowBytes()
}

// entry is the file of a tile, or the pieces that make it up.
func (t *tiles) entry(interval, granule int) ([]piece, error) {
	lo, hi := t.bounds(interval)
	if e, ok := t.whole(interval, granule); ok {
		return []piece{{lo, hi, e}}, nil
	}
	list, ok := cover(t.pieces[[2]int32{int32(interval), int32(granule)}], lo, hi)
	if !ok || t.pieces == nil {
		return nil, fmt.Errorf("worker: the catalogue lacks the whole tile %s: %w",
			shards.TilePath(t.prefix, interval, granule, t.half), seal.ErrCorrupt)
	}
	return list, nil
}

// complete says whether all intervals of a granule are committed, but for those
// that are done.
func (t *tiles) complete(granule int) bool {
	for i := range t.intervals() {
		if _, err := t.entry(i, granule); err != nil && !t.done[int32(i)] {
			return false
		}
	}
	return true
}

// firstMissing is the first granule from first on that is not complete, last if
// all below are.
func (t *tiles) firstMissing(first, last int) int {
	for first < last && t.complete(first) {
		first++
	}
	return first
}

// Width implements lsi.Columns.
func (t *tiles) Width() int { return t.width }

// Rows implements lsi.Columns: checked against the catalogue's checksums.
func (t *tiles) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	for i := range t.intervals() {
		if lo, hi := t.mine(i); lo == hi {
			continue
		}
		if err := t.visitRows(ctx, i, first/packed.PanelColumns, columns, max(hops.BatchValues/columns, 1), func(_ int64, values []float32) error {
			return put(values)
		}); err != nil {
			return err
		}
	}
	return nil
}

// store commits rows that come in order as granules first, first+1, … below
// last, which are few: each open file holds buffers.
func (t *tiles) store(ctx context.Context, first, last int, rows func(put func(rows []float32) error) error) error {
	w := &tileStore{t: t, first: first, width: (last - first) * packed.PanelColumns, at: t.first}
	defer w.abort()
	if err := w.open(ctx); err != nil {
		return err
	}
	return rows(func(rows []float32) error { return w.put(ctx, rows) })
}

// tileStore cuts rows into the tiles of one interval after the other.
type tileStore struct {
	t        *tiles
	first    int // granule
	width    int
	interval int
	at       int64 // rows so far
	files    []*catalog.File
	buf      []byte
}

// open starts the files of the present interval, and commits those of intervals
// without rows.
func (w *tileStore) open(ctx context.Context) error {
	for ; w.interval < w.t.intervals(); w.interval++ {
		lo, hi := w.t.mine(w.interval)
		if lo == hi && w.t.last-w.t.first < w.t.rows() {
			continue // another worker's, or nobody's
		}
		for g := range w.width / packed.PanelColumns {
			f, err := w.t.create(ctx, w.interval, w.first+g)
			if err != nil {
				return err
			}
			w.files = append(w.files, f)
		}
		if w.at < hi {
			return nil
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *tileStore) commit(ctx context.Context) error {
	files := w.files
	w.files = nil
	return w.t.cat.Commit(ctx, files...)
}

func (w *tileStore) put(ctx context.Context, rows []float32) error {
	for len(rows) > 0 {
		if w.interval == w.t.intervals() {
			return fmt.Errorf("worker: more rows than the %d of %s", w.t.rows(), w.t.prefix)
		}
		_, hi := w.t.mine(w.interval)
		n := min(int64(len(rows)/w.width), hi-w.at)
		for g, f := range w.files {
			if _, err := f.Write(w.granule(rows[:n*int64(w.width)], g)); err != nil {
				return err
			}
		}
		rows, w.at = rows[n*int64(w.width):], w.at+n
		if w.at < hi {
			continue
		}
		if err := w.commit(ctx); err != nil {
			return err
		}
		w.interval++
		if err := w.open(ctx); err != nil {
			return err
		}
	}
	return nil
}

// granule encodes one granule of rows.
func (w *tileStore) granule(rows []float32, g int) []byte {
	w.buf = w.buf[:0]
	for at := g * packed.PanelColumns; at < len(rows); at += w.width {
		row := rows[at : at+packed.PanelColumns]
		if !w.t.half {
			w.buf = append(w.buf, mem.AsBytes(row)...)
			continue
		}
		for _, x := range row {
			w.buf = binary.LittleEndian.AppendUint16(w.buf, half.FromFloat(x))
		}
	}
	return w.buf
}

func (w *tileStore) abort() {
	for _, f := range w.files {
		f.Abort()
	}
}

// create starts the file of the task's rows of one tile; the caller writes all its rows.
func (t *tiles) create(ctx context.Context, interval, granule int) (*catalog.File, error) {
	kind, path := t.kind, shards.TilePath(t.prefix, interval, granule, t.half)
	lo, hi := t.mine(interval)
	if first, last := t.bounds(interval); lo > first || hi < last {
		kind, path = t.partKind, t.piecePath(interval, granule, lo, hi)
	}
	return t.cat.Create(ctx, catalog.Describe(kind, path).In(interval).Panels(granule, granule+1).Holding(lo, hi))
}

// visitRows reads columns [0, width) of the task's rows of an interval, of tiles from
// granule first on, batch by batch: values is row-major, batch rows or fewer,
// and valid during the call. Every tile is verified before the first row.
func (t *tiles) visitRows(ctx context.Context, interval, first, width, batch int,
	visit func(row int64, values []float32) error,
) error {
	granules := packed.Panels(width)
	granules = min(granules, t.granules()-first) // what is past the width is zero
	lo, hi := t.mine(interval)
	readers := make([]*pieceReader, granules)
	for g := range granules {
		list, err := t.entry(interval, first+g)
		if err != nil {
			return err
		}
		if readers[g], err = openPieces(ctx, t.cat, meeting(list, lo, hi), t.rowBytes()); err != nil {
			return err
		}
		defer readers[g].close()
	}
	if lo == hi {
		return nil
	}
	batch = int(min(int64(batch), hi-lo))
	values, err := mem.Alloc[float32](t.budget, int64(batch)*int64(width), "rows of tiles")
	if err != nil {
		return err
	}
	defer values.Free()
	column, err := mem.Alloc[byte](t.budget, int64(batch)*t.rowBytes(), "tile rows")
	if err != nil {
		return err
	}
	defer column.Free()
	for row := lo; row < hi; {
		n := int(min(int64(batch), hi-row))
		for g, r := range readers {
			part := column.S[:int64(n)*t.rowBytes()]
			if err := r.read(part, row); err != nil {
				return fmt.Errorf("worker: %s: %w", shards.TilePath(t.prefix, interval, first+g, t.half), err)
			}
			c := min(packed.PanelColumns, width-g*packed.PanelColumns)
			for i := range n {
				shards.DecodeTile(values.S[i*width+g*packed.PanelColumns:][:c], part[int64(i)*t.rowBytes():], t.half)
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
