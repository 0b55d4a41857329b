package train

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// reference is the network in float64, with the masks given by factors on the
// input and on each hidden layer. It returns the mean loss.
func reference(m form, params []float64, x []float64, labels []int32, factors [][]float64) float64 {
	rows, dims := len(labels), m.dims
	h := make([]float64, len(x))
	for i, v := range x {
		h[i] = v * factors[0][i]
	}
	at := 0
	for l := range len(dims) - 1 {
		in, out := dims[l], dims[l+1]
		y := make([]float64, rows*out)
		for r := range rows {
			for j := range out {
				sum := params[at+in*out+j]
				for i := range in {
					sum += h[r*in+i] * params[at+i*out+j]
				}
				y[r*out+j] = sum
			}
		}
		at += (in + 1) * out
		if m.normalises(l) {
			for r := range rows {
				layerNorm(y[r*out:(r+1)*out], params[at:at+out], params[at+out:at+2*out])
			}
			at += 2 * out
		}
		for i := 0; l < len(dims)-2 && i < len(y); i++ {
			y[i] = max(y[i], 0) * factors[l+1][i]
		}
		h = y
	}
	classes := dims[len(dims)-1]
	loss := 0.0
	for r, label := range labels {
		sum := 0.0
		for _, z := range h[r*classes : (r+1)*classes] {
			sum += math.Exp(z)
		}
		loss += math.Log(sum) - h[r*classes+int(label)]
	}
	return loss / float64(rows)
}

// layerNorm is torch.nn.LayerNorm.
func layerNorm(x, gains, shifts []float64) {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	for i, v := range x {
		x[i] = (v-mean)/math.Sqrt(variance+1e-5)*gains[i] + shifts[i]
	}
}

// entered returns rows as the first layer sees them.
func entered(m *Model, x []float32) []float64 {
	y := widen(x)
	for i := range y {
		if j := i % m.Width(); m.standard {
			y[i] = (y[i] - float64(m.mean[j])) * float64(m.inverse[j])
		}
	}
	return y
}

// newTrainer returns the trainer of run 0, rows in memory.
func newTrainer(t *testing.T, p Problem, o Options) *trainer {
	t.Helper()
	f, err := newFitting(p, o, Resources{Budget: testBudget(t, 64<<20)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.free)
	if err := f.load(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	tr := &trainer{fitting: f, seed: rng.Hash(o.Seed, 0)}
	t.Cleanup(tr.free)
	if err := tr.allocate(2); err != nil {
		t.Fatal(err)
	}
	tr.model.initialise(tr.seed)
	tr.net.pack()
	return tr
}

// TestGradients compares every derivative with a central difference.
func TestGradients(t *testing.T) {
	for _, c := range []struct {
		layers               int
		inputDropout, hidden float64
		norm                 bool
	}{
		{1, 0, 0, false},
		{1, 0.3, 0, false},
		{2, 0, 0, false},
		{2, 0.3, 0.4, false},
		{3, 0, 0.4, false},
		{4, 0.2, 0.2, false},
		{1, 0, 0, true},
		{2, 0, 0, true},
		{2, 0.3, 0.4, true},
		{4, 0.2, 0.2, true},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			const rows, width = 6, 5
			src := &table{width: width, chunks: []int64{rows}, value: func(i int64, j int) float32 {
				return float32(2*rng.Float64(rng.Hash(5, uint64(i), uint64(j))) - 1)
			}}
			o := Options{
				Hidden: 4, Layers: c.layers, Dropout: c.hidden, InputDropout: c.inputDropout,
				LR: 0.01, Schedule: Constant, Epochs: 1, Runs: 1, Seed: 3, LayerNorm: c.norm, Standardize: c.norm,
			}
			p := Problem{Source: src, Labels: []int32{0, 1, 2, 2, 1, 0}, Splits: []uint8{Train, Train, Train, Train, Train, Train}, Classes: 3}
			tr := newTrainer(t, p, o)
			for l := range c.layers - 1 {
				if c.norm { // other gains and shifts than 1 and 0
					gains, shifts := tr.model.normOf(tr.model.params, l)
					for i := range gains {
						gains[i], shifts[i] = 0.5+0.25*float32(i), 0.1*float32(i)-0.2
					}
				}
			}
			x, params := entered(tr.model, tr.train.values.S), widen(tr.model.params)
			tr.now = 2
			tr.beginStep()
			tr.accumulate(microbatch{problem: &p, width: width, x: tr.train.values.S, at: tr.train.places.S}, 0)

			factors := [][]float64{mask(newDropout(o.InputDropout), width, rows, rng.Hash(tr.seed, drawDropout, 2), 0)}
			for l := range c.layers - 1 {
				factors = append(factors, mask(newDropout(o.Dropout), o.Hidden, rows, rng.Hash(tr.seed, drawDropout, 2), l+1))
			}
			loss := func() float64 { return reference(tr.form, params, x, p.Labels, factors) }
			if got, want := tr.losses[0]/rows, loss(); math.Abs(got-want) > 1e-6 {
				t.Fatalf("loss %v, want %v", got, want)
			}
			const h = 1e-5
			for i, w := range params {
				params[i] = w + h
				up := loss()
				params[i] = w - h
				want := (up - loss()) / (2 * h)
				params[i] = w
				if math.Abs(float64(tr.sums[0][i])-want) > 1e-6*max(1, math.Abs(want)) {
					t.Errorf("derivative %d is %v, want %v", i, tr.sums[0][i], want)
				}
			}
		})
	}
}

// mask gives the factors that dropout puts on the values of a layer.
func mask(d dropout, width, rows int, key uint64, layer int) []float64 {
	ones := make([]float32, width*rows)
	for i := range ones {
		ones[i] = 1
	}
	for r := range rows {
		d.apply(someKernel(), ones[r*width:(r+1)*width], ones[r*width:(r+1)*width], rng.Hash(key, uint64(layer)), int64(r))
	}
	return widen(ones)
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func TestDropout(t *testing.T) {
	const width, rows = 250, 400
	for _, share := range []float64{0, 0.001, 0.4, 0.999, 1 - 1e-9} {
		t.Run(fmt.Sprint(share), func(t *testing.T) {
			factors := mask(newDropout(share), width, rows, 7, 0)
			kept, sum := 0, 0.0
			for _, f := range factors {
				if f != 0 {
					kept++
				}
				sum += f
			}
			// A share is rounded to a multiple of 2^-16, below 1.
			asked, n := share, float64(len(factors))
			share := float64(newDropout(share).below) / (1 << 16)
			if math.Abs(share-asked) > 0x1p-16 {
				t.Errorf("a share of %v is dropped", share)
			}
			if sigma := math.Sqrt(n * share * (1 - share)); math.Abs(float64(kept)-n*(1-share)) > 5*sigma {
				t.Errorf("%d of %v values stay", kept, n)
			}
			if kept > 1000 && math.Abs(sum/n-1) > 5*math.Sqrt(share/(1-share)/n) {
				t.Errorf("the mean factor is %v", sum/n)
			}
		})
	}
}

func TestInitialisation(t *testing.T) {
	m, err := newModel(testBudget(t, 1<<20), form{dims: []int{100, 50, 3}, norm: true})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Free()
	m.initialise(1)
	for l, in := range []float64{100, 50} {
		weights, biases := m.layer(m.params, l)
		var sum, squares, largest float64
		for _, w := range append(widen(weights), widen(biases)...) {
			sum += w
			squares += w * w
			largest = max(largest, math.Abs(w))
		}
		n, bound := float64(len(weights)+len(biases)), 1/math.Sqrt(in)
		if largest > bound || largest < 0.95*bound {
			t.Errorf("layer %d: largest weight %v, bound %v", l, largest, bound)
		}
		if sigma := bound / math.Sqrt(3*n); math.Abs(sum/n) > 5*sigma {
			t.Errorf("layer %d: mean %v", l, sum/n)
		}
		if math.Abs(squares/n/(bound*bound/3)-1) > 0.15 {
			t.Errorf("layer %d: variance %v, want %v", l, squares/n, bound*bound/3)
		}
	}
}

func TestSoftmax(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name   string
		logits []float32
		want   []float64
	}{
		{"equal", []float32{3, 3}, []float64{0.5, 0.5}},
		{"known", []float32{0, float32(math.Log(3))}, []float64{0.25, 0.75}},
		{"far apart", []float32{-1e30, 1e30}, []float64{0, 1}},
		{"minus infinity", []float32{-inf, 0}, []float64{0, 1}},
		{"infinity", []float32{inf, 0}, nil},
		{"not a number", []float32{0, float32(math.NaN()), 1}, nil},
		{"no finite logit", []float32{-inf, -inf}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := make([]float64, len(c.logits))
			norm, largest := softmax(someKernel(), c.logits, p)
			if c.want == nil {
				if !math.IsNaN(norm) {
					t.Errorf("the norm is %v", norm)
				}
				return
			}
			for j, want := range c.want {
				if math.Abs(p[j]/norm-want) > 1e-7 {
					t.Errorf("p[%d] = %v, want %v", j, p[j]/norm, want)
				}
				if got := negativeLog(c.logits[j], norm, largest); want > 0 && math.Abs(got+math.Log(want)) > 1e-6 {
					t.Errorf("−log p[%d] = %v", j, got)
				}
			}
		})
	}
}

// TestPackedWithTheStep compares the weights that are prepared part by part with those that are prepared at once.
func TestPackedWithTheStep(t *testing.T) {
	for _, hidden := range []int{8, 64, 150} {
		o := quick()
		o.Hidden, o.Layers, o.BatchSize, o.LayerNorm = hidden, 3, 32, hidden > 8
		tr := newTrainer(t, clouds(200, 30, 3, 64), o)
		if _, err := tr.epoch(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var parts [][]float32
		for l := range tr.net.layers() {
			parts = append(parts, slices.Clone(tr.net.weights[l]), slices.Clone(tr.net.weightsT[l]))
		}
		if most := magnitude(tr.model.params); most != tr.largest {
			t.Errorf("%d hidden: the largest magnitude is %v, want %v", hidden, tr.largest, most)
		}
		tr.net.pack()
		for l := range tr.net.layers() {
			if !slices.Equal(parts[2*l], tr.net.weights[l]) || !slices.Equal(parts[2*l+1], tr.net.weightsT[l]) {
				t.Errorf("%d hidden: the weights of layer %d are not those that were trained", hidden, l)
			}
		}
	}
}
