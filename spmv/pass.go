package spmv

import (
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"

	"ndls/internal/packed"
)

// ErrConservation reports a pass after which Σ_i d̃_i Z_i differs: an edge was
// lost, doubled or misplaced.
var ErrConservation = errors.New("conservation of the degree-weighted sum is violated")

// Sink receives finished rows first, first+1, … of the next hop, before they are
// rounded to the precision of the block. Calls for different rows may come at
// the same time and in any order.
type Sink func(first int64, rows []float32)

// Settle may replace finished rows first, first+1, … of the next hop; cur reads
// row i of the hop before.
type Settle func(first int64, rows []float32, cur func(i int64) []float32) error

// Pass runs hops over one graph.
type Pass struct {
	Source packed.Source
	// Degree has the degree of each node without the self-loop.
	Degree []uint32
	Kernel *Kernel

	// directed is set for measurements on random edges, which conserve nothing.
	directed bool

	once            sync.Once
	volume, squares float64 // Σ d̃ and Σ d̃²
}

// Run replaces the rows of b by those of the next hop, D̃⁻¹ Ã Z, shows every row
// to sink unless that is nil, and returns the number of directed edges streamed.
// Where settle is not nil it has a say in every row first, and conservation is
// not checked. Errors are the source's, the disk's, or ErrConservation.
func (p *Pass) Run(b *Block, sink Sink, settle Settle) (edges int64, err error) {
	check := settle == nil && !p.directed
	if check && !b.summed {
		if err := p.sum(b); err != nil {
			return 0, err
		}
	}
	for _, t := range b.threads {
		t.totals = [2 * Granule]float64{}
	}
	r := &step{Pass: p, b: b, sink: sink, settle: settle, check: check}
	switch {
	case b.peers != nil:
		err = r.shared()
	case b.layout.Place == External:
		err = r.external()
	default:
		err = r.inMemory()
	}
	s := p.balance(b)
	if b.peers != nil {
		if err == nil {
			err = s.together(b.peers)
		}
		b.peers.Withdraw(err)
	}
	if err == nil {
		err = b.advance()
	}
	if err == nil && check {
		b.totals = b.gather()
		err = s.check(b.layout.Precision)
	}
	return r.edges.Load(), err
}

// sum finds the degree-weighted sums of the rows as they are.
func (p *Pass) sum(b *Block) error {
	for _, t := range b.threads {
		t.totals = [2 * Granule]float64{}
	}
	err := b.parallel(b.strips(), func(t *thread, s int) error {
		r, err := b.read(t, s)
		if err != nil {
			return err
		}
		lo, _ := b.bounds(s)
		var buf []float32
		for at := int64(0); at < r.Len(); at += visitRows {
			part := r.Slice(at, min(at+visitRows, r.Len()))
			rows := part.S
			if part.H != nil {
				if buf == nil {
					buf = make([]float32, visitRows*part.Stride)
				}
				rows = buf[:len(part.H)]
				p.Kernel.Widen(rows, part.H)
			}
			p.Kernel.WeightedSums(&t.totals, rows, p.Degree[lo+at:lo+at+part.Len()])
		}
		return nil
	})
	b.totals = b.gather()
	b.summed = true
	return err
}

func (b *Block) gather() (all [2 * Granule]float64) {
	for _, t := range b.threads {
		for c, x := range t.totals {
			all[c] += x
		}
	}
	return all
}

// balance is what a hop has to conserve: Σ d̃ Z and Σ d̃ |Z| of the first columns,
// before and after it.
type balance struct {
	before, after   [2 * Granule]float64
	volume, squares float64 // Σ d̃ and Σ d̃²
}

// balance is that of the block's rows.
func (p *Pass) balance(b *Block) *balance {
	p.once.Do(func() {
		for _, d := range p.Degree {
			d1 := float64(d) + 1
			p.volume += d1
			p.squares += float64(d1 * d1)
		}
	})
	return &balance{b.totals, b.gather(), p.volume, p.squares}
}

// check compares the sums after a hop with those before. Adding d̃ float32 values one
// after the other can lose d̃·2^−24 of their sum when they are all alike, and a row
// counts d̃ times: that bounds |Σ d̃ Z^(k+1) − Σ d̃ Z^(k)| in shares of Σ d̃ |Z^(k)|.
func (s *balance) check(p Precision) error {
	tolerance, tiny := 1e-6+0x1p-24*s.squares/s.volume, 0.0
	if p == Float16 {
		tolerance += halfTolerance
		tiny = halfTiny * s.volume
	}
	for c := range Granule {
		if d := math.Abs(s.after[c] - s.before[c]); d > tolerance*s.before[Granule+c]+tiny || math.IsNaN(d) {
			return fmt.Errorf("spmv: column %d of the block went from %g to %g: %w", c, s.before[c], s.after[c], ErrConservation)
		}
	}
	return nil
}

// halfTolerance is the share of Σ d̃|Z| that rounding every row to float16 may
// move at most: half a unit in the last of 11 places, all in one direction.
// halfTiny is what it may move each value that is too small for that.
const (
	halfTolerance = 0x1p-11
	halfTiny      = 0x1p-25
)

// step is one run of a pass.
type step struct {
	*Pass
	b      *Block
	sink   Sink
	settle Settle
	check  bool
	edges  atomic.Int64
}

// inMemory computes the strips from a hop that is in memory.
func (h *step) inMemory() error {
	b := h.b
	return h.stream(0, b.strips(), 0, b.n, func(t *thread, s int, frames packed.Frames) error {
		lo, hi := b.bounds(s)
		acc := t.acc
		if acc == nil {
			acc = b.next.S[lo*int64(b.next.Stride):]
		}
		acc = acc[:(hi-lo)*int64(b.cur.Stride)]
		h.Kernel.load(acc, b.cur.Slice(lo, hi)) // self first
		if err := h.accumulate(t, acc, s, frames, b.cur, 0, b.n); err != nil {
			return err
		}
		return h.finish(t, s, acc)
	})
}

// stream calls work, which closes the frames, with the edges from sources
// [lo, hi) into each of count strips. While a thread works on one strip the
// frames of its next are read already. They are nil where there are no edges, or
// where threads share a strip.
func (h *step) stream(first, count int, lo, hi int64, work func(t *thread, s int, frames packed.Frames) error) error {
	type opened struct {
		strip  int
		frames packed.Frames
	}
	end := first + count
	var at atomic.Int64
	at.Store(int64(first))
	next := func() (o opened, err error) {
		o.strip = int(at.Add(1)) - 1
		if o.strip < end && h.team() == 1 && h.Source.Edges(o.strip) > 0 {
			o.frames, err = h.Source.Open(o.strip, uint32(lo), uint32(hi))
		}
		return o, err
	}
	return h.b.parallel(min(len(h.b.threads), count), func(t *thread, _ int) error {
		o, err := next()
		for o.strip < end && err == nil {
			var ahead opened
			ahead, err = next()
			if err = errors.Join(err, work(t, o.strip, o.frames)); err != nil {
				at.Store(int64(end)) // the other threads need not go on
			}
			o = ahead
		}
		if o.frames != nil {
			err = errors.Join(err, o.frames.Close())
		}
		return err
	})
}

// team is how many threads share a strip.
func (h *step) team() int {
	return max(min(len(h.b.threads)/h.b.strips(), h.b.layout.Columns/Granule), 1)
}

// external computes the strips in groups whose accumulators fit in memory, each
// from all windows of the hop in ascending order.
func (h *step) external() error {
	b := h.b
	size := packed.StripRows * b.layout.Columns
	for first := 0; first < b.strips(); first += b.layout.Accumulators {
		count := min(b.layout.Accumulators, b.strips()-first)
		acc := func(i int) []float32 {
			lo, hi := b.bounds(first + i)
			return b.accs[i*size:][:int(hi-lo)*b.layout.Columns]
		}
		if err := b.parallel(count, func(t *thread, i int) error {
			self, err := b.read(t, first+i)
			if err == nil {
				h.Kernel.load(acc(i), self)
			}
			return err
		}); err != nil {
			return err
		}
		for lo := int64(0); lo < b.n; lo += b.layout.Window {
			hi := min(lo+b.layout.Window, b.n)
			if err := h.loadWindow(lo, hi); err != nil {
				return err
			}
			if err := h.stream(first, count, lo, hi, func(t *thread, s int, frames packed.Frames) error {
				return h.accumulate(t, acc(s-first), s, frames, b.cur, lo, hi)
			}); err != nil {
				return err
			}
		}
		if err := b.parallel(count, func(t *thread, i int) error { return h.finish(t, first+i, acc(i)) }); err != nil {
			return err
		}
	}
	return nil
}

// loadWindow reads rows [lo, hi) of the hop, a strip at a time.
func (h *step) loadWindow(lo, hi int64) error {
	b := h.b
	return b.parallel(int(strips(hi-lo)), func(_ *thread, i int) error {
		from := int64(i) * packed.StripRows
		to := min(from+packed.StripRows, hi-lo)
		return b.file[0].ReadAt(b.pages(b.cur.Slice(from, to), to-from), b.offset(lo+from))
	})
}

// accumulate adds the edges from sources [lo, hi), whose rows z holds, to a
// strip. Where there are fewer strips than threads, and so no frames, each strip
// is shared out in slices of columns.
func (h *step) accumulate(t *thread, acc []float32, s int, frames packed.Frames, z Rows, lo, hi int64) error {
	if frames != nil {
		edges, err := h.add(frames, &t.buf, acc, s, z, lo, hi, 0, z.Stride)
		h.edges.Add(edges)
		return err
	}
	if h.Source.Edges(s) == 0 {
		return nil
	}
	team := h.team()
	width := (z.Stride/Granule + team - 1) / team * Granule
	errs := make([]error, team)
	var wg sync.WaitGroup
	for i := range team {
		wg.Go(func() {
			col := i * width
			if cols := min(width, z.Stride-col); cols > 0 {
				edges, err := h.slice(new(Decoded), acc, s, z, lo, hi, col, cols)
				if errs[i] = err; i == 0 {
					h.edges.Add(edges)
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// slice adds columns [col, col+cols).
func (h *step) slice(buf *Decoded, acc []float32, s int, z Rows, lo, hi int64, col, cols int) (int64, error) {
	frames, err := h.Source.Open(s, uint32(lo), uint32(hi))
	if err != nil {
		return 0, err
	}
	return h.add(frames, buf, acc, s, z, lo, hi, col, cols)
}

// add adds what frames gives, and closes it.
func (h *step) add(frames packed.Frames, buf *Decoded, acc []float32, s int, z Rows, lo, hi int64, col, cols int) (edges int64, err error) {
	defer func() { err = errors.Join(err, frames.Close()) }()
	for {
		f, err := frames.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return edges, err
		}
		h.Kernel.Add(acc, z.Stride, z, uint32(lo), f, col, cols, buf)
		edges += int64(f.Edges)
	}
	if want := h.Source.Edges(s); lo == 0 && hi == h.b.nodes && edges != want {
		return edges, fmt.Errorf("spmv: strip %d gave %d edges of %d: %w", s, edges, want, packed.ErrFrame)
	}
	return edges, nil
}

// finish divides the sums of a strip, shows them and stores them.
func (h *step) finish(t *thread, s int, acc []float32) error {
	lo, hi := h.b.bounds(s)
	for at := lo; at < hi; at += visitRows {
		end := min(at+visitRows, hi)
		stride := int64(h.b.layout.Columns)
		rows := acc[(at-lo)*stride : (end-lo)*stride]
		h.Kernel.Divide(rows, h.Degree[at:end])
		if h.check {
			h.Kernel.WeightedSums(&t.totals, rows, h.Degree[at:end])
		}
	}
	if h.settle != nil {
		cur, err := h.previous(t, s)
		if err != nil {
			return err
		}
		if err := h.settle(lo, acc, cur); err != nil {
			return err
		}
	}
	if h.sink != nil {
		h.sink(lo, acc)
	}
	return h.b.write(t, s, acc)
}

// previous gives access to the rows of a strip before the hop.
func (h *step) previous(t *thread, s int) (func(i int64) []float32, error) {
	r, err := h.b.read(t, s)
	if err != nil {
		return nil, err
	}
	lo, _ := h.b.bounds(s)
	var buf []float32
	return func(i int64) []float32 {
		row := r.Slice(i-lo, i-lo+1)
		if row.H == nil {
			return row.S
		}
		if buf == nil {
			buf = make([]float32, row.Stride)
		}
		h.Kernel.Widen(buf, row.H)
		return buf
	}, nil
}
