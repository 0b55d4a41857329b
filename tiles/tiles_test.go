package tiles

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
)

const (
	tileKind = catalog.KindSmoothedTile
	partKind = catalog.KindSmoothedPart
)

func newMatrix(t testing.TB, store storage.Store, width int, half bool, starts ...int64) *Matrix {
	t.Helper()
	cat, err := catalog.Open(context.Background(), store)
	if err != nil {
		t.Fatal(err)
	}
	budget, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	return Open(cat, budget, Layout{Kind: tileKind, PartKind: partKind, Prefix: "t", Width: width, Half: half, Starts: starts})
}

// again is the matrix as the catalogue lists it now.
func again(m *Matrix) *Matrix { return Open(m.cat, m.budget, m.Layout) }

// value returns the value of row r in column c; it is exact in float16.
func value(r int64, c int) float32 { return float32(r%97) + float32(c%16)/16 }

// fill stores the matrix's rows as panels [first, last), step rows at a time.
func fill(m *Matrix, first, last, step int) error {
	return m.Store(context.Background(), first, last, func(put func([]float32) error) error {
		for lo := m.first; lo < m.last; lo += int64(step) {
			var rows []float32
			for r := lo; r < min(lo+int64(step), m.last); r++ {
				for at := first * 16; at < last*16; at++ {
					x := float32(0)
					if at < m.Width() {
						x = value(r, at)
					}
					rows = append(rows, x)
				}
			}
			if err := put(rows); err != nil {
				return err
			}
		}
		return nil
	})
}

// check reads rows [lo, hi) of the matrix and compares them.
func check(m *Matrix, lo, hi int64, columns int) error {
	row := lo
	err := m.Share(lo, hi).Rows(context.Background(), 0, columns, func(rows []float32) error {
		for ; len(rows) > 0; rows, row = rows[columns:], row+1 {
			for c := range columns {
				want := float32(0)
				if c < m.Width() {
					want = value(row, c)
				}
				if rows[c] != want {
					return fmt.Errorf("row %d column %d: %g, want %g", row, c, rows[c], want)
				}
			}
		}
		return nil
	})
	if err == nil && row != hi {
		err = fmt.Errorf("%d rows, want %d", row-lo, hi-lo)
	}
	return err
}

// Whatever the intervals, the width and the way rows come, the stored rows are read back, and parts
// of tiles that several workers write become the same files.
func TestStoreReadAndJoin(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		ctx := context.Background()
		starts := []int64{0}
		for range rapid.IntRange(1, 4).Draw(r, "intervals") {
			starts = append(starts, starts[len(starts)-1]+rapid.Int64Range(0, 40).Draw(r, "rows"))
		}
		n := starts[len(starts)-1]
		width, half := rapid.IntRange(1, 50).Draw(r, "width"), rapid.Bool().Draw(r, "half")
		whole := newMatrix(t, storagetest.NewMem(), width, half, starts...)
		step := rapid.IntRange(1, 30).Draw(r, "step")
		if err := fill(whole, 0, whole.Panels(), step); err != nil {
			r.Fatal(err)
		}
		lo := rapid.Int64Range(0, n).Draw(r, "lo")
		hi := rapid.Int64Range(lo, n).Draw(r, "hi")
		columns := whole.Panels() * 16
		if err := errors.Join(check(again(whole), 0, n, columns), check(again(whole), lo, hi, width)); err != nil {
			r.Fatal(err)
		}

		shared := newMatrix(t, storagetest.NewMem(), width, half, starts...)
		cuts := []int64{0, lo, hi, n}
		for i := range cuts[1:] {
			if cuts[i] == cuts[i+1] && n > 0 {
				continue
			}
			if err := fill(again(shared).Share(cuts[i], cuts[i+1]), 0, shared.Panels(), step); err != nil {
				r.Fatal(err)
			}
		}
		if err := check(again(shared), 0, n, columns); err != nil {
			r.Fatal(err)
		}
		for i := range shared.Intervals() {
			if a, b := again(shared).Bounds(i); a == b && n > 0 {
				continue // nobody's rows
			}
			if err := again(shared).Join(ctx, i); err != nil {
				r.Fatal(err)
			}
		}
		if got := shared.cat.Entries(partKind); len(got) > 0 {
			r.Errorf("parts are left: %v", got)
		}
		for _, want := range whole.cat.Entries(tileKind) {
			if got, ok := shared.cat.Lookup(want.Path); want.Rows > 0 && (!ok || got != want) {
				r.Errorf("joined %+v, want %+v", got, want)
			}
		}
	})
}

// A tile that is committed is not written again, also where others of its group are not.
func TestWholeTilesAreLeftAlone(t *testing.T) {
	ctx := context.Background()
	store := storage.NewCounting(storagetest.NewMem())
	m := newMatrix(t, store, 40, false, 0, 10, 25)
	if err := fill(m, 0, 3, 7); err != nil {
		t.Fatal(err)
	}
	lost := "t/tile-00001-00002.f32"
	if err := m.cat.Remove(ctx, func(e catalog.Entry) bool { return e.Path == lost }); err != nil {
		t.Fatal(err)
	}
	if got := again(m).FirstMissing(0, 3); got != 2 {
		t.Errorf("the first panel that is missing is %d, want 2", got)
	}
	number := m.cat.Number()
	before := store.BytesWritten()
	if err := fill(again(m), 0, 3, 7); err != nil {
		t.Fatal(err)
	}
	if got := m.cat.Number() - number; got != 1 {
		t.Errorf("%d changes of the catalogue, want 1", got)
	}
	if got := store.BytesWritten() - before; got < 15*64 || got > 15*64+1000 {
		t.Errorf("%d bytes written for one tile of %d", got, 15*64)
	}
	if got := again(m).FirstMissing(0, 3); got != 3 {
		t.Errorf("panel %d is missing still", got)
	}
}

// A changed byte of any tile is found before the last rows are given, with each file read
// once.
func TestDamagedTiles(t *testing.T) {
	store := storagetest.NewMem()
	counting := storage.NewCounting(store)
	m := newMatrix(t, counting, 33, true, 0, 30, 50)
	if err := fill(m, 0, 3, 11); err != nil {
		t.Fatal(err)
	}
	var all int64
	for _, e := range m.cat.Entries(tileKind) {
		all += e.Bytes
	}
	before := counting.BytesRead()
	if err := check(again(m), 0, 50, 48); err != nil {
		t.Fatal(err)
	}
	if got := counting.BytesRead() - before; got != all {
		t.Errorf("%d bytes read of %d", got, all)
	}
	for _, e := range m.cat.Entries(tileKind) {
		for _, at := range []int64{0, e.Bytes / 2, e.Bytes - 1} {
			if err := store.FlipByte(e.Path, at); err != nil {
				t.Fatal(err)
			}
			last := int64(-1)
			err := again(m).Read(context.Background(), int(e.Interval), 0, 33, 7, func(row int64, _ []float32) error { last = row; return nil })
			if !errors.Is(err, seal.ErrCorrupt) {
				t.Errorf("%s byte %d: %v, want ErrCorrupt", e.Path, at, err)
			}
			if _, hi := m.Bounds(int(e.Interval)); last+7 >= hi {
				t.Errorf("%s byte %d: the last rows were given", e.Path, at)
			}
			_ = store.FlipByte(e.Path, at)
		}
	}
}

// Tiles of both types may lie beside each other for a while. A matrix takes those of its type.
func TestTypesOfTiles(t *testing.T) {
	m := newMatrix(t, storagetest.NewMem(), 20, false, 0, 10, 25)
	other := m.Layout
	other.Half = true
	if err := fill(Open(m.cat, m.budget, other), 0, 2, 7); err != nil {
		t.Fatal(err)
	}
	if err := fill(m, 0, 1, 7); err != nil {
		t.Fatal(err)
	}
	if got := again(m).FirstMissing(0, 2); got != 1 {
		t.Errorf("panel %d of float32 is the first that is missing, want 1", got)
	}
	halves := Open(m.cat, m.budget, other)
	if err := errors.Join(check(halves, 0, 25, 20), check(again(m), 0, 25, 16)); err != nil {
		t.Error(err)
	}
	for at, e := range Committed(m.cat, tileKind, false) {
		if Half(e) || at.Panel != 0 {
			t.Errorf("%+v is of float32", e)
		}
	}
}

// A value that float16 would round to infinity is refused, the largest ones below are rounded.
func TestTooLargeForFloat16(t *testing.T) {
	for x, fits := range map[float32]bool{65504: true, 65519: true, -65519: true, 65520: false, -70000: false, float32(math.Inf(1)): false, float32(math.NaN()): false} {
		m := newMatrix(t, storagetest.NewMem(), 16, true, 0, 1)
		err := m.Store(context.Background(), 0, 1, func(put func([]float32) error) error {
			row := make([]float32, 16)
			row[3] = x
			return put(row)
		})
		if fits && err != nil || !fits && !errors.Is(err, failure.ErrData) {
			t.Errorf("%v: %v", x, err)
		}
	}
}

// Read takes no more memory than is said, whatever it is given.
func TestMemoryOfRead(t *testing.T) {
	m := newMatrix(t, storagetest.NewMem(), 50, true, 0, 3000)
	if err := fill(m, 0, 4, 1000); err != nil {
		t.Fatal(err)
	}
	for _, bytes := range []int64{1, 10_000, 100_000, 10 << 20} {
		m := again(m)
		batch := m.Batch(50, bytes)
		need := m.ReadBytes(50, batch)
		if need > bytes && batch > 1 {
			t.Errorf("%d rows at a time take %d bytes, more than the %d there are", batch, need, bytes)
		}
		m.budget = smallBudget(t, need)
		visited := 0
		if err := m.Read(context.Background(), 0, 0, 50, batch, func(_ int64, values []float32) error {
			visited += len(values) / 50
			return nil
		}); err != nil || visited != 3000 {
			t.Errorf("%d bytes: %d rows, %v", bytes, visited, err)
		}
	}
}

// smallBudget is one in which only free bytes are left.
func smallBudget(t testing.TB, free int64) *mem.Budget {
	t.Helper()
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Reserve(b.Free()-free, "test"); err != nil {
		t.Fatal(err)
	}
	return b
}
