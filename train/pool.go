package train

import (
	"runtime"
	"sync/atomic"
	"time"
)

// pool is the number of threads of one run.
type pool int

// patience is how long a thread looks for work before it sleeps. A step of a model has several sections of a few
// milliseconds or less, and a virtual machine that halts idle cores takes up to 0.4 ms to wake one.
const patience = time.Millisecond

// A threadPool is the threads of one run: the caller, and helpers. Together they do one section of the work after the other.
// Helpers wait for the next section meanwhile.
type threadPool struct {
	threads int
	do      func(thread int) // the present section; nil ends the helpers
	section atomic.Uint32    // how many there were
	left    atomic.Int32     // helpers that are at work on the present one
	helpers []*waiter
	caller  *waiter
}

func newThreadPool(c pool) *threadPool { return &threadPool{threads: int(c), caller: newWaiter()} }

// each calls do once for each thread, side by side.
func (c *threadPool) each(do func(thread int)) {
	if len(c.helpers) < c.threads-1 {
		c.begin()
	}
	c.start(do)
	do(0)
	c.caller.wait(c.threads, func() bool { return c.left.Load() == 0 })
}

// begin starts the helpers. The next section is their first one.
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

// help does the part of a thread in each section that comes after the one with number seen.
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

// share calls do for numbers below n, each once; a thread that is done takes the next.
func (c *threadPool) share(n int, do func(i int)) {
	var next atomic.Int64
	c.each(func(int) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			do(i)
		}
	})
}

// takenRows is how many rows a thread takes at a time: whole tiles of every kernel.
const takenRows = 24

// rows calls do for rows [lo, hi), some at a time, until all n are done; a thread that is
// done takes the next.
func (c *threadPool) rows(n int, do func(thread, lo, hi int)) {
	var next atomic.Int64
	c.each(func(thread int) {
		for lo := int(next.Add(takenRows)) - takenRows; lo < n; lo = int(next.Add(takenRows)) - takenRows {
			do(thread, lo, min(lo+takenRows, n))
		}
	})
}

// A waiter waits for what another thread does, which wakes it then.
type waiter struct {
	asleep atomic.Bool
	woken  chan struct{}
}

func newWaiter() *waiter { return &waiter{woken: make(chan struct{}, 1)} }

// wait returns once ready returns true. Where the machine has a core for each of so many threads, the caller first looks again
// and again, as long as [patience] says. After that it sleeps until it is woken.
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

// looks calls ready until that returns true, as long as [patience] says. It returns whether ready did.
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

// wake wakes the waiter if it sleeps. What it waits for must have happened before.
func (w *waiter) wake() {
	if w.asleep.CompareAndSwap(true, false) {
		w.woken <- struct{}{}
	}
}

// units is how many units n things fill, the last perhaps not quite.
func units(n, unit int) int { return (n + unit - 1) / unit }
