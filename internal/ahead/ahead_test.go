package ahead

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

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

// TestRun fills and uses items in order; one may fail, or the caller may cancel.
func TestRun(t *testing.T) {
	broken := errors.New("broken")
	for buffers := 1; buffers <= 3; buffers++ {
		for bad := 0; bad <= 8; bad++ { // 8: none
			for _, inUse := range []bool{false, true} {
				next := 0
				err := Run(t.Context(), make([]*int, buffers), 8,
					func(i int, _ *int) error {
						if i == bad && !inUse {
							return broken
						}
						return nil
					},
					func(i int, _ *int) error {
						if i != next {
							t.Errorf("item %d is used, want %d", i, next)
						}
						next++
						if i == bad && inUse {
							return broken
						}
						return nil
					})
				if (bad < 8) != errors.Is(err, broken) || bad == 8 && (err != nil || next != 8) {
					t.Errorf("%d buffers, item %d fails: %v after %d items", buffers, bad, err, next)
				}
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	if err := Run(ctx, make([]int, 2), 3, func(int, int) error { return nil }, func(int, int) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestRunOverlaps has item 1 filled while item 0 is used.
func TestRunOverlaps(t *testing.T) {
	second := make(chan struct{})
	if err := Run(t.Context(), make([]int, 2), 2,
		func(i int, _ int) error {
			if i == 1 {
				close(second)
			}
			return nil
		},
		func(int, int) error {
			<-second
			return nil
		}); err != nil {
		t.Fatal(err)
	}
}

// TestSteps takes batches through two steps in order. What the second one says of a batch is said, even
// where the first one has ended since then.
func TestSteps(t *testing.T) {
	broken := errors.New("broken")
	for _, threads := range []int{1, 2} {
		for _, bad := range []int{0, 1, 5, 9} {
			read, second := 0, make(chan bool, 1)
			a := New(threads, make([]int, 3), func(b *int) error {
				if read == 9 {
					select {
					case second <- true:
					default:
					}
					return io.EOF
				}
				read++
				*b = read
				return nil
			}, func(b *int) error {
				if *b == bad {
					if threads > 1 && bad == 9 {
						<-second // the first step has ended
					}
					return broken
				}
				*b *= 10
				return nil
			})
			want, end := 9, io.EOF
			if bad > 0 {
				want, end = bad-1, broken
			}
			for i := 1; i <= want; i++ {
				if got, err := a.Next(); err != nil || *got != 10*i {
					t.Fatalf("%d threads, batch %d: %v, %v", threads, i, got, err)
				}
			}
			if _, err := a.Next(); !errors.Is(err, end) {
				t.Errorf("%d threads, %d is bad: %v at the end, want %v", threads, bad, err, end)
			}
			a.Close()
		}
	}
}

// TestCloseWaits closes after the second step has failed, while the first one still fills a buffer.
func TestCloseWaits(t *testing.T) {
	begun, ended := make(chan bool), false
	read := 0
	a := New(2, make([]int, 3), func(*int) error {
		if read++; read == 2 {
			close(begun)
			time.Sleep(50 * time.Millisecond)
			ended = true
		}
		return nil
	}, func(*int) error { return io.ErrUnexpectedEOF })
	if _, err := a.Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%v at the first batch", err)
	}
	<-begun
	a.Close()
	if !ended {
		t.Error("a buffer is still filled after Close")
	}
}
