package mem

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// heap limits the Go heap of the process while a budget is open.
var heap heapLimit

// A heapLimit sets the soft limit of the garbage collector to what is on the heap when the
// first budget is opened, plus three quarters of [RuntimeShare]. So a program with a large
// heap of its own does not collect garbage all the time while it uses package ndls. When the
// last budget is closed, the limit that the program had holds again.
type heapLimit struct {
	mu     sync.Mutex
	off    bool  // budgets do not limit the heap
	open   int   // how many budgets are open
	before int64 // the soft limit of the program, in bytes
	own    int64 // the soft limit while budgets are open, without extra
	extra  int64 // what budgets have reserved for the heap beside the share
}

func (h *heapLimit) limit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open++; h.open == 1 && !h.off {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		h.own = int64(sample[0].Value.Uint64()) + RuntimeShare*3/4
		h.before = debug.SetMemoryLimit(h.own + h.extra)
	}
}

// raise adds n bytes to the limit.
func (h *heapLimit) raise(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.extra += n; h.open > 0 && !h.off {
		debug.SetMemoryLimit(h.own + h.extra)
	}
}

func (h *heapLimit) unlimit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open--; h.open == 0 && !h.off {
		debug.SetMemoryLimit(h.before)
	}
}

// LimitHeap sets whether budgets that are opened from now on limit the heap of the process, which
// they do at first. A test program that runs several jobs at a time, or holds what it compares
// with on its heap, turns that off: otherwise it collects garbage all the time. No budget may be
// open.
func LimitHeap(on bool) {
	heap.mu.Lock()
	defer heap.mu.Unlock()
	heap.off = !on
}
