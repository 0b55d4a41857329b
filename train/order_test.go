package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/internal/mem"
)

// rowNumbers is a source whose first column is the row.
func rowNumbers(width int, chunks []int64) *table {
	return &table{width: width, chunks: chunks, value: func(row int64, column int) float32 {
		if column == 0 {
			return float32(row)
		}
		return float32(column)
	}}
}

// visited lists what a visitor saw, row by row.
func visited(t testing.TB, width int, visit func(visitor) error) (rows []int64) {
	t.Helper()
	err := visit(func(p microbatch) error {
		if p.width != width || p.len() == 0 {
			return fmt.Errorf("%d samples of width %d", p.len(), p.width)
		}
		for i := range p.len() {
			values, label := p.row(i), p.label(i)
			row := int64(values[0])
			if int32(row%5) != label || width > 1 && values[width-1] != float32(width-1) {
				return fmt.Errorf("row %d came with label %d and values %v", row, label, values)
			}
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// orders visits the training rows of p in memory and streamed.
func orders(t testing.TB, b *mem.Budget, p Problem, keys ...uint64) (memory, streamed [][]int64, expected []int64) {
	t.Helper()
	ctx, width := context.Background(), p.Source.Width()
	for i, s := range p.Splits {
		if s == Train {
			expected = append(expected, int64(i))
		}
	}
	for _, load := range []bool{false, true} {
		set := newRowSet(p, Train)
		if load {
			if err := set.allocate(b); err != nil {
				t.Fatal(err)
			}
			if err := check(ctx, b, p.Source, set); err != nil {
				t.Fatal(err)
			}
		}
		h, err := newSampler(b, width, set.count, true, !load)
		if err != nil {
			t.Fatal(err)
		}
		all := [][]int64{visited(t, width, func(v visitor) error { return h.inOrder(ctx, set, v) })}
		for _, key := range keys {
			all = append(all, visited(t, width, func(v visitor) error { return h.epoch(ctx, set, key, v) }))
		}
		if load {
			memory = all
		} else {
			streamed = all
		}
		h.free()
		set.free()
	}
	return memory, streamed, expected
}

func TestEveryRowOnceInEitherMode(t *testing.T) {
	budget := testBudget(t, 192<<20)
	rapid.Check(t, func(r *rapid.T) {
		// Wide rows make windows small: 139 rows of the one, 41 of the other.
		width := rapid.SampledFrom([]int{1, 3, 30_000, 100_000}).Draw(r, "width")
		most := int64(300)
		if width > 3 {
			most = 60
		}
		chunks := rapid.SliceOfN(rapid.Int64Range(1, most), 1, 5).Draw(r, "chunks")
		share := rapid.SampledFrom([]int{1, 2, 5}).Draw(r, "every")
		src := rowNumbers(width, chunks)
		p := Problem{Source: src, Classes: 5, Labels: make([]int32, src.NumRows()), Splits: make([]uint8, src.NumRows())}
		for i := range p.Labels {
			p.Labels[i] = int32(i % 5)
			if rapid.IntRange(0, share-1).Draw(r, "in") == 0 {
				p.Splits[i] = Train
			}
		}
		memory, streamed, expected := orders(t, budget, p, 1, 2)
		if !slices.EqualFunc(memory, streamed, slices.Equal[[]int64]) {
			r.Fatalf("in memory %v, streamed %v", memory, streamed)
		}
		if !slices.Equal(memory[0], expected) {
			r.Fatalf("in order: %v, want %v", memory[0], expected)
		}
		if got := visited(t, width, func(v visitor) error {
			return Minibatches(context.Background(), p, 2, budget, func(x []float32, y []int32) error {
				at := make([]uint32, len(y))
				for i := range at {
					at[i] = uint32(i)
				}
				return v(microbatch{problem: &Problem{Labels: y}, width: width, x: x, at: at})
			})
		}); !slices.Equal(got, memory[2]) {
			r.Fatalf("minibatches %v, want %v", got, memory[2])
		}
		for _, epoch := range memory[1:] {
			if sorted := slices.Sorted(slices.Values(epoch)); !slices.Equal(sorted, expected) {
				r.Fatalf("an epoch visits %v, want %v", sorted, expected)
			}
		}
	})
}

func TestOrderIsMixed(t *testing.T) {
	const n, width = 400_000, 64 // windows of 65536 rows
	src := rowNumbers(width, evenly(n, 65_536))
	p := Problem{Source: src, Classes: 5, Labels: make([]int32, n), Splits: make([]uint8, n)}
	for i := range p.Labels {
		p.Labels[i] = int32(i % 5)
		if i%8 == 0 {
			p.Splits[i] = Train
		}
	}
	memory, _, _ := orders(t, testBudget(t, 256<<20), p, 1, 2)
	if slices.Equal(memory[1], memory[2]) {
		t.Error("two epochs have the same order")
	}
	// Within any thousand consecutive samples, rows come from all over.
	for lo := 0; lo+1000 <= len(memory[1]); lo += 1000 {
		part := memory[1][lo : lo+1000]
		if spread := slices.Max(part) - slices.Min(part); spread < n/2 {
			t.Errorf("samples %d to %d span %d rows", lo, lo+1000, spread)
		}
	}
}

func TestBlocks(t *testing.T) {
	const none, yes = NoSplit, Train
	for _, c := range []struct {
		name   string
		width  int
		chunks []int64
		split  func(row int) uint8
		want   []block
	}{
		{"chunks smaller than a block", 1024, []int64{100, 512}, nil, []block{{0, 0, 100, 0, 100}, {1, 0, 512, 100, 512}}},
		{
			"a chunk of two blocks and a bit", 1024,
			[]int64{1025},
			nil,
			[]block{{0, 0, 512, 0, 512}, {0, 512, 1024, 512, 512}, {0, 1024, 1025, 1024, 1}},
		},
		{
			"every third row, from the second on", 1024,
			[]int64{7, 2, 4},
			func(row int) uint8 { return []uint8{none, yes, none}[row%3] },
			[]block{{0, 1, 5, 0, 2}, {1, 0, 1, 2, 1}, {2, 1, 2, 3, 1}},
		},
		{"no row", 1024, []int64{7}, func(int) uint8 { return none }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			src := rowNumbers(c.width, c.chunks)
			p := Problem{Source: src, Labels: make([]int32, src.NumRows()), Splits: make([]uint8, src.NumRows())}
			for i := range p.Splits {
				p.Splits[i] = Train
				if c.split != nil {
					p.Splits[i] = c.split(i)
				}
			}
			if got := newRowSet(p, Train).blocks; !slices.Equal(got, c.want) {
				t.Errorf("blocks %v, want %v", got, c.want)
			}
		})
	}
}

func TestReadErrorsEndAnEpoch(t *testing.T) {
	b := testBudget(t, 64<<20)
	src := rowNumbers(3, []int64{10, 10})
	p := Problem{Source: src, Labels: make([]int32, 20), Splits: slices.Repeat([]uint8{Train}, 20), Classes: 2}
	src.broken = func(chunk int) bool { return chunk == 1 }
	set := newRowSet(p, Train)
	h, err := newSampler(b, 3, set.count, true, true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.free()
	ignore := func(microbatch) error { return nil }
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	visits := func(ctx context.Context) map[string]error {
		return map[string]error{
			"checked":  check(ctx, b, src, set),
			"in order": h.inOrder(ctx, set, ignore),
			"shuffled": h.epoch(ctx, set, 1, ignore),
		}
	}
	for name, err := range visits(t.Context()) {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	src.broken = nil
	for name, err := range visits(cancelled) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
	}
}

// TestNothingAheadWithoutRoom streams with memory for a single window.
func TestNothingAheadWithoutRoom(t *testing.T) {
	const width = 1024
	src := rowNumbers(width, evenly(9000, 1000)) // windows of 4096 rows
	p := Problem{Source: src, Labels: make([]int32, 9000), Splits: slices.Repeat([]uint8{Train}, 9000), Classes: 5}
	for i := range p.Labels {
		p.Labels[i] = int32(i % 5)
	}
	set := newRowSet(p, Train)
	b := testBudget(t, 24<<20)
	if err := check(t.Context(), testBudget(t, 5<<20), src, set); err != nil {
		t.Errorf("with memory for a single chunk: %v", err)
	}
	h, err := newSampler(b, width, set.count, true, true)
	if err != nil {
		t.Fatal(err)
	}
	defer h.free()
	if len(h.windows) != 1 {
		t.Fatalf("%d windows", len(h.windows))
	}
	rows := visited(t, width, func(v visitor) error { return h.epoch(t.Context(), set, 1, v) })
	if slices.Sort(rows); len(rows) != 9000 || rows[0] != 0 || rows[8999] != 8999 {
		t.Errorf("%d rows visited, %d to %d", len(rows), rows[0], rows[len(rows)-1])
	}
}

// TestPieces cuts samples into as few pieces as may be, of the same size but the last.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n, most, unit := rapid.IntRange(0, 3000).Draw(r, "n"), rapid.IntRange(1, 600).Draw(r, "most"), rapid.IntRange(1, 60).Draw(r, "unit")
		var sizes []int
		all := microbatch{width: 1, x: make([]float32, n), at: make([]uint32, n)}
		for i := range all.at {
			all.at[i] = uint32(i)
		}
		at := uint32(0)
		if err := all.pieces(t.Context(), most, unit, func(p microbatch) error {
			for i := range p.len() {
				if p.place(i) != at {
					r.Fatalf("sample %d in place of %d", p.place(i), at)
				}
				at++
			}
			sizes = append(sizes, p.len())
			return nil
		}); err != nil {
			r.Fatal(err)
		}
		if int(at) != n {
			r.Fatalf("%d of %d samples", at, n)
		}
		for i, size := range sizes {
			last := i == len(sizes)-1
			if size > most || size == 0 || !last && (size != sizes[0] || unit <= most && size%unit != 0) || last && size > sizes[0] {
				r.Fatalf("pieces of %v", sizes)
			}
		}
		if whole := most / min(unit, most) * min(unit, most); len(sizes) > units(n, whole) {
			r.Fatalf("%d samples in pieces of %v", n, sizes)
		}
	})
}
