package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"ndls/group"
	"ndls/train/dense"
)

// workers are the workers of one process, which swap values, and gather them, in memory.
type workers struct {
	size   int
	mu     sync.Mutex
	cond   *sync.Cond
	calls  map[int]*meeting
	failed error
}

// meeting is one call of all workers.
type meeting struct {
	mine []func(worker int) [][]float32
	all  [][]float64
	had  int // workers that have received all
}

func newWorkers(size int) *workers {
	c := &workers{size: size, calls: map[int]*meeting{}}
	c.cond = sync.NewCond(&c.mu)
	return c
}

// fail ends all calls.
func (c *workers) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
	c.cond.Broadcast()
}

// hand is one of these workers.
type hand struct {
	group.Group // what training does not need
	*workers
	self, calls int
}

func (h *hand) Size() int { return h.size }
func (h *hand) Self() int { return h.self }

// next is the present call of all workers, and until waits for something of it. The caller holds the lock.
func (h *hand) next() *meeting {
	x := h.workers.calls[h.calls]
	if x == nil {
		x = &meeting{mine: make([]func(int) [][]float32, h.size), all: make([][]float64, h.size)}
		h.workers.calls[h.calls] = x
	}
	h.calls++
	return x
}

func (h *hand) until(there func() bool) error {
	for !there() && h.failed == nil {
		h.cond.Wait()
	}
	return h.failed
}

func (h *hand) Exchange(ctx context.Context, do func(context.Context, group.Swap) error) error {
	return do(ctx, h.swap)
}

// swap waits until all have received what all send.
func (h *hand) swap(mine, theirs func(worker int) [][]float32) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.next()
	x.mine[h.self] = mine
	h.cond.Broadcast()
	for w := range h.size {
		if w == h.self {
			continue
		}
		if err := h.until(func() bool { return x.mine[w] != nil }); err != nil {
			return err
		}
		to, from := theirs(w), x.mine[w](h.self)
		if len(to) != len(from) {
			return fmt.Errorf("worker %d has %d lists of values for worker %d, which expects %d", w, len(from), h.self, len(to))
		}
		for i := range to {
			if len(to[i]) != len(from[i]) {
				return fmt.Errorf("worker %d has %d values for worker %d, which expects %d", w, len(from[i]), h.self, len(to[i]))
			}
			copy(to[i], from[i])
		}
	}
	x.had++
	h.cond.Broadcast()
	return h.until(func() bool { return x.had == h.size })
}

func (h *hand) AllGather(_ context.Context, values []float64) ([][]float64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.next()
	x.all[h.self] = slices.Clone(values)
	h.cond.Broadcast()
	return x.all, h.until(func() bool { return !slices.ContainsFunc(x.all, func(v []float64) bool { return v == nil }) })
}

// Unexpose ends the calls of others where there is a reason.
func (h *hand) Unexpose(err error) {
	if err != nil {
		h.fail(err)
	}
}

// trainTogether trains models by workers whose resources change gives, and compares all that each of them gets.
func trainTogether(t testing.TB, p Problem, o Options, runs []int, size int, change func(self int, res *Resources)) ([][]byte, []History, error) {
	c := newWorkers(size)
	models, histories, failed := make([][][]byte, size), make([][]History, size), make([]error, size)
	var workers sync.WaitGroup
	for self := range size {
		res := Resources{Budget: testBudget(t, 128<<20), Threads: 1, Group: &hand{workers: c, self: self}}
		change(self, &res)
		workers.Go(func() {
			failed[self] = FitEach(t.Context(), p, o, runs, res, func(m *Model, h History) error {
				models[self] = append(models[self], saved(t, m))
				histories[self] = append(histories[self], h)
				return nil
			})
			if failed[self] != nil {
				c.fail(failed[self])
			}
		})
	}
	workers.Wait()
	if err := errors.Join(failed...); err != nil {
		return nil, nil, err
	}
	for self := range size {
		if !slices.EqualFunc(models[self], models[0], bytes.Equal) || fmt.Sprint(histories[self]) != fmt.Sprint(histories[0]) {
			t.Errorf("worker %d has other models or histories than worker 0", self)
		}
	}
	return models[0], histories[0], nil
}

// one trains the models by one worker.
func one(t testing.TB, p Problem, o Options, runs []int) (models [][]byte, histories []History) {
	err := FitEach(t.Context(), p, o, runs, Resources{Budget: testBudget(t, 128<<20), Threads: 1}, func(m *Model, h History) error {
		models, histories = append(models, saved(t, m)), append(histories, h)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return models, histories
}

// compare reports whether models are the same bytes, and histories the same where the model file or the report
// tells of them, and the loss by which ties are decided.
func compare(t testing.TB, what string, models, want [][]byte, histories, course []History) {
	t.Helper()
	if !slices.EqualFunc(models, want, bytes.Equal) {
		t.Errorf("%s: other models than one worker", what)
	}
	for i, h := range histories {
		if h.Run != course[i].Run || h.Best != course[i].Best || len(h.Epochs) != len(course[i].Epochs) {
			t.Fatalf("%s: run %d has its best epoch at %d of %d, want run %d, %d of %d", what, h.Run, h.Best, len(h.Epochs), course[i].Run, course[i].Best, len(course[i].Epochs))
		}
		best, most := 0.0, 0.0
		for e := range h.Epochs {
			best, most = max(best, h.Epochs[e].ValidAccuracy), max(most, course[i].Epochs[e].ValidAccuracy)
			if e == h.Best && math.Float64bits(h.Epochs[e].ValidLoss) != math.Float64bits(course[i].Epochs[e].ValidLoss) {
				t.Errorf("%s: the best epoch has validation loss %v, want %v", what, h.Epochs[e].ValidLoss, course[i].Epochs[e].ValidLoss)
			}
			if math.Float64bits(h.Epochs[e].TrainLoss) != math.Float64bits(course[i].Epochs[e].TrainLoss) || best != most {
				t.Errorf("%s: epoch %d has loss %v and accuracy %v, want %v and %v", what, e, h.Epochs[e].TrainLoss, best, course[i].Epochs[e].TrainLoss, most)
			}
		}
	}
}

// TestTogetherGivesTheSameBits has workers train models together: of any number, with any share each, any kernel, threads and
// memory, and options of all kinds.
func TestTogetherGivesTheSameBits(t *testing.T) {
	var kernels []string
	for _, name := range []string{"go", "avx2", "avx512"} {
		if _, err := dense.Select(name); err == nil {
			kernels = append(kernels, name)
		}
	}
	rapid.Check(t, func(r *rapid.T) {
		width := rapid.IntRange(1, 70).Draw(r, "width")
		p := noisy(rapid.Int64Range(40, 3000).Draw(r, "rows"), width, rapid.IntRange(2, 9).Draw(r, "classes"), 0.2)
		if rapid.Bool().Draw(r, "nothing to validate on") {
			for i, s := range p.Splits {
				if s == Valid {
					p.Splits[i] = NoSplit
				}
			}
		}
		o := quick()
		o.Measure = rapid.SampledFrom([]string{"", Accuracy, MacroF1, AUC}).Draw(r, "measure")
		o.Choose, o.LayerNorm = rapid.SampledFrom([]string{"", ByLoss}).Draw(r, "choose"), rapid.Bool().Draw(r, "normalised")
		o.Standardize = rapid.Bool().Draw(r, "standardised")
		o.Layers, o.Hidden, o.Epochs = rapid.IntRange(1, 4).Draw(r, "layers"), rapid.IntRange(1, 150).Draw(r, "hidden"), rapid.IntRange(1, 6).Draw(r, "epochs")
		o.Patience, o.BatchSize, o.Seed = rapid.IntRange(0, 2).Draw(r, "patience"), rapid.IntRange(0, 2000).Draw(r, "batch"), rapid.Uint64().Draw(r, "seed")
		runs := rapid.SampledFrom([][]int{{0}, {2}, {1, 0}}).Draw(r, "runs")
		o.Runs = 3
		want, course := one(t, p, o, runs)
		size := rapid.IntRange(2, 9).Draw(r, "workers")
		got, histories, err := trainTogether(t, p, o, runs, size, func(_ int, res *Resources) {
			res.Threads = rapid.IntRange(1, 3).Draw(r, "threads")
			res.Kernel = rapid.SampledFrom(kernels).Draw(r, "kernel")
		})
		if err != nil {
			r.Fatal(err)
		}
		compare(t, fmt.Sprint(size, " workers"), got, want, histories, course)
	})
}

// TestTogetherStreamed has a worker with little memory, which reads its rows in each epoch, train with one that has them in
// memory.
func TestTogetherStreamed(t *testing.T) {
	p := clouds(16000, 512, 3, 2000)
	o := quick()
	o.BatchSize, o.Epochs, o.Hidden = 1500, 2, 20
	want, course := one(t, p, o, []int{0})
	for size := 2; size <= 3; size++ {
		got, histories, err := trainTogether(t, p, o, []int{0}, size, func(self int, res *Resources) {
			if self == 1 {
				res.Budget = testBudget(t, 26<<20)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		compare(t, fmt.Sprint(size, " workers"), got, want, histories, course)
	}
}

// TestTogetherFails ends all workers with the error of one.
func TestTogetherFails(t *testing.T) {
	p := clouds(600, 8, 3, 100)
	_, _, err := trainTogether(t, p, quick(), []int{0}, 2, func(self int, res *Resources) {
		if self == 1 {
			res.Kernel = "none"
		}
	})
	if err == nil {
		t.Error("a worker without a kernel trained")
	}
}

// TestMemoryOfTogether holds the memory of a worker that trains with others against its formula.
func TestMemoryOfTogether(t *testing.T) {
	p := clouds(5000, 64, 3, 5000)
	o := quick()
	o.BatchSize, o.Epochs, o.Runs, o.Hidden = 3000, 1, 1, 1024
	var train, valid int64
	for _, s := range p.Splits {
		switch s {
		case Train:
			train++
		case Valid:
			valid++
		}
	}
	for _, size := range []int{2, 3, 5, 8} {
		var budgets []func() (peak, planned int64)
		_, _, err := trainTogether(t, p, o, []int{0}, size, func(_ int, res *Resources) {
			b := res.Budget
			free := b.Free()
			planned, _, _ := PlanFit(Shape{Rows: 5000, Train: train, Valid: valid, Width: 64, Classes: 3, Workers: size}, o, 1, free)
			budgets = append(budgets, func() (int64, int64) { return b.Peak() - (b.Limit() - free), planned })
		})
		if err != nil {
			t.Fatal(err)
		}
		for self, b := range budgets {
			if peak, planned := b(); peak > planned+1<<16 || peak < planned*3/4 {
				t.Errorf("worker %d of %d took %d bytes, planned are %d", self, size, peak, planned)
			}
		}
	}
}
