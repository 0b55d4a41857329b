package remote_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
	"ndls/train"
)

// rows are random values, in chunks of 500.
type rows struct{ n, width int }

func (r rows) NumRows() int64 { return int64(r.n) }
func (r rows) Width() int     { return r.width }
func (r rows) NumChunks() int { return (r.n + 499) / 500 }

func (r rows) Chunk(i int) (first, n int64) {
	return int64(500 * i), int64(min(500, r.n-500*i))
}

func (r rows) ReadChunk(i int, dst *shards.RowBatch) (err error) {
	first, n := r.Chunk(i)
	dst.First, dst.ID, dst.Label = first, make([]int64, n), make([]int32, n)
	dst.Values, err = r.ReadRows(i, 0, n, dst.Values[:cap(dst.Values)])
	return err
}

func (r rows) ReadRows(i int, at, n int64, space []float32) ([]float32, error) {
	first, _ := r.Chunk(i)
	space = space[:n*int64(r.width)]
	for k := range space {
		space[k] = float32(2*rng.Float64(rng.Hash(7, uint64(first+at)*uint64(r.width)+uint64(k))) - 1)
	}
	return space, nil
}

func trainingProblem() train.Problem {
	p := train.Problem{Source: rows{6000, 40}, Labels: make([]int32, 6000), Splits: make([]uint8, 6000), Classes: 11}
	for i := range p.Labels {
		p.Labels[i] = int32(rng.Below(rng.Hash(uint64(i)), 11))
		p.Splits[i] = train.Train
		if i%5 == 0 {
			p.Splits[i] = train.Valid
		}
	}
	return p
}

// dying is a group of which this worker is lost in the middle of a step.
type dying struct {
	group.Group
	swaps int
	die   func()
}

func (d *dying) Exchange(ctx context.Context, do func(context.Context, group.Swap) error) error {
	return d.Group.Exchange(ctx, func(ctx context.Context, swap group.Swap) error {
		return do(ctx, func(mine, theirs func(int) [][]float32) error {
			if d.swaps--; d.swaps == 0 {
				d.die()
			}
			return swap(mine, theirs)
		})
	})
}

// TestTrainTogether has workers train two models together, over Flight on loopback: with the bytes of one worker, also
// by a group that begins again once a worker was lost in the middle of an epoch.
func TestTrainTogether(t *testing.T) {
	o := train.Options{
		Hidden: 150, Layers: 3, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: train.Constant,
		Epochs: 4, Patience: 2, BatchSize: 1900, Runs: 2, Seed: 5,
	}
	fit := func(g group.Group, threads int) (text []byte, err error) {
		b, err := mem.NewBudget(512 << 20)
		if err != nil {
			return nil, err
		}
		defer b.Close()
		var mu sync.Mutex
		models := map[int]string{}
		err = train.FitEach(t.Context(), trainingProblem(), o, []int{0, 1}, train.Resources{Budget: b, Threads: threads, Group: g}, func(m *train.Model, h train.History) error {
			var all bytes.Buffer
			for _, e := range h.Epochs {
				_, _ = fmt.Fprintln(&all, h.Run, h.Best, e.TrainLoss)
			}
			mu.Lock()
			defer mu.Unlock()
			err := m.Save(&all)
			models[h.Run] = all.String()
			return err
		})
		return []byte(models[0] + models[1]), err
	}
	want, err := fit(nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	for workers := 1; workers <= 4; workers++ {
		for _, lost := range []int{-1, 0, workers - 1} {
			if lost >= 0 && workers == 1 || lost == 0 && workers != 2 {
				continue
			}
			t.Run(fmt.Sprintf("%d workers, lost %d", workers, lost), func(t *testing.T) {
				got := make([][]byte, workers)
				attempt := func(lost int) []error {
					failed, _ := gang(t, borders(workers), func(w worker) (err error) {
						g := w.Group
						if w.self == lost {
							g = &dying{g, 10, w.die}
						}
						if got[w.self], err = fit(g, 1+w.self%2); err != nil {
							return err
						}
						return group.Barrier(t.Context(), g)
					})
					return failed
				}
				if lost >= 0 {
					if err := errors.Join(attempt(lost)...); err == nil {
						t.Fatal("a group went on without one of its workers")
					}
				}
				must(t, attempt(-1))
				for w := range got {
					if !bytes.Equal(got[w], want) {
						t.Errorf("worker %d has other models than one worker alone", w)
					}
				}
			})
		}
	}
}
