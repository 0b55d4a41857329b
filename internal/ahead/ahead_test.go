package ahead

import (
	"errors"
	"io"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestAhead counts to 9 and ends, or fails.
func TestAhead(t *testing.T) {
	broken := errors.New("broken")
	for _, threads := range []int{1, 2} {
		for _, end := range []error{io.EOF, broken} {
			count := 0
			a := New(threads, make([]int, 3), func(b *int) error {
				if count == 9 {
					return end
				}
				count++
				*b = count
				return nil
			})
			for want := 1; want <= 9; want++ {
				if got, err := a.Next(); err != nil || *got != want {
					t.Fatalf("%d threads: %v, %v, want %d", threads, got, err, want)
				}
			}
			for range 5 {
				if _, err := a.Next(); !errors.Is(err, end) {
					t.Errorf("%d threads: %v after the end, want %v", threads, err, end)
				}
			}
			a.Close()
		}
	}
}

// TestAheadIsLeft closes with batches unused, before and after the end.
func TestAheadIsLeft(t *testing.T) {
	for _, threads := range []int{1, 2} {
		for used := range 4 {
			left := 5
			a := New(threads, make([]int, 3), func(*int) error {
				if left == 0 {
					return io.EOF
				}
				left--
				return nil
			})
			for range used {
				if _, err := a.Next(); err != nil {
					t.Fatal(err)
				}
			}
			a.Close()
		}
	}
}
