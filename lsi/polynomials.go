package lsi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"sort"
	"sync"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
	"ndls/spmv"
)

const (
	// unit is the number of nodes whose products lie together in scratch files.
	unit = 128
	// pieceUnits is the number of units of a piece, whose kept rows are read at a time.
	pieceUnits = 4
	// together is the number of nodes whose rows are mixed at a time.
	together = 32
)

// polynomials makes the last hops of some nodes, the open ones, of rows T_j Z that it
// keeps of them. A piece of a strip has the next pieceUnits·unit open nodes.
type polynomials struct {
	*series
	g       hops.Graph
	columns int // of a block
	element int64
	open    *mem.Array[uint64] // a bit for each node
	// strips holds the open nodes of each strip, and what is before it; one more holds all.
	strips []stripOpen
	panels int // of the block under way
	slots  int // further hops of which squared lengths are kept
	// batches holds ranges of pieces. Rows are kept of those of a batch at a time, from units before it on.
	batches [][2]int
	batch   int
	rows    kept
	sums    kept // products of the blocks so far
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
	raw   *mem.Array[byte]    // T_j of a piece, of one panel
	wide  *mem.Array[float32] // the same of a unit, or rows of a piece
	mixed *mem.Array[float32] // the basis, of some nodes
	row   *mem.Array[float64] // the basis of a node
	// products holds the products of each node of a piece. Units are whole pages.
	products *mem.Array[float64]
	nodes    [pieceUnits * unit]int32
}

func (b *pieceBuffer) free() {
	b.raw.Free()
	b.wide.Free()
	b.mixed.Free()
	b.row.Free()
	b.products.Free()
}

// pieceRows returns the largest number of rows of a piece, with those that fill its last unit.
func pieceRows(n int64) int64 { return min(pieceUnits*unit, (n+unit-1)/unit*unit) }

// unitBytes returns the size of the products of a unit.
func (s *series) unitBytes() int64 { return direct.RoundUp(int64(s.products()) * unit * 8) }

// polynomialBytes returns the memory of polynomials for n nodes.
func (o Options) polynomialBytes(n int64, p spmv.Precision, threads int) int64 {
	s := o.most()
	if s.degree == 0 {
		return 0
	}
	element := packed.PanelColumns * p.Bytes()
	rows, polynomials, basis := pieceRows(n), o.mostKept(), int64(s.basisRows())
	buffer := direct.RoundUp(polynomials*rows*element) + direct.RoundUp(max(polynomials*unit, rows)*packed.PanelColumns*4) +
		direct.RoundUp(basis*together*packed.PanelColumns*4) + direct.RoundUp(basis*packed.PanelColumns*8) + rows/unit*s.unitBytes()
	return 2*direct.RoundUp((n+63)/64*8) + int64(max(threads, 1))*buffer
}

// keptBytes returns the size of so many rows of so many open nodes, in blocks of so many
// columns. Each strip with open nodes may have a unit more.
func keptBytes(units, rows int64, l spmv.Layout) int64 {
	return units * unit * rows * int64(l.Columns) * l.Precision.Bytes()
}

// rowsKept returns the number of rows T_j Z.
func (o Options) rowsKept() int64 { return int64(o.most().degree + 1) }

// leanBatches is the number of batches of polynomials where the disk has little room, if as many nodes are open as there may be.
const leanBatches = 16

// Lean returns the options for a disk without room for all rows that polynomials keep, of n rows of a graph with at most so many open
// nodes. They take so many bytes more than the least. The layout must be known.
func (o Options) Lean(n, open, more int64) Options {
	o.KeptRoom = max(keptBytes(mostUnits(n, open), o.rowsKept(), o.Layout)/leanBatches, 1) + more
	return o
}

// kept returns the size of rows that polynomials keep at a time of so many units, and the number of batches.
func (o Options) kept(units int64, l spmv.Layout) (bytes int64, batches int) {
	bytes = keptBytes(units, o.rowsKept(), l)
	if o.KeptRoom == 0 || bytes <= o.KeptRoom {
		return bytes, 1
	}
	return o.KeptRoom, int((bytes + o.KeptRoom - 1) / o.KeptRoom)
}

// mostKept returns the largest number of rows that are kept of an open node, with those that hold squared lengths.
func (o Options) mostKept() int64 {
	if o.Standing > 0 {
		return o.rowsKept() + laterPlain
	}
	return o.rowsKept()
}

// keptRows returns the number of rows that are kept of an open node: T_j Z, then squared lengths in the place of rows.
func (p *polynomials) keptRows() int64 { return int64(p.degree + 1 + p.slots) }

// newPolynomials allocates what rows of a block of this layout need. open says which nodes are open, slots of how many further hops squared
// lengths are kept. Rows that are kept take at most room, unless that is 0.
func newPolynomials(g hops.Graph, s *series, l spmv.Layout, open func(i int64) bool, slots int, room int64) (_ *polynomials, err error) {
	n := g.Source.NumNodes()
	p := &polynomials{series: s, g: g, columns: l.Columns, element: packed.PanelColumns * l.Precision.Bytes(), slots: slots}
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
	polynomials, basis := p.keptRows(), int64(s.basisRows())
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
		if b.mixed, err = mem.Alloc[float32](g.Budget, basis*together*packed.PanelColumns, "sums of polynomials"); err != nil {
			return nil, err
		}
		if b.row, err = mem.Alloc[float64](g.Budget, basis*packed.PanelColumns, "sums of polynomials"); err != nil {
			return nil, err
		}
		if b.products, err = mem.Alloc[float64](g.Budget, rows/unit*s.unitBytes()/8, "products of rows"); err != nil {
			return nil, err
		}
	}
	units := unit * polynomials * int64(l.Columns) * l.Precision.Bytes()
	if p.rows, err = newKept(g, p.divide(units, room)*units, "rows of polynomials"); err != nil {
		return nil, err
	}
	if p.sums, err = newKept(g, p.all().units*s.unitBytes(), "products of rows"); err != nil {
		return nil, err
	}
	return p, nil
}

// divide divides the pieces into batches, whose units take so many bytes each and fit room. It returns the units of the largest batch.
func (p *polynomials) divide(bytes, room int64) (most int64) {
	p.batches = [][2]int{{0, 0}}
	units := int64(0)
	for number := range p.all().pieces {
		more := p.piece(number).units()
		if room > 0 && units > 0 && (units+more)*bytes > room {
			p.batches = append(p.batches, [2]int{number, number})
			units = 0
		}
		units += more
		p.batches[len(p.batches)-1][1] = number + 1
		most = max(most, units)
	}
	return most
}

// agree adds empty batches, so that all workers of a group make as many passes.
func (p *polynomials) agree(ctx context.Context) error {
	most, err := p.g.Most(ctx, len(p.batches))
	if err != nil {
		return fmt.Errorf("batches of all workers: %w", err)
	}
	end := p.all().pieces
	p.batches = append(p.batches, slices.Repeat([][2]int{{end, end}}, most-len(p.batches))...)
	return nil
}

// close frees memory and disk space. p may be nil.
func (p *polynomials) close() {
	if p == nil {
		return
	}
	p.open.Free()
	for len(p.buffers) > 0 {
		(<-p.buffers).free()
	}
	p.rows.close()
	p.sums.close()
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
	polynomials := p.keptRows()
	size = x.units() * unit * p.element
	before := int64(0)
	if p.batch > 0 {
		before = p.piece(p.batches[p.batch][0]).at
	}
	return (x.at-before)*unit*p.element*polynomials*int64(p.columns/packed.PanelColumns) + (int64(panel)*polynomials+int64(j))*size, size
}

// keep stores T_j of the open nodes of a strip that the batch has, whose rows are whole, or for larger j their squared lengths. Concurrent
// calls are for different strips.
func (p *polynomials) keep(j int, first int64, rows []float32) error {
	b := <-p.buffers
	defer func() { p.buffers <- b }()
	strip, batch := int(first>>packed.StripShift), p.batches[p.batch]
	for number := max(p.strips[strip].pieces, batch[0]); number < min(p.strips[strip+1].pieces, batch[1]); number++ {
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
			switch {
			case j > p.degree:
				squares := mem.View[float64](b.raw)[:len(wide)/packed.PanelColumns]
				clear(squares)
				p.g.Kernel.SquareNorms(squares, wide)
			case p.element == 4*packed.PanelColumns:
				copy(raw, mem.AsBytes(wide))
			default:
				p.g.Kernel.Narrow(mem.View[uint16](b.raw)[:len(wide)], wide)
			}
			if err := p.rows.write(raw, at); err != nil {
				return fmt.Errorf("rows of polynomial %d: %w", j, err)
			}
		}
	}
	return nil
}

// pass makes T_1, …, T_J of the rows of a block, and keeps the rows of the open nodes of a batch, of its first panels. Where moving is not
// nil, rows that stand must be zero.
func (p *polynomials) pass(ctx context.Context, rows *spmv.Block, walk *hops.Walk, panels int, done func(j int, edges int64)) error {
	p.panels, p.failed = panels, nil
	if err := rows.Strips(func(first int64, rows []float32) error { return p.keep(0, first, rows) }); err != nil {
		return err
	}
	walk.Recurs = true
	for j := 1; j <= p.degree; j++ {
		edges, err := p.next(ctx, walk, j, p.degree-j+1)
		done(j, edges)
		if err != nil {
			return fmt.Errorf("polynomial %d: %w", j, err)
		}
	}
	return nil
}

// next makes a hop, after which at most so many are left, and keeps its rows as those of T_j.
func (p *polynomials) next(ctx context.Context, walk *hops.Walk, j, left int) (edges int64, err error) {
	edges, err = walk.Next(ctx, left, func(first int64, rows []float32) {
		if err := p.keep(j, first, rows); err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.failed = errors.Join(p.failed, err)
		}
	})
	return edges, errors.Join(err, p.failed)
}

// combine calls do for each piece of the batch, on all threads.
func (p *polynomials) combine(do func(x piece, b *pieceBuffer) error) error {
	batch := p.batches[p.batch]
	return share.Each(p.g.Threads, batch[1]-batch[0], func(number int) error {
		b := <-p.buffers
		defer func() { p.buffers <- b }()
		return do(p.piece(batch[0]+number), b)
	})
}

// unitProducts returns the products of the nodes of a unit of a piece.
func (p *polynomials) unitProducts(b *pieceBuffer, number int) []float64 {
	size := p.unitBytes() / 8
	return b.products.S[int64(number)*size : int64(number+1)*size]
}

// add adds the products of the rows of a panel of a piece.
func (p *polynomials) add(x piece, panel int, b *pieceBuffer) error {
	polynomials := int(p.keptRows())
	at, size := p.offset(x, panel, 0)
	if err := p.rows.read(b.raw.S[:size*int64(polynomials)], at); err != nil {
		return fmt.Errorf("rows of polynomials: %w", err)
	}
	const part = unit * packed.PanelColumns
	values := int(size / p.element * packed.PanelColumns) // of a polynomial
	for number := range int(x.units()) {
		wide, stride := b.wide.S, part
		if p.element == 4*packed.PanelColumns {
			wide, stride = mem.View[float32](b.raw)[number*part:], values
		} else {
			for j := range p.degree + 1 {
				p.g.Kernel.Widen(wide[j*part:(j+1)*part], mem.View[uint16](b.raw)[j*values+number*part:][:part])
			}
		}
		products := p.unitProducts(b, number)
		p.addSquares(products, b, number, int(size/8), min(x.rows-number*unit, unit))
		for n, end := 0, min(x.rows-number*unit, unit); n < end; n += together {
			p.addSome(products[n*p.products():], wide[n*packed.PanelColumns:], stride, min(together, end-n), b)
		}
	}
	return nil
}

// addSquares adds the squared lengths of the nodes of a unit after further hops, and -1 for each hop that is not made. The lengths of a hop
// are where so many values would be a polynomial.
func (p *polynomials) addSquares(products []float64, b *pieceBuffer, number, stride, n int) {
	lengths := mem.View[float64](b.raw)
	for i := range n {
		for k := range laterPlain {
			if k < p.slots {
				products[i*p.products()+k] += lengths[(p.degree+1+k)*stride+number*unit+i]
			} else {
				products[i*p.products()+k]--
			}
		}
	}
}

// addSome adds the products of so many nodes. T_j of the first one is at wide[j·stride].
func (p *polynomials) addSome(products []float64, wide []float32, stride, n int, b *pieceBuffer) {
	var counts [together]uint16
	size, at := n*packed.PanelColumns, 0
	mixed := b.mixed.S[:p.basisRows()*size]
	clear(mixed)
	for parity, basis := range p.basis {
		for _, weights := range basis {
			for k := range weights {
				j := (2*k + parity) * stride
				p.g.Kernel.AddWeighed(mixed[at:at+size], wide[j:j+size], counts[:n], weights[k:k+1])
			}
			at += size
		}
	}
	row := b.row.S
	for i := range n {
		for q := range p.basisRows() {
			from := mixed[q*size+i*packed.PanelColumns:][:packed.PanelColumns]
			to := row[q*packed.PanelColumns:][:packed.PanelColumns]
			for c, v := range from {
				to[c] = float64(v)
			}
		}
		p.addProducts(products[i*p.products():(i+1)*p.products()], row)
	}
}

// pieceProducts returns the products of all units of a piece.
func (p *polynomials) pieceProducts(x piece, b *pieceBuffer) []float64 {
	return b.products.S[:x.units()*p.unitBytes()/8]
}

// loadSums reads the products that the panels before gave a piece.
func (p *polynomials) loadSums(x piece, b *pieceBuffer) error {
	if err := p.sums.read(mem.AsBytes(p.pieceProducts(x, b)), x.at*p.unitBytes()); err != nil {
		return fmt.Errorf("products of rows: %w", err)
	}
	return nil
}

func (p *polynomials) storeSums(x piece, b *pieceBuffer) error {
	if err := p.sums.write(mem.AsBytes(p.pieceProducts(x, b)), x.at*p.unitBytes()); err != nil {
		return fmt.Errorf("products of rows: %w", err)
	}
	return nil
}

// writeRange writes the products of the open nodes in [lo, hi), which are whole strips.
func (p *polynomials) writeRange(w io.Writer, lo, hi int64) error {
	b := <-p.buffers
	defer func() { p.buffers <- b }()
	first, end := lo>>packed.StripShift, (hi+packed.StripRows-1)>>packed.StripShift
	for number := p.strips[first].pieces; number < p.strips[end].pieces; number++ {
		x := p.piece(number)
		if err := p.loadSums(x, b); err != nil {
			return err
		}
		for number, left := 0, x.rows; left > 0; number, left = number+1, left-unit {
			if _, err := w.Write(mem.AsBytes(p.unitProducts(b, number)[:min(left, unit)*p.products()])); err != nil {
				return err
			}
		}
	}
	return nil
}
