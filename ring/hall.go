package ring

import (
	"context"
	"fmt"
	"sync"
	"time"

	"ndls/internal/control/blocks"
)

// hallPatience bounds how long a request waits for a gang to which this worker has not
// come yet: others may know of it earlier, and it may be that it never comes.
const hallPatience = time.Minute

// Hall is the blocks.Source of a process that has its place in one ring after the
// other. The zero value is one without a ring.
type Hall struct {
	mu      sync.Mutex
	now     *Ring
	entered chan struct{} // closed when the next ring is there
}

// Enter gives out the rows of r from now on, and no others.
func (h *Hall) Enter(r *Ring) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = r
	if h.entered != nil {
		close(h.entered)
		h.entered = nil
	}
}

// place is the present ring, and what is closed when there is another.
func (h *Hall) place() (*Ring, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.entered == nil {
		h.entered = make(chan struct{})
	}
	return h.now, h.entered
}

// Rows implements blocks.Source.
func (h *Hall) Rows(ctx context.Context, t blocks.Ticket, send func(first int64, rows []byte) error) error {
	late := time.NewTimer(hallPatience)
	defer late.Stop()
	for {
		r, entered := h.place()
		if r != nil && r.knows(t) {
			return r.Rows(ctx, t, send)
		}
		select {
		case <-entered:
		case <-late.C:
			return fmt.Errorf("ring: this worker is not in %s", t.Stage)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
