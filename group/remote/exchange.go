package remote

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/mem"
)

const (
	// swapStage follows the group's name in tickets for values that are swapped, and before the number of the worker that
	// asks.
	swapStage = "/swap/"
	// swapRows are the rows of such a ticket: as many as there may be. The worker that asks ends the answer.
	swapRows = 1 << 32
	// streamValues is the number of values of an answer after which a worker sends a new request,
	// which costs a delay.
	streamValues = 1 << 20
)

// swapFormat is the format of swapped values: rows of one value.
var swapFormat = group.Format{Columns: 1, Precision: "float32"}

// errEnough ends an answer, after which a worker asks anew.
var errEnough = errors.New("the answer has been long enough")

// swapped holds what this worker sends in a swap, and the places for what it receives, by worker.
type swapped struct {
	number       int
	mine, theirs [][][]float32
	missing      atomic.Int64  // workers from which not all has come yet
	come         chan struct{} // closed when nothing is missing
}

// arrived says that all has come from one more worker.
func (x *swapped) arrived() {
	if x.missing.Add(-1) == 0 {
		close(x.come)
	}
}

// Exchange implements group.Group. Each worker asks each other one once for all that it will swap with it. So what is swapped goes
// its way as soon as it is there, and takes one delay of the network.
//
// Where a worker has nothing for another one, one value stands for that. So two swaps are held at most: a worker that begins swap k+1 has
// received something of swap k from all others, which they send after they have received all of swap k−1.
func (m *Member) Exchange(ctx context.Context, do func(context.Context, group.Swap) error) error {
	g, ctx := errgroup.WithContext(ctx)
	receiving, enough := context.WithCancel(ctx)
	first := m.swaps
	for w := range m.o.Peers {
		if w == m.o.Self {
			continue
		}
		g.Go(func() error {
			r := &receiver{Member: m, worker: w, number: first}
			err := r.run(receiving)
			if receiving.Err() != nil && ctx.Err() == nil {
				return nil // this worker needs no more
			}
			return fmt.Errorf("values of worker %d: %w", w, err)
		})
	}
	g.Go(func() error {
		defer enough()
		return do(ctx, func(mine, theirs func(int) [][]float32) error { return m.swap(ctx, mine, theirs) })
	})
	return g.Wait()
}

// swap is group.Swap.
func (m *Member) swap(ctx context.Context, mine, theirs func(worker int) [][]float32) error {
	x := &swapped{come: make(chan struct{})}
	x.missing.Store(int64(m.Size() - 1))
	for w := range m.o.Peers {
		x.mine, x.theirs = append(x.mine, nil), append(x.theirs, nil)
		if w != m.o.Self {
			x.mine[w], x.theirs[w] = some(mine(w)), some(theirs(w))
		}
	}
	if m.Size() == 1 {
		return ctx.Err()
	}
	var ended error
	m.change(func() {
		x.number = m.swaps
		m.swapped[x.number%2] = x
		m.swaps++
		ended = m.ended
	})
	if ended != nil {
		return ended
	}
	select {
	case <-x.come:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// some are the values, or one where there are none.
func some(values [][]float32) [][]float32 {
	if size(values) == 0 {
		return [][]float32{make([]float32, 1)}
	}
	return values
}

// size is the number of values.
func size(values [][]float32) (n int64) {
	for _, v := range values {
		n += int64(len(v))
	}
	return n
}

// part is some of the values, those from one on, which follow each other in memory.
func part(values [][]float32, at int64) []float32 {
	for _, v := range values {
		if at < int64(len(v)) {
			return v[at:]
		}
		at -= int64(len(v))
	}
	return nil
}

// receiver puts what one worker sends where it belongs.
type receiver struct {
	*Member
	worker int
	number int   // of the swap whose values come next
	at     int64 // how many of them have come
}

// run receives until ctx ends.
func (r *receiver) run(ctx context.Context) error {
	for {
		received := int64(0)
		t := r.ticket(swapFormat, r.o.Name+swapStage+control.Stage(strconv.Itoa(r.o.Self)), r.number, 0, swapRows)
		err := r.o.Peers[r.worker].Fetch(ctx, t, func(_ int64, rows []byte) error {
			received += int64(len(rows) / 4)
			if err := r.put(ctx, rows); err != nil {
				return err
			}
			if received >= streamValues && r.at == 0 {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			return err
		}
	}
}

// put takes values that have come. It waits until this worker has a place for them.
func (r *receiver) put(ctx context.Context, rows []byte) error {
	for len(rows) > 0 {
		x, err := r.held(ctx, r.number)
		if err != nil {
			return err
		}
		n := copy(mem.AsBytes(part(x.theirs[r.worker], r.at)), rows)
		rows = rows[n:]
		if r.at += int64(n / 4); r.at == size(x.theirs[r.worker]) {
			x.arrived()
			r.number, r.at = r.number+1, 0
		}
	}
	return nil
}

// held is the swap with a number, once this worker has begun it.
func (m *Member) held(ctx context.Context, number int) (*swapped, error) {
	for {
		m.mu.RLock()
		x, next, changed, err := m.swapped[number%2], m.swaps, m.changed, m.ended
		m.mu.RUnlock()
		switch {
		case err != nil:
			return nil, err
		case number < next && (x == nil || x.number != number):
			return nil, blocks.ErrPast
		case number < next:
			return x, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isSwapped reports whether a ticket is for values that are swapped.
func (m *Member) isSwapped(t blocks.Ticket) bool {
	return strings.HasPrefix(string(t.Stage), string(m.o.Name)+swapStage)
}

// swapsWith is the worker that asks with a ticket for values that are swapped.
func (m *Member) swapsWith(t blocks.Ticket) (worker int, ok bool) {
	_, name, _ := strings.Cut(string(t.Stage), string(m.o.Name)+swapStage)
	worker, err := strconv.Atoi(name)
	return worker, m.knows(t) && m.isSwapped(t) && err == nil && 0 <= worker && worker < m.Size() && worker != m.o.Self
}

// sendSwapped answers a ticket of a worker for what this one sends it from a swap on, until ctx ends.
func (m *Member) sendSwapped(ctx context.Context, t blocks.Ticket, worker int, send func(first int64, rows []byte) error) error {
	if t.Columns != swapFormat.Columns || t.Precision != swapFormat.Precision || t.Row != 0 || t.Rows != swapRows {
		return fmt.Errorf("values that are swapped are %d rows of one: %w", int64(swapRows), blocks.ErrNotHeld)
	}
	var page []byte
	row := int64(0)
	for swap := number(t); ; swap++ {
		x, err := m.held(ctx, swap)
		if err != nil {
			return err
		}
		left := size(x.mine[worker])
		for at := int64(0); at < left; {
			if want := min(4*(left-at), pieceBytes); int64(len(page)) < want {
				page = make([]byte, want)
			}
			n, err := m.copySwapped(x, worker, at, page)
			if err == nil {
				err = send(row, page[:n])
			}
			if err != nil {
				return err
			}
			at, row = at+int64(n/4), row+int64(n/4)
		}
	}
}

// copySwapped copies values from one on that go to a worker, as far as the page has space, unless they were withdrawn.
func (m *Member) copySwapped(x *swapped, worker int, at int64, page []byte) (n int, err error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.ended != nil {
		return 0, m.ended
	}
	if m.swapped[x.number%2] != x {
		return 0, blocks.ErrPast
	}
	for n < len(page) {
		some := mem.AsBytes(part(x.mine[worker], at+int64(n/4)))
		if len(some) == 0 {
			break
		}
		n += copy(page[n:], some)
	}
	return n, nil
}
