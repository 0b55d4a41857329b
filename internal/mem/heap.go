package mem

import (
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// heap is the limit of the Go heap while a budget is open.
var heap heapLimit

// heapLimit sets the soft limit of the garbage collector to three quarters of
// [RuntimeShare] above what was on the heap before: a program that has much on its heap
// and uses package ndls keeps that.
type heapLimit struct {
	mu     sync.Mutex
	open   int   // budgets
	before int64 // the limit before the first of them
}

func (h *heapLimit) limit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open++; h.open == 1 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		h.before = debug.SetMemoryLimit(int64(sample[0].Value.Uint64()) + RuntimeShare*3/4)
	}
}

func (h *heapLimit) unlimit() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open--; h.open == 0 {
		debug.SetMemoryLimit(h.before)
	}
}
