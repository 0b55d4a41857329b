package lsi

import (
	"context"
	"fmt"
	"math"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/stationary"
	"ndls/spmv"
)

// finder enters nodes that have settled into a table, from the squared lengths of their rows.
type finder struct {
	o     Options
	scale float64 // of the rows
	state *stationary.State
	base  int64 // number of the table's first node among those of state
	*Table
	// spread and rounding say how far polynomials may be off: see series.off.
	spread, rounding float64
}

// see reads the squared lengths of rows after a hop, and returns the number of nodes that have
// settled. Concurrent calls are for different rows.
func (f *finder) see(hop int, first int64, squares []float64) (settled int64) {
	f.sample(first, squares)
	settled = f.settle(f.k.S, f.o.Epsilon, hop, first, squares)
	for i, x := range f.looser {
		f.settle(x.S, f.o.Looser[i], hop, first, squares)
	}
	return settled
}

// sample stores the distances of the sample's rows that have not settled before this hop.
func (f *finder) sample(first int64, squares []float64) {
	number, _ := slices.BinarySearch(f.o.Sample, first)
	for ; number < len(f.o.Sample) && f.o.Sample[number] < first+int64(len(squares)); number++ {
		row := f.o.Sample[number]
		if f.k.S[row] == unsettled {
			list := &f.distances[number]
			*list = append(*list, f.state.Up(f.base+row)*math.Sqrt(squares[row-first])/f.scale)
		}
	}
}

// settle enters the hop into a column for the nodes whose distance falls below epsilon, and counts
// them.
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

// seeProducts is see for the hops after a plain one that polynomials replace, of a node, from the products of its rows, until its K is
// known. It also decides whether K is certain: that no distance up to K is so near ε that what polynomials leave out could take it to the
// other side.
func (f *finder) seeProducts(s *series, plain int, node int64, products []float64) (settled int64) {
	up := f.state.Up(f.base + node)
	first, epsilon := up*math.Sqrt(s.square(0, products)), float64(f.o.Epsilon*f.scale)
	for h := 1; plain+h <= f.o.Kmax && settled == 0; h++ {
		square := [1]float64{s.square(h, products)}
		settled = f.see(plain+h, node, square[:])
		off := float64(first*(float64(f.spread*s.off[h])+f.rounding)) + float64(f.o.Standing*f.scale)
		if math.Abs(float64(up*math.Sqrt(square[0]))-epsilon) <= off {
			f.uncertain.add(node)
		}
	}
	return settled
}

// seeSlots sees the squared lengths that products begin with, and then the products.
func (f *finder) seeSlots(s *series, node int64, products []float64) {
	hop := s.from
	for i := range plain(products) {
		hop++
		if f.see(hop, node, products[i:i+1]) > 0 {
			return
		}
	}
	f.seeProducts(s, hop, node, products)
}

// Finder finds K of some nodes from the squared lengths of their rows, which workers computed panel
// by panel (see [Stretch]). The caller may change its table before the first hop.
type Finder struct {
	finder
	// squares holds the squared lengths of a hop, and part those of one panel.
	squares, part *mem.Array[float64]
	before        int64
}

// NewFinder begins with unknown K for the n nodes from node first on. sketch says that the probe is
// a sketch. The rows of the sample of o count from first.
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
	if f.Table, err = newTable(b, n, o); err != nil {
		return nil, err
	}
	f.begin()
	if f.squares, err = mem.Alloc[float64](b, n, "squared distances"); err != nil {
		return nil, err
	}
	f.part, err = mem.Alloc[float64](b, n, "squared distances of a panel")
	return f, err
}

// Free returns the memory.
func (f *Finder) Free() {
	if f.Table != nil {
		f.Table.Free()
	}
	f.squares.Free()
	f.part.Free()
}

// Unsettled reports whether this entry of a column stands for an unknown K.
func Unsettled(entry uint16) bool { return entry == unsettled }

// Left counts the nodes with unknown K.
func (f *Finder) Left() (n int64) {
	for _, k := range f.k.S {
		if k == unsettled {
			n++
		}
	}
	return n
}

// Before counts the nodes whose K was unknown before the last hop.
func (f *Finder) Before() int64 { return f.before }

// Hop reads the squared lengths of the rows after a hop. read fills in the lengths of one panel,
// for the nodes whose K was unknown when the Finder began; Hop calls it for the panels in ascending
// order. The sums have the bits that a single worker computes.
func (f *Finder) Hop(hop, panels int, read func(panel int, squares []float64) error) error {
	f.before = f.Left()
	f.squares.Clear()
	for panel := range panels {
		if err := read(panel, f.part.S); err != nil {
			return fmt.Errorf("squared distances of panel %d after hop %d: %w", panel, hop, err)
		}
		for i, x := range f.part.S {
			f.squares.S[i] += x
		}
	}
	f.see(hop, 0, f.squares.S)
	return nil
}

// Few reads the products of the rows of the nodes whose K is unknown after a hop (see [Options.Few]), and finds K of all of them up to
// Kmax. read fills in the products of the next nodes of a panel; Few calls it for some nodes at a time, each time for the panels in
// ascending order. members have the nodes of the state, and rows have the precision p. The sums have the bits that a single worker
// computes.
func (f *Finder) Few(ctx context.Context, b *mem.Budget, members stationary.Sums, from, panels int, p spmv.Precision,
	read func(panel int, products []float64) error,
) error {
	s := f.o.series(from)
	each := s.products()
	sums, err := mem.Alloc[float64](b, int64(2*unit*each), "products of rows")
	if err != nil {
		return err
	}
	defer sums.Free()
	if f.uncertain, err = newNodeSet(b, int64(len(f.k.S))); err != nil {
		return err
	}
	if f.spread, err = f.state.Spread(ctx, members); err != nil {
		return err
	}
	f.rounding = rounding(p, panels)
	var open []int64
	flush := func() error {
		sum, part := sums.S[:len(open)*each], sums.S[unit*each:][:len(open)*each]
		clear(sum)
		for panel := range panels {
			if err := read(panel, part); err != nil {
				return fmt.Errorf("products of panel %d: %w", panel, err)
			}
			for i, x := range part {
				sum[i] += x
			}
		}
		for i, node := range open {
			f.seeSlots(s, node, sum[i*each:(i+1)*each])
		}
		open = open[:0]
		return nil
	}
	for i, k := range f.k.S {
		if k != unsettled {
			continue
		}
		if open = append(open, int64(i)); len(open) == unit {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}

// End gives Kmax to the nodes that have not settled.
func (f *Finder) End() { f.capRest(f.o.Kmax) }
