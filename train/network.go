package train

import (
	"fmt"
	"math"

	"ndls/internal/mem"
	"ndls/internal/rng"
)

// microRows is the number of rows of a width that go through the network at a
// time: 256, or 4 MiB if that is less. It bounds the activations and changes no
// bit: rows are independent on the way forward, and gradients are summed in
// order of the rows.
func microRows(width int) int { return max(min(256, (1<<20)/width), 1) }

// What random numbers are drawn for: the first key of every draw of a run.
const (
	drawWeights = iota
	drawOrder
	drawDropout
)

// initialise fills m as torch.nn.Linear does: weights and biases of a layer
// with in inputs are uniform in ±1/√in.
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
	}
}

// dropout zeroes a share of values and scales the others up by what is left,
// so that sums keep their expectation. Whether a value stays is a function of
// the key, the row and the column alone.
type dropout struct {
	// below is the share in units of 2^-16, the resolution of the draws.
	below uint64
	scale float32
}

func newDropout(share float64) dropout {
	below := min(uint64(math.Round(share*(1<<16))), 1<<16-1)
	return dropout{below: below, scale: float32((1 << 16) / float64(1<<16-below))}
}

// apply writes the rows of src to dst, which may be src: width values each, the
// first being row first of the stream of draws named by key.
func (d dropout) apply(dst, src []float32, width int, key uint64, first int64) {
	if d.below == 0 {
		copy(dst, src)
		return
	}
	for lo := 0; lo < len(src); lo += width {
		rowKey := rng.Hash(key, uint64(first)+uint64(lo/width))
		var lanes uint64
		for i, v := range src[lo : lo+width] {
			if i%4 == 0 {
				lanes = rng.Hash(rowKey, uint64(i))
			}
			// Masks instead of branches, which nothing could predict.
			keep := ^negative(int64(lanes&(1<<16-1)) - int64(d.below))
			dst[lo+i] = math.Float32frombits(math.Float32bits(v*d.scale) & keep)
			lanes >>= 16
		}
	}
}

// negative returns all ones for x < 0, else zero.
func negative(x int64) uint32 { return uint32(x >> 63) }

// positive returns all ones for x > 0, else zero: the bits of positive numbers
// are those from 1 to infinity's.
func positive(x float32) uint32 {
	const infinity = 0x7f800000
	return negative(int64(math.Float32bits(x)-1) - infinity)
}

// workspace holds what a network needs to pass up to microRows rows on, and
// back.
type workspace struct {
	x      []float32   // input rows after dropout
	out    [][]float32 // of each layer
	delta  [2][]float32
	weight []float32 // a transposed weight matrix
	memory *mem.Array[float32]
}

// workspaceSize is the number of values of a workspace: of the outputs alone,
// or with what training needs besides.
func workspaceSize(dims []int, training bool) int64 {
	var outputs, widest, weight int64
	for l, d := range dims[1:] {
		outputs += int64(d)
		widest = max(widest, int64(d))
		if l > 0 {
			weight = max(weight, int64(dims[l])*int64(d))
		}
	}
	rows := int64(microRows(dims[0]))
	if !training {
		return rows * outputs
	}
	return rows*(int64(dims[0])+outputs+2*widest) + weight
}

func newWorkspace(b *mem.Budget, dims []int, training bool) (*workspace, error) {
	memory, err := mem.Alloc[float32](b, workspaceSize(dims, training), "the activations of a network")
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	w := &workspace{memory: memory}
	rest := memory.S
	take := func(n int) []float32 {
		part := rest[:n:n]
		rest = rest[n:]
		return part
	}
	rows, widest := microRows(dims[0]), 0
	for _, d := range dims[1:] {
		w.out = append(w.out, take(rows*d))
		widest = max(widest, d)
	}
	if training {
		w.x = take(rows * dims[0])
		w.delta = [2][]float32{take(rows * widest), take(rows * widest)}
		w.weight = rest
	}
	return w, nil
}

func (w *workspace) free() {
	if w != nil {
		w.memory.Free()
	}
}

// forward returns the logits of rows rows of x, in memory of w. drop, unless
// nil, is called on the output of each hidden layer.
func (m *Model) forward(x []float32, rows int, w *workspace, drop func(l int, h []float32)) []float32 {
	for l := range m.layers() {
		in, out := m.dims[l], m.dims[l+1]
		weights, biases := m.layer(m.params, l)
		y := w.out[l][:rows*out]
		for r := range rows {
			copy(y[r*out:], biases)
		}
		addProduct(rows, out, in, x, weights, y)
		if l < m.layers()-1 {
			for i, v := range y {
				y[i] = max(v, 0)
			}
			if drop != nil {
				drop(l, y)
			}
		}
		x = y
	}
	return x
}

// backward adds the gradient of rows rows to grad, given that of their logits,
// which it overwrites. x and the outputs in w are those of forward; scale is
// that of the dropout of the hidden layers. An output is positive exactly where
// its rectifier and its dropout passed it on.
func (m *Model) backward(x []float32, rows int, w *workspace, delta []float32, scale float32, grad []float32) {
	for l := m.layers() - 1; l >= 0; l-- {
		in, out := m.dims[l], m.dims[l+1]
		input := x
		if l > 0 {
			input = w.out[l-1][:rows*in]
		}
		weights, biases := m.layer(grad, l)
		addTransposed(in, out, rows, input, delta, weights)
		for r := range rows {
			for j, d := range delta[r*out : r*out+out] {
				biases[j] += d
			}
		}
		if l == 0 {
			return
		}
		weights, _ = m.layer(m.params, l)
		below := w.delta[l%2][:rows*in]
		clear(below)
		addProductT(rows, in, out, delta, weights, below, w.weight)
		for i, h := range input {
			below[i] = math.Float32frombits(math.Float32bits(below[i]*scale) & positive(h))
		}
		delta = below
	}
}

// softmax writes the probabilities of one row of logits to p and returns the
// logarithm of the sum that divides them, the largest logit included:
// −log p[j] = logNorm − logits[j]. It is not finite where a logit is not.
func softmax(logits []float32, p []float64) (logNorm float64) {
	largest := math.Inf(-1)
	for _, z := range logits {
		// A logit that is not a number shows in the sum; max is slower.
		if z := float64(z); z > largest {
			largest = z
		}
	}
	if math.IsInf(largest, 0) {
		return math.NaN()
	}
	sum := 0.0
	for j, z := range logits {
		p[j] = exp(float64(z) - largest)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return largest + log(sum)
}

// lossGradient replaces the logits of rows by share times the gradient of the
// negative log-likelihood of their labels, and returns the sum of the latter
// added to total.
func lossGradient(logits []float32, labels []int32, share float64, p []float64, total float64) float64 {
	for r, label := range labels {
		row := logits[r*len(p) : (r+1)*len(p)]
		total += softmax(row, p) - float64(row[label])
		p[label]--
		for j := range row {
			row[j] = float32(p[j] * share)
		}
	}
	return total
}
