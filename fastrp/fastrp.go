package fastrp

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"ndls/internal/elementary"
	"ndls/internal/packed"
	"ndls/internal/rng"
)

const (
	// mostHops bounds the weights.
	mostHops = 1 << 10
	// scale multiplies the random rows, so that small means are not too small for float16.
	// It is a power of two, and a row's length takes it away again.
	scale = 1 << 13
)

// Projection says what an embedding is.
type Projection struct {
	// Dimensions is the width of a row.
	Dimensions int
	// Weights lists the weights of hops 0, 1, ….
	Weights []float64
	// DegreePower is β: above 0 the random rows of nodes with many neighbours count more,
	// below 0 they count less.
	DegreePower float64
	// Sparsity is s: one entry of a random row in s is not zero.
	Sparsity float64
	// Seed decides the random rows.
	Seed uint64
}

// ParseWeights reads weights with commas between them.
func ParseWeights(s string) (weights []float64, err error) {
	some := false
	for _, word := range strings.Split(s, ",") {
		w, err := strconv.ParseFloat(strings.TrimSpace(word), 64)
		if err != nil || math.IsInf(w, 0) || math.IsNaN(w) {
			return nil, fmt.Errorf("weight %d is %q: give a number for each hop, hop 0 first, such as 0,1,1", len(weights), word)
		}
		some = some || w != 0
		weights = append(weights, w)
	}
	switch {
	case !some:
		return nil, errors.New("all weights are 0: give at least one hop a weight, as in 0,1,1")
	case len(weights) > mostHops:
		return nil, fmt.Errorf("%d weights are more than %d", len(weights), mostHops)
	}
	return weights, nil
}

// Kept are the hops with a weight, in ascending order.
func (p Projection) Kept() (hops []int) {
	for hop, w := range p.Weights {
		if w != 0 {
			hops = append(hops, hop)
		}
	}
	return hops
}

// Random are the random rows D̃^β R.
type Random struct {
	p     Projection
	limit uint64
}

// Random prepares the random rows.
func (p Projection) Random() Random { return Random{p, uint64(0x1p63 / p.Sparsity)} }

// Row sets columns first, first+1, … of the row of the node with an input id and that many
// neighbours. Columns past the width are zero.
func (r Random) Row(to []float32, id, degree uint32, first int) {
	clear(to)
	value := math.Float32bits(float32(scale * elementary.Pow(float64(degree)+1, r.p.DegreePower)))
	stem := rng.Stem(rng.Hash(r.p.Seed, uint64(id)))
	for c := range to[:max(min(len(to), r.p.Dimensions-first), 0)] {
		if h := stem.Hash(uint64(first + c)); h>>1 < r.limit {
			to[c] = math.Float32frombits(value | uint32(h&1)<<31)
		}
	}
}

// Embedder adds up hops of rows. It is not safe for concurrent use.
type Embedder struct {
	p       Projection
	weights []float64 // of the hops that are kept
	sum     []float64
}

// Embedder prepares to add hops up.
func (p Projection) Embedder() *Embedder {
	e := &Embedder{p: p, sum: make([]float64, p.Dimensions)}
	for _, hop := range p.Kept() {
		e.weights = append(e.weights, p.Weights[hop])
	}
	return e
}

// Embed puts the embedding of a row. hops has the hops of the row that are kept, one after the
// other, each in whole panels.
func (e *Embedder) Embed(to, hops []float32) {
	clear(e.sum)
	size := packed.Panels(e.p.Dimensions) * packed.PanelColumns
	for k, w := range e.weights {
		row := hops[k*size:][:e.p.Dimensions]
		square := 0.0
		for _, x := range row {
			square += float64(float64(x) * float64(x))
		}
		if square == 0 {
			continue
		}
		factor := w / math.Sqrt(square)
		for c, x := range row {
			e.sum[c] += float64(factor * float64(x))
		}
	}
	for c, x := range e.sum {
		to[c] = float32(x)
	}
}
