package share

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each number is in one range, whatever the threads.
func TestRanges(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 16} {
		for _, n := range []int{0, 1, 7, 100} {
			for _, size := range []int{1, 3, 200} {
				seen := make([]atomic.Int32, n)
				if err := Ranges(threads, n, size, func(lo, hi int) error {
					if hi-lo > size {
						return fmt.Errorf("[%d, %d) has more than %d numbers", lo, hi, size)
					}
					for i := lo; i < hi; i++ {
						seen[i].Add(1)
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				for i := range seen {
					if got := seen[i].Load(); got != 1 {
						t.Fatalf("%d threads, %d numbers by %d: %d is in %d ranges", threads, n, size, i, got)
					}
				}
			}
		}
	}
}

// All threads work at the same time.
func TestEachIsParallel(t *testing.T) {
	const threads = 5
	var working atomic.Int32
	all := make(chan struct{})
	if err := Each(threads, threads, func(int) error {
		if working.Add(1) == threads {
			close(all)
		}
		<-all
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// The first part that failed gives the error, and on one thread no part follows.
func TestEachFails(t *testing.T) {
	failed := errors.New("part 3")
	for _, threads := range []int{1, 4} {
		done := atomic.Int32{}
		err := Each(threads, 1000, func(part int) error {
			done.Add(1)
			if part == 3 {
				return failed
			}
			return nil
		})
		if !errors.Is(err, failed) {
			t.Errorf("%d threads: %v", threads, err)
		}
		if threads == 1 && done.Load() != 4 {
			t.Errorf("%d parts were begun, want 4", done.Load())
		}
	}
	// Part 0 fails after part 1.
	second := make(chan struct{})
	err := Each(2, 2, func(part int) error {
		if part == 1 {
			defer close(second)
		} else {
			<-second
		}
		return fmt.Errorf("part %d", part)
	})
	if err == nil || err.Error() != "part 0" {
		t.Errorf("%v, want that of part 0", err)
	}
}
