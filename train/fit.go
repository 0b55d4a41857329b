package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/rng"
)

// Resources bound a call and change no bit of its result.
type Resources struct {
	// Budget is what arrays are charged to.
	Budget *mem.Budget
	// Threads is the number of threads; 0 is 1.
	Threads int
}

// Epoch is what is known after an epoch. Without validation rows the last two
// are 0.
type Epoch struct {
	// TrainLoss is the mean negative log-likelihood of the training rows, with
	// dropout, each under the weights of its step.
	TrainLoss     float64
	ValidLoss     float64
	ValidAccuracy float64
}

// History is the course of one run.
type History struct {
	Run    int
	Epochs []Epoch
	// Best is the epoch, counted from 0, whose weights were kept: the highest
	// validation accuracy, the earliest among equals; without validation rows the
	// last.
	Best int
}

// ValidAccuracy is that of the weights that were kept.
func (h History) ValidAccuracy() float64 { return h.Epochs[h.Best].ValidAccuracy }

// better reports whether a is preferred to b.
func (a Epoch) better(b Epoch) bool {
	return a.ValidAccuracy > b.ValidAccuracy
}

// Result is one model for each run, and how it came about.
type Result struct {
	Models    []*Model
	Histories []History
}

// Valid summarises the validation accuracy over the runs.
func (r *Result) Valid() Stat {
	var x []float64
	for _, h := range r.Histories {
		x = append(x, h.ValidAccuracy())
	}
	return Summarize(x)
}

// Free returns the memory of the models. It may be called on nil.
func (r *Result) Free() {
	if r == nil {
		return
	}
	for _, m := range r.Models {
		m.Free()
	}
}

// FitRuns trains o.Runs models, as many at a time as threads and budget allow.
// The caller frees the result. Test rows are not read.
func FitRuns(ctx context.Context, p Problem, o Options, res Resources) (*Result, error) {
	runs := make([]int, max(o.Runs, 0))
	for i := range runs {
		runs[i] = i
	}
	return fit(ctx, p, o, runs, res, nil)
}

// FitEach trains the models of some runs, the same that [FitRuns] gives for them, and
// calls done with each model as soon as it is trained: in any order, by one goroutine
// at a time. The model is freed when FitEach returns. An error of done ends the call.
func FitEach(ctx context.Context, p Problem, o Options, runs []int, res Resources, done func(*Model, History) error) error {
	r, err := fit(ctx, p, o, runs, res, done)
	r.Free()
	return err
}

// Fit trains the model of one run, the same that [FitRuns] gives for it.
func Fit(ctx context.Context, p Problem, o Options, run int, res Resources) (*Model, History, error) {
	r, err := fit(ctx, p, o, []int{run}, res, nil)
	if err != nil {
		return nil, History{}, err
	}
	return r.Models[0], r.Histories[0], nil
}

// fit trains the models of runs, and gives each to done where that is not nil.
func fit(ctx context.Context, p Problem, o Options, runs []int, res Resources, done func(*Model, History) error) (_ *Result, err error) {
	f, err := newFitting(p, o, res.Budget)
	if err != nil {
		return nil, err
	}
	defer f.free()

	result := &Result{Histories: make([]History, len(runs))}
	defer func() {
		if err != nil {
			result.Free()
		}
	}()
	for range runs {
		m, err := newModel(res.Budget, f.dims)
		if err != nil {
			return nil, err
		}
		result.Models = append(result.Models, m)
	}
	if err := f.load(ctx); err != nil {
		return nil, err
	}
	f.meter = progress.Start(ctx, "train", int64(len(runs))*int64(o.Epochs), "epochs")
	defer f.meter.Done()
	var calling sync.Mutex // of done
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(f.concurrent(res.Threads))
	for i, run := range runs {
		group.Go(func() (err error) {
			result.Histories[i], err = f.run(ctx, run, result.Models[i])
			if err != nil || done == nil {
				return err
			}
			calling.Lock()
			defer calling.Unlock()
			return done(result.Models[i], result.Histories[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return result, nil
}

// fitting is what the runs of a call share.
type fitting struct {
	problem      Problem
	options      Options
	budget       *mem.Budget
	dims         []int
	train, valid *rowSet
	// shuffle is false when a step takes all rows, whose order is the stored one.
	shuffle bool
	meter   *progress.Meter
}

func newFitting(p Problem, o Options, b *mem.Budget) (*fitting, error) {
	if err := errors.Join(o.Validate(), p.Validate()); err != nil {
		return nil, err
	}
	f := &fitting{problem: p, options: o, budget: b, train: newRowSet(p, Train), valid: newRowSet(p, Valid)}
	f.dims = append(f.dims, p.Source.Width())
	for range o.Layers - 1 {
		f.dims = append(f.dims, o.Hidden)
	}
	f.dims = append(f.dims, p.Classes)
	f.shuffle = o.BatchSize > 0 && int64(o.BatchSize) < f.train.count
	return f, nil
}

func (f *fitting) free() {
	f.train.free()
	f.valid.free()
}

// load checks the rows, and brings them into memory if the budget allows that
// and one run.
func (f *fitting) load(ctx context.Context) error {
	need := f.train.bytes() + f.valid.bytes() + 4*4096
	if f.budget.Free() >= need+max(chunkBufferBytes(f.problem.Source), f.runBytes(false)) {
		if err := errors.Join(f.train.allocate(f.budget), f.valid.allocate(f.budget)); err != nil {
			return err
		}
	}
	return check(ctx, f.budget, f.problem.Source, f.train, f.valid)
}

// runBytes is the memory of one run besides its model.
func (f *fitting) runBytes(streamed bool) int64 {
	return 4*(4*numParams(f.dims)+workspaceSize(f.dims, true)) + 5*4096 +
		samplerBytes(f.dims[0], max(f.train.count, f.valid.count), f.shuffle, streamed)
}

// concurrent is the number of runs at a time. Where not even one fits, it fails
// with the message of what it could not allocate.
func (f *fitting) concurrent(threads int) int {
	fits := f.budget.Free() / f.runBytes(f.train.values == nil)
	return int(max(min(int64(threads), fits), 1))
}

// run trains the model of one run.
func (f *fitting) run(ctx context.Context, run int, best *Model) (History, error) {
	t, err := f.begin(run)
	if err != nil {
		return History{}, err
	}
	defer t.free()
	h := History{Run: run}
	for epoch := range f.options.Epochs {
		e, err := t.epoch(ctx, epoch)
		if err != nil {
			return History{}, err
		}
		h.Epochs = append(h.Epochs, e)
		f.meter.Add(1)
		if epoch == 0 || f.valid.count == 0 || e.better(h.Epochs[h.Best]) {
			h.Best = epoch
			copy(best.params, t.model.params)
		}
		if f.options.Patience > 0 && f.valid.count > 0 && epoch-h.Best >= f.options.Patience {
			f.meter.Add(int64(f.options.Epochs - 1 - epoch))
			break
		}
	}
	return h, nil
}

// trainer is the state of one run.
type trainer struct {
	*fitting
	seed    uint64
	model   *Model
	state   *mem.Array[float32]
	grad    []float32
	adam    *adam
	work    *workspace
	sampler *sampler
	p       []float64 // probabilities of one row

	// Of the epoch under way.
	now      int
	rate     float64
	position int64 // samples seen
	left     int64 // samples that the step still waits for
	batch    int64 // samples of the step
	loss     float64
}

func (t *trainer) allocate() (err error) {
	if t.model, err = newModel(t.budget, t.dims); err != nil {
		return err
	}
	n := int64(len(t.model.params))
	if t.state, err = mem.Alloc[float32](t.budget, 3*n, "gradient and optimiser"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	t.grad, t.adam = t.state.S[:n], newAdam(t.state.S[n:2*n], t.state.S[2*n:])
	if t.work, err = newWorkspace(t.budget, t.dims, true); err != nil {
		return err
	}
	rows := max(t.train.count, t.valid.count)
	if t.sampler, err = newSampler(t.budget, t.dims[0], rows, t.shuffle, t.train.values == nil); err != nil {
		return err
	}
	t.p = make([]float64, t.problem.Classes)
	return nil
}

func (t *trainer) free() {
	t.model.Free()
	t.state.Free()
	t.work.free()
	t.sampler.free()
}

// epoch takes the steps of an epoch and validates its weights.
func (t *trainer) epoch(ctx context.Context, epoch int) (e Epoch, err error) {
	t.now, t.rate, t.position, t.loss = epoch, t.options.rate(epoch), 0, 0
	if t.shuffle {
		err = t.sampler.epoch(ctx, t.train, rng.Hash(t.seed, drawOrder, uint64(epoch)), t.learn)
	} else {
		err = t.sampler.inOrder(ctx, t.train, t.learn)
	}
	if err != nil {
		return e, err
	}
	e.TrainLoss = t.loss / float64(t.train.count)
	if t.valid.count > 0 {
		if err := t.validate(ctx, &e); err != nil {
			return e, err
		}
	}
	if x := e.TrainLoss + e.ValidLoss; math.IsNaN(x) || math.IsInf(x, 0) {
		return e, fmt.Errorf("train: run diverged in epoch %d: the loss is %v: use a smaller --lr, or features without extreme values", epoch+1, x)
	}
	return e, nil
}

// learn adds the gradient of consecutive samples, and takes a step each time a
// batch is complete.
func (t *trainer) learn(x []float32, y []int32) error {
	width := t.dims[0]
	for len(y) > 0 {
		if t.left == 0 {
			t.batch = t.train.count - t.position
			if t.shuffle {
				t.batch = min(t.batch, int64(t.options.BatchSize))
			}
			t.left = t.batch
			clear(t.grad)
		}
		n := int(min(int64(len(y)), t.left))
		t.accumulate(x[:n*width], y[:n])
		x, y = x[n*width:], y[n:]
		t.left -= int64(n)
		t.position += int64(n)
		if t.left == 0 {
			t.adam.step(t.model.params, t.grad, t.rate, t.options.WeightDecay)
		}
	}
	return nil
}

// accumulate adds the share of some samples in the gradient of a step.
func (t *trainer) accumulate(x []float32, y []int32) {
	rows := len(y)
	key := rng.Hash(t.seed, drawDropout, uint64(t.now))
	if t.options.InputDropout > 0 {
		newDropout(t.options.InputDropout).apply(t.work.x, x, t.dims[0], rng.Hash(key, 0), t.position)
		x = t.work.x[:len(x)]
	}
	hidden := newDropout(t.options.Dropout)
	delta := t.model.forward(x, rows, t.work, func(l int, h []float32) {
		hidden.apply(h, h, t.dims[l+1], rng.Hash(key, uint64(l+1)), t.position)
	})
	t.loss = lossGradient(delta, y, 1/float64(t.batch), t.p, t.loss)
	t.model.backward(x, rows, t.work, delta, hidden.scale, t.grad)
}

// validate measures the weights on the validation rows.
func (t *trainer) validate(ctx context.Context, e *Epoch) error {
	right := 0
	classes := len(t.p)
	err := t.sampler.inOrder(ctx, t.valid, func(x []float32, y []int32) error {
		logits := t.model.forward(x, len(y), t.work, nil)
		for r, label := range y {
			row := logits[r*classes : (r+1)*classes]
			e.ValidLoss += softmax(row, t.p) - float64(row[label])
			if Argmax(row) == label {
				right++
			}
		}
		return nil
	})
	e.ValidLoss /= float64(t.valid.count)
	e.ValidAccuracy = float64(right) / float64(t.valid.count)
	return err
}
