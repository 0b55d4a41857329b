package remote_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ndls/group"
	"ndls/internal/control/blocks"
)

// TestHandOn has workers add to values in turn, part by part, again and again, with what one worker
// that adds everything gets: an addition here is a function of what was there before.
func TestHandOn(t *testing.T) {
	const size, calls = 100_000, 7
	add := func(values []float32, self, call int) {
		for i := range values {
			values[i] = values[i]*1.3 + 1/float32(3+self+call*i%97)
		}
	}
	for workers := 1; workers <= 4; workers++ {
		for _, parts := range []int{1, 2, 9} {
			t.Run(fmt.Sprintf("%d workers/%d parts", workers, parts), func(t *testing.T) {
				draw := rand.New(rand.NewPCG(uint64(workers), uint64(parts)))
				ends := []int{size}
				for len(ends) < parts {
					ends = append(ends, 1+draw.IntN(size-1))
				}
				slices.Sort(ends)
				ends = slices.Compact(ends)
				hand := func(g group.Group, self int) error {
					var values [2][]float32
					values[0], values[1] = make([]float32, size), make([]float32, size)
					for call := range calls {
						now := values[call%2]
						from, passed := 0, 0
						err := g.HandOn(t.Context(), now, ends, func(part int) {
							if g.Size() == 1 {
								for w := range workers {
									add(now[from:ends[part]], w, call)
								}
							} else {
								add(now[from:ends[part]], self, call)
							}
							from = ends[part]
						}, func(part int) {
							if part != passed {
								t.Errorf("part %d is done after %d others", part, passed)
							}
							passed++
						})
						if err != nil {
							return err
						}
						want := make([]float32, size)
						at := 0
						for _, end := range ends {
							for w := range workers {
								add(want[at:end], w, call)
							}
							at = end
						}
						if passed != len(ends) || !slices.Equal(now, want) {
							return fmt.Errorf("call %d: %d parts, other sums than one worker", call, passed)
						}
					}
					return nil
				}
				if err := hand(group.Solo(1), 0); err != nil {
					t.Errorf("alone: %v", err)
				}
				failed, traffic := gang(t, borders(workers), func(w worker) error {
					if err := hand(w.Group, w.self); err != nil {
						return err
					}
					return group.Barrier(t.Context(), w.Group)
				})
				must(t, failed)
				if least := int64(2 * (workers - 1) * calls * 4 * size); traffic < least || traffic > least+least/5+1<<20 {
					t.Errorf("%d bytes on the wire, the values are %d", traffic, least)
				}
			})
		}
	}
}

// TestHandOnFails ends one worker in the middle of the values: the others learn that.
func TestHandOnFails(t *testing.T) {
	for self := range 3 {
		failed, _ := gang(t, borders(3), func(w worker) error {
			values := make([]float32, 50_000)
			err := w.Group.HandOn(t.Context(), values, []int{25_000, 50_000}, func(part int) {
				if part == 1 && w.self == self {
					w.die()
				}
			}, func(int) {})
			if w.self == self {
				return errors.Join(err, errors.New("lost"))
			}
			if err == nil {
				err = group.Barrier(t.Context(), w.Group)
			}
			return err
		})
		for w, err := range failed {
			if w != self && !errors.Is(err, blocks.ErrRetry) {
				t.Errorf("worker %d was lost, and worker %d ended with %v", self, w, err)
			}
		}
	}
}
