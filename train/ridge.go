package train

import (
	"context"
	"fmt"
	"math"

	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/progress"
)

// ridgeShares are the penalties of a ridge regression, as shares of the mean eigenvalue of what it solves, in the order in which they are
// tried. unvalidatedShare is taken without validation rows.
var ridgeShares = [Penalties]float64{100, 10, 1, 0.1, 0.01, 1e-3, 1e-4, 1e-5}

const unvalidatedShare = 0.1

// Penalties is the number of penalties that are tried.
const Penalties = 8

// ridgeScales are the factors of scores before the softmax, each twice the one before it, so that the weights keep their digits.
// unvalidatedScale is taken without validation rows.
var ridgeScales = []float32{1, 2, 4, 8, 16, 32, 64}

const unvalidatedScale = 8

// ridge is a ridge regression on the training rows. With the rows X, standardised or as they are, and the one-hot labels Y, both less
// their means μ and ν, the weights solve (XᵀX + λI) W = XᵀY, or, if there are fewer rows than values, W = Xᵀ (XXᵀ + λI)⁻¹ Y, which is the
// same. The intercept is ν − μW: that of a column of ones without a penalty.
type ridge struct {
	*trainer
	dual   bool
	system symmetric
	// mean is μ, share is ν. rows holds the rows of X, all of them or some at a time; right and solved have a row of each class for each row
	// of the system; weights is W.
	mean, share, rows, right, solved, weights []float64

	at     int64 // training rows seen
	memory *mem.Array[float64]
}

// systemSize returns the number of rows of the system, and whether X has as many.
func (f *fitting) systemSize() (size int, dual bool) {
	width := f.dims[0]
	return int(min(f.train.count, int64(width))), f.train.count < int64(width)
}

// rowsAtATime returns the number of rows of X that are in memory.
func (f *fitting) rowsAtATime() int {
	size, dual := f.systemSize()
	if dual {
		return size
	}
	return min(max((4<<20)/(8*f.dims[0]), 16), 256)
}

// ridgeValues returns the number of float64 values of a ridge regression.
func (f *fitting) ridgeValues() (n int64) {
	(&ridge{trainer: &trainer{fitting: f}}).layout(func(_ *[]float64, size int64) { n += size })
	return n
}

// layout gives each array its size.
func (r *ridge) layout(take func(to *[]float64, size int64)) {
	size, _ := r.systemSize()
	n, width, classes := int64(size), int64(r.dims[0]), int64(r.dims[1])
	take(&r.system.values, n*n)
	take(&r.system.root, n)
	take(&r.mean, width)
	take(&r.share, classes)
	take(&r.rows, int64(r.rowsAtATime())*width)
	take(&r.right, n*classes)
	take(&r.solved, n*classes)
	take(&r.weights, width*classes)
}

// ridgeBytes returns the memory of a ridge regression without its model and without training and validation rows.
func (f *fitting) ridgeBytes(streamed bool, c pool) int64 {
	return 8*f.ridgeValues() + 4*f.numValues() + f.statisticsBytes() + networkBytes(f.form, c, microbatchRows(c, f.dims[0]), f.kernel, false) +
		samplerBytes(f.dims[0], max(f.train.count, f.valid.count), false, streamed) +
		measuringBytes(f.options, f.validation, f.dims[1]) + 4*4096
}

// ridge fits the model of a ridge regression, and chooses its penalty and its scale on the validation rows.
func (f *fitting) ridge(ctx context.Context, run int, c pool, best *Model) (h History, err error) {
	r, err := f.newRidge(c)
	if err != nil {
		return h, err
	}
	defer r.free()
	if err := r.sum(ctx); err != nil {
		return h, err
	}
	h.Run = run
	size := r.system.n
	unit := r.system.trace() / float64(size)
	if math.IsNaN(unit) || math.IsInf(unit, 0) {
		return h, failure.Of(ErrDiverged, "train: --model ridge: the squares of the training rows add up to %v: use features without extreme values", unit)
	}
	if unit == 0 { // all rows are the same
		unit = 1
	}
	shares := ridgeShares[:]
	if f.validation == 0 {
		shares = []float64{unvalidatedShare}
	}
	meter := progress.StartPart(ctx, "train", int64(len(shares)), "penalties")
	defer meter.Done()
	for i, share := range shares {
		if err := ctx.Err(); err != nil {
			return h, err
		}
		e, scale, err := r.try(ctx, float64(share*unit))
		if err != nil {
			return h, err
		}
		if h.Epochs = append(h.Epochs, e); i == 0 || f.options.improves(e, h.Epochs[h.Best]) {
			h.Best, h.Penalty, h.Scale = i, float64(share*unit), float64(scale)
			copy(best.params, r.model.params)
		}
		meter.Add(1)
	}
	return h, nil
}

// improves reports whether a, of a smaller penalty, is preferred to b.
func (o Options) improves(a, b Epoch) bool {
	if o.Choose == ByLoss {
		return a.ValidLoss < b.ValidLoss
	}
	return a.ValidMeasure > b.ValidMeasure
}

// newRidge allocates what a ridge regression needs.
func (f *fitting) newRidge(c pool) (r *ridge, err error) {
	r = &ridge{trainer: &trainer{fitting: f}}
	r.system.n, r.dual = f.systemSize()
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	if r.memory, err = mem.Alloc[float64](f.budget, f.ridgeValues(), "the sums of --model ridge, which grow with the square of the number of values of a row"); err != nil {
		return r, fmt.Errorf("train: %w", err)
	}
	rest := r.memory.S
	r.layout(func(to *[]float64, n int64) { *to, rest = rest[:n:n], rest[n:] })
	if r.model, err = newModel(f.budget, f.form); err != nil {
		return r, err
	}
	r.model.take(f.statistics)
	if r.net, err = newNetwork(f.budget, r.model, c, microbatchRows(c, f.dims[0]), f.kernel, false); err != nil {
		return r, err
	}
	if r.sampler, err = newSampler(f.budget, f.dims[0], max(f.train.count, f.valid.count), false, f.train.values == nil); err != nil {
		return r, err
	}
	r.measuring, err = newMeasuring(f.budget, f.options, f.validation, f.problem.Classes)
	return r, err
}

func (r *ridge) free() {
	r.memory.Free()
	r.trainer.free()
}

// sum reads the training rows twice: for their means, and for the system.
func (r *ridge) sum(ctx context.Context) error {
	if err := r.visit(ctx, r.addMeans); err != nil {
		return err
	}
	n := float64(r.train.count)
	for _, x := range [][]float64{r.mean, r.share} {
		for i := range x {
			x[i] /= n
		}
	}
	if err := r.visit(ctx, r.addCentred); err != nil {
		return err
	}
	if r.dual {
		r.gram()
	}
	return nil
}

// visit calls use with the training rows, some at a time, in their order.
func (r *ridge) visit(ctx context.Context, use func(p microbatch)) error {
	r.at = 0
	most := r.rowsAtATime()
	return r.sampler.inOrder(ctx, r.train, func(p microbatch) error {
		return p.pieces(ctx, most, 1, func(p microbatch) error { //nolint:unparam // a visitor
			use(p)
			r.at += int64(p.len())
			return nil
		})
	})
}

// sharedColumns is the number of columns that a thread takes at a time.
const sharedColumns = 64

// columns calls do for columns [lo, hi) of a row, some at a time, on all threads.
func (r *ridge) columns(do func(lo, hi int)) {
	width := r.dims[0]
	r.net.pool.share(units(width, sharedColumns), func(i int) { do(i*sharedColumns, min((i+1)*sharedColumns, width)) })
}

// addMeans adds rows and labels up.
func (r *ridge) addMeans(p microbatch) {
	for i := range p.len() {
		r.share[p.label(i)]++
	}
	r.columns(func(lo, hi int) {
		for i := range p.len() {
			for j, x := range p.row(i)[lo:hi] {
				r.mean[lo+j] += float64(r.model.value(lo+j, x))
			}
		}
	})
}

// addCentred adds rows less their mean to the system, or keeps them.
func (r *ridge) addCentred(p microbatch) {
	width, classes := r.dims[0], r.dims[1]
	rows := r.rows[:p.len()*width]
	if r.dual {
		rows = r.rows[int(r.at)*width:][:p.len()*width]
	}
	r.columns(func(lo, hi int) {
		for i := range p.len() {
			for j, x := range p.row(i)[lo:hi] {
				rows[i*width+lo+j] = float64(r.model.value(lo+j, x)) - r.mean[lo+j]
			}
		}
	})
	for i := 0; r.dual && i < p.len(); i++ {
		right := r.right[(int(r.at)+i)*classes:][:classes]
		for k := range right {
			right[k] = -r.share[k]
		}
		right[p.label(i)]++
	}
	if r.dual {
		return
	}
	r.system.addRows(r.net.pool, rows)
	r.columns(func(lo, hi int) { // the rows add up to 0, so that the means of labels add nothing
		for i := range p.len() {
			label := int(p.label(i))
			for j := lo; j < hi; j++ {
				r.right[j*classes+label] += rows[i*width+j]
			}
		}
	})
}

// gram fills the system with the products of all rows.
func (r *ridge) gram() {
	n, width := r.system.n, r.dims[0]
	r.net.pool.share(n, func(i int) {
		x := r.rows[i*width : (i+1)*width]
		for j := i; j < n; j++ {
			sum := 0.0
			for k, y := range r.rows[j*width : (j+1)*width] {
				sum += float64(x[k] * y)
			}
			r.system.values[i*n+j] = sum
		}
	})
}

// try makes the model of a penalty, with the scale that has the lowest loss on the validation rows, and measures it there.
func (r *ridge) try(ctx context.Context, lambda float64) (e Epoch, scale float32, err error) {
	if !r.system.factor(r.net.pool, lambda) {
		return e, 0, failure.Of(ErrDiverged, "train: --model ridge has no solution for a penalty of %v: use features without extreme values", lambda)
	}
	r.system.solve(r.net.pool, r.solved, r.right, r.dims[1])
	r.setModel()
	if scale = unvalidatedScale; r.validation > 0 {
		if scale, err = r.bestScale(ctx); err != nil {
			return e, 0, err
		}
	}
	for i := range r.model.params {
		r.model.params[i] *= scale
	}
	if r.net.pack(); r.validation > 0 {
		err = r.validate(ctx, &e)
	}
	if err == nil && (math.IsNaN(e.ValidLoss) || math.IsInf(e.ValidLoss, 0)) {
		err = failure.Of(ErrDiverged, "train: --model ridge: the loss on the validation nodes is %v: use features without extreme values", e.ValidLoss)
	}
	return e, scale, err
}

// setModel makes the weights and the intercepts of the model from the solution.
func (r *ridge) setModel() {
	width, classes := r.dims[0], r.dims[1]
	if r.dual {
		clear(r.weights)
		r.columns(func(lo, hi int) {
			for i := range r.system.n {
				for j, x := range r.rows[i*width+lo : i*width+hi] {
					subtract(r.weights[(lo+j)*classes:][:classes], r.solved[i*classes:][:classes], -x)
				}
			}
		})
	} else {
		copy(r.weights, r.solved)
	}
	weights, biases := r.model.layer(r.model.params, 0)
	for i, w := range r.weights {
		weights[i] = float32(w)
	}
	for k := range biases {
		b := r.share[k]
		for j, m := range r.mean {
			b -= float64(m * r.weights[j*classes+k])
		}
		biases[k] = float32(b)
	}
	r.net.pack()
}

// bestScale returns the scale of scores with the lowest loss on the validation rows, of equals the smallest.
func (r *ridge) bestScale(ctx context.Context) (float32, error) {
	net := r.net
	losses := make([][]float64, len(ridgeScales))
	for s := range losses {
		losses[s] = make([]float64, net.rows)
	}
	total := make([]float64, len(ridgeScales))
	err := r.sampler.inOrder(ctx, r.valid, func(p microbatch) error {
		return p.pieces(ctx, net.rows, int(net.threads)*takenRows, func(p microbatch) error { //nolint:unparam // a visitor
			net.pool.rows(p.len(), func(thread, lo, hi int) {
				net.forward(thread, net.enter(p.x[lo*p.width:hi*p.width], lo, hi), lo, hi, nil)
				for i := lo; i < hi; i++ {
					scores := net.logits(i)
					for s := range ridgeScales {
						norm, largest := softmax(r.kernel, scores, net.p[thread])
						losses[s][i] = negativeLog(scores[p.label(i)], norm, largest)
						for k := range scores {
							scores[k] *= 2 // the next scale
						}
					}
				}
			})
			for s := range losses {
				for _, x := range losses[s][:p.len()] {
					total[s] += x
				}
			}
			return nil
		})
	})
	best := 0
	for s := range total {
		if total[s] < total[best] {
			best = s
		}
	}
	return ridgeScales[best], err
}
