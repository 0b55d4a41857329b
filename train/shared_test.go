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

// crew is workers of one process that hand values on, and gather them, in memory.
type crew struct {
	borders []int64
	mu      sync.Mutex
	cond    *sync.Cond
	calls   map[int]*handing
	failed  error
}

// handing is one call of all workers.
type handing struct {
	turn   int // how many workers have had how many parts
	values []float32
	all    [][]float64
}

func newCrew(borders ...int64) *crew {
	c := &crew{borders: borders, calls: map[int]*handing{}}
	c.cond = sync.NewCond(&c.mu)
	return c
}

// fail ends all calls.
func (c *crew) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failed = errors.Join(c.failed, err)
	c.cond.Broadcast()
}

// hand is a worker of a crew.
type hand struct {
	group.Group // what training does not need
	*crew
	self, calls int
}

func (h *hand) Size() int { return len(h.borders) - 1 }

func (h *hand) Range() (first, last, n int64) {
	return h.borders[h.self], h.borders[h.self+1], h.borders[h.Size()]
}

// next is the present call of all workers, and until waits for something of it. The caller holds the lock.
func (h *hand) next() *handing {
	x := h.crew.calls[h.calls]
	if x == nil {
		x = &handing{all: make([][]float64, h.Size())}
		h.crew.calls[h.calls] = x
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

func (h *hand) HandOn(_ context.Context, values []float32, ends []int, add, done func(part int)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	x := h.next()
	if x.values == nil {
		x.values = make([]float32, len(values))
	}
	from := 0
	for i, end := range ends {
		if err := h.until(func() bool { return x.turn == i*h.Size()+h.self }); err != nil {
			return err
		}
		copy(values[from:end], x.values[from:end])
		add(i)
		copy(x.values[from:end], values[from:end])
		x.turn++
		h.cond.Broadcast()
		from = end
	}
	if err := h.until(func() bool { return x.turn == len(ends)*h.Size() }); err != nil {
		return err
	}
	copy(values, x.values)
	for i := range ends {
		done(i)
	}
	return nil
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
func trainTogether(t testing.TB, p Problem, o Options, runs []int, borders []int64, change func(self int, res *Resources)) ([][]byte, []History, error) {
	c := newCrew(borders...)
	size := len(borders) - 1
	models, histories, failed := make([][][]byte, size), make([][]History, size), make([]error, size)
	var workers sync.WaitGroup
	for self := range size {
		res := Resources{Budget: testBudget(t, 128<<20), Threads: 1, Group: &hand{crew: c, self: self}}
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

// compare says whether models are the same bytes, and histories the same where the model file or the report
// tells of them: losses of validation rows are told by nothing.
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
		p := noisy(rapid.Int64Range(40, 900).Draw(r, "rows"), width, rapid.IntRange(2, 9).Draw(r, "classes"), 0.2)
		if rapid.Bool().Draw(r, "nothing to validate on") {
			for i, s := range p.Splits {
				if s == Valid {
					p.Splits[i] = NoSplit
				}
			}
		}
		o := quick()
		o.Layers, o.Hidden, o.Epochs = rapid.IntRange(1, 4).Draw(r, "layers"), rapid.IntRange(1, 150).Draw(r, "hidden"), rapid.IntRange(1, 6).Draw(r, "epochs")
		o.Patience, o.BatchSize, o.Seed = rapid.IntRange(0, 2).Draw(r, "patience"), rapid.IntRange(0, 400).Draw(r, "batch"), rapid.Uint64().Draw(r, "seed")
		runs := rapid.SampledFrom([][]int{{0}, {2}, {1, 0}}).Draw(r, "runs")
		o.Runs = 3
		want, course := one(t, p, o, runs)
		borders := []int64{0}
		for range rapid.IntRange(2, 5).Draw(r, "workers") {
			borders = append(borders, borders[len(borders)-1]+rapid.Int64Range(1, 40).Draw(r, "share"))
		}
		got, histories, err := trainTogether(t, p, o, runs, borders, func(_ int, res *Resources) {
			res.Threads = rapid.IntRange(1, 3).Draw(r, "threads")
			res.Kernel = rapid.SampledFrom(kernels).Draw(r, "kernel")
		})
		if err != nil {
			r.Fatal(err)
		}
		compare(t, fmt.Sprint(borders), got, want, histories, course)
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
		got, histories, err := trainTogether(t, p, o, []int{0}, []int64{0, 3, 5, 9}[:size+1], func(self int, res *Resources) {
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
	_, _, err := trainTogether(t, p, quick(), []int{0}, []int64{0, 1, 2}, func(self int, res *Resources) {
		if self == 1 {
			res.Kernel = "none"
		}
	})
	if err == nil {
		t.Error("a worker without a kernel trained")
	}
}

// TestSections: sections follow each other, have whole rows of weights, and are the same whatever the kernel.
func TestSections(t *testing.T) {
	for _, dims := range [][]int{{128, 256, 172}, {1, 1}, {3000, 7, 2}, {11, 13, 13, 40000}} {
		at, inputs := 0, 0
		for _, s := range sectionsOf(dims) {
			in, out := dims[s.layer], dims[s.layer+1]
			if s.top == 0 {
				inputs = 0
			}
			size := (s.bottom - s.top) * out
			if s.bottom == in {
				size += out
			}
			if s.lo != at || s.hi != at+size || s.top != inputs || s.top%sectionRows != 0 {
				t.Errorf("%v: section %+v after value %d and input %d", dims, s, at, inputs)
			}
			at, inputs = s.hi, s.bottom
		}
		if int64(at) != numParams(dims) {
			t.Errorf("%v: sections end at value %d of %d", dims, at, numParams(dims))
		}
	}
}

// TestMemoryOfTogether holds the memory of a worker that trains with others against its formula.
func TestMemoryOfTogether(t *testing.T) {
	p := clouds(5000, 64, 3, 1000)
	o := quick()
	o.BatchSize, o.Epochs, o.Runs, o.Hidden = 3000, 1, 1, 256
	var train, valid int64
	for _, s := range p.Splits {
		switch s {
		case Train:
			train++
		case Valid:
			valid++
		}
	}
	borders := []int64{0, 3, 8, 10}
	var budgets []func() (peak, planned int64)
	_, _, err := trainTogether(t, p, o, []int{0}, borders, func(self int, res *Resources) {
		b := res.Budget
		free := b.Free()
		planned, _, _ := PlanFit(Shape{Rows: 5000, Train: train, Valid: valid, Width: 64, Classes: 3, Part: borders[self+1] - borders[self], Of: 10}, o, 1, free)
		budgets = append(budgets, func() (int64, int64) { return b.Peak() - (b.Limit() - free), planned })
	})
	if err != nil {
		t.Fatal(err)
	}
	for self, b := range budgets {
		if peak, planned := b(); peak > planned+1<<16 || peak < planned*3/4 {
			t.Errorf("worker %d took %d bytes, planned are %d", self, peak, planned)
		}
	}
}
