package ring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/spmv"
)

// Options say who works together.
type Options struct {
	// Plan is the hash of the plan, Gang a name that no other group of workers has,
	// nor the same one at another attempt. Tickets carry both.
	Plan string
	Gang control.Stage
	// Self is which of the workers this is.
	Self int
	// Borders are where the workers' rows begin, in ascending order, then the number
	// of all rows: worker w has rows [Borders[w], Borders[w+1]), whole strips.
	Borders []int64
	// Peers reach the workers; that of Self is not used.
	Peers []*blocks.Client
}

func (o Options) check() error {
	if len(o.Borders) < 2 || len(o.Peers) != len(o.Borders)-1 || o.Self < 0 || o.Self >= len(o.Peers) || o.Borders[0] != 0 {
		return fmt.Errorf("ring: worker %d of %d with borders %v", o.Self, len(o.Peers), o.Borders)
	}
	for w, lo := range o.Borders[:len(o.Peers)] {
		if lo%packed.StripRows != 0 || lo >= o.Borders[w+1] {
			return fmt.Errorf("ring: rows [%d, %d) are no whole strips", lo, o.Borders[w+1])
		}
	}
	return nil
}

// errLeft is why a worker that is done answers nobody any more.
var errLeft = errors.New("the worker has left")

// Ring is one worker's place among the workers of a column block. Its owner calls
// the methods of spmv.Peers and Chain one after the other; Rows is for a server.
type Ring struct {
	ctx context.Context
	o   Options

	mu      sync.RWMutex
	changed chan struct{} // closed when something below changes
	rows    shelf
	sums    shelf
	ended   error
}

// New takes a place. ctx ends what waits for others.
func New(ctx context.Context, o Options) (*Ring, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Ring{ctx: ctx, o: o, changed: make(chan struct{})}, nil
}

// offer is something that others can read.
type offer struct {
	first, last int64
	columns     int
	precision   string
	read        spmv.ReadRows
	given       int // times that it was read to the end
}

// shelf has the newest offers of a kind, numbered from 0.
type shelf struct {
	next   int
	offers [2]*offer // number i at i%2; nil where it was withdrawn
}

func (s *shelf) put(o *offer) (number int) {
	number = s.next
	s.offers[number%2] = o
	s.next++
	return number
}

// get returns an offer, or nil where it is still to come.
func (s *shelf) get(number int) (*offer, error) {
	if number >= s.next {
		return nil, nil
	}
	if o := s.offers[number%2]; number >= s.next-2 && o != nil {
		return o, nil
	}
	return nil, blocks.ErrPast
}

// change does something to what others see.
func (r *Ring) change(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
	close(r.changed)
	r.changed = make(chan struct{})
}

// Size is the number of workers.
func (r *Ring) Size() int { return len(r.o.Peers) }

// Range implements spmv.Peers.
func (r *Ring) Range() (first, last, n int64) {
	return r.o.Borders[r.o.Self], r.o.Borders[r.o.Self+1], r.o.Borders[r.Size()]
}

// Offer implements spmv.Peers.
func (r *Ring) Offer(columns int, p spmv.Precision, read spmv.ReadRows) {
	first, last, _ := r.Range()
	r.change(func() {
		r.rows.put(&offer{first: first, last: last, columns: columns, precision: p.String(), read: read})
	})
}

// Withdraw implements spmv.Peers.
func (r *Ring) Withdraw(err error) {
	if err != nil {
		r.Close(err)
		return
	}
	r.change(func() { r.rows.offers = [2]*offer{} })
}

// Close fails what others ask for from now on, and what they wait for, so that they
// know it at once. A nil reason is that this worker is done.
func (r *Ring) Close(reason error) {
	r.change(func() {
		if r.ended == nil {
			r.ended = errLeft
			if reason != nil {
				// What it means here is not what it means to others.
				r.ended = errors.New("the worker has failed: " + reason.Error())
			}
		}
		r.rows, r.sums = shelf{next: r.rows.next}, shelf{next: r.sums.next}
	})
}

// Leave waits until all others have read this worker's last values, or until ctx
// ends, and closes the ring.
func (r *Ring) Leave(ctx context.Context) error {
	defer r.Close(nil)
	for {
		r.mu.RLock()
		last, changed, ended := r.sums.offers[(r.sums.next+1)%2], r.changed, r.ended
		done := ended != nil || last == nil || last.given == r.Size()-1
		r.mu.RUnlock()
		if done {
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
}

const (
	// sumsStage is what is behind the gang's name in tickets for values, which are
	// rows of one float64: sumColumns times float32 to whom does not know.
	sumsStage  = "/sums"
	sumColumns = 2
	// hopBits of an offer's number are the ticket's hop, the others its granule.
	hopBits = 15
)

// ticket names rows [lo, hi) of an offer.
func (r *Ring) ticket(o *offer, stage control.Stage, number int, lo, hi int64) blocks.Ticket {
	return blocks.Ticket{
		Plan: r.o.Plan, Stage: stage, First: number >> hopBits, Hop: number & (1<<hopBits - 1),
		Columns: o.columns, Precision: o.precision, Row: lo, Rows: hi - lo,
	}
}

func number(t blocks.Ticket) int { return t.First<<hopBits | t.Hop }

// pieceBytes is about how much is copied for others, and sent, at a time. Pieces of
// 2^20 bytes were measured to take a quarter more on the wire than their rows, these
// a thirtieth.
const pieceBytes = 1 << 17

// Rows implements blocks.Source for tickets of this gang.
func (r *Ring) Rows(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	o, err := r.wait(ctx, t)
	if err != nil {
		return fmt.Errorf("ring: %w", err)
	}
	end, size := t.Row+t.Rows, int64(t.RowBytes())
	switch {
	case t.Row < o.first || end > o.last:
		return fmt.Errorf("ring: rows %d to %d are here: %w", o.first, o.last, blocks.ErrNotHeld)
	case t.Columns != o.columns || t.Precision != o.precision:
		return fmt.Errorf("ring: rows of %d columns of %s are here: %w", o.columns, o.precision, blocks.ErrNotHeld)
	}
	piece := max(pieceBytes/(size*spmv.PageRows), 1) * spmv.PageRows
	piece = min(piece, (t.Rows/spmv.PageRows+2)*spmv.PageRows)
	page := direct.AlignedBytes(int(piece * size))
	for at := t.Row; at < end; {
		lo := at - (at-o.first)%spmv.PageRows
		hi := min(lo+piece, o.last)
		if err := r.copy(o, page, lo, hi); err != nil {
			return fmt.Errorf("ring: %w", err)
		}
		to := min(hi, end)
		if err := send(at, page[(at-lo)*size:(to-lo)*size]); err != nil {
			return err
		}
		at = to
	}
	r.change(func() { o.given++ })
	return nil
}

// knows says whether a ticket is of this gang.
func (r *Ring) knows(t blocks.Ticket) bool {
	return t.Plan == r.o.Plan && (t.Stage == r.o.Gang || t.Stage == r.o.Gang+sumsStage)
}

// wait returns what a ticket asks for once it is there.
func (r *Ring) wait(ctx context.Context, t blocks.Ticket) (*offer, error) {
	s := &r.rows
	switch {
	case !r.knows(t):
		return nil, blocks.ErrNotHeld
	case t.Stage != r.o.Gang:
		s = &r.sums
	}
	for {
		r.mu.RLock()
		ended, changed := r.ended, r.changed
		o, err := s.get(number(t))
		r.mu.RUnlock()
		if ended != nil {
			return nil, ended
		}
		if o != nil || err != nil {
			return o, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-r.ctx.Done():
			return nil, context.Cause(r.ctx)
		}
	}
}

// copy reads rows of an offer unless it was withdrawn.
func (r *Ring) copy(o *offer, page []byte, lo, hi int64) error {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.ended != nil {
		return r.ended
	}
	if !slices.Contains(r.rows.offers[:], o) && !slices.Contains(r.sums.offers[:], o) {
		return blocks.ErrPast
	}
	return o.read(page, lo, hi-lo)
}

// join is ctx, ended with that of the ring as well.
func (r *Ring) join(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(r.ctx, func() { cancel(context.Cause(r.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// Fetch implements spmv.Peers. Rows of several workers come side by side.
func (r *Ring) Fetch(ctx context.Context, lo, hi int64, into spmv.Rows) error {
	ctx, cancel := r.join(ctx)
	defer cancel()
	precision := spmv.Float32
	if into.H != nil {
		precision = spmv.Float16
	}
	o := &offer{columns: into.Stride, precision: precision.String()}
	step := r.rows.next - 1 // changed by this goroutine's owner alone
	g, ctx := errgroup.WithContext(ctx)
	for w := range r.o.Peers {
		from, to := max(lo, r.o.Borders[w]), min(hi, r.o.Borders[w+1])
		if from < to {
			raw, _, _ := into.Slice(from-lo, to-lo).Bytes()
			g.Go(func() error { return r.fetch(ctx, w, r.ticket(o, r.o.Gang, step, from, to), raw) })
		}
	}
	return g.Wait()
}

// fetch reads what a ticket names from worker w.
func (r *Ring) fetch(ctx context.Context, w int, t blocks.Ticket, to []byte) error {
	size := int64(t.RowBytes())
	if err := r.o.Peers[w].Fetch(ctx, t, func(first int64, rows []byte) error {
		copy(to[(first-t.Row)*size:], rows)
		return nil
	}); err != nil {
		return fmt.Errorf("ring: from worker %d: %w", w, err)
	}
	return nil
}

// post offers values, which stay as they are.
func (r *Ring) post(values []float64) (number int) {
	raw := mem.AsBytes(values)
	o := &offer{last: int64(len(values)), columns: sumColumns, precision: spmv.Float32.String()}
	o.read = func(page []byte, row, n int64) error {
		copy(page, raw[8*row:8*(row+n)])
		return nil
	}
	r.change(func() { number = r.sums.put(o) })
	return number
}

// values reads those that worker w has offered under a number.
func (r *Ring) values(ctx context.Context, w, number int, to []float64) error {
	o := &offer{columns: sumColumns, precision: spmv.Float32.String()}
	return r.fetch(ctx, w, r.ticket(o, r.o.Gang+sumsStage, number, 0, int64(len(to))), mem.AsBytes(to))
}

// Gather implements spmv.Peers.
func (r *Ring) Gather(values []float64) ([][]float64, error) {
	values = slices.Clone(values)
	number := r.post(values)
	all := make([][]float64, r.Size())
	g, ctx := errgroup.WithContext(r.ctx)
	for w := range all {
		if w == r.o.Self {
			all[w] = values
			continue
		}
		all[w] = make([]float64, len(values))
		g.Go(func() error { return r.values(ctx, w, number, all[w]) })
	}
	return all, g.Wait()
}

// Chain passes values, zeros in the beginning, from worker to worker in ascending
// order of rows: add adds this worker's to those of all before it. At the end all
// have those of the last worker, which are sums in ascending order of row, bit for
// bit those that one machine would have.
func (r *Ring) Chain(values []float64, add func() error) error {
	number, last := r.sums.next, r.Size()-1
	clear(values)
	if r.o.Self > 0 {
		if err := r.values(r.ctx, r.o.Self-1, number, values); err != nil {
			return err
		}
	}
	if err := add(); err != nil {
		return err
	}
	r.post(values)
	defer r.change(func() { r.sums.offers[number%2] = nil })
	if r.o.Self < last {
		if err := r.values(r.ctx, last, number, values); err != nil {
			return err
		}
	}
	_, err := r.Gather([]float64{0}) // nobody reads the values any more
	return err
}
