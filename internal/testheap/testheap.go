// Package testheap lets the heap of a test program grow.
package testheap

import (
	"runtime/debug"

	"ndls/internal/mem"
)

// Grow lifts the limit that runs set for the heap of their process, and makes the collector start
// less often. TestMain calls it where tests run several jobs at a time, or hold what they compare
// with on the heap: otherwise two thirds of their time go to collecting garbage.
func Grow() {
	mem.LimitHeap(false)
	debug.SetGCPercent(400)
}
