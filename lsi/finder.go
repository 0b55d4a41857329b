package lsi

import (
	"fmt"
	"math"
	"slices"

	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/stationary"
)

// finder enters into a table which nodes have settled, from the squared lengths of their rows.
type finder struct {
	o     Options
	scale float64 // of the rows
	state *stationary.State
	base  int64 // the number of the table's first node among those of state
	table *Table
}

// see takes the squared lengths of rows after a hop, and says how many have settled. Calls at the
// same time are for different rows.
func (f *finder) see(hop int, first int64, squares []float64) (settled int64) {
	f.sample(first, squares)
	settled = f.settle(f.table.k.S, f.o.Epsilon, hop, first, squares)
	for i, x := range f.table.looser {
		f.settle(x.S, f.o.Looser[i], hop, first, squares)
	}
	return settled
}

// sample keeps the distances of the rows of the sample that have not settled before this hop.
func (f *finder) sample(first int64, squares []float64) {
	number, _ := slices.BinarySearch(f.o.Sample, first)
	for ; number < len(f.o.Sample) && f.o.Sample[number] < first+int64(len(squares)); number++ {
		row := f.o.Sample[number]
		if f.table.k.S[row] == unsettled {
			list := &f.table.distances[number]
			*list = append(*list, f.state.Up(f.base+row)*math.Sqrt(squares[row-first])/f.scale)
		}
	}
}

// settle enters the hop into a column for the nodes whose distance falls below epsilon, and
// counts them.
func (f *finder) settle(column []uint16, epsilon float64, hop int, first int64, squares []float64) (settled int64) {
	k := column[first : first+int64(len(squares))]
	epsilon *= f.scale
	for j, square := range squares {
		if k[j] == unsettled && f.state.Up(f.base+first+int64(j))*math.Sqrt(square) < epsilon {
			k[j] = uint16(hop)
			settled++
		}
	}
	return settled
}

// Finder finds K of some nodes from the squared lengths of their rows, which workers found panel by
// panel (see [Stretch]).
type Finder struct {
	finder
	// squares are those of the last three hops, the last one first, of which seen were shown.
	squares [3]*mem.Array[float64]
	seen    int
	part    *mem.Array[float64]
}

// NewFinder begins with K of n nodes from node first on, of which nothing is known. sketch says that
// the probe is a sketch; rows of the sample of o count from first.
func NewFinder(b *mem.Budget, state *stationary.State, sketch bool, o Options, first, n int64) (_ *Finder, err error) {
	f := &Finder{finder: finder{o: o, scale: 1, state: state, base: first}}
	if sketch {
		f.scale = sketchScale
	}
	defer func() {
		if err != nil {
			f.Free()
		}
	}()
	if f.table, err = newTable(b, n, o); err != nil {
		return nil, err
	}
	f.table.begin()
	for i := range f.squares {
		if f.squares[i], err = mem.Alloc[float64](b, n, "squared distances"); err != nil {
			return nil, err
		}
	}
	f.part, err = mem.Alloc[float64](b, n, "squared distances of a panel")
	return f, err
}

// Free returns the memory.
func (f *Finder) Free() {
	if f.table != nil {
		f.table.Free()
	}
	for _, x := range f.squares {
		x.Free()
	}
	f.part.Free()
}

// Columns are K of the nodes for the ε of the options, then for each looser one, as they are
// stored: uint16, with the highest bit set where K is capped, and 65535 where it is not known yet.
// They may be changed before the first hop.
func (f *Finder) Columns() [][]uint16 { return f.table.columns() }

// Distances are those of the rows of the sample so far. They may be changed before the first hop.
func (f *Finder) Distances() [][]float64 { return f.table.distances }

// Unsettled is whether K is not known of a node with this entry in a column.
func Unsettled(entry uint16) bool { return entry == unsettled }

// Left counts the nodes of which K is not known.
func (f *Finder) Left() (n int64) {
	for _, k := range f.table.k.S {
		if k == unsettled {
			n++
		}
	}
	return n
}

// Hop takes the squared lengths of the rows after a hop: panel by panel, in ascending order, read
// fills in those of the nodes of which K was not known when the Finder was begun. They are added as
// one worker adds them.
func (f *Finder) Hop(hop, panels int, read func(panel int, squares []float64) error) error {
	last := f.squares[len(f.squares)-1]
	copy(f.squares[1:], f.squares[:])
	f.squares[0], f.seen = last, f.seen+1
	last.Clear()
	for panel := range panels {
		if err := read(panel, f.part.S); err != nil {
			return fmt.Errorf("squared distances of panel %d after hop %d: %w", panel, hop, err)
		}
		for i, x := range f.part.S {
			last.S[i] += x
		}
	}
	f.see(hop, 0, last.S)
	return nil
}

// More is about how many more hops it takes until K of all nodes is known, most if that is more or
// cannot be told: distances fall from hop to hop as they fell in the last two.
func (f *Finder) More(most int) int {
	if f.seen < len(f.squares) {
		return most
	}
	now, then, more := f.squares[0].S, f.squares[len(f.squares)-1].S, 1.0
	for i, k := range f.table.k.S {
		if k != unsettled {
			continue
		}
		up := f.state.Up(f.base+int64(i)) / f.scale
		fall := elementary.Log(now[i] / then[i]) // of squares, in two hops
		if !(fall < 0) {
			return most
		}
		far := elementary.Log(f.o.Epsilon*f.o.Epsilon) - elementary.Log(up*up*now[i])
		if more = max(more, math.Ceil(2*far/fall)); more >= float64(most) {
			return most
		}
	}
	return int(more)
}

// End gives Kmax to the nodes that have not settled.
func (f *Finder) End() { f.table.capRest(f.o.Kmax) }
