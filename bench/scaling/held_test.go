package main

import (
	"math"
	"testing"
)

// TestSimulationHolds compares the simulation with real runs of one worker and more: it may be off
// by 15 %.
func TestSimulationHolds(t *testing.T) {
	list, err := predictions(measuredJSON)
	if err != nil {
		t.Fatal(err)
	}
	workers := map[int]bool{}
	for _, h := range list {
		workers[h.Workers] = true
		if math.Abs(h.off()) > 0.15 {
			t.Errorf("%d workers took %.1f s, the simulation says %.1f", h.Workers, h.Seconds, h.simulated)
		}
	}
	if !workers[1] || !workers[2] || !workers[4] {
		t.Errorf("runs of %v workers were measured", workers)
	}
}
