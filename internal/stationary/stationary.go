package stationary

import (
	"math"
	"sync"

	"ndls/internal/mem"
)

// granule is how many columns one goroutine sums: a cache line of float32.
const granule = 16

// powers is how many degrees have their power in a table.
const powers = 1 << 16

// State knows the stationary state of one graph for one r.
type State struct {
	r         float64
	degree    []uint32
	component []uint32 // nil: one stationary row for all
	count     int
	volume    *mem.Array[float64]
	budget    *mem.Budget
	up, down  []float64 // d̃^r and d̃^−r by degree
}

// New prepares the stationary state of a graph with these degrees (self-loops
// not counted). component numbers the components from 0 to count-1; nil means
// the global state of equation (2). r is the convolution coefficient in [0, 1].
func New(b *mem.Budget, degree, component []uint32, count int, r float64) (*State, error) {
	if component == nil {
		count = 1
	}
	volume, err := mem.Alloc[float64](b, int64(count), "component volumes")
	if err != nil {
		return nil, err
	}
	s := &State{
		r: r, degree: degree, component: component, count: count, volume: volume, budget: b,
		up: make([]float64, powers), down: make([]float64, powers),
	}
	for d := range powers {
		s.up[d], s.down[d] = power(uint32(d), r), power(uint32(d), -r)
	}
	for i, d := range degree {
		volume.S[s.of(i)] += float64(d) + 1
	}
	return s, nil
}

// Free returns the memory.
func (s *State) Free() { s.volume.Free() }

func (s *State) of(i int) uint32 {
	if s.component == nil {
		return 0
	}
	return s.component[i]
}

// power is d̃^p for degree d. The common exponents take no logarithm.
func power(d uint32, p float64) float64 {
	d1 := float64(d) + 1
	switch p {
	case 0:
		return 1
	case 1:
		return d1
	case -1:
		return 1 / d1
	case 0.5:
		return math.Sqrt(d1)
	case -0.5:
		return 1 / math.Sqrt(d1)
	}
	return math.Pow(d1, p)
}

// Up is d̃_i^r, what takes row i of Z to X.
func (s *State) Up(i int64) float64 {
	if d := s.degree[i]; d < powers {
		return s.up[d]
	}
	return power(s.degree[i], s.r)
}

func (s *State) downBy(d uint32) float64 {
	if d < powers {
		return s.down[d]
	}
	return power(d, -s.r)
}

// Scale turns rows of X, stride columns wide (a multiple of 16), into rows of
// Z = D̃^(−r) X. Columns are shared out among threads.
func (s *State) Scale(rows []float32, stride, threads int) {
	if s.r == 0 {
		return
	}
	byGranule(stride, threads, func(col int) {
		for i, d := range s.degree {
			row, down := rows[i*stride+col:i*stride+col+granule], s.downBy(d)
			for c, x := range row {
				row[c] = float32(float64(x) * down)
			}
		}
	})
}

// Deflate turns rows of X, stride columns wide (a multiple of 16), into rows of
// Z less their stationary row z̄. Columns are shared out among threads.
func (s *State) Deflate(rows []float32, stride, threads int) error {
	means, err := mem.Alloc[float64](s.budget, int64(s.count)*int64(stride), "stationary rows")
	if err != nil {
		return err
	}
	defer means.Free()
	s.Scale(rows, stride, threads)
	byGranule(stride, threads, func(col int) { s.subtractMean(rows, stride, col, means.S) })
	return nil
}

// byGranule calls work for each granule of columns, on several threads.
func byGranule(stride, threads int, work func(col int)) {
	queue := make(chan int, stride/granule)
	for col := 0; col < stride; col += granule {
		queue <- col
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(threads, cap(queue)) {
		wg.Go(func() {
			for col := range queue {
				work(col)
			}
		})
	}
	wg.Wait()
}

// subtractMean handles columns [col, col+granule); means has room for a row of
// each component.
func (s *State) subtractMean(rows []float32, stride, col int, means []float64) {
	of := func(i int) []float64 {
		at := int(s.of(i))*stride + col
		return means[at : at+granule]
	}
	for i, d := range s.degree {
		sum, d1 := of(i), float64(d)+1
		for c, z := range rows[i*stride+col : i*stride+col+granule] {
			sum[c] += float64(d1 * float64(z))
		}
	}
	for c, volume := range s.volume.S {
		for j := c*stride + col; j < c*stride+col+granule; j++ {
			means[j] /= volume
		}
	}
	for i := range s.degree {
		mean := of(i)
		row := rows[i*stride+col : i*stride+col+granule]
		for c, z := range row {
			row[c] = float32(float64(z) - mean[c])
		}
	}
}
