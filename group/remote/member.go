package remote

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// Options say who works together.
type Options struct {
	// Plan is the hash of the plan. Name is one that no other group of workers has,
	// nor the same workers at another attempt. Tickets carry both.
	Plan string
	Name control.Stage
	// Self is the number of this worker.
	Self int
	// Borders lists the rows where the workers' rows begin, in ascending order, then the number of
	// all rows: worker w has rows [Borders[w], Borders[w+1]), whole strips.
	Borders []int64
	// Peers reach the workers; that of Self is not used.
	Peers []*blocks.Client
}

func (o Options) check() error {
	if len(o.Borders) < 2 || len(o.Peers) != len(o.Borders)-1 || o.Self < 0 || o.Self >= len(o.Peers) || o.Borders[0] != 0 {
		return fmt.Errorf("worker %d cannot be one of a group of %d workers whose rows begin at %v", o.Self, len(o.Peers), o.Borders)
	}
	for w, lo := range o.Borders[:len(o.Peers)] {
		if lo%packed.StripRows != 0 || lo >= o.Borders[w+1] {
			return fmt.Errorf("rows [%d, %d) of a worker are not whole strips of %d rows", lo, o.Borders[w+1], packed.StripRows)
		}
	}
	return nil
}

// errLeft reports that a worker that has finished answers no more requests.
var errLeft = errors.New("the worker has left")

// Member is the group.Group of one of several workers. The engine of the worker calls
// the methods of group.Group; Rows answers the requests that come to its server.
type Member struct {
	o Options

	mu      sync.RWMutex
	changed chan struct{} // closed when something below changes
	rows    slots
	values  slots
	ended   error
	// relays says that rows of the present hop are relayed, relayed what the worker after this one
	// reads from here. Only the engine that calls Fetch changes relays.
	relays  bool
	relayed []*relayed
	// own are the rows that this worker reads, others those of this worker that each other reads; nil
	// where all are sent.
	own    *list
	others []list
	// swapped are the values of the newest two swaps, swaps how many there were so far.
	swapped [2]*swapped
	swaps   int
}

var _ group.Group = (*Member)(nil)

// New makes a member. [Member.Close] or [Member.Leave] must be called.
func New(o Options) (*Member, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Member{o: o, changed: make(chan struct{})}, nil
}

// exposed holds what other workers can read.
type exposed struct {
	first, last int64
	format      group.Format
	read        group.ReadRows
	given       int // times that it was read to the end
}

// slots are a buffer for the newest two things of one kind that a worker exposed. They
// are numbered from 0.
type slots struct {
	next int
	held [2]*exposed // number i is at i%2; nil after it was withdrawn
}

func (s *slots) put(x *exposed) (number int) {
	number = s.next
	s.held[number%2] = x
	s.next++
	return number
}

// get returns what has a number, or nil if this worker has not exposed it yet.
func (s *slots) get(number int) (*exposed, error) {
	if number >= s.next {
		return nil, nil
	}
	if x := s.held[number%2]; number >= s.next-2 && x != nil {
		return x, nil
	}
	return nil, blocks.ErrPast
}

// change lets do alter what other workers see.
func (m *Member) change(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Size implements group.Group.
func (m *Member) Size() int { return len(m.o.Peers) }

// Self implements group.Group.
func (m *Member) Self() int { return m.o.Self }

// Range implements group.Group.
func (m *Member) Range() (first, last, n int64) {
	return m.o.Borders[m.o.Self], m.o.Borders[m.o.Self+1], m.o.Borders[m.Size()]
}

// Expose implements group.Group.
func (m *Member) Expose(f group.Format, relay bool, read group.ReadRows) {
	first, last, _ := m.Range()
	m.change(func() {
		m.rows.put(&exposed{first: first, last: last, format: f, read: read})
		m.relays = relay && m.Size() > 2 // of two workers each has all rows that the other reads
	})
}

// Unexpose implements group.Group.
func (m *Member) Unexpose(err error) {
	if err != nil {
		m.Close(err)
		return
	}
	m.change(func() { m.rows.held, m.relayed, m.swapped = [2]*exposed{}, nil, [2]*swapped{} })
}

// Close fails the present and later requests of other workers, so that they learn at
// once that this worker does not go on. A nil reason means that this worker is done.
func (m *Member) Close(reason error) {
	m.change(func() {
		if m.ended == nil {
			m.ended = errLeft
			if reason != nil {
				// Only the text goes to the others: an error that this worker would
				// handle in some way says no such thing to them.
				m.ended = errors.New("the worker has failed: " + reason.Error())
			}
		}
		m.rows, m.values, m.relayed = slots{next: m.rows.next}, slots{next: m.values.next}, nil
		m.swapped = [2]*swapped{}
	})
}

// Leave waits until all other workers have read this worker's last values, or until
// ctx ends. Then it closes the member.
func (m *Member) Leave(ctx context.Context) error {
	defer m.Close(nil)
	for {
		m.mu.RLock()
		last, changed, ended := m.values.held[(m.values.next+1)%2], m.changed, m.ended
		done := ended != nil || last == nil || last.given == m.Size()-1
		m.mu.RUnlock()
		if done {
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

const (
	// valuesStage follows the group's name in tickets for values. Values are rows of
	// one float64, which a ticket describes as valueColumns columns of float32.
	valuesStage  = "/sums"
	valueColumns = 2
	// hopBits bits of the number of what is exposed are the ticket's hop, the others
	// its first panel.
	hopBits = 15
)

var valueFormat = group.Format{Columns: valueColumns, Precision: "float32"}

// ticket names rows [lo, hi) of what has a number.
func (m *Member) ticket(f group.Format, stage control.Stage, number int, lo, hi int64) blocks.Ticket {
	return blocks.Ticket{
		Plan: m.o.Plan, Stage: stage, First: number >> hopBits, Hop: number & (1<<hopBits - 1),
		Columns: f.Columns, Precision: f.Precision, Row: lo, Rows: hi - lo,
	}
}

func number(t blocks.Ticket) int { return t.First<<hopBits | t.Hop }

// pieceBytes is about how much is copied and sent at a time. Pieces of 2^20 bytes were
// measured to take a quarter more on the wire than their rows, pieces of this size a
// thirtieth.
const pieceBytes = 1 << 17

// Rows implements blocks.Source for the tickets of this group.
func (m *Member) Rows(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	if m.knows(t) && t.Stage == m.o.Name+relayStage {
		return m.relayTo(ctx, t, send)
	}
	if m.knows(t) && m.isRead(t) {
		return m.sendRead(ctx, t, send)
	}
	if w, ok := m.swapsWith(t); ok {
		return m.sendSwapped(ctx, t, w, send)
	}
	x, err := m.wait(ctx, t)
	if err != nil {
		return err
	}
	end, size := t.Row+t.Rows, int64(t.RowBytes())
	switch {
	case t.Row < x.first || end > x.last:
		return fmt.Errorf("this worker has rows %d to %d: %w", x.first, x.last, blocks.ErrNotHeld)
	case t.Columns != x.format.Columns || t.Precision != x.format.Precision:
		return fmt.Errorf("this worker has rows of %d columns of %s: %w", x.format.Columns, x.format.Precision, blocks.ErrNotHeld)
	}
	piece := max(pieceBytes/(size*group.PageRows), 1) * group.PageRows
	piece = min(piece, (t.Rows/group.PageRows+2)*group.PageRows)
	page := direct.AlignedBytes(int(piece * size))
	for at := t.Row; at < end; {
		lo := at - (at-x.first)%group.PageRows
		hi := min(lo+piece, x.last)
		if err := m.copy(x, page, lo, hi); err != nil {
			return err
		}
		to := min(hi, end)
		if err := send(at, page[(at-lo)*size:(to-lo)*size]); err != nil {
			return err
		}
		at = to
	}
	m.change(func() { x.given++ })
	return nil
}

// knows reports whether a ticket is of this group.
func (m *Member) knows(t blocks.Ticket) bool {
	return t.Plan == m.o.Plan && (slices.Contains([]control.Stage{m.o.Name, m.o.Name + valuesStage, m.o.Name + relayStage},
		t.Stage) || m.isRead(t) || m.isSwapped(t))
}

// isRead reports whether a ticket is for the rows that a worker reads.
func (m *Member) isRead(t blocks.Ticket) bool {
	return strings.HasPrefix(string(t.Stage), string(m.o.Name)+readStage)
}

// wait returns what a ticket asks for once this worker has exposed it.
func (m *Member) wait(ctx context.Context, t blocks.Ticket) (*exposed, error) {
	s := &m.rows
	switch {
	case !m.knows(t):
		return nil, blocks.ErrNotHeld
	case t.Stage == m.o.Name+valuesStage:
		s = &m.values
	}
	for {
		m.mu.RLock()
		ended, changed := m.ended, m.changed
		x, err := s.get(number(t))
		m.mu.RUnlock()
		if ended != nil {
			return nil, ended
		}
		if x != nil || err != nil {
			return x, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// copy reads rows, unless they were withdrawn.
func (m *Member) copy(x *exposed, page []byte, lo, hi int64) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.gone(x); err != nil {
		return err
	}
	return x.read(page, lo, hi-lo)
}

// gone returns an error if the member is closed, or if what it exposed was withdrawn. The caller holds the lock.
func (m *Member) gone(x *exposed) error {
	if m.ended != nil {
		return m.ended
	}
	if !slices.Contains(m.rows.held[:], x) && !slices.Contains(m.values.held[:], x) {
		return blocks.ErrPast
	}
	return nil
}

// Fetch implements group.Group. It asks all workers that have some of the rows at the
// same time.
func (m *Member) Fetch(ctx context.Context, f group.Format, lo, hi int64, into []byte) error {
	number := m.rows.next - 1 // only the engine that calls Fetch changes it
	size := int64(len(into)) / (hi - lo)
	if m.relays {
		if err := m.clear(ctx, into); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	for owner := range m.o.Peers {
		from, to := max(lo, m.o.Borders[owner]), min(hi, m.o.Borders[owner+1])
		if from >= to {
			continue
		}
		part := into[(from-lo)*size : (to-lo)*size]
		if m.own != nil && !m.relays {
			g.Go(func() error { return m.fetchRead(ctx, f, number, owner, from, to, part) })
			continue
		}
		w, suffix := m.source(owner)
		x := m.relay(f, number, owner, from, to, part, into)
		g.Go(func() error {
			return m.fetch(ctx, w, m.ticket(f, m.o.Name+control.Stage(suffix), number, from, to), part, func(have int64) {
				if x != nil {
					m.change(func() { x.have = have })
				}
			})
		})
	}
	return g.Wait()
}

// fetch reads from worker w what a ticket names, and tells up to which row it has come.
func (m *Member) fetch(ctx context.Context, w int, t blocks.Ticket, to []byte, come func(row int64)) error {
	size := int64(t.RowBytes())
	if err := m.o.Peers[w].Fetch(ctx, t, func(first int64, rows []byte) error {
		copy(to[(first-t.Row)*size:], rows)
		come(first + int64(len(rows))/size)
		return nil
	}); err != nil {
		return fmt.Errorf("rows of worker %d: %w", w, err)
	}
	return nil
}

// expose lets other workers read values, which must not change any more.
func (m *Member) expose(values []float64) (number int) {
	raw := mem.AsBytes(values)
	x := &exposed{last: int64(len(values)), format: valueFormat}
	x.read = func(page []byte, row, n int64) error {
		copy(page, raw[8*row:8*(row+n)])
		return nil
	}
	m.change(func() { number = m.values.put(x) })
	return number
}

// read reads the values that worker w has exposed under a number.
func (m *Member) read(ctx context.Context, w, number int, to []float64) error {
	t := m.ticket(valueFormat, m.o.Name+valuesStage, number, 0, int64(len(to)))
	return m.fetch(ctx, w, t, mem.AsBytes(to), func(int64) {})
}

// AllGather implements group.Group.
func (m *Member) AllGather(ctx context.Context, values []float64) ([][]float64, error) {
	values = slices.Clone(values)
	number := m.expose(values)
	all := make([][]float64, m.Size())
	g, ctx := errgroup.WithContext(ctx)
	for w := range all {
		if w == m.o.Self {
			all[w] = values
			continue
		}
		all[w] = make([]float64, len(values))
		g.Go(func() error { return m.read(ctx, w, number, all[w]) })
	}
	return all, g.Wait()
}

// OrderedSum implements group.Group: each worker adds to the values of the worker
// before it, and all read those of the last one.
func (m *Member) OrderedSum(ctx context.Context, values []float64, add func() error) error {
	number, last := m.values.next, m.Size()-1
	clear(values)
	if m.o.Self > 0 {
		if err := m.read(ctx, m.o.Self-1, number, values); err != nil {
			return err
		}
	}
	if err := add(); err != nil {
		return err
	}
	m.expose(values)
	defer m.change(func() { m.values.held[number%2] = nil })
	if m.o.Self < last {
		if err := m.read(ctx, last, number, values); err != nil {
			return err
		}
	}
	return group.Barrier(ctx, m) // no worker reads the values any more
}
