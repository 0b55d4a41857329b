package remote

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ndls/internal/control/blocks"
)

// latePatience bounds how long a request waits for a group that this worker has not
// joined yet: other workers may have joined earlier, and this worker may never do so.
const latePatience = time.Minute

// Registry is the blocks.Source of a worker that is in one group after the other. Its
// zero value is in none.
type Registry struct {
	mu      sync.Mutex
	now     *Member
	entered chan struct{} // closed when Enter is called
}

// Enter gives out the rows of m from now on, and no others.
func (r *Registry) Enter(m *Member) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = m
	if r.entered != nil {
		close(r.entered)
		r.entered = nil
	}
}

// current is the present member, and what is closed when there is another.
func (r *Registry) current() (*Member, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.entered == nil {
		r.entered = make(chan struct{})
	}
	return r.now, r.entered
}

// Rows implements blocks.Source.
func (r *Registry) Rows(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	if t.Plan == ratePlan && t.Stage == rateStage {
		return sendZeros(ctx, t, send)
	}
	late := time.NewTimer(latePatience)
	defer late.Stop()
	for {
		m, entered := r.current()
		if m != nil && m.knows(t) {
			return m.Rows(ctx, t, send)
		}
		select {
		case <-entered:
		case <-late.C:
			return fmt.Errorf("this worker did not join the group %s within %v", t.Stage, latePatience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
