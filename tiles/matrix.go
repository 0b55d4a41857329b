package tiles

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/shards"
)

// Together bounds the number of tiles that should be written at a time, because each open file holds buffers.
const Together = 8

// Layout describes a matrix and where its tiles lie.
type Layout struct {
	// Kind is the kind of the tiles in the catalogue, PartKind that of the parts of tiles, Prefix their folder.
	Kind, PartKind, Prefix string
	// Width is the number of columns.
	Width int
	// Half says that values are stored as float16, otherwise as float32.
	Half bool
	// Starts holds the number of rows before each interval, then the number of all rows.
	Starts []int64
	// Row, if not 0, is the size in bytes of a panel's row that is stored in another form than 16 values. Encode appends a row in that
	// form; a matrix on which neither Put nor Store is called does not need it. [Matrix.Pieces] reads such rows.
	Row    int
	Encode func(to []byte, panel int, row []float32) []byte
}

// Matrix is a matrix in column tiles, as the catalogue lists it at the time of [Open]. It is safe for concurrent reading.
type Matrix struct {
	Layout
	cat    *catalog.Catalog
	budget *mem.Budget
	// first and last bound the rows that the caller reads and writes: all rows, or its share.
	first, last int64
	tiles       map[Place]catalog.Entry
	parts       map[Place][]catalog.Entry
	needless    func(Place) bool // nil if every tile is needed
	stored      func(ctx context.Context, interval, first, last int) error
	threads     int // threads that read and write; 0 means 1
}

// Place is the place of a tile.
type Place struct{ Interval, Panel int }

func placeOf(e catalog.Entry) Place { return Place{int(e.Interval), int(e.Block)} }

// Half reports whether the values of a committed tile are float16.
func Half(e catalog.Entry) bool { return e.ValueType == catalog.Float16 }

// Committed returns the tiles of a kind whose values have the given type.
func Committed(cat *catalog.Catalog, kind string, half bool) map[Place]catalog.Entry {
	list := map[Place]catalog.Entry{}
	for _, e := range cat.Entries(kind) {
		if Half(e) == half || e.Bytes == 0 { // without rows, the type does not matter
			list[placeOf(e)] = e
		}
	}
	return list
}

// Features returns the layout of a graph's feature tiles.
func Features(s shards.Summary) Layout {
	return Layout{
		Kind: catalog.KindFeatures, Prefix: "graph/features", Width: s.Features, Half: s.HalfFeatures(),
		Starts: Starts(s.Nodes, s.IntervalRows),
	}
}

// Starts returns the starts of a matrix with a row for each of n nodes, cut into intervals of intervalRows rows.
func Starts(n, intervalRows int64) []int64 {
	starts := []int64{0}
	for lo := int64(0); lo < n; lo += intervalRows {
		starts = append(starts, min(lo+intervalRows, n))
	}
	return starts
}

// Open looks up the committed tiles of a matrix.
func Open(cat *catalog.Catalog, budget *mem.Budget, l Layout) *Matrix {
	m := &Matrix{
		Layout: l, cat: cat, budget: budget, last: l.Starts[len(l.Starts)-1],
		tiles: Committed(cat, l.Kind, l.Half), parts: map[Place][]catalog.Entry{},
	}
	if l.PartKind == "" {
		return m
	}
	for _, e := range cat.Entries(l.PartKind) {
		if e.Rows == e.Hi-e.Lo && e.Bytes == e.Rows*m.rowBytes() {
			m.parts[placeOf(e)] = append(m.parts[placeOf(e)], e)
		}
	}
	return m
}

// Share restricts the caller to rows [first, last) and returns m.
func (m *Matrix) Share(first, last int64) *Matrix {
	m.first, m.last = first, last
	return m
}

// On sets the number of threads that read and write.
func (m *Matrix) On(threads int) *Matrix {
	m.threads = threads
	return m
}

// Needless sets which tiles are no longer needed, because their results exist. They are not written again.
func (m *Matrix) Needless(needless func(Place) bool) *Matrix {
	m.needless = needless
	return m
}

// AfterStore makes [Matrix.Store] call stored for each interval after it commits panels [first, last) of it.
func (m *Matrix) AfterStore(stored func(ctx context.Context, interval, first, last int) error) {
	m.stored = stored
}

// Panels returns the number of panels of the matrix.
func (m *Matrix) Panels() int    { return packed.Panels(m.Layout.Width) }
func (m *Matrix) Intervals() int { return len(m.Starts) - 1 }
func (m *Matrix) NumRows() int64 { return m.Starts[m.Intervals()] }

// rowBytes returns the length of a tile's row.
func (m *Matrix) rowBytes() int64 {
	if m.Row > 0 {
		return int64(m.Row)
	}
	return int64(shards.TileRowBytes(m.Half))
}

// Bounds returns the rows [lo, hi) of an interval.
func (m *Matrix) Bounds(interval int) (lo, hi int64) { return m.Starts[interval], m.Starts[interval+1] }

// Mine returns the caller's rows [lo, hi) of an interval.
func (m *Matrix) Mine(interval int) (lo, hi int64) {
	lo, hi = m.Bounds(interval)
	return max(lo, min(m.first, hi)), min(hi, max(m.last, lo))
}

// path returns the name of a tile.
func (m *Matrix) path(interval, panel int) string {
	if m.Row > 0 {
		return fmt.Sprintf("%s/tile-%05d-%05d.rows", m.Prefix, interval, panel)
	}
	return shards.TilePath(m.Prefix, interval, panel, m.Half)
}

// describe returns the entry for the caller's rows of a tile.
func (m *Matrix) describe(interval, panel int) catalog.Entry {
	kind, path := m.Kind, m.path(interval, panel)
	lo, hi := m.Mine(interval)
	if first, last := m.Bounds(interval); lo > first || hi < last {
		kind, path = m.PartKind, fmt.Sprintf("%s.rows-%d-%d", path, lo, hi)
	}
	e := catalog.Describe(kind, path).In(interval).Panels(panel, panel+1).Holding(lo, hi)
	switch {
	case m.Row > 0:
	case m.Half:
		e.ValueType = catalog.Float16
	default:
		e.ValueType = catalog.Float32
	}
	return e
}

// whole returns the entry of a tile that exists in one file.
func (m *Matrix) whole(interval, panel int) (catalog.Entry, bool) {
	e, ok := m.tiles[Place{interval, panel}]
	lo, hi := m.Bounds(interval)
	return e, ok && e.Rows == hi-lo && e.Bytes == (hi-lo)*m.rowBytes()
}

// Has reports whether a tile exists in one file.
func (m *Matrix) Has(interval, panel int) bool {
	_, ok := m.whole(interval, panel)
	return ok
}

// isNeedless reports whether a tile is no longer needed.
func (m *Matrix) isNeedless(interval, panel int) bool {
	return m.needless != nil && m.needless(Place{interval, panel})
}

// committed reports whether the caller's rows of a tile exist in one file.
func (m *Matrix) committed(interval, panel int) bool {
	if _, ok := m.whole(interval, panel); ok {
		return true
	}
	lo, hi := m.Mine(interval)
	for _, e := range m.parts[Place{interval, panel}] {
		if e.Lo == lo && e.Hi == hi {
			return true
		}
	}
	return false
}

// files returns the file of a tile, or the parts that make it up, in order of rows.
func (m *Matrix) files(interval, panel int) ([]catalog.Entry, error) {
	lo, hi := m.Bounds(interval)
	if e, ok := m.whole(interval, panel); ok {
		e.Lo, e.Hi = lo, hi
		return []catalog.Entry{e}, nil
	}
	list, ok := catalog.Cover(m.parts[Place{interval, panel}], lo, hi)
	if !ok {
		return nil, fmt.Errorf("the catalogue lacks the tile %s, or rows of it: use another run directory: %w", m.path(interval, panel), seal.ErrCorrupt)
	}
	return list, nil
}

// Complete reports whether all needed tiles of a panel are committed.
func (m *Matrix) Complete(panel int) bool {
	for i := range m.Intervals() {
		if _, err := m.files(i, panel); err != nil && !m.isNeedless(i, panel) {
			return false
		}
	}
	return true
}

// FirstMissing returns the first panel, from first on, that is not complete, or last if all below last are.
func (m *Matrix) FirstMissing(first, last int) int {
	for first < last && m.Complete(first) {
		first++
	}
	return first
}
