package partition

import (
	"errors"
	"io"
	"testing"
)

// TestAhead counts to 9 and ends, or fails.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	for _, threads := range []int{1, 2} {
		for _, end := range []error{io.EOF, broken} {
			count := 0
			a := newAhead(threads, make([]int, 3), func(b *int) error {
				if count == 9 {
					return end
				}
				count++
				*b = count
				return nil
			})
			for want := 1; want <= 9; want++ {
				if got, err := a.next(); err != nil || *got != want {
					t.Fatalf("%d threads: %v, %v, want %d", threads, got, err, want)
				}
			}
			for range 5 {
				if _, err := a.next(); !errors.Is(err, end) {
					t.Errorf("%d threads: %v after the end, want %v", threads, err, end)
				}
			}
			a.close()
		}
	}
}

// TestAheadIsLeft closes with batches unused, before and after the end.
func TestAheadIsLeft(t *testing.T) {
	for _, threads := range []int{1, 2} {
		for used := range 4 {
			left := 5
			a := newAhead(threads, make([]int, 3), func(*int) error {
				if left == 0 {
					return io.EOF
				}
				left--
				return nil
			})
			for range used {
				if _, err := a.next(); err != nil {
					t.Fatal(err)
				}
			}
			a.close()
		}
	}
}
