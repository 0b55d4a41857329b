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

// Means holds z̄ for each component, stride columns wide.
type Means struct {
	stride int
	rows   *mem.Array[float64]
	state  *State
}

// Of returns z̄ of the component of node i.
func (m *Means) Of(i int64) []float64 {
	c := int(m.state.of(int(i)))
	return m.rows.S[c*m.stride : (c+1)*m.stride]
}

// Free returns the memory.
func (m *Means) Free() { m.rows.Free() }

// Deflate turns rows of X, stride columns wide (a multiple of 16), into deflated
// rows of Z, and returns z̄. Columns are shared out among threads.
func (s *State) Deflate(rows []float32, stride, threads int) (*Means, error) {
	sums, err := mem.Alloc[float64](s.budget, int64(s.count)*int64(stride), "stationary rows")
	if err != nil {
		return nil, err
	}
	m := &Means{stride: stride, rows: sums, state: s}
	queue := make(chan int, stride/granule)
	for col := 0; col < stride; col += granule {
		queue <- col
	}
	close(queue)
	var wg sync.WaitGroup
	for range min(threads, cap(queue)) {
		wg.Go(func() {
			for col := range queue {
				s.deflate(rows, stride, col, m)
			}
		})
	}
	wg.Wait()
	return m, nil
}

// deflate handles columns [col, col+granule).
func (s *State) deflate(rows []float32, stride, col int, m *Means) {
	for i, d := range s.degree {
		row := rows[i*stride+col : i*stride+col+granule]
		sum := m.Of(int64(i))[col : col+granule]
		down, d1 := s.downBy(d), float64(d)+1
		for c, x := range row {
			z := float32(float64(x) * down)
			row[c] = z
			sum[c] += float64(d1 * float64(z))
		}
	}
	for c := range s.count {
		for j := c*m.stride + col; j < c*m.stride+col+granule; j++ {
			m.rows.S[j] /= s.volume.S[c]
		}
	}
	for i := range s.degree {
		row := rows[i*stride+col : i*stride+col+granule]
		mean := m.Of(int64(i))[col : col+granule]
		for c, z := range row {
			row[c] = float32(float64(z) - mean[c])
		}
	}
}
