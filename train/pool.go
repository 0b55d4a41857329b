package train

import (
	"sync"
	"sync/atomic"
)

// pool is the threads of one run.
type pool int

// each calls do once for each thread, side by side.
func (c pool) each(do func(thread int)) {
	var group sync.WaitGroup
	for t := 1; t < int(c); t++ {
		group.Go(func() { do(t) })
	}
	do(0)
	group.Wait()
}

// share calls do for numbers below n, each once; a thread that is done takes the next.
func (c pool) share(n int, do func(i int)) {
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
func (c pool) rows(n int, do func(thread, lo, hi int)) {
	var next atomic.Int64
	c.each(func(thread int) {
		for lo := int(next.Add(takenRows)) - takenRows; lo < n; lo = int(next.Add(takenRows)) - takenRows {
			do(thread, lo, min(lo+takenRows, n))
		}
	})
}

// units is how many units n things fill, the last perhaps not quite.
func units(n, unit int) int { return (n + unit - 1) / unit }
