package stage

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

func (n *numbered) Width() int { return n.width }

func (n *numbered) Rows(ctx context.Context, first, columns int, put func([]float32) error) error {
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

func aheadOf(t *testing.T, n *numbered, step int) (*aheadColumns, *mem.Budget) {
	t.Helper()
	b, err := mem.NewBudget(mem.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	a, err := readAhead(n, b, int64(n.rows), 16, step, n.width)
	if err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestColumnsAhead reads blocks in order, all of them or every second one: the values are those of the columns, each block
// is asked for once, and the next one before it is taken.
func TestColumnsAhead(t *testing.T) {
	for step, want := range map[int][]int{16: {0, 16, 32, 48, 64}, 32: {0, 32, 64}} {
		n := &numbered{rows: 100, width: 80, begun: make(chan int, 8)}
		a, budget := aheadOf(t, n, step)
		for first := 0; first < n.width; first += step {
			row := 0
			if err := a.Rows(t.Context(), first, 16, func(rows []float32) error {
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
			if next := first + step; next < n.width {
				for <-n.begun != next {
				}
			}
		}
		a.free()
		if !slices.Equal(n.asked, want) {
			t.Errorf("columns from %v on were read, want %v", n.asked, want)
		}
		if held := budget.Limit() - budget.Free(); held != 0 {
			t.Errorf("%d bytes are not given back", held)
		}
	}
}

// TestColumnsAheadFail: an error of the next block is that of who takes it, and of nobody else.
func TestColumnsAheadFail(t *testing.T) {
	n := &numbered{rows: 100, width: 48, broken: 16}
	a, _ := aheadOf(t, n, 16)
	take := func(rows []float32) error { return nil }
	if err := a.Rows(t.Context(), 0, 16, take); err != nil {
		t.Fatal(err)
	}
	if err := a.Rows(t.Context(), 16, 16, take); !errors.Is(err, errBroken) {
		t.Errorf("the broken block gave %v", err)
	}
	a.free()

	n = &numbered{rows: 100, width: 48, broken: 16}
	a, _ = aheadOf(t, n, 16)
	if err := a.Rows(t.Context(), 0, 16, take); err != nil {
		t.Fatal(err)
	}
	a.free() // nobody takes the next block
}
