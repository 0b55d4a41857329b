package remote_test

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"

	"ndls/group"
	"ndls/group/remote"
	"ndls/internal/control/blocks"
	"ndls/internal/packed"
)

// strips are borders of so many workers, which have a strip each.
func strips(workers int) (all []int64) {
	for w := range int64(workers) + 1 {
		all = append(all, w*packed.StripRows)
	}
	return all
}

// sent is a value that a worker sends another one in a swap.
func sent(from, to, swap, i int) float32 { return float32(from + 10*to + 100*(swap%50) + 7*(i%991)) }

// message returns the number of values that a worker sends another one in a swap: none, a few, or
// more than are sent at a time, so many between two workers that they send a new request.
func message(from, to, swap, workers int) int {
	return []int{5, 2_000_000 / (workers * workers), 1, 0, 33}[(from+2*to+swap)%5]
}

// TestExchange has workers swap values of all sizes again and again, twice, and overwrite what they sent once they may.
func TestExchange(t *testing.T) {
	const swaps = 23
	for _, workers := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			values := 0
			for from := range workers {
				for to := range workers {
					for k := range swaps {
						if from != to {
							values += message(from, to, k, workers)
						}
					}
				}
			}
			failed, traffic := members(t, strips(workers), func(r *remote.Member, self int, _ func()) error {
				for range 2 {
					if err := exchange(t.Context(), r, self, workers, swaps); err != nil {
						return err
					}
				}
				return nil
			})
			must(t, failed)
			if least := int64(2 * 4 * values); traffic < least || traffic > least+least/5+1<<20 {
				t.Errorf("%d bytes on the wire, the values are %d", traffic, least)
			}
		})
	}
}

// exchange does the work of a worker in TestExchange.
func exchange(ctx context.Context, g group.Group, self, workers, swaps int) error {
	var before [][]float32
	err := g.Exchange(ctx, func(_ context.Context, swap group.Swap) error {
		for k := range swaps {
			mine, theirs := make([][]float32, workers), make([][]float32, workers)
			for to := range workers {
				mine[to], theirs[to] = make([]float32, message(self, to, k, workers)), make([]float32, message(to, self, k, workers))
				for i := range mine[to] {
					mine[to][i] = sent(self, to, k, i)
				}
			}
			halves := func(all [][]float32) func(int) [][]float32 {
				return func(w int) [][]float32 { n := len(all[w]) / 2; return [][]float32{all[w][:n], nil, all[w][n:]} }
			}
			if err := swap(halves(mine), halves(theirs)); err != nil {
				return err
			}
			for from := range workers {
				for i, x := range theirs[from] {
					if from != self && x != sent(from, self, k, i) {
						return fmt.Errorf("swap %d: value %d of worker %d is %v", k, i, from, x)
					}
				}
			}
			for _, values := range before {
				clear(values)
			}
			before = mine
		}
		return nil
	})
	if err == nil {
		err = group.Barrier(ctx, g)
	}
	g.Unexpose(err)
	return err
}

// TestExchangeFails ends one worker between swaps: the others learn that.
func TestExchangeFails(t *testing.T) {
	for dead := range 3 {
		lost := errors.New("lost")
		failed, _ := members(t, strips(3), func(r *remote.Member, self int, die func()) error {
			return r.Exchange(t.Context(), func(_ context.Context, swap group.Swap) error {
				var values [4][]float32 // of this worker, and from each
				for i := range values {
					values[i] = make([]float32, 50_000)
				}
				for k := range 9 {
					if k == 4 && self == dead {
						die()
						return lost
					}
					if err := swap(func(int) [][]float32 { return values[:1] }, func(from int) [][]float32 { return values[1+from:][:1] }); err != nil {
						return err
					}
				}
				return nil
			})
		})
		for w, err := range failed {
			if w == dead && !errors.Is(err, lost) || w != dead && !errors.Is(err, blocks.ErrRetry) {
				t.Errorf("worker %d was lost, and worker %d ended with %v", dead, w, err)
			}
		}
	}
}

// BenchmarkExchange swaps a gradient of so many values as training does, by workers of one process on loopback.
func BenchmarkExchange(b *testing.B) {
	for _, values := range []int{16, 77_228} {
		for _, workers := range []int{2, 4, 8, 16} {
			b.Run(fmt.Sprintf("%d values/%d workers", values, workers), func(b *testing.B) {
				rounds := b.N
				var took, busy time.Duration
				failed, _ := members(b, strips(workers), func(r *remote.Member, self int, _ func()) error {
					err := r.Exchange(b.Context(), func(_ context.Context, swap group.Swap) error {
						mine, theirs := make([]float32, values), make([]float32, values)
						share := func(all []float32, w int) [][]float32 {
							return [][]float32{all[w*values/workers : (w+1)*values/workers]}
						}
						start, used := time.Now(), processor(b)
						for range rounds {
							err := swap(func(w int) [][]float32 { return share(mine, w) }, func(from int) [][]float32 { return share(theirs, from) })
							if err == nil {
								err = swap(func(int) [][]float32 { return share(mine, self) }, func(from int) [][]float32 { return share(theirs, from) })
							}
							if err != nil {
								return err
							}
						}
						if self == 0 {
							took, busy = time.Since(start), processor(b)-used
						}
						return nil
					})
					if err == nil {
						err = group.Barrier(b.Context(), r)
					}
					r.Unexpose(err)
					return err
				})
				if err := errors.Join(failed...); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(took.Microseconds())/float64(rounds), "µs/step")
				b.ReportMetric(float64(busy.Microseconds())/float64(rounds)/float64(2*workers*(workers-1)), "processor-µs/message")
			})
		}
	}
}

// processor is the processor time of this process.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
