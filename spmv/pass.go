package spmv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"ndls/internal/packed"
)

// Sink receives finished rows first, first+1, … of the next hop, before they are
// rounded to the precision of the block. Calls for different rows may come at
// the same time and in any order.
type Sink func(first int64, rows []float32)

// Role says what a hop does with a row.
type Role uint8

// The roles, in ascending order of what a row costs.
const (
	// Idle rows are skipped, and the source has no edges into them.
	Idle Role = iota
	// Skipped rows are lost: no pass reads them from now on.
	Skipped
	// Computed rows become the mean over themselves and their neighbours.
	Computed
)

// Roles sets the roles of rows first, first+1, …, and returns the least and the most of them. The
// source has all edges into rows that are computed; others are read for nothing. nil computes every
// row. Conservation does not hold where some rows are not computed, and is not checked.
type Roles func(first int64, roles []Role) (least, most Role)

// Pass runs hops over one graph.
type Pass struct {
	Source packed.Source
	// Degree has the degree of each node without the self-loop.
	Degree []uint32
	// Divisors has what the sum of each row is divided by, where that is not its degree plus
	// one: the strength plus one where edges have weights. Else it is nil.
	Divisors []float32
	// Sent has, in a graph with directions, the number of rows to which each row is added,
	// without itself; Degree has that of the rows which are added to each. Else it is nil.
	Sent   []uint32
	Kernel *Kernel
	// Lacks says that Source lacks edges, so that nothing is conserved.
	Lacks bool

	once            sync.Once
	volume, squares float64 // Σ d̃ and Σ d̃², or see balance
	largest         float64
}

// halfShare is the share of its d̃ by which the recurrence divides the sum of a row: 2x/d̃ is x/(d̃/2), bit by bit.
const halfShare = 0.5

// divisors returns what the sums of rows lo, lo+1, …, at most visitRows of them, are divided by: their d̃, or what stands in its place.
// The next call of divisors or uses overwrites them.
func (t *thread) divisors(p *Pass, lo, hi int64) []float64 {
	if p.Divisors == nil {
		return t.withSelf(p.Degree[lo:hi])
	}
	d := t.weights[:hi-lo]
	for i, x := range p.Divisors[lo:hi] {
		d[i] = float64(x)
	}
	return d
}

// uses returns how often the next hop adds each of rows lo, lo+1, …. A hop conserves the sum of rows times these.
func (t *thread) uses(p *Pass, lo, hi int64) []float64 {
	if p.Sent == nil {
		return t.divisors(p, lo, hi)
	}
	return t.withSelf(p.Sent[lo:hi])
}

// withSelf gives each degree plus one, for the self-loop.
func (t *thread) withSelf(degree []uint32) []float64 {
	d := t.weights[:len(degree)]
	for i, x := range degree {
		d[i] = float64(x) + 1
	}
	return d
}

// Run replaces the rows of b by those of the next hop, D̃⁻¹ Ã Z, shows every row to sink unless
// sink is nil, and returns the number of directed edges streamed. roles says which rows are
// computed. Errors come from the source, the disk or the group, or are the cause of ctx or
// ErrConservation.
func (p *Pass) Run(ctx context.Context, b *Block, sink Sink, roles Roles) (edges int64, err error) {
	b.held = false
	return p.run(ctx, b, sink, roles, false)
}

// Recur is [Pass.Run] for Chebyshev's polynomials T_j of P = D̃⁻¹ Ã in place of powers. A block that was filled with rows Z gets
// T_1 Z = P Z, and holds Z beside it. From then on, rows T_j Z become
//
//	T_{j+1} Z = 2 P T_j Z − T_{j−1} Z
//
// in the place of T_{j−1} Z, and the block holds T_j Z beside them. The graph must not have directions. A row that
// roles leaves out at a step must be left out at all later ones.
func (p *Pass) Recur(ctx context.Context, b *Block, sink Sink, roles Roles) (edges int64, err error) {
	if p.Sent != nil {
		return 0, errors.New("a recurrence needs edges without directions")
	}
	return p.run(ctx, b, sink, roles, true)
}

func (p *Pass) run(ctx context.Context, b *Block, sink Sink, roles Roles, keep bool) (edges int64, err error) {
	check := roles == nil && !p.Lacks
	if check && !b.summed {
		if err := p.sum(b); err != nil {
			return 0, err
		}
	}
	for _, t := range b.threads {
		t.totals, t.sent = [2 * packed.PanelColumns]float64{}, [2 * packed.PanelColumns]float64{}
	}
	h := &hop{Pass: p, b: b, sink: sink, roles: roles, check: check, added: make([]int64, b.strips()), share: 1}
	if b.held {
		h.share = halfShare
	}
	if err = b.exchange().agree(ctx); err == nil {
		b.group.Expose(b.exchange().format(), b.relays, b.exchange().readRows)
		err = h.run(ctx)
	}
	s := p.balance(b)
	if err == nil {
		err = s.gather(ctx, b.group)
	}
	b.group.Unexpose(err)
	if err == nil {
		err = b.advance(keep)
	}
	if err == nil && check {
		b.earlier, b.totals = b.totals, b.addTotals()
		if p.Sent != nil {
			b.totals = b.addSent()
		}
		err = s.check(b.layout.Precision)
	}
	b.held = keep
	for _, n := range h.added {
		edges += n
	}
	return edges, err
}

// hop is one run of a pass.
type hop struct {
	*Pass
	b     *Block
	sink  Sink
	roles Roles
	check bool
	added []int64 // edges so far, by strip
	share float32 // of its d̃, by which the sum of a row is divided: half of it for a step of the recurrence
}

// assign gives the rows of a strip their roles, and reports whether there is nothing to do.
// Rows that are not in memory are stored at every hop, whatever their roles.
func (h *hop) assign(t *thread, s int) (idle bool) {
	t.least = Computed
	if h.roles == nil {
		return false
	}
	lo, hi := h.b.bounds(s)
	if t.roles == nil {
		t.roles = make([]Role, min(h.b.n, packed.StripRows))
	}
	var most Role
	t.least, most = h.roles(lo, t.roles[:hi-lo])
	return most <= Skipped && h.b.layout.Residency == Resident
}

// runs calls each for every run [lo, hi) of rows that have the same role.
func runs(roles []Role, each func(role Role, lo, hi int)) {
	for lo := 0; lo < len(roles); {
		role, hi := roles[lo], lo+1
		for hi < len(roles) && roles[hi] == role {
			hi++
		}
		each(role, lo, hi)
		lo = hi
	}
}

// run computes the strips in groups, each from all windows of the source rows in
// ascending order.
func (h *hop) run(ctx context.Context) error {
	size := h.b.groupStrips()
	ctx, cancel := context.WithCancel(ctx)
	windows := make(chan window, max(h.b.layout.Windows-2, 0)) // one is added, and one fetched
	var wg sync.WaitGroup
	wg.Go(func() { h.b.exchange().send(ctx, (h.b.strips()+size-1)/size, windows) })
	defer wg.Wait()
	defer func() {
		cancel()
		for w := range windows { // those that are not added
			h.b.exchange().release(w)
		}
	}()
	for first := 0; first < h.b.strips(); first += size {
		if err := h.group(ctx, first, min(first+size, h.b.strips()), windows); err != nil {
			return err
		}
	}
	return nil
}

// groupStrips returns the number of strips that are accumulated at a time.
func (b *Block) groupStrips() int {
	if b.layout.grouped() {
		return min(b.layout.Accumulators, max(b.strips(), 1))
	}
	return max(b.strips(), 1)
}

// group computes strips [first, last). Each takes the rows themselves, the edges of
// one window after the other, and the division. With one window a thread does all of
// that while the sums of the strip are in its cache.
func (h *hop) group(ctx context.Context, first, last int, windows <-chan window) error {
	for i := range h.b.sources {
		w, ok := <-windows
		if !ok {
			return context.Cause(ctx)
		}
		err := w.err
		if err == nil {
			err = h.stream(ctx, first, last, w.span, func(t *thread, s int, frames packed.Frames) error {
				if h.assign(t, s) {
					return nil
				}
				sums := h.b.sums(t, s, s-first)
				if i == 0 {
					if err := h.begin(t, s, sums); err != nil {
						return err
					}
				}
				if err := h.accumulate(ctx, t, s, sums, w, frames); err != nil {
					return err
				}
				if i < len(h.b.sources)-1 {
					return nil
				}
				return h.finish(t, s, sums)
			})
		}
		h.b.exchange().release(w)
		if err != nil {
			return err
		}
	}
	return nil
}

// sums returns the rows in which strip s, the i-th of its group, is accumulated: with others of its
// group, in an accumulator of the thread, or in the next hop itself.
func (b *Block) sums(t *thread, s, i int) []float32 {
	lo, hi := b.bounds(s)
	columns := b.layout.Columns
	size := int(hi-lo) * columns
	switch {
	case b.layout.grouped():
		return b.accs[i*packed.StripRows*columns:][:size]
	case b.layout.needsAccumulator():
		return t.acc[:size]
	default:
		return b.next.Slice(lo, hi).S
	}
}

// begin starts the sums of a strip with the rows themselves, and for a step of the recurrence without what beginWithout takes from them.
func (h *hop) begin(t *thread, s int, sums []float32) error {
	if h.b.held {
		return h.beginWithout(t, s, sums)
	}
	self, err := h.b.read(t, s)
	if err == nil {
		t.load(h.Kernel, sums, self)
	}
	return err
}

// load sets dst to the rows of a strip that are computed.
func (t *thread) load(k *Kernel, dst []float32, rows Rows) {
	switch {
	case rows.S != nil && &rows.S[0] == &dst[0]:
	case t.least == Computed:
		k.load(dst, rows)
	default:
		k.loadComputed(dst, rows, t.roles[:rows.Len()])
	}
}

// beginWithout starts the sums of a strip with the rows themselves minus d̃/2 times the rows before them. The sums may be in the place
// of the rows before, so that these need no memory beside the sums, whatever windows the sums wait for.
func (h *hop) beginWithout(t *thread, s int, sums []float32) error {
	before, err := h.b.readBefore(t, s)
	if err != nil {
		return err
	}
	t.load(h.Kernel, sums, before)
	self, err := h.b.read(t, s)
	if err != nil {
		return err
	}
	first, _ := h.b.bounds(s)
	stride := int64(self.Stride)
	t.eachComputed(self.Len(), func(lo, hi int64) {
		for ; lo < hi; lo += visitRows {
			end := min(lo+visitRows, hi)
			h.Kernel.Start(sums[lo*stride:end*stride], t.floats(h.Kernel, self.Slice(lo, end)), t.divisors(h.Pass, first+lo, first+end), halfShare)
		}
	})
	return nil
}

// eachComputed calls each for every run [lo, hi) of the n rows of a strip that are computed.
func (t *thread) eachComputed(n int64, each func(lo, hi int64)) {
	if t.least == Computed {
		each(0, n)
		return
	}
	runs(t.roles[:n], func(role Role, lo, hi int) {
		if role == Computed {
			each(int64(lo), int64(hi))
		}
	})
}

// floats gives at most visitRows rows as float32. They are valid until it is called again.
func (t *thread) floats(k *Kernel, rows Rows) []float32 {
	if rows.H == nil {
		return rows.S
	}
	if t.before == nil {
		t.before = make([]float32, visitRows*rows.Stride)
	}
	buf := t.before[:len(rows.H)]
	k.Widen(buf, rows.H)
	return buf
}

// stream gives strips [first, last) out to the threads, with their frames of edges
// from sources in w; while a thread works on one strip the frames of its next are
// read already. They are nil where there are no edges, or where threads share a strip.
func (h *hop) stream(ctx context.Context, first, last int, w span, work func(t *thread, s int, frames packed.Frames) error) error {
	type opened struct {
		strip  int
		frames packed.Frames
	}
	var at atomic.Int64
	at.Store(int64(first))
	next := func() (o opened, err error) {
		o.strip = int(at.Add(1)) - 1
		if o.strip >= last {
			return o, nil
		}
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		if h.team() == 1 && h.Source.Edges(o.strip) > 0 {
			o.frames, err = h.Source.Open(ctx, o.strip, uint32(w.lo), uint32(w.hi))
		}
		return o, err
	}
	return h.b.parallel(min(len(h.b.threads), last-first), func(t *thread, _ int) error {
		o, err := next()
		for o.strip < last && err == nil {
			var ahead opened
			ahead, err = next()
			err = errors.Join(err, work(t, o.strip, o.frames), closeFrames(o.frames))
			if err != nil {
				at.Store(int64(last)) // the other threads need not go on
			}
			o = ahead
		}
		return errors.Join(err, closeFrames(o.frames))
	})
}

func closeFrames(f packed.Frames) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// team returns the number of threads that share a strip.
func (h *hop) team() int {
	return max(min(len(h.b.threads)/h.b.strips(), h.b.layout.Columns/packed.PanelColumns), 1)
}

// accumulate adds the edges of a strip from the sources of a window. Where there are
// fewer strips than threads, and so no frames, the strip is shared out in slices of
// columns.
func (h *hop) accumulate(ctx context.Context, t *thread, s int, sums []float32, w window, frames packed.Frames) error {
	all := Addition{Acc: sums, Cols: w.rows.Stride, Rows: w.rows, First: uint32(w.lo)}
	if frames != nil {
		edges, err := h.add(all, frames, &t.buf)
		h.added[s] += edges
		return err
	}
	if h.Source.Edges(s) == 0 {
		return nil
	}
	team := h.team()
	width := (all.Cols/packed.PanelColumns + team - 1) / team * packed.PanelColumns
	edges, errs := make([]int64, team), make([]error, team)
	var wg sync.WaitGroup
	for i := range team {
		part := all
		part.Col = i * width
		part.Cols = min(width, all.Cols-part.Col)
		if part.Cols > 0 {
			wg.Go(func() { edges[i], errs[i] = h.addSlice(ctx, s, w.span, part) })
		}
	}
	wg.Wait()
	h.added[s] += edges[0] // all slices have the same edges
	return errors.Join(errs...)
}

// addSlice adds some columns of the edges of a strip from sources in w.
func (h *hop) addSlice(ctx context.Context, s int, w span, part Addition) (int64, error) {
	frames, err := h.Source.Open(ctx, s, uint32(w.lo), uint32(w.hi))
	if err != nil {
		return 0, err
	}
	edges, err := h.add(part, frames, new(Decoded))
	return edges, errors.Join(err, frames.Close())
}

// add adds the edges of frames and counts them.
func (h *hop) add(to Addition, frames packed.Frames, buf *Decoded) (edges int64, err error) {
	for {
		f, err := frames.Next()
		if err == io.EOF {
			return edges, nil
		}
		if err != nil {
			return edges, err
		}
		h.Kernel.Add(to, f, buf)
		to.count(f)
		edges += int64(f.Edges)
	}
}

// finish divides the sums of a strip, shows them and stores them.
func (h *hop) finish(t *thread, s int, acc []float32) error {
	if got, want := h.added[s], h.Source.Edges(s); got != want {
		return fmt.Errorf("strip %d of the rows gave %d edges, not %d: %w", s, got, want, packed.ErrFrame)
	}
	lo, hi := h.b.bounds(s)
	for at := lo; at < hi; at += visitRows {
		end := min(at+visitRows, hi)
		stride := int64(h.b.layout.Columns)
		rows, divisors := acc[(at-lo)*stride:(end-lo)*stride], t.divisors(h.Pass, at, end)
		if t.least < Computed {
			h.Kernel.divideComputed(rows, divisors, t.roles[at-lo:], h.share)
			continue
		}
		h.Kernel.Divide(rows, divisors, h.share)
		if h.check {
			h.Kernel.WeightedSums(&t.totals, rows, divisors)
			if h.Sent != nil {
				h.Kernel.WeightedSums(&t.sent, rows, t.uses(h.Pass, at, end))
			}
		}
	}
	if h.sink != nil {
		h.sink(lo, acc)
	}
	if t.least < Computed && h.b.layout.Residency == Resident {
		h.storeSome(t, h.b.next.Slice(lo, hi), acc)
		return nil
	}
	return h.b.write(t, s, acc)
}

// storeSome stores all rows of a strip in memory but those that are idle.
func (h *hop) storeSome(t *thread, to Rows, rows []float32) {
	if to.S != nil && &to.S[0] == &rows[0] {
		return
	}
	runs(t.roles[:to.Len()], func(role Role, lo, hi int) {
		if role > Idle {
			h.Kernel.store(to.Slice(int64(lo), int64(hi)), rows[lo*to.Stride:hi*to.Stride])
		}
	})
}
