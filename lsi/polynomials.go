package lsi

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sort"
	"sync"

	"ndls/hops"
	"ndls/internal/chebyshev"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/spmv"
)

const (
	// plainHops is the number of hops that are made one by one before [Options.Tolerance] cuts short.
	plainHops = window
	// unit is the number of nodes whose hops are made together of their kept rows.
	unit = 128
	// pieceUnits is the number of units of a piece, whose kept rows are read at a time.
	pieceUnits = 4
	// combineWork is the number of additions of a row in memory that may replace the addition of a
	// row along an edge, which is read in each pass.
	combineWork = 8
	// negligible is the share of a hop below which later polynomials are left out of it: it is far
	// below the rounding of float32 rows.
	negligible = 0x1p-30
)

// series says how hops are made of Chebyshev's polynomials of the rows after plainHops.
type series struct {
	hops   int // after plainHops, up to Kmax
	degree int // passes
	// terms is the number of rows that are added for all hops of a node.
	terms int64
}

// series returns the polynomials by which the options replace hops. Its degree is 0 if they replace
// none.
func (o Options) series() (s series) {
	s.hops = o.Kmax - plainHops
	if !(o.Tolerance > 0) || s.hops < 2 {
		return series{}
	}
	if s.degree = chebyshev.Degree(s.hops, o.Tolerance); s.degree < 1 || s.degree >= s.hops {
		return series{}
	}
	for _, last := range s.lasts() {
		s.terms += int64(last)/2 + 1
	}
	return s
}

// lasts returns, for each hop, the last polynomial that is added.
func (s series) lasts() []int {
	lasts, left := make([]int, s.hops+1), make([]float64, s.hops+1)
	x := chebyshev.New(s.hops + 1)
	for h := range left {
		left[h] = 1
	}
	for ; x.Degree() <= s.degree; x.Next() {
		for h := range left {
			if left[h] > negligible && x.At(h) > 0 {
				lasts[h] = x.Degree()
			}
			left[h] -= x.At(h)
		}
	}
	return lasts
}

// pays reports whether polynomials replace hops of a graph with so many nodes and directed edges,
// if K of so many nodes is unknown after plainHops. Both the rows that are added for the hops of
// these nodes and those that are kept have to be few against the edges of the passes that are
// saved. The answer depends on nothing else, so that all ways to compute a table have the same.
func (s series) pays(nodes, edges, left float64) bool {
	return s.degree > 0 && left > 0 && left*float64(s.terms) <= combineWork*float64(s.hops-s.degree)*(nodes+edges)
}

// polynomials makes the hops after plainHops of some nodes, the open ones, of rows T_j Z that it
// keeps of them. A piece of a strip has the next pieceUnits·unit open nodes.
type polynomials struct {
	series
	g       hops.Graph
	columns int // of a block
	element int64
	weights *mem.Array[float32] // c_kj of each hop, then of each polynomial
	last    []int
	open    *mem.Array[uint64] // a bit for each node
	// strips holds the open nodes of each strip, and what is before it; one more holds all.
	strips  []stripOpen
	panels  int // of the block under way
	rows    *direct.Scratch
	sums    *direct.Scratch
	buffers chan *pieceBuffer

	mu     sync.Mutex
	failed error
}

// stripOpen counts the open nodes of a strip, and the pieces and units before it.
type stripOpen struct {
	open, pieces int
	units        int64
}

// piece is a range of the open nodes of a strip.
type piece struct {
	strip int
	from  int   // the first open node of the strip
	rows  int   // number of open nodes
	at    int64 // units before it
}

func (x piece) units() int64 { return unitsOf(x.rows) }

// unitsOf returns the number of units of so many open nodes of a strip.
func unitsOf(open int) int64 { return int64((open + unit - 1) / unit) }

// pieceBuffer is the memory of one thread.
type pieceBuffer struct {
	raw     *mem.Array[byte]    // T_j of a piece, of one panel
	wide    *mem.Array[float32] // the same of a unit, or rows of a piece
	sum     *mem.Array[float32] // a hop of a unit
	squares *mem.Array[float64] // by unit and hop
	nodes   [pieceUnits * unit]int32
}

func (b *pieceBuffer) free() {
	b.raw.Free()
	b.wide.Free()
	b.sum.Free()
	b.squares.Free()
}

// pieceRows returns the largest number of rows of a piece, with those that fill its last unit.
func pieceRows(n int64) int64 { return min(pieceUnits*unit, (n+unit-1)/unit*unit) }

// unitBytes returns the size of the squared lengths of a unit.
func (s series) unitBytes() int64 { return direct.RoundUp(int64(s.hops+1) * unit * 8) }

// bytes returns the memory of polynomials for n nodes.
func (s series) bytes(n int64, p spmv.Precision, threads int) int64 {
	if s.degree == 0 {
		return 0
	}
	element := packed.PanelColumns * p.Bytes()
	rows, polynomials := pieceRows(n), int64(s.degree+1)
	buffer := direct.RoundUp(polynomials*rows*element) + direct.RoundUp(max(polynomials*unit, rows)*packed.PanelColumns*4) +
		direct.RoundUp(int64(unit*packed.PanelColumns*4)) + rows/unit*s.unitBytes()
	return direct.RoundUp((n+63)/64*8) + direct.RoundUp(int64(s.hops+1)*polynomials*4) + int64(max(threads, 1))*buffer
}

// keptBytes returns the size of the rows that are kept of so many open nodes, in blocks of so many
// columns. Each strip with open nodes may have a unit more.
func (s series) keptBytes(units int64, columns int, p spmv.Precision) int64 {
	return units * unit * int64(s.degree+1) * int64(columns) * p.Bytes()
}

// newPolynomials allocates what rows of a block of this layout need. open says which nodes are open.
func newPolynomials(g hops.Graph, s series, l spmv.Layout, open func(i int64) bool) (_ *polynomials, err error) {
	n := g.Source.NumNodes()
	p := &polynomials{series: s, g: g, columns: l.Columns, element: packed.PanelColumns * l.Precision.Bytes(), last: s.lasts()}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.open, err = mem.Alloc[uint64](g.Budget, (n+63)/64, "nodes of which K is not known"); err != nil {
		return nil, err
	}
	p.strips = make([]stripOpen, g.Source.Strips()+1)
	for strip := range g.Source.Strips() {
		lo := int64(strip) << packed.StripShift
		x := &p.strips[strip]
		for i := lo; i < min(lo+packed.StripRows, n); i++ {
			if open(i) {
				p.open.S[i/64] |= 1 << (i % 64)
				x.open++
			}
		}
		p.strips[strip+1] = stripOpen{0, x.pieces + (x.open+pieceUnits*unit-1)/(pieceUnits*unit), x.units + unitsOf(x.open)}
	}
	polynomials := int64(s.degree + 1)
	if p.weights, err = mem.Alloc[float32](g.Budget, int64(s.hops+1)*polynomials, "weights of polynomials"); err != nil {
		return nil, err
	}
	for x := chebyshev.New(s.hops + 1); x.Degree() <= s.degree; x.Next() {
		for h := range s.hops + 1 {
			p.weights.S[h*(s.degree+1)+x.Degree()] = float32(x.At(h))
		}
	}
	if p.rows, err = direct.NewScratch(g.Scratch); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	if p.sums, err = direct.NewScratch(g.Scratch); err != nil {
		return nil, fmt.Errorf("scratch file: %w", err)
	}
	threads := max(g.Threads, 1)
	p.buffers = make(chan *pieceBuffer, threads)
	rows := pieceRows(n)
	for range threads {
		b := &pieceBuffer{}
		p.buffers <- b
		if b.raw, err = mem.Alloc[byte](g.Budget, polynomials*rows*p.element, "rows of polynomials"); err != nil {
			return nil, err
		}
		if b.wide, err = mem.Alloc[float32](g.Budget, max(polynomials*unit, rows)*packed.PanelColumns, "rows of polynomials"); err != nil {
			return nil, err
		}
		if b.sum, err = mem.Alloc[float32](g.Budget, unit*packed.PanelColumns, "rows of a hop"); err != nil {
			return nil, err
		}
		if b.squares, err = mem.Alloc[float64](g.Budget, rows/unit*s.unitBytes()/8, "squared distances"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// close frees memory and disk space. p may be nil.
func (p *polynomials) close() {
	if p == nil {
		return
	}
	p.open.Free()
	p.weights.Free()
	for len(p.buffers) > 0 {
		(<-p.buffers).free()
	}
	for _, f := range []*direct.Scratch{p.rows, p.sums} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// all counts the pieces and units of all strips.
func (p *polynomials) all() stripOpen { return p.strips[len(p.strips)-1] }

// piece returns a piece by its number among those of all strips.
func (p *polynomials) piece(number int) piece {
	strip := sort.Search(len(p.strips)-1, func(strip int) bool { return p.strips[strip+1].pieces > number })
	x := p.strips[strip]
	from := (number - x.pieces) * pieceUnits * unit
	return piece{strip, from, min(x.open-from, pieceUnits*unit), x.units + int64(from/unit)}
}

// nodes returns the open nodes of a piece, numbered from the first row of its strip.
func (p *polynomials) nodes(x piece, buf *[pieceUnits * unit]int32) []int32 {
	words := p.open.S[int64(x.strip)<<(packed.StripShift-6):]
	skip, list := x.from, buf[:0]
	for w := 0; len(list) < x.rows; w++ {
		word := words[w]
		if count := bits.OnesCount64(word); skip >= count {
			skip -= count
			continue
		}
		for ; word != 0 && len(list) < x.rows; word &= word - 1 {
			if skip > 0 {
				skip--
				continue
			}
			list = append(list, int32(64*w+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// offset returns the place of T_j of a panel of a piece, and its size.
func (p *polynomials) offset(x piece, panel, j int) (at, size int64) {
	polynomials := int64(p.degree + 1)
	size = x.units() * unit * p.element
	return x.at*unit*p.element*polynomials*int64(p.columns/packed.PanelColumns) + (int64(panel)*polynomials+int64(j))*size, size
}

// keep stores T_j of the open nodes of a strip, whose rows are whole. Concurrent calls are for
// different strips.
func (p *polynomials) keep(j int, first int64, rows []float32) error {
	b := <-p.buffers
	defer func() { p.buffers <- b }()
	strip := int(first >> packed.StripShift)
	for number := p.strips[strip].pieces; number < p.strips[strip+1].pieces; number++ {
		x := p.piece(number)
		nodes := p.nodes(x, &b.nodes)
		for panel := range p.panels {
			at, size := p.offset(x, panel, j)
			raw := b.raw.S[:size]
			wide := b.wide.S[:x.units()*unit*packed.PanelColumns]
			for i, node := range nodes {
				copy(wide[i*packed.PanelColumns:(i+1)*packed.PanelColumns], rows[int(node)*p.columns+panel*packed.PanelColumns:])
			}
			clear(wide[len(nodes)*packed.PanelColumns:])
			if p.element == 4*packed.PanelColumns {
				copy(raw, mem.AsBytes(wide))
			} else {
				p.g.Kernel.Narrow(mem.View[uint16](b.raw)[:len(wide)], wide)
			}
			if err := p.rows.WriteAt(raw, at); err != nil {
				return fmt.Errorf("rows of polynomial %d: %w", j, err)
			}
		}
	}
	return nil
}

// pass makes T_1, …, T_J of the rows of a block at hop plainHops, and keeps the rows of open nodes
// in its first panels.
func (p *polynomials) pass(ctx context.Context, rows *spmv.Block, walk *hops.Walk, panels int, done func(j int, edges int64)) error {
	p.panels, p.failed = panels, nil
	if err := rows.Strips(func(first int64, rows []float32) error { return p.keep(0, first, rows) }); err != nil {
		return err
	}
	walk.Recurs = true
	for j := 1; j <= p.degree; j++ {
		edges, err := walk.Next(ctx, p.degree-j+1, func(first int64, rows []float32) {
			if err := p.keep(j, first, rows); err != nil {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.failed = errors.Join(p.failed, err)
			}
		})
		done(j, edges)
		if err == nil {
			err = p.failed
		}
		if err != nil {
			return fmt.Errorf("polynomial %d: %w", j, err)
		}
	}
	return nil
}

// combine calls do for each piece, on all threads.
func (p *polynomials) combine(do func(x piece, b *pieceBuffer) error) error {
	return share.Each(p.g.Threads, p.all().pieces, func(number int) error {
		b := <-p.buffers
		defer func() { p.buffers <- b }()
		return do(p.piece(number), b)
	})
}

// unitSquares returns the squared lengths of a unit of a piece, hop by hop from 0, of so many nodes.
func (p *polynomials) unitSquares(b *pieceBuffer, number int) []float64 {
	size := p.unitBytes() / 8
	return b.squares.S[int64(number)*size : int64(number+1)*size]
}

// add adds the squared lengths of the rows of a panel of a piece, after each hop from 0 on.
func (p *polynomials) add(x piece, panel int, b *pieceBuffer) error {
	polynomials := p.degree + 1
	at, size := p.offset(x, panel, 0)
	if err := p.rows.ReadAt(b.raw.S[:size*int64(polynomials)], at); err != nil {
		return fmt.Errorf("rows of polynomials: %w", err)
	}
	var counts [unit]uint16
	const part = unit * packed.PanelColumns
	values := int(size / p.element * packed.PanelColumns) // of a polynomial
	sum := b.sum.S
	for number := range int(x.units()) {
		wide, stride := b.wide.S, part
		if p.element == 4*packed.PanelColumns {
			wide, stride = mem.View[float32](b.raw)[number*part:], values
		} else {
			for j := range polynomials {
				p.g.Kernel.Widen(wide[j*part:(j+1)*part], mem.View[uint16](b.raw)[j*values+number*part:][:part])
			}
		}
		squares := p.unitSquares(b, number)
		for h := range p.hops + 1 {
			clear(sum)
			for j := h % 2; j <= p.last[h]; j += 2 {
				w := h*polynomials + j
				p.g.Kernel.AddWeighed(sum, wide[j*stride:j*stride+part], counts[:], p.weights.S[w:w+1])
			}
			p.g.Kernel.SquareNorms(squares[h*unit:(h+1)*unit], sum)
		}
	}
	return nil
}

// pieceSquares returns the squared lengths of all units of a piece.
func (p *polynomials) pieceSquares(x piece, b *pieceBuffer) []float64 {
	return b.squares.S[:x.units()*p.unitBytes()/8]
}

// loadSums reads the squared lengths that the panels before gave a piece.
func (p *polynomials) loadSums(x piece, b *pieceBuffer) error {
	if err := p.sums.ReadAt(mem.AsBytes(p.pieceSquares(x, b)), x.at*p.unitBytes()); err != nil {
		return fmt.Errorf("squared distances: %w", err)
	}
	return nil
}

func (p *polynomials) storeSums(x piece, b *pieceBuffer) error {
	if err := p.sums.WriteAt(mem.AsBytes(p.pieceSquares(x, b)), x.at*p.unitBytes()); err != nil {
		return fmt.Errorf("squared distances: %w", err)
	}
	return nil
}
