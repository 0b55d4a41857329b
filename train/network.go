package train

import (
	"fmt"
	"math"
	"slices"

	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/train/dense"
)

// microbatchRows returns the number of rows of a microbatch of so many threads.
func microbatchRows(c pool, width int) int { return int(c) * threadRows(width) }

// threadRows returns the largest number of rows of a microbatch for each thread: 288, which are two
// pieces of a step of the default size, or 4 MiB if that is less. It bounds the activations and
// changes no bit: forward, rows are independent; gradients are summed in order of the rows of a
// piece.
func threadRows(width int) int { return max(min(288, (1<<20)/width), 1) }

// These are the purposes of random numbers: the first key of every draw of a run.
const (
	drawWeights = iota
	drawOrder
	drawDropout
)

// initialise fills m as torch.nn.Linear and torch.nn.LayerNorm do: weights and biases of a layer
// with in inputs are uniform in ±1/√in, gains are 1 and shifts 0.
func (m *Model) initialise(seed uint64) {
	for l := range m.layers() {
		bound := 1 / math.Sqrt(float64(m.dims[l]))
		weights, biases := m.layer(m.params, l)
		draw := func(p []float32, what uint64) {
			key := rng.Hash(seed, drawWeights, uint64(l), what)
			for i := range p {
				p[i] = float32(bound * (2*rng.Float64(rng.Hash(key, uint64(i))) - 1))
			}
		}
		draw(weights, 0)
		draw(biases, 1)
		if m.normalises(l) {
			gains, shifts := m.normOf(m.params, l)
			fill(gains, 1)
			clear(shifts)
		}
	}
}

// dropout zeroes a share of values and scales the others up by the inverse of the remaining share,
// so that sums keep their expectation. Whether a value stays depends on the key, the row and the
// column alone.
type dropout struct {
	// below is the share in units of 2^-16, the resolution of the draws.
	below uint64
	scale float32
}

func newDropout(share float64) dropout {
	below := min(uint64(math.Round(share*(1<<16))), 1<<16-1)
	return dropout{below: below, scale: float32((1 << 16) / float64(1<<16-below))}
}

// apply writes a row to dst, which may be src. It uses that row of the stream of draws that key
// names.
func (d dropout) apply(k *dense.Kernel, dst, src []float32, key uint64, row int64) {
	if d.below == 0 {
		copy(dst, src)
		return
	}
	k.Drop(dst, src, rng.New(rng.Hash(key, uint64(row))).State(), d.below, d.scale)
}

// negative returns all ones for x < 0, else zero.
func negative(x int64) uint32 { return uint32(x >> 63) }

// positive returns all ones for x > 0, else zero: the bits of positive numbers lie between 1 and
// those of infinity.
func positive(x float32) uint32 {
	const infinity = 0x7f800000
	return negative(int64(math.Float32bits(x)-1) - infinity)
}

// network computes with a model on several threads. It holds the model's weights packed for
// products, and memory for a microbatch of rows.
type network struct {
	*Model
	threads pool
	pool    *threadPool
	kernel  *dense.Kernel
	rows    int // largest number of rows of a microbatch
	values  *mem.Array[float32]
	shares  *mem.Array[float64]

	// These slices have one element for each layer.
	weights  [][]float32 // packed
	weightsT [][]float32 // transposed and packed, from the second layer on; for training
	out      [][]float32 // rows × out
	delta    [][]float32 // rows × out, gradients of outputs; for training
	deltas   [][]float32 // the same, packed; for training
	// These slices belong to the layers that are normalised; for training.
	inverse [][]float32 // rows: 1 / the deviation of the row
	gains   [][]float32 // rows × out: normalised outputs, then the gradients of gains
	shifts  [][]float32 // rows × out: the gradients of shifts

	x     []float32   // input rows after dropout; for training, and if inputs are standardised
	own   [][]float32 // of each thread: the rows that fill no tile, packed
	p     [][]float64 // of each thread: probabilities of one row
	sum   []float64   // of each row: its part of the loss
	class []int32     // predicted class of each row
}

// networkBytes returns the memory of a network of these layers without its weights, with or without
// what training needs.
func networkBytes(f form, c pool, rows int, k *dense.Kernel, training bool) int64 {
	w := &network{Model: &Model{form: f}, threads: c, rows: rows, kernel: k}
	return 4*w.size(training) + 8*int64(c)*int64(w.Classes()) + 2*4096
}

// size returns the number of values of all arrays of float32.
func (w *network) size(training bool) (n int64) {
	w.prepare()
	w.layout(training, func(_ *[]float32, size int) { n += int64(size) })
	return n
}

// layout gives each array of a network its size.
func (w *network) layout(training bool, take func(to *[]float32, size int)) {
	dims := w.dims
	for l := range w.layers() {
		in, out := dims[l], dims[l+1]
		take(&w.weights[l], w.kernel.RightSize(in, out))
		take(&w.out[l], w.rows*out+w.kernel.Rows()) // for AddColumns
		if !training {
			continue
		}
		if l > 0 {
			take(&w.weightsT[l], w.kernel.RightSize(out, in))
		}
		if l < w.layers()-1 {
			take(&w.delta[l], w.rows*out)
		}
		if w.normalises(l) {
			take(&w.inverse[l], w.rows)
			take(&w.gains[l], w.rows*out)
			take(&w.shifts[l], w.rows*out)
		}
		take(&w.deltas[l], w.kernel.RightSize(w.rows, out))
	}
	if training || w.standard {
		take(&w.x, w.rows*dims[0]+w.kernel.Rows())
	}
	for t := range w.own {
		take(&w.own[t], w.kernel.LeftSize(w.kernel.Rows(), slices.Max(dims)))
	}
}

// newNetwork prepares a model for microbatches of at most so many rows. Call pack before the first
// rows, and after each change of the weights.
func newNetwork(b *mem.Budget, m *Model, c pool, rows int, k *dense.Kernel, training bool) (*network, error) {
	w := &network{Model: m, threads: c, pool: newThreadPool(c), rows: rows, kernel: k}
	size := w.size(training)
	var err error
	if w.values, err = mem.Alloc[float32](b, size, "the activations of a network"); err == nil {
		w.shares, err = mem.Alloc[float64](b, int64(c)*int64(m.Classes()), "probabilities of a row for each thread")
	}
	if err != nil {
		w.free()
		return nil, fmt.Errorf("train: %w", err)
	}
	rest := w.values.S
	w.layout(training, func(to *[]float32, n int) { *to, rest = rest[:n:n], rest[n:] })
	w.delta[w.layers()-1] = w.out[w.layers()-1] // the loss leaves gradients where logits were
	for t := range w.p {
		w.p[t] = w.shares.S[t*m.Classes() : (t+1)*m.Classes()]
	}
	return w, nil
}

// prepare allocates the slices of layers and threads.
func (w *network) prepare() {
	for _, arrays := range []*[][]float32{&w.weights, &w.weightsT, &w.out, &w.delta, &w.deltas, &w.inverse, &w.gains, &w.shifts} {
		*arrays = make([][]float32, w.layers())
	}
	w.own, w.p = make([][]float32, w.threads), make([][]float64, w.threads)
	w.sum, w.class = make([]float64, w.rows), make([]int32, w.rows)
}

func (w *network) free() {
	if w != nil {
		w.pool.free()
		w.values.Free()
		w.shares.Free()
	}
}

// pack prepares the weights for products.
func (w *network) pack() { w.packSome(func(int) bool { return true }) }

// packRest prepares the weights that addGradient has not prepared with the parts of a step.
func (w *network) packRest() { w.packSome(func(l int) bool { return w.across(l) > 1 }) }

// packSome prepares the transposed weights of all layers, and the other weights of some layers.
func (w *network) packSome(some func(l int) bool) {
	w.pool.share(2*w.layers(), func(i int) {
		l, transposed := i/2, i%2 == 1
		in, out := w.dims[l], w.dims[l+1]
		weights, _ := w.layer(w.params, l)
		switch {
		case !transposed && some(l):
			w.packRows(l, 0, in)
		case transposed && w.weightsT[l] != nil:
			w.kernel.PackRightT(w.weightsT[l], weights, in, out, out)
		}
	})
}

// packRows prepares the weights of inputs [lo, hi) of a layer.
func (w *network) packRows(l, lo, hi int) {
	in, out := w.dims[l], w.dims[l+1]
	weights, _ := w.layer(w.params, l)
	w.kernel.PackRight(w.weights[l], weights, out, lo, hi, in, out)
}

// forward computes the logits of rows [lo, hi) of a microbatch, whose input is x, on one thread.
// drop, if not nil, is called with each row of the output of each hidden layer.
func (w *network) forward(thread int, x []float32, lo, hi int, drop func(l, row int, h []float32)) {
	n := hi - lo
	for l := range w.layers() {
		in, out := w.dims[l], w.dims[l+1]
		_, biases := w.layer(w.params, l)
		y := w.out[l][lo*out : hi*out]
		for r := range n {
			copy(y[r*out:], biases)
		}
		w.kernel.AddRows(y, x[:n*in], in, out, w.weights[l], w.own[thread])
		if l < w.layers()-1 {
			if w.norm {
				w.normalise(l, lo, hi)
			}
			w.kernel.Rectify(y)
			for r := 0; drop != nil && r < n; r++ {
				drop(l, lo+r, y[r*out:(r+1)*out])
			}
		}
		x = y
	}
}

// logits returns the logits of row i of the microbatch.
func (w *network) logits(i int) []float32 {
	return w.out[w.layers()-1][i*w.Classes() : (i+1)*w.Classes()]
}

// input returns the input of layer l in a microbatch of training.
func (w *network) input(l int) []float32 {
	if l == 0 {
		return w.x
	}
	return w.out[l-1]
}

// backward computes the gradients of the outputs of all layers, for rows [lo, hi) of a microbatch
// of n rows, from the gradients of their logits, and packs them. scale is the factor of the dropout
// of the hidden layers. An output is positive exactly if its rectifier and its dropout passed it
// on.
func (w *network) backward(thread, lo, hi, n int, scale float32) {
	for l := w.layers() - 1; l >= 0; l-- {
		in, out := w.dims[l], w.dims[l+1]
		w.kernel.PackRight(w.deltas[l], w.delta[l], out, lo, hi, n, out)
		if l == 0 {
			return
		}
		below := w.delta[l-1][lo*in : hi*in]
		clear(below)
		w.kernel.AddRows(below, w.delta[l][lo*out:hi*out], out, in, w.weightsT[l], w.own[thread])
		for i, h := range w.input(l)[lo*in : hi*in] {
			below[i] = math.Float32frombits(math.Float32bits(below[i]*scale) & positive(h))
		}
		if w.norm {
			w.normaliseBack(l-1, lo, hi)
		}
	}
}

// gradientColumns is the number of columns of a layer's gradient that a thread computes at a time,
// with as many rows as a tile has: some ten microseconds of work.
const gradientColumns = 128

// addGradient adds the gradient of a microbatch of n rows, after backward on all threads, to sums,
// term by term. done, if not nil, makes the step for parameters [lo, hi) of the first sum after
// they are complete, on any thread. Then the weights there are packed if they are all weights of
// some inputs.
func (w *network) addGradient(sums [][]float32, n int, terms []term, done func(lo, hi int)) {
	w.eachPart(func(l, i int) {
		w.addPart(sums, n, l, i, terms)
		if done != nil {
			w.finishPart(l, i, done)
		}
	})
}

// eachPart calls do for each part of the gradient of each layer, on all threads.
func (w *network) eachPart(do func(l, i int)) {
	parts := 0
	for l := range w.layers() {
		parts += w.gradientParts(l)
	}
	w.pool.share(parts, func(i int) {
		l := 0
		for ; i >= w.gradientParts(l); l++ {
			i -= w.gradientParts(l)
		}
		do(l, i)
	})
}

// gradientParts returns the number of parts into which the gradient of a layer is divided, and the
// number of parts with the same inputs, across.
func (w *network) gradientParts(l int) int {
	return units(w.dims[l], w.kernel.Rows()) * w.across(l)
}

func (w *network) across(l int) int { return units(w.dims[l+1], gradientColumns) }

// part returns the area of part i of the gradient of layer l. The parts of the last inputs include
// the biases, which follow them.
func (w *network) part(l, i int) (area dense.Area, biases bool) {
	in, out := w.dims[l], w.dims[l+1]
	across := w.across(l)
	top, left := i/across*w.kernel.Rows(), i%across*gradientColumns
	area = dense.Area{Top: top, Bottom: min(top+w.kernel.Rows(), in), Left: left, Right: min(left+gradientColumns, out)}
	return area, area.Bottom == in
}

// eachRow calls do with the places of the parameters of a part, with consecutive ones together.
func (w *network) eachRow(l, i int, do func(lo, hi int)) {
	in, out := w.dims[l], w.dims[l+1]
	area, biases := w.part(l, i)
	first := int(w.start(l))
	if area.Right-area.Left == out {
		do(first+area.Top*out, first+area.Bottom*out)
	} else {
		for r := area.Top; r < area.Bottom; r++ {
			do(first+r*out+area.Left, first+r*out+area.Right)
		}
	}
	if !biases {
		return
	}
	first += in * out
	do(first+area.Left, first+area.Right)
	if w.normalises(l) { // gains and shifts follow
		do(first+out+area.Left, first+out+area.Right)
		do(first+2*out+area.Left, first+2*out+area.Right)
	}
}

// addPart adds part i of the gradient of layer l.
func (w *network) addPart(sums [][]float32, n, l, i int, terms []term) {
	in, out := w.dims[l], w.dims[l+1]
	area, withBiases := w.part(l, i)
	for _, x := range terms {
		sum := sums[x.sum]
		weights, biases := w.layer(sum, l)
		w.kernel.AddColumns(weights, area, n, x.lo, x.hi, out, x.fresh, w.input(l), in, w.deltas[l])
		if withBiases {
			w.addRowsOf(biases, w.delta[l], area, x)
		}
		if withBiases && w.normalises(l) {
			gains, shifts := w.normOf(sum, l)
			w.addRowsOf(gains, w.gains[l], area, x)
			w.addRowsOf(shifts, w.shifts[l], area, x)
		}
		for k := range x.joins {
			to, from := sums[x.sum-k-1], sums[x.sum-k]
			w.eachRow(l, i, func(lo, hi int) { w.kernel.Sum(to[lo:hi], from[lo:hi]) })
		}
	}
}

// addRowsOf adds the rows of a term to sum, one after the other, in the columns of an area.
func (w *network) addRowsOf(sum, rows []float32, area dense.Area, x term) {
	out := len(sum)
	if sum = sum[area.Left:area.Right]; x.fresh {
		clear(sum)
	}
	for r := x.lo; r < x.hi; r++ {
		w.kernel.Sum(sum, rows[r*out+area.Left:r*out+area.Right])
	}
}

// finish calls done for all parameters, some at a time, on all threads, and packs weights as
// addGradient does.
func (w *network) finish(done func(lo, hi int)) {
	w.eachPart(func(l, i int) { w.finishPart(l, i, done) })
}

// finishPart calls done for part i of the gradient of layer l, and packs the weights of its inputs
// if it has all of them.
func (w *network) finishPart(l, i int, done func(lo, hi int)) {
	w.eachRow(l, i, done)
	if area, _ := w.part(l, i); w.across(l) == 1 {
		w.packRows(l, area.Top, area.Bottom)
	}
}

// softmax writes the probabilities of a row of logits, times norm, to p, and returns norm and the
// largest logit. norm is NaN if a logit is infinite or NaN, or none is finite.
func softmax(k *dense.Kernel, logits []float32, p []float64) (norm, largest float64) {
	largest = float64(k.Largest(logits))
	if math.IsInf(largest, 0) {
		return math.NaN(), math.NaN()
	}
	return k.Exps(p, logits, largest), largest
}

// negativeLog returns the negative log-likelihood of a logit, from the result of softmax for its
// row.
func negativeLog(logit float32, norm, largest float64) float64 {
	return largest + elementary.Log(norm) - float64(logit)
}

// lossGradient replaces the logits of a row by share times the gradient of the negative
// log-likelihood of its label, and returns that likelihood.
func lossGradient(k *dense.Kernel, logits []float32, label int32, share float64, p []float64) float64 {
	norm, largest := softmax(k, logits, p)
	loss := negativeLog(logits[label], norm, largest)
	k.Scale(logits, p, share/norm)
	logits[label] = float32((p[label]/norm - 1) * share)
	return loss
}
