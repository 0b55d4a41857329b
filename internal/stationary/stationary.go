package stationary

import (
	"context"
	"fmt"
	"math"

	"ndls/internal/elementary"
	"ndls/internal/mem"
)

// powers is the number of degrees whose power is in a table.
const powers = 1 << 16

// State is the stationary state of one graph for one r.
type State struct {
	r         float64
	degree    []uint32
	strength1 []float32 // nil without weights
	component []uint32  // nil: one stationary row for all
	count     int
	volume    *mem.Array[float64]
	budget    *mem.Budget
	up, down  []float64 // d̃^r and d̃^−r by degree; nil with weights
}

// Nodes are the nodes of a graph whose rows a worker has.
type Nodes struct {
	// Degree holds the degree of each node, without the self-loop.
	Degree []uint32
	// Strength1 is the strength plus one of each node, where edges have weights: the d̃ of
	// the formulas. It is nil elsewhere, where d̃ is the degree plus one.
	Strength1 []float32
	// Component holds the component of each node, from 0 to Components-1 over the whole graph. If
	// it is nil all nodes have one stationary row, as in equation (2).
	Component  []uint32
	Components int
}

// Sums adds numbers up over all workers that share the rows of a graph: package group has it.
type Sums interface {
	// OrderedSum sets values to zero, lets add of each worker in turn add to them, in ascending
	// order of the workers' rows, and leaves the result with all workers.
	OrderedSum(ctx context.Context, values []float64, add func() error) error
}

// New prepares the stationary state of a graph whose rows the workers of a group
// share; all of them call it. r is the convolution coefficient in [0, 1].
func New(ctx context.Context, g Sums, b *mem.Budget, nodes Nodes, r float64) (*State, error) {
	count := nodes.Components
	if nodes.Component == nil {
		count = 1
	}
	volume, err := mem.Alloc[float64](b, int64(count), "component volumes")
	if err != nil {
		return nil, err
	}
	s := &State{
		r: r, degree: nodes.Degree, strength1: nodes.Strength1, component: nodes.Component, count: count, volume: volume, budget: b,
	}
	if s.strength1 == nil {
		s.up, s.down = make([]float64, powers), make([]float64, powers)
		for d := range powers {
			s.up[d], s.down[d] = elementary.Pow(float64(d)+1, r), elementary.Pow(float64(d)+1, -r)
		}
	}
	if err := g.OrderedSum(ctx, volume.S, s.addVolumes); err != nil {
		s.Free()
		return nil, fmt.Errorf("volumes of the components: %w", err)
	}
	return s, nil
}

// addVolumes adds Σ d̃ of the rows here by component, in ascending order of row.
func (s *State) addVolumes() error {
	for i := range s.degree {
		s.volume.S[s.of(i)] += s.degree1(int64(i))
	}
	return nil
}

// Volume is Σ d̃ of a component, or of all nodes where they have one stationary row.
func (s *State) Volume(component uint32) float64 {
	if s.component == nil {
		component = 0
	}
	return s.volume.S[component]
}

// degree1 is d̃_i.
func (s *State) degree1(i int64) float64 {
	if s.strength1 != nil {
		return float64(s.strength1[i])
	}
	return float64(s.degree[i]) + 1
}

// Free returns the memory.
func (s *State) Free() { s.volume.Free() }

func (s *State) of(i int) uint32 {
	if s.component == nil {
		return 0
	}
	return s.component[i]
}

// Up is d̃_i^r, what takes row i of Z to X.
func (s *State) Up(i int64) float64 {
	if d := s.degree[i]; s.up != nil && d < powers {
		return s.up[d]
	}
	return elementary.Pow(s.degree1(i), s.r)
}

// downOf is d̃_i^−r, what takes row i of X to Z.
func (s *State) downOf(i int64) float64 {
	if d := s.degree[i]; s.down != nil && d < powers {
		return s.down[d]
	}
	return elementary.Pow(s.degree1(i), -s.r)
}

// Spread returns the largest d̃^|r−½| of all nodes over the smallest, which workers that share the rows of a graph find together.
func (s *State) Spread(ctx context.Context, g Sums) (float64, error) {
	if s.r == 0.5 {
		return 1, nil
	}
	var ends [2]float64 // the largest d̃, and 1 over the smallest
	if err := g.OrderedSum(ctx, ends[:], func() error {
		for i := range s.degree {
			d := s.degree1(int64(i))
			ends[0], ends[1] = max(ends[0], d), max(ends[1], 1/d)
		}
		return nil
	}); err != nil {
		return 0, fmt.Errorf("largest and smallest degree: %w", err)
	}
	return elementary.Pow(ends[0]*ends[1], math.Abs(s.r-0.5)), nil
}

// Scale turns rows first, first+1, … of X, stride columns each, into rows of Z =
// D̃^(−r) X.
func (s *State) Scale(first int64, rows []float32, stride int) {
	if s.r == 0 {
		return
	}
	for i := 0; len(rows) > 0; i++ {
		down := s.downOf(first + int64(i))
		for c, x := range rows[:stride] {
			rows[c] = float32(float64(x) * down)
		}
		rows = rows[stride:]
	}
}

// Mean is the stationary row z̄ = Σ_j d̃_j Z_j / vol of each component, for one
// column block.
type Mean struct {
	state  *State
	stride int
	rows   *mem.Array[float64]
}

// MeanBytes returns the memory of the stationary rows of a block of stride columns.
func (s *State) MeanBytes(stride int) int64 { return 8*int64(s.count)*int64(stride) + 4096 }

// NewMean starts the stationary rows of a block of stride columns.
func (s *State) NewMean(stride int) (*Mean, error) {
	rows, err := mem.Alloc[float64](s.budget, int64(s.count)*int64(stride), "stationary rows")
	return &Mean{s, stride, rows}, err
}

// Free returns the memory.
func (m *Mean) Free() { m.rows.Free() }

// Sums returns the sums to which Add adds, by component, until Finish.
func (m *Mean) Sums() []float64 { return m.rows.S }

// Row is z̄ of the component of node i, once Finish was called.
func (m *Mean) Row(i int64) []float64 {
	at := int(m.state.of(int(i))) * m.stride
	return m.rows.S[at : at+m.stride]
}

// Add takes columns [from, to) of rows first, first+1, … of Z. Rows come in ascending order, so
// that sums do not depend on how many come at a time. Calls at the same time are for different
// columns.
func (m *Mean) Add(first int64, rows []float32, from, to int) {
	for i := first; len(rows) > 0; i++ {
		d1 := m.state.degree1(i)
		sum := m.Row(i)[from:to]
		for c, z := range rows[from:to] {
			sum[c] += float64(d1 * float64(z))
		}
		rows = rows[m.stride:]
	}
}

// Finish divides the sums by the volumes.
func (m *Mean) Finish() {
	for c, volume := range m.state.volume.S {
		row := m.rows.S[c*m.stride : (c+1)*m.stride]
		for j := range row {
			row[j] /= volume
		}
	}
}

// Subtract takes the stationary row from rows first, first+1, … of Z.
func (m *Mean) Subtract(first int64, rows []float32) {
	for i := first; len(rows) > 0; i++ {
		mean := m.Row(i)
		for c, z := range rows[:m.stride] {
			rows[c] = float32(float64(z) - mean[c])
		}
		rows = rows[m.stride:]
	}
}
