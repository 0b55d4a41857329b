package estimate

import (
	"math"
	"testing"

	"ndls/internal/control"
	"ndls/plan"
	"ndls/smooth"
)

// TestRowsThatStandAreSpared plans what lsi has found: further hops, and passes that read few edges.
func TestRowsThatStandAreSpared(t *testing.T) {
	rule, err := smooth.NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := smooth.Options{Rule: rule, Tolerance: 0.001, Standing: 0.0015, Targets: smooth.AllTargets(1 << 20)}
	s := Sheet{Counts: Counts{Nodes: 1 << 20, Edges: 1 << 24}, Plan: plan.Default()}
	if passes, moves := s.OnGraph().passesOf(o, 200); passes != 39 || moves != 0 {
		t.Errorf("%d passes, the last %d of rows that move, where nothing is known", passes, moves)
	}
	s.MovingShare = 0.07
	passes, moves := s.OnGraph().passesOf(o, 200)
	if want := o.Passes(200 - smooth.PlainHops); moves != want || passes != smooth.PlainHops+want {
		t.Errorf("%d passes, the last %d of rows that move, not %d and %d", passes, moves, smooth.PlainHops, want)
	}
	if spared := s.OnGraph().spared(o, 8, passes, moves); spared < 0.9*float64(8*moves)-4 || spared > float64(8*moves) {
		t.Errorf("%.1f passes of %d are spared", spared, 8*moves)
	}
}

// TestNeedless: measured are the edges into rows that runs left out of their last hops, in passes.
func TestNeedless(t *testing.T) {
	for _, test := range []struct {
		nodes, edges int64
		last         int
		measured     float64
	}{
		{1_735_312, 24_275_000, 13, 5.81}, {6_941_247, 97_100_000, 21, 6.79}, {27_764_989, 388_350_000, 9, 5.50},
	} {
		s := Sheet{Counts: Counts{Nodes: test.nodes, Edges: test.edges}}
		if got := s.OnGraph().needless(test.last); math.Abs(got-test.measured) > 0.9 {
			t.Errorf("%d nodes: %.2f of %d passes are expected to be needless, %.2f were", test.nodes, got, test.last, test.measured)
		}
	}
}

// TestSpeeds: work takes the time that the measured speeds say, and the usual ones stand for what was not measured.
func TestSpeeds(t *testing.T) {
	speeds := control.Speeds{Edges: 1e8, Near: 4e8, Flops: 1e9, Values: 1e6, Write: 1e8, Read: 2e8}
	s := newSheet(Counts{Nodes: 1, Edges: 1}, plan.Default(), control.Resources{Threads: 2, Speeds: speeds})
	for bytes, want := range map[int64]float64{0: 4e8, control.NearBytes: 4e8, 32 << 20: 4e8 * math.Exp2(-8./7), control.FarBytes: 1e8, 1 << 40: 1e8} {
		if got := s.edgeRate(bytes); math.Abs(got-want) > 1 {
			t.Errorf("%.0f edges a second with %d bytes of rows, want %.0f", got, bytes, want)
		}
	}
	s.Sorts(2e6)
	s.Moves(2e6 * movedValues)
	s.Multiplies(2e9)
	if s.seconds != 3 {
		t.Errorf("three seconds of work take %v", s.seconds)
	}
	speeds.Flops = 0
	if got := withUsual(speeds); got.Flops != usual.Flops || got.Edges != speeds.Edges {
		t.Errorf("%+v of %+v", got, speeds)
	}
}
