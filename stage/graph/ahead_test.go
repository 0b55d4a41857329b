package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"ndls/internal/mem"
)

// numbered are columns whose values say which they are. They note what is asked for.
type numbered struct {
	rows, width int
	mu          sync.Mutex
	asked       []int
	broken      int // the columns from here on fail, if it is not 0
	begun       chan int
}

var errBroken = errors.New("broken")

func (n *numbered) read(ctx context.Context, first, columns int, put func([]float32) error) error {
	n.mu.Lock()
	n.asked = append(n.asked, first)
	n.mu.Unlock()
	if n.begun != nil {
		n.begun <- first
	}
	if n.broken > 0 && first >= n.broken {
		return errBroken
	}
	for row := range n.rows {
		if err := ctx.Err(); err != nil {
			return err
		}
		values := make([]float32, columns)
		for c := range values {
			values[c] = float32(1000*row + first + c)
		}
		if err := put(values); err != nil {
			return err
		}
	}
	return nil
}

func aheadOf(t *testing.T, n *numbered, free int64) (*aheadColumns, *mem.Budget) {
	t.Helper()
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	if free > 0 {
		if err := b.Reserve(b.Free()-free, "all but some"); err != nil {
			t.Fatal(err)
		}
	}
	return &aheadColumns{columns: n.read, budget: b, rows: int64(n.rows), step: 16, end: n.width, on: true}, b
}

// TestColumnsAhead reads blocks in order: the values equal those of the columns, each block is
// asked for once, and the next one before it is taken.
func TestColumnsAhead(t *testing.T) {
	for _, on := range []bool{true, false} {
		n := &numbered{rows: 100, width: 80, begun: make(chan int, 8)}
		a, budget := aheadOf(t, n, 0)
		a.on = on
		free := budget.Free()
		for first := 0; first < n.width; first += 16 {
			row := 0
			if err := a.read(t.Context(), first, 16, func(rows []float32) error {
				for ; len(rows) > 0; rows = rows[16:] {
					for c := range 16 {
						if want := float32(1000*row + first + c); rows[c] != want {
							return fmt.Errorf("row %d, column %d is %g", row, first+c, rows[c])
						}
						rows[c] = -1 // put may change them
					}
					row++
				}
				return nil
			}); err != nil || row != n.rows {
				t.Fatalf("columns from %d on: %d rows, %v", first, row, err)
			}
			if next := first + 16; on && next < n.width {
				for <-n.begun != next {
				}
			}
		}
		a.free()
		if want := []int{0, 16, 32, 48, 64}; !slices.Equal(n.asked, want) {
			t.Errorf("columns from %v on were read, want %v", n.asked, want)
		}
		if budget.Free() != free {
			t.Errorf("%d bytes are not given back", free-budget.Free())
		}
	}
}

// TestColumnsAheadFail: an error of the next block reaches the one who takes it, and nobody else.
func TestColumnsAheadFail(t *testing.T) {
	n := &numbered{rows: 100, width: 48, broken: 16}
	a, _ := aheadOf(t, n, 0)
	take := func(rows []float32) error { return nil }
	if err := a.read(t.Context(), 0, 16, take); err != nil {
		t.Fatal(err)
	}
	if err := a.read(t.Context(), 16, 16, take); !errors.Is(err, errBroken) {
		t.Errorf("the broken block gave %v", err)
	}
	a.free()

	n = &numbered{rows: 100, width: 48, broken: 16}
	a, _ = aheadOf(t, n, 0)
	if err := a.read(t.Context(), 0, 16, take); err != nil {
		t.Fatal(err)
	}
	a.free() // nobody takes the next block

	n = &numbered{rows: 100, width: 48}
	a, _ = aheadOf(t, n, 4096)
	if err := a.read(t.Context(), 0, 16, take); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("without memory: %v", err)
	}
	a.free()
}
