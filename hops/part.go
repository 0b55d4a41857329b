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

// Share makes state, of this worker's rows, that of all rows.
func Share(p Peers, state *stationary.State) error {
	return p.Chain(state.Volumes(), func() error {
		state.AddVolumes()
		return nil
	})
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
	if g.Peers != nil {
		return g.Peers.Chain(values, add)
	}
	clear(values)
	return add()
}

// Most is the largest x of all workers.
func (g Graph) Most(x int) (int, error) {
	if g.Peers == nil {
		return x, nil
	}
	all, err := g.Peers.Gather([]float64{float64(x)})
	for _, other := range all {
		x = max(x, int(other[0]))
	}
	return x, err
}

// same says whether all workers have come to the same place; nil is none.
func (g Graph) same(place []int) (bool, error) {
	if g.Peers == nil {
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
	all, err := g.Peers.Gather([]float64{mark})
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
