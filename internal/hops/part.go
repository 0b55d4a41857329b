package hops

import (
	"hash/crc32"

	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// Peers are the workers that have the other rows of a graph.
type Peers interface {
	spmv.Peers
	// Chain passes values, zeros in the beginning, through add of all workers in
	// ascending order of their rows, and leaves the result with all of them.
	Chain(values []float64, add func() error) error
}

// Part is the range of rows that a worker has of a graph that several work on.
type Part struct {
	peers     Peers
	degree    []uint32
	component []uint32
	volume    *mem.Array[float64] // of all rows, by component
	budget    *mem.Budget
}

// NewPart prepares for the rows that p says are this worker's, which have these
// degrees and are in these of count components; nil means that there is one
// stationary row for all. It takes 8 bytes a component.
func NewPart(b *mem.Budget, p Peers, degree, component []uint32, count int) (*Part, error) {
	if component == nil {
		count = 1
	}
	volume, err := mem.Alloc[float64](b, int64(count), "component volumes")
	if err != nil {
		return nil, err
	}
	part := &Part{p, degree, component, volume, b}
	if err := p.Chain(volume.S, func() error {
		for i, d := range degree {
			volume.S[part.of(i)] += float64(d) + 1
		}
		return nil
	}); err != nil {
		part.Free()
		return nil, err
	}
	return part, nil
}

// Free returns the memory.
func (p *Part) Free() { p.volume.Free() }

func (p *Part) of(i int) uint32 {
	if p.component == nil {
		return 0
	}
	return p.component[i]
}

// Slice is rows [lo, hi) of src, whole strips, as rows 0, 1, … of a source whose
// NumNodes are as many. Sources of edges are those of src.
func Slice(src packed.Source, lo, hi int64) packed.Source {
	return slice{src, int(lo >> packed.StripShift), hi - lo}
}

type slice struct {
	packed.Source
	first int
	rows  int64
}

func (s slice) NumNodes() int64       { return s.rows }
func (s slice) Strips() int           { return packed.Strips(s.rows) }
func (s slice) Edges(strip int) int64 { return s.Source.Edges(s.first + strip) }

func (s slice) Open(strip int, lo, hi uint32) (packed.Frames, error) {
	return s.Source.Open(s.first+strip, lo, hi)
}

// Chain calls add, which adds to values what this worker's rows give. Values are
// zeros, and where the graph is shared out the sums over the rows before; at the end
// they are those over all rows, on all workers.
func (g Graph) Chain(values []float64, add func() error) error {
	if g.Part != nil {
		return g.Part.peers.Chain(values, add)
	}
	clear(values)
	return add()
}

// Most is the largest x of all workers.
func (g Graph) Most(x int) (int, error) {
	if g.Part == nil {
		return x, nil
	}
	all, err := g.Part.peers.Gather([]float64{float64(x)})
	for _, other := range all {
		x = max(x, int(other[0]))
	}
	return x, err
}

// same says whether all workers have come to the same place; nil is none.
func (g Graph) same(place []int) (bool, error) {
	if g.Part == nil {
		return place != nil, nil
	}
	mark := -1.0
	if place != nil {
		sum := uint32(0)
		for _, x := range place {
			sum = crc32.Update(sum, castagnoli, mem.AsBytes([]int64{int64(x)}))
		}
		mark = float64(sum)
	}
	all, err := g.Part.peers.Gather([]float64{mark})
	if err != nil {
		return false, err
	}
	for _, other := range all {
		if other[0] != mark || mark < 0 {
			return false, nil
		}
	}
	return true, nil
}

// Mean is the stationary rows of a column block: a [stationary.Mean], or that of a
// part.
type Mean interface {
	Clear()
	Add(first int64, rows []float32)
	Finish()
	Subtract(first int64, rows []float32)
	Row(i int64) []float64
	Free()
}

// NewMean starts the stationary rows of a block of stride columns.
func (g Graph) NewMean(stride int) (Mean, error) {
	if g.Part == nil {
		return g.State.NewMean(stride)
	}
	rows, err := mem.Alloc[float64](g.Part.budget, int64(len(g.Part.volume.S))*int64(stride), "stationary rows")
	return &partMean{g.Part, stride, rows}, err
}

var (
	_ Mean = (*stationary.Mean)(nil)
	_ Mean = (*partMean)(nil)
)

// partMean is stationary.Mean for some of the rows of a graph.
type partMean struct {
	part   *Part
	stride int
	rows   *mem.Array[float64]
}

func (m *partMean) Free()  { m.rows.Free() }
func (m *partMean) Clear() { m.rows.Clear() }

func (m *partMean) Row(i int64) []float64 {
	at := int(m.part.of(int(i))) * m.stride
	return m.rows.S[at : at+m.stride]
}

func (m *partMean) Add(first int64, rows []float32) {
	for i := first; len(rows) > 0; i++ {
		d1 := float64(m.part.degree[i]) + 1
		sum := m.Row(i)
		for c, z := range rows[:m.stride] {
			sum[c] += float64(d1 * float64(z))
		}
		rows = rows[m.stride:]
	}
}

func (m *partMean) Finish() {
	for c, volume := range m.part.volume.S {
		row := m.rows.S[c*m.stride : (c+1)*m.stride]
		for j := range row {
			row[j] /= volume
		}
	}
}

func (m *partMean) Subtract(first int64, rows []float32) {
	for i := first; len(rows) > 0; i++ {
		mean := m.Row(i)
		for c, z := range rows[:m.stride] {
			rows[c] = float32(float64(z) - mean[c])
		}
		rows = rows[m.stride:]
	}
}
