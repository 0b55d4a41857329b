package dense

import (
	"math"
	"sync"
	"unsafe"

	"ndls/internal/rng"
)

// Drop sets to[i] to x[i]·scale, or to 0 if the draw for i is below a bound, which is at most 2^16.
// The draws come from a random source with the given state ([rng.Source.State]): each of its
// numbers has four draws of 16 bits, the lowest first. to and x have the same length, and may be
// the same.
func (k *Kernel) Drop(to, x []float32, state, below uint64, scale float32) {
	whole := len(x) &^ 31
	if whole > 0 {
		k.drop(&to[0], &x[0], uintptr(whole), state, below, scale)
	}
	for i := whole; i < len(x); i++ {
		to[i] = dropped(x[i], state, i, below, scale)
	}
}

func dropGo(to, x *float32, n uintptr, state, below uint64, scale float32) {
	y, from := unsafe.Slice(to, n), unsafe.Slice(x, n)
	for i := 0; i < len(from); i += 4 {
		lanes := rng.At(state, uint64(i/4))
		for j, v := range from[i:min(i+4, len(from))] {
			y[i+j] = keep(v*scale, lanes>>(16*j), below)
		}
	}
}

// dropped returns value i after dropout.
func dropped(x float32, state uint64, i int, below uint64, scale float32) float32 {
	return keep(x*scale, rng.At(state, uint64(i/4))>>(16*(i%4)), below)
}

// keep returns x, or 0 if the lowest 16 bits of a draw are below a bound. It uses a mask instead of
// a branch, which no processor could predict.
func keep(x float32, draw, below uint64) float32 {
	mask := ^uint32((int64(draw&(1<<16-1)) - int64(below)) >> 63)
	return math.Float32frombits(math.Float32bits(x) & mask)
}

// Adam are the numbers of a step of Adam: Decay times a parameter is added to its gradient g, and then, with
// m for its running mean and v for that of its square,
//
//	m ← Beta1·m + Rest1·g
//	v ← Beta2·v + (Rest2·g)·g
//	w ← w − Size·m/(√v/Root + Small)
//
// each operation rounded to float32.
type Adam struct{ Decay, Beta1, Rest1, Beta2, Rest2, Size, Root, Small float32 }

// magnitude masks all of a float32 but its sign.
const magnitude = 1<<31 - 1

// Step makes a step with parameters; grad, mean and square have as many values. It returns the
// largest magnitude of a parameter after the step, NaN if one of them is NaN.
func (k *Kernel) Step(a Adam, params, grad, mean, square []float32) (largest float32) {
	s := stepSpaces.Get().(*stepSpace)
	defer stepSpaces.Put(s)
	s.c = [...]float32{a.Decay, a.Beta1, a.Rest1, a.Beta2, a.Rest2, a.Size, a.Root, a.Small, math.Float32frombits(magnitude)}
	clear(s.most[:])
	if whole := len(params) &^ 15; whole > 0 {
		k.adam(&params[0], &grad[0], &mean[0], &square[0], uintptr(whole), &s.c[0], &s.most[0])
		params, grad, mean, square = params[whole:], grad[whole:], mean[whole:], square[whole:]
	}
	if len(params) > 0 {
		adamGo(&params[0], &grad[0], &mean[0], &square[0], uintptr(len(params)), &s.c[0], &s.most[0])
	}
	all := uint32(0)
	for _, x := range s.most {
		all = max(all, x)
	}
	return math.Float32frombits(all)
}

// stepSpace holds what a kernel reads by its address: its constants, and the largest magnitude of each of 16 lanes.
type stepSpace struct {
	c    [9]float32
	most [16]uint32
}

// stepSpaces reuses them, so that no step allocates memory.
var stepSpaces = sync.Pool{New: func() any { return new(stepSpace) }}

func adamGo(w, g, m, s *float32, n uintptr, c *float32, most *uint32) {
	params, grad, mean, square := unsafe.Slice(w, n), unsafe.Slice(g, n), unsafe.Slice(m, n), unsafe.Slice(s, n)
	x := unsafe.Slice(c, 8)
	a := Adam{x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]}
	for i, w := range params {
		g := grad[i] + float32(a.Decay*w)
		m := float32(a.Beta1*mean[i]) + float32(a.Rest1*g)
		v := float32(a.Beta2*square[i]) + float32(float32(a.Rest2*g)*g)
		mean[i], square[i] = m, v
		params[i] = w - float32(a.Size*m)/(float32(math.Sqrt(float64(v)))/a.Root+a.Small)
		*most = max(*most, math.Float32bits(params[i])&magnitude)
	}
}
