package train

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pool is the number of threads of one run.
type pool int

// patience is the time for which a thread looks for work before it sleeps. A step of a model has
// several sections of a few milliseconds or less, and a virtual machine that halts idle cores needs
// up to 0.4 ms to wake one.
const patience = time.Millisecond

// A threadPool holds the threads of one run: the caller, and helpers. Together they run one section
// of the work after the other. Between sections helpers wait.
type threadPool struct {
	threads int
	do      func(thread int) // the present section; nil ends the helpers
	section atomic.Uint32    // number of sections so far
	left    atomic.Int32     // helpers that work on the present one
	helpers []*waiter
	caller  *waiter
}

func newThreadPool(c pool) *threadPool { return &threadPool{threads: int(c), caller: newWaiter()} }

// each calls do once for each thread, concurrently.
func (c *threadPool) each(do func(thread int)) {
	if len(c.helpers) < c.threads-1 {
		c.begin()
	}
	c.start(do)
	do(0)
	c.caller.wait(c.threads, func() bool { return c.left.Load() == 0 })
}

// begin starts the helpers. The next section is their first.
func (c *threadPool) begin() {
	seen := c.section.Load()
	for t := 1; t < c.threads; t++ {
		w := newWaiter()
		c.helpers = append(c.helpers, w)
		go c.help(w, t, seen)
	}
}

// start lets the helpers begin a section.
func (c *threadPool) start(do func(thread int)) {
	c.do = do
	c.left.Store(int32(len(c.helpers)))
	c.section.Add(1)
	for _, w := range c.helpers {
		w.wake()
	}
}

// help runs the part of a thread in each section after the one with number seen.
func (c *threadPool) help(w *waiter, thread int, seen uint32) {
	for {
		w.wait(c.threads, func() bool { return c.section.Load() != seen })
		seen++
		if c.do == nil {
			return
		}
		c.do(thread)
		if c.left.Add(-1) == 0 {
			c.caller.wake()
		}
	}
}

// free ends the helpers. A nil threadPool has none.
func (c *threadPool) free() {
	if c != nil {
		c.start(nil)
	}
}

// share calls do for numbers below n, each once. A thread that has finished one takes the next.
func (c *threadPool) share(n int, do func(i int)) {
	var next atomic.Int64
	c.each(func(int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	})
}

// takenRows is the number of rows that a thread takes at a time: whole tiles of every kernel.
const takenRows = 24

// rows calls do for rows [lo, hi), some at a time, until all n are done. A thread that has finished
// some takes the next.
func (c *threadPool) rows(n int, do func(thread, lo, hi int)) {
	var next atomic.Int64
	c.each(func(thread int) {
		for lo := int(next.Add(takenRows)) - takenRows; lo < n; lo = int(next.Add(takenRows)) - takenRows {
			do(thread, lo, min(lo+takenRows, n))
		}
	})
}

// A waiter waits for another thread, which wakes it.
type waiter struct {
	asleep atomic.Bool
	woken  chan struct{}
}

func newWaiter() *waiter { return &waiter{woken: make(chan struct{}, 1)} }

// wait returns after ready returns true. If the machine has a core for each of so many threads, the
// caller first calls ready again and again for the time [patience]. After that it sleeps until it
// is woken.
func (w *waiter) wait(threads int, ready func() bool) {
	for !ready() {
		if threads <= runtime.NumCPU() && looks(ready) {
			return
		}
		w.asleep.Store(true)
		if ready() && w.asleep.CompareAndSwap(true, false) {
			return
		}
		<-w.woken
	}
}

// looks calls ready until that returns true, for at most the time [patience]. It returns the last
// result of ready.
func looks(ready func() bool) bool {
	const together = 32
	for begin := time.Now(); time.Since(begin) < patience; runtime.Gosched() {
		for range together {
			if ready() {
				return true
			}
		}
	}
	return false
}

// wake wakes the waiter if it sleeps. The event for which it waits must have happened before.
func (w *waiter) wake() {
	if w.asleep.CompareAndSwap(true, false) {
		w.woken <- struct{}{}
	}
}

// units returns the number of units that n things fill, the last perhaps in part.
func units(n, unit int) int { return (n + unit - 1) / unit }
