// Package testkit has what test programs of several packages share.
package testkit

import (
	"os"
	"runtime/debug"
	"testing"

	"ndls/internal/mem"
)

// GrowHeap lifts the limit that runs set for the heap of their process, and makes the collector
// start less often. TestMain calls it where tests run several jobs at a time, or hold what they
// compare with on the heap: otherwise two thirds of their time go to collecting garbage.
func GrowHeap() {
	mem.LimitHeap(false)
	debug.SetGCPercent(400)
}

// Slow skips a test with -short, and says what takes long, unless NDLS_SLOW is set: CI runs these
// tests, too, and draws few cases in all others.
func Slow(t testing.TB, why string) {
	t.Helper()
	if testing.Short() && os.Getenv("NDLS_SLOW") == "" {
		t.Skip("-short: " + why)
	}
}

// NotUnderRace skips a test under the race detector, where it takes ten times as long, and says
// which tests start the same goroutines.
func NotUnderRace(t testing.TB, others string) {
	t.Helper()
	if underRace {
		t.Skip("under the race detector, " + others)
	}
}
