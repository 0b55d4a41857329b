package remote

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ndls/group"
	"ndls/internal/control/blocks"
	"ndls/internal/direct"
)

const (
	// relayStage follows the group's name in tickets for rows that the worker asked has fetched itself.
	relayStage = "/relayed"
	// relayPatience is the time that a worker waits for the next one to read rows before it asks
	// whether that one still works.
	relayPatience = time.Second
)

// relayed is rows [lo, hi) of another worker, in the order of all rows, that this worker has
// fetched for a hop and that the worker after it reads from here.
type relayed struct {
	number int // of the hop's rows
	format group.Format
	lo, hi int64
	rows   []byte
	have   int64 // rows before this one have arrived
	given  int64 // rows before this one have been read
	window *byte // where the window begins that the rows are a part of
}

// before is the worker before this one, and after the one after it: the workers are a ring.
func (m *Member) before() int { return (m.o.Self + m.Size() - 1) % m.Size() }
func (m *Member) after() int  { return (m.o.Self + 1) % m.Size() }

// source is the worker from which rows of an owner are fetched, and the stage of the ticket. Where
// rows are relayed that is the worker before this one, and each worker sends all rows but its
// successor's once.
func (m *Member) source(owner int) (worker int, suffix string) {
	if before := m.before(); m.relays && owner != before {
		return before, relayStage
	}
	return owner, ""
}

// relay announces that a part of a window is about to be fetched, for the worker after this one,
// unless that one is its owner.
func (m *Member) relay(f group.Format, number, owner int, lo, hi int64, rows, window []byte) *relayed {
	if !m.relays || owner == m.after() {
		return nil
	}
	x := &relayed{number: number, format: f, lo: lo, hi: hi, rows: rows, have: lo, given: lo, window: &window[0]}
	m.change(func() { m.relayed = append(m.relayed, x) })
	return x
}

// clear waits until the worker after this one has read what was in the window before.
func (m *Member) clear(ctx context.Context, window []byte) error {
	watching := time.NewTimer(relayPatience)
	defer watching.Stop()
	lost := make(chan error, 1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		m.mu.RLock()
		changed, ended := m.changed, m.ended
		waits := slices.ContainsFunc(m.relayed, func(x *relayed) bool { return x.window == &window[0] && x.given < x.hi })
		m.mu.RUnlock()
		switch {
		case ended != nil:
			return ended
		case !waits:
			m.change(func() {
				m.relayed = slices.DeleteFunc(m.relayed, func(x *relayed) bool { return x.window == &window[0] })
			})
			return nil
		}
		select {
		case <-changed:
		case <-watching.C:
			// Its values of this hop come once it has read all rows, or the reason why it does not.
			go func() {
				var first [1]float64
				lost <- m.read(ctx, m.after(), m.values.next, first[:])
			}()
		case err := <-lost:
			if err != nil {
				return fmt.Errorf("rows for worker %d: %w", m.after(), err)
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// relayTo answers a request of the worker after this one.
func (m *Member) relayTo(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	size := int64(t.RowBytes())
	piece := max(pieceBytes/size, 1)
	page := direct.AlignedBytes(int(min(piece, t.Rows) * size))
	for at, end := t.Row, t.Row+t.Rows; at < end; {
		x, err := m.arrived(ctx, t, at)
		if err != nil {
			return err
		}
		m.mu.RLock()
		to := min(at+piece, x.have, end)
		if err = m.ended; err == nil {
			copy(page, x.rows[(at-x.lo)*size:(to-x.lo)*size])
		}
		m.mu.RUnlock()
		if err == nil {
			err = send(at, page[:(to-at)*size])
		}
		if err != nil {
			return err
		}
		m.change(func() { x.given = max(x.given, to) })
		at = to
	}
	return nil
}

// arrived waits until a row is there that this worker relays.
func (m *Member) arrived(ctx context.Context, t blocks.Ticket, row int64) (*relayed, error) {
	for {
		m.mu.RLock()
		changed, err := m.changed, m.ended
		if now := m.rows.next - 1; err == nil && number(t) < now {
			err = blocks.ErrPast
		}
		for _, x := range m.relayed {
			if err != nil || x.number != number(t) || row < x.lo || row >= x.hi {
				continue
			}
			switch {
			case x.format.Columns != t.Columns || x.format.Precision != t.Precision:
				err = fmt.Errorf("this worker relays rows of %d columns of %s: %w", x.format.Columns, x.format.Precision, blocks.ErrNotHeld)
			case row < x.have:
				m.mu.RUnlock()
				return x, nil
			}
		}
		m.mu.RUnlock()
		if err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
