package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/rng"
	"ndls/train/dense"
)

// ErrDiverged reports a run whose loss is no longer a finite number.
var ErrDiverged = failure.Kind("training diverged")

// Resources bounds a call and changes no bit of its result.
type Resources struct {
	// Budget is charged with all arrays.
	Budget *mem.Budget
	// Threads is the number of threads; 0 is 1.
	Threads int
	// Kernel names the implementation of the products, "" for the fastest.
	Kernel string
	// Group holds the workers that train the same models together, nil for a worker that trains
	// alone. Each of them makes the same call, with the same rows, and gets the same models and
	// histories. If one worker alone has an error, the caller must tell the others, which wait for
	// it.
	Group group.Group
}

// Epoch holds the measurements after an epoch. Without validation rows all but the first are 0.
type Epoch struct {
	// TrainLoss is the mean loss of the training rows, with dropout, each under the weights of its
	// step: the negative log-likelihood, or what [Label] and [Regress] have in its place.
	TrainLoss float64
	// ValidLoss is the mean loss of the validation rows. ValidAccuracy is the share of rows, or of labels,
	// that are predicted rightly, 0 for [Regress].
	ValidLoss     float64
	ValidAccuracy float64
	// ValidMeasure is the value of Options.Measure: ValidAccuracy, unless the options name another
	// one.
	ValidMeasure float64
}

// History holds the course of one run.
type History struct {
	Run    int
	Epochs []Epoch
	// Best is the epoch, counted from 0, whose weights were kept, as Options.Choose says. Without
	// validation rows it is the last. With Options.Ridge an epoch is a penalty, the largest first, and of
	// equals the first is kept.
	Best int
	// Penalty is λ of a ridge regression, Scale the factor of its scores.
	Penalty, Scale float64
}

// ValidAccuracy returns the accuracy of the kept weights on the validation rows.
func (h History) ValidAccuracy() float64 { return h.Epochs[h.Best].ValidAccuracy }

// better reports whether the options prefer a, which came later, to b.
func (o Options) better(a, b Epoch) bool {
	if o.Choose == ByLoss {
		return a.ValidLoss < b.ValidLoss
	}
	return a.ValidMeasure > b.ValidMeasure || a.ValidMeasure == b.ValidMeasure && a.ValidLoss < b.ValidLoss
}

// needsLoss reports whether the loss of each epoch is needed, and not that of the best ones alone.
func (o Options) needsLoss() bool { return o.Choose == ByLoss || o.needsAll() }

// Result holds one model for each run, and its history.
type Result struct {
	Models    []*Model
	Histories []History
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

// FitRuns trains o.Runs models, as many at a time as threads and budget allow. The caller frees the
// result. It reads no test rows.
func FitRuns(ctx context.Context, p Problem, o Options, res Resources) (*Result, error) {
	runs := make([]int, max(o.Runs, 0))
	for i := range runs {
		runs[i] = i
	}
	return fit(ctx, p, o, runs, res, nil)
}

// FitEach trains the models of some runs, with the same bits as [FitRuns], and calls done with each
// model as soon as it is trained: in any order, by one goroutine at a time. The model is freed when
// FitEach returns. An error of done ends the call. If accuracy chooses, FitEach validates an epoch
// only until it is clear that another one was better. Histories then have neither the accuracy nor
// the loss of epochs whose accuracy was below the best.
func FitEach(ctx context.Context, p Problem, o Options, runs []int, res Resources, done func(*Model, History) error) error {
	r, err := fit(ctx, p, o, runs, res, done)
	r.Free()
	return err
}

// fit trains the models of runs, and passes each to done if done is not nil.
func fit(ctx context.Context, p Problem, o Options, runs []int, res Resources, done func(*Model, History) error) (_ *Result, err error) {
	f, err := newFitting(p, o, res)
	if err != nil {
		return nil, err
	}
	defer f.free()
	f.brief = done != nil && !f.together() && !o.Ridge && !o.needsLoss()

	result := &Result{Histories: make([]History, len(runs))}
	defer func() {
		if err != nil {
			result.Free()
		}
	}()
	for range runs {
		m, err := newModel(res.Budget, f.form)
		if err != nil {
			return nil, err
		}
		result.Models = append(result.Models, m)
	}
	if err := f.load(ctx, pool(max(res.Threads, 1))); err != nil {
		return nil, err
	}
	for _, m := range result.Models {
		m.take(f.statistics)
	}
	if !o.Ridge {
		f.meter = progress.StartPart(ctx, "train", int64(len(runs))*int64(o.Epochs), "epochs")
		defer f.meter.Done()
	}
	var calling sync.Mutex // of done
	runners, ctx := errgroup.WithContext(ctx)
	side, c := f.divide(len(runs), max(res.Threads, 1))
	runners.SetLimit(side)
	for i, run := range runs {
		runners.Go(func() (err error) {
			result.Histories[i], err = f.run(ctx, run, c, result.Models[i])
			if err == nil {
				f.scales.restore(result.Models[i])
			}
			if err != nil || done == nil {
				return err
			}
			calling.Lock()
			defer calling.Unlock()
			return done(result.Models[i], result.Histories[i])
		})
	}
	if err := runners.Wait(); err != nil {
		return nil, err
	}
	return result, nil
}

// fitting holds what the runs of a call share.
type fitting struct {
	problem Problem
	options Options
	budget  *mem.Budget
	kernel  *dense.Kernel
	form
	train, valid *rowSet
	// statistics holds the means, then the inverse deviations, of the training rows' columns, if inputs are standardised.
	statistics *mem.Array[float32]
	scales     scales
	// validation is the number of validation rows; valid holds those of this worker.
	validation int64
	// validFrom is the number of validation rows before those of this worker.
	validFrom int64
	// group holds the workers that train together, and workers is their number: 1 for a worker that
	// trains alone.
	group   group.Group
	workers int
	// shuffle is false if a step takes all rows, which then keep their stored order.
	shuffle bool
	// brief says that an epoch is validated only until it is clear that another one was better.
	brief bool
	// reach is the largest magnitude of a value of the validation rows in memory.
	reach float32
	meter *progress.Meter
	// telling says that a model under way reports its accuracy to the meter.
	telling atomic.Bool
}

func newFitting(p Problem, o Options, res Resources) (*fitting, error) {
	kernel, err := dense.Select(res.Kernel)
	if err := errors.Join(err, p.validate(o.Task)); err != nil {
		return nil, err
	}
	f := &fitting{
		problem: p, options: o, budget: res.Budget, kernel: kernel, workers: 1, train: newRowSet(p, Train),
		valid: newRowSet(p, Valid),
	}
	f.validation = f.valid.count
	if res.Group != nil && res.Group.Size() > 1 && !o.Ridge {
		f.join(res.Group)
	}
	f.form = formOf(p.Source.Width(), p.Classes, o)
	f.shuffle = o.BatchSize > 0 && int64(o.BatchSize) < f.train.count
	return f, nil
}

func (f *fitting) free() {
	f.train.free()
	f.valid.free()
	f.statistics.Free()
	f.scales.free()
}

// load checks the rows, loads them if the budget has room for them and for one run, and measures them.
func (f *fitting) load(ctx context.Context, c pool) error {
	need := f.train.bytes() + f.valid.bytes() + 4*4096
	if f.budget.Free() >= need+max(chunkBufferBytes(f.problem.Source), f.runBytes(false, 1)) {
		if err := errors.Join(f.train.allocate(f.budget), f.valid.allocate(f.budget)); err != nil {
			return err
		}
	}
	if err := check(ctx, f.budget, f.problem.Source, f.train, f.valid); err != nil {
		return err
	}
	if f.brief = f.brief && f.valid.values != nil; f.brief {
		f.reach = magnitude(f.valid.values.S)
	}
	threads := newThreadPool(c)
	defer threads.free()
	return errors.Join(f.measureColumns(ctx, threads), f.measureAnswers(threads))
}

// runBytes returns the memory of one run without its model.
func (f *fitting) runBytes(streamed bool, c pool) int64 {
	if f.options.Ridge {
		return f.ridgeBytes(streamed, c)
	}
	n := 4*f.numValues() + f.statisticsBytes() + scalesBytes(f.options.Task, f.dims[len(f.dims)-1]) + 4*f.stateValues() +
		networkBytes(f.form, c, microbatchRows(c, f.dims[0]), f.kernel, true) + 4*4096 +
		samplerBytes(f.dims[0], max(f.train.count, f.valid.count), f.shuffle, streamed)
	if !f.together() && !f.options.needsLoss() {
		n += hardestBytes(f.valid.count, streamed)
	}
	return n + measuringBytes(f.options, f.valid.count, f.dims[len(f.dims)-1])
}

// divide returns the number of runs that are trained at a time, and the threads of each. A run has
// as many threads as its steps have rows for; the remaining threads train other runs at the same
// time, as far as the budget allows. If not even one run fits, it fails later with the message of
// the first failed allocation.
func (f *fitting) divide(runs, threads int) (side int, c pool) {
	return divideThreads(f.beside(runs), threads, f.threadedRows(), threadRows(f.dims[0]), func(side int, c pool) bool {
		return int64(side)*f.runBytes(f.train.values == nil, c) <= f.budget.Free()
	})
}

// threadedRows returns the number of rows that decides the number of threads of a run.
func (f *fitting) threadedRows() int64 {
	if f.options.Ridge { // its columns occupy all threads
		return math.MaxInt32
	}
	return f.ownRows()
}

// beside returns the largest number of runs that may be trained at the same time. Workers that
// train together train one run after the other, and so does a ridge regression, which has work for
// all threads.
func (f *fitting) beside(runs int) int {
	if f.together() || f.options.Ridge {
		return 1
	}
	return runs
}

// stepRows returns the number of rows of a step.
func (f *fitting) stepRows() int64 {
	if f.shuffle {
		return int64(f.options.BatchSize)
	}
	return f.train.count
}

// divideThreads divides threads among runs whose steps have stepRows rows; a thread takes
// threadRows of them at a time.
func divideThreads(runs, threads int, stepRows int64, threadRows int, fits func(side int, c pool) bool) (side int, c pool) {
	c = pool(max(min(threads, units(int(stepRows), threadRows)), 1))
	side = min((threads+int(c)-1)/int(c), runs)
	for side > 1 && !fits(side, c) {
		side--
	}
	for c > 1 && !fits(side, c) {
		c--
	}
	return side, c
}

// run trains the model of one run.
func (f *fitting) run(ctx context.Context, run int, c pool, best *Model) (h History, err error) {
	if f.options.Ridge {
		return f.ridge(ctx, run, c, best)
	}
	t, err := f.begin(run, c)
	if err != nil {
		return h, err
	}
	defer t.free()
	h.Run = run
	work := func(ctx context.Context) error { return t.epochs(ctx, &h, best) }
	if f.together() {
		err = t.exchange(ctx, work)
	} else {
		err = work(ctx)
	}
	return h, err
}

// epochs runs the epochs of a run, and keeps the weights of the best one.
func (t *trainer) epochs(ctx context.Context, h *History, best *Model) error {
	// Of models that are trained at the same time, one reports its progress.
	tells := t.validation > 0 && t.telling.CompareAndSwap(false, true)
	if tells {
		defer t.telling.Store(false)
	}
	for epoch := range t.options.Epochs {
		e, err := t.epoch(ctx, epoch)
		if err != nil {
			return err
		}
		h.Epochs = append(h.Epochs, e)
		t.meter.Add(1)
		if epoch == 0 || t.validation == 0 || t.options.better(e, h.Epochs[h.Best]) {
			h.Best = epoch
			copy(best.params, t.model.params)
		}
		if tells {
			t.meter.Settle(progress.Settled{Hop: epoch + 1, Share: h.ValidAccuracy()})
		}
		if t.options.Patience > 0 && t.validation > 0 && epoch-h.Best >= t.options.Patience {
			t.meter.Add(int64(t.options.Epochs - 1 - epoch))
			break
		}
	}
	return nil
}

// trainer is the state of one run.
type trainer struct {
	*fitting
	seed  uint64
	model *Model
	state *mem.Array[float32]
	// sums holds gradients of nodes of the tree, losses the losses of these nodes.
	sums    [][]float32
	losses  []float64
	adam    *adam
	net     *network
	sampler *sampler
	shared  *shared // nil for a worker that trains alone
	// hardest orders the validation rows if epochs are validated briefly.
	hardest *hardest
	// measuring holds what is measured of the weights on the validation rows.
	measuring *measuring
	// largest is the largest magnitude of a weight or bias after a step.
	largest float32

	// These fields belong to the epoch under way.
	now      int
	rate     float64
	position int64 // samples seen
	loss     float64

	// These fields belong to the step under way.
	left   int64 // samples still missing
	batch  int64 // samples
	adding adding
	end    int64 // end of the samples of this worker
}

func (t *trainer) allocate(c pool) (err error) {
	if t.model, err = newModel(t.budget, t.form); err != nil {
		return err
	}
	t.model.take(t.statistics)
	if t.state, err = mem.Alloc[float32](t.budget, t.stateValues(), "gradients and optimiser"); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	rest := t.state.S
	take := func(n int) (some []float32) {
		some, rest = rest[:n:n], rest[n:]
		return some
	}
	n := len(t.model.params)
	t.adam = newAdam(take(n), take(n))
	t.losses = make([]float64, t.mostSums())
	for range t.losses {
		t.sums = append(t.sums, take(n+t.lossValues()))
	}
	if t.together() {
		t.shared = &shared{result: take(n + t.lossValues()), received: rest}
	}
	if t.net, err = newNetwork(t.budget, t.model, c, microbatchRows(c, t.dims[0]), t.kernel, true); err != nil {
		return err
	}
	rows := max(t.train.count, t.valid.count)
	if t.sampler, err = newSampler(t.budget, t.dims[0], rows, t.shuffle, t.train.values == nil); err != nil {
		return err
	}
	if t.brief {
		if t.hardest, err = newHardest(t.budget, t.valid.count); err != nil {
			return err
		}
	}
	t.measuring, err = newMeasuring(t.budget, t.options, t.validation, t.problem.Classes)
	return err
}

func (t *trainer) free() {
	t.model.Free()
	t.state.Free()
	t.net.free()
	t.sampler.free()
	t.hardest.free()
	t.measuring.free()
}

// epoch makes the steps of an epoch and validates its weights.
func (t *trainer) epoch(ctx context.Context, epoch int) (e Epoch, err error) {
	t.now, t.rate, t.position, t.loss = epoch, t.options.rate(epoch), 0, 0
	learn := func(p microbatch) error { return t.learn(ctx, p) }
	if t.shuffle {
		err = t.sampler.epoch(ctx, t.train, rng.Hash(t.seed, drawOrder, uint64(epoch)), learn)
	} else {
		err = t.sampler.inOrder(ctx, t.train, learn)
	}
	if err != nil {
		return e, err
	}
	e.TrainLoss = t.loss / float64(t.train.count)
	if t.validation > 0 {
		measure := t.validate
		if t.brief && t.bounded() {
			measure = t.surpass
		}
		if err := measure(ctx, &e); err != nil {
			return e, err
		}
	}
	if x := e.TrainLoss + e.ValidLoss; math.IsNaN(x) || math.IsInf(x, 0) {
		return e, failure.Of(ErrDiverged, "train: run diverged in epoch %d: the loss is %v: use a smaller --lr, or features without extreme values", epoch+1, x)
	}
	return e, nil
}

// learn adds the gradient of consecutive samples, and makes a step each time a batch is complete.
func (t *trainer) learn(ctx context.Context, p microbatch) error {
	for p.len() > 0 {
		if t.left == 0 {
			t.beginStep()
		}
		var next microbatch
		next, p = p.cut(int(min(int64(p.len()), t.left)))
		from := t.batch - t.left
		t.left -= int64(next.len())
		if err := t.learnOwn(ctx, next, from); err != nil {
			return err
		}
		t.position += int64(next.len())
		if t.left > 0 {
			continue
		}
		if t.together() {
			if err := t.step(); err != nil {
				return err
			}
		} else {
			t.loss += t.losses[0]
		}
		t.net.packRest()
	}
	return nil
}

// beginStep begins the step after the samples seen so far.
func (t *trainer) beginStep() {
	t.batch = t.train.count - t.position
	if t.shuffle {
		t.batch = min(t.batch, int64(t.options.BatchSize))
	}
	t.left = t.batch
	p := cutStep(t.batch)
	first, last := 0, p.count
	if t.together() {
		first, last = p.of(t.group.Self(), t.workers)
	}
	t.adding.begin(p, first)
	t.end = p.at(last)
}

// learnOwn computes and adds up the gradients of those samples of p that belong to this worker. p
// begins at sample t.position of the epoch, which is sample from of the step.
func (t *trainer) learnOwn(ctx context.Context, p microbatch, from int64) error {
	first := t.position - from // of the step
	lo, hi := max(t.adding.row, from), min(t.end, from+int64(p.len()))
	if lo >= hi {
		return ctx.Err()
	}
	_, p = p.cut(int(lo - from))
	p, _ = p.cut(int(hi - lo))
	for p.len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var next microbatch
		next, p = p.cut(t.adding.take(p.len(), t.net.rows))
		t.accumulate(next, first+t.adding.row)
	}
	return nil
}

// accumulate adds the gradient of samples that begin at a position of the epoch. If they are the
// last of a step of a worker that trains alone, it makes the step, with each part of the gradient
// as soon as that part is complete.
func (t *trainer) accumulate(p microbatch, position int64) {
	net, n := t.net, p.len()
	t.through(p, position)
	terms := t.adding.next(n)
	for _, x := range terms {
		if x.fresh {
			t.losses[x.sum] = 0
		}
		for _, loss := range net.sum[x.lo:x.hi] {
			t.losses[x.sum] += loss
		}
		for k := range x.joins {
			t.losses[x.sum-k-1] += t.losses[x.sum-k]
		}
	}
	if t.together() || t.adding.row < t.batch {
		net.addGradient(t.sums, n, terms, nil)
		return
	}
	var largest atomic.Uint32 // magnitude of a parameter, as bits, which have the same order
	step := t.adam.next(t.rate, t.options.WeightDecay)
	net.addGradient(t.sums, n, terms, func(lo, hi int) {
		most := math.Float32bits(t.adam.move(t.kernel, step, t.model.params, t.sums[0], lo, hi))
		for old := largest.Load(); most > old && !largest.CompareAndSwap(old, most); old = largest.Load() {
		}
	})
	t.largest = math.Float32frombits(largest.Load())
}

// through computes the output and the gradients of samples that begin at a position of the epoch.
func (t *trainer) through(p microbatch, position int64) {
	var (
		net    = t.net
		width  = t.dims[0]
		key    = rng.Hash(t.seed, drawDropout, uint64(t.now))
		first  = rng.Hash(key, 0)
		input  = newDropout(t.options.InputDropout)
		hidden = newDropout(t.options.Dropout)
	)
	drop := func(l, row int, h []float32) {
		hidden.apply(t.kernel, h, h, rng.Hash(key, uint64(l+1)), position+int64(row))
	}
	net.pool.rows(p.len(), func(thread, lo, hi int) {
		for i := lo; i < hi; i++ {
			x, row := net.x[i*width:(i+1)*width], p.row(i)
			if net.standard {
				net.standardise(x, row)
				row = x
			}
			input.apply(t.kernel, x, row, first, position+int64(i))
		}
		net.forward(thread, net.x[lo*width:hi*width], lo, hi, drop)
		for i := lo; i < hi; i++ {
			net.sum[i] = t.gradientOf(p, i, net.logits(i), 1/float64(t.batch), net.p[thread])
		}
		net.backward(thread, lo, hi, p.len(), hidden.scale)
	})
}
