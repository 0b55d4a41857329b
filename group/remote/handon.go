package remote

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/mem"
)

const (
	// sumStage follows the group's name in tickets for sums to which the worker asked has added,
	// resultStage in those for what all workers have added to.
	sumStage    = "/handed"
	resultStage = "/result"
)

// handFormat is that of values which are handed on: rows of one.
var handFormat = group.Format{Columns: 1, Precision: "float32"}

// handed is values that go from worker to worker. Those before come are sums of the worker before
// this one, those before sums have what this worker adds, and those before whole are results.
type handed struct {
	number            int
	values            []float32
	come, sums, whole int
}

// HandOn implements group.Group. Each worker fetches the sums of the worker before it as they
// arise. Results go from the last worker to two others, and from each of these to two more.
//
// A worker overwrites values with results that it sends to the next worker as sums as well: a part
// has its result once the next worker has had its sum. And it overwrites them in the call after
// the next, which no worker reaches before all have the results of this one.
func (m *Member) HandOn(ctx context.Context, values []float32, ends []int, add, done func(part int)) error {
	x := &handed{values: values}
	m.change(func() {
		x.number = m.handings
		m.handed[x.number%2] = x
		m.handings++
	})
	self, last := m.o.Self, m.Size()-1
	g, ctx := errgroup.WithContext(ctx)
	if self > 0 {
		g.Go(func() error { return m.receive(ctx, x, self-1, sumStage, &x.come) })
	}
	if self < last {
		g.Go(func() error { return m.receive(ctx, x, last-(last-self-1)/2, resultStage, &x.whole) })
	}
	g.Go(func() error {
		from := 0
		for i, end := range ends {
			if self == 0 {
				clear(values[from:end])
			} else if err := m.await(ctx, &x.come, end); err != nil {
				return err
			}
			add(i)
			m.change(func() {
				if x.sums = end; self == last {
					x.whole = end
				}
			})
			from = end
		}
		for i, end := range ends {
			if err := m.await(ctx, &x.whole, end); err != nil {
				return err
			}
			done(i)
		}
		return nil
	})
	return g.Wait()
}

// receive reads what worker w hands on, and counts what has arrived.
func (m *Member) receive(ctx context.Context, x *handed, w int, stage control.Stage, arrived *int) error {
	to := mem.AsBytes(x.values)
	if err := m.o.Peers[w].Fetch(ctx, m.ticket(handFormat, m.o.Name+stage, x.number, 0, int64(len(x.values))), func(first int64, rows []byte) error {
		copy(to[4*first:], rows)
		m.change(func() { *arrived = int(first) + len(rows)/4 })
		return nil
	}); err != nil {
		return fmt.Errorf("sums of worker %d: %w", w, err)
	}
	return nil
}

// await waits until values before one are there.
func (m *Member) await(ctx context.Context, count *int, end int) error {
	for {
		m.mu.RLock()
		there, changed, ended := *count >= end, m.changed, m.ended
		m.mu.RUnlock()
		if ended != nil || there {
			return ended
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sendHanded answers a ticket for sums or results, as they arise.
func (m *Member) sendHanded(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	page := make([]byte, min(4*t.Rows, pieceBytes))
	for at, end := t.Row, t.Row+t.Rows; at < end; {
		n, err := m.copyHanded(ctx, t, at, page[:min(int64(len(page)), 4*(end-at))])
		if err == nil {
			err = send(at, page[:n])
		}
		if err != nil {
			return err
		}
		at += int64(n / 4)
	}
	return nil
}

// copyHanded waits until there are values from one on, and copies some of them.
func (m *Member) copyHanded(ctx context.Context, t blocks.Ticket, at int64, page []byte) (n int, err error) {
	for {
		m.mu.RLock()
		x, next, changed, err := m.handed[number(t)%2], m.handings, m.changed, m.ended
		switch {
		case err != nil || number(t) >= next:
		case x == nil || x.number != number(t):
			err = blocks.ErrPast
		case t.Row+t.Rows > int64(len(x.values)) || t.Columns != handFormat.Columns || t.Precision != handFormat.Precision:
			err = fmt.Errorf("this worker hands on %d values: %w", len(x.values), blocks.ErrNotHeld)
		default:
			have := x.sums
			if t.Stage == m.o.Name+resultStage {
				have = x.whole
			}
			n = copy(page, mem.AsBytes(x.values[min(at, int64(have)):have]))
		}
		m.mu.RUnlock()
		if err != nil || n > 0 {
			return n, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
