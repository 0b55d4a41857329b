package inorder

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type square struct{ n, squared int }

// TestLine squares numbers, on any number of threads and batches, and sees them in order.
// One of them may fail, in its work or its use: then all before it are seen.
func TestLine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(0, 16).Draw(t, "threads")
		batches := make([]square, rapid.IntRange(1, 20).Draw(t, "batches"))
		count := rapid.IntRange(0, 60).Draw(t, "numbers")
		badWork, badUse := rapid.IntRange(0, 100).Draw(t, "work that fails"), rapid.IntRange(0, 100).Draw(t, "use that fails")
		var seen []int
		var using atomic.Int32
		l := New(threads, batches, func(s *square) error {
			for range s.n * 7 % 5 {
				runtime.Gosched()
			}
			if s.n == badWork {
				return fmt.Errorf("work %d", s.n)
			}
			s.squared = s.n * s.n
			return nil
		}, func(s *square) error {
			if using.Add(1) != 1 {
				return errors.New("two uses at a time")
			}
			defer using.Add(-1)
			runtime.Gosched()
			if s.n == badUse {
				return fmt.Errorf("use %d", s.n)
			}
			seen = append(seen, s.squared)
			return nil
		})
		put := 0
		for ; put < count; put++ {
			s, err := l.Next()
			if err != nil {
				break
			}
			s.n = put
			l.Put()
		}
		err := l.Close()
		if again := l.Close(); again != err {
			t.Fatalf("%v, closed again %v", err, again)
		}
		bad := min(badWork, badUse)
		want := ""
		if bad < count {
			want = fmt.Sprintf("use %d", bad)
			if bad == badWork {
				want = fmt.Sprintf("work %d", bad)
			}
		} else if put != count {
			t.Fatalf("%d of %d batches were put", put, count)
		}
		if got := fmt.Sprint(err); err != nil && got != want || err == nil && want != "" {
			t.Fatalf("error %v, want %q", err, want)
		}
		all := make([]int, min(bad, count))
		for i := range all {
			all[i] = i * i
		}
		if !slices.Equal(seen, all) {
			t.Fatalf("%v was handed on, want %v", seen, all)
		}
	})
}

// TestLineIsLeft closes a line with a batch taken and not put, as a caller does that
// fails.
func TestLineIsLeft(t *testing.T) {
	for _, threads := range []int{0, 1, 3} {
		used := 0
		l := New(threads, make([]int, 2), func(*int) error { return nil }, func(*int) error { used++; return nil })
		for i := range 3 {
			if _, err := l.Next(); err != nil {
				t.Fatal(err)
			}
			if i < 2 {
				l.Put()
			}
		}
		if err := l.Close(); err != nil || used != 2 {
			t.Errorf("%d threads: %d batches used, %v", threads, used, err)
		}
	}
}

// TestLineIsParallel has all threads work at the same time.
func TestLineIsParallel(t *testing.T) {
	const threads = 5
	var working atomic.Int32
	all := make(chan struct{})
	l := New(threads, make([]int, threads), func(*int) error {
		if working.Add(1) == threads {
			close(all)
		}
		<-all
		return nil
	}, func(*int) error { return nil })
	for range threads {
		if _, err := l.Next(); err != nil {
			t.Fatal(err)
		}
		l.Put()
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}
