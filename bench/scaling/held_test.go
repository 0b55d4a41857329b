package main

import (
	"fmt"
	"math"
	"testing"
)

// TestSimulationHolds compares the simulation with real runs of one worker and more, which share columns, rows, or both: it
// may be off by 15 %, and by 10 % in the bytes of rows that they sent.
func TestSimulationHolds(t *testing.T) {
	list, err := predictions(measuredJSON)
	if err != nil {
		t.Fatal(err)
	}
	runs := map[string]bool{}
	for _, h := range list {
		runs[fmt.Sprint(h.Workers, " ", h.Kind)] = true
		if math.Abs(h.off()) > 0.15 {
			t.Errorf("%d workers that share %s, cables of %s Mb/s: %.1f s, the simulation says %.1f", h.Workers, h.Kind, cables(h.Bits), h.Seconds, h.simulated)
		}
		if sent := h.sent(); math.Abs(h.moved-sent) > 0.1*sent {
			t.Errorf("%d workers that share %s sent %.0f bytes, the simulation says %.0f", h.Workers, h.Kind, sent, h.moved)
		}
	}
	for _, run := range []string{"1 columns", "2 columns", "4 columns", "2 rows", "4 rows", "4 both"} {
		if !runs[run] {
			t.Errorf("no run of %s was measured", run)
		}
	}
}
