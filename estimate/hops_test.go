package estimate

import (
	"math"
	"testing"

	"ndls/plan"
	"ndls/smooth"
)

// Of papers100m: with tails=0, as it was run: scales with nodes, directed edges, and the largest K.
var (
	papers64 = Counts{Nodes: 1_735_312, Edges: 48_550_000 / 2, FewHops: true}
	papers16 = Counts{Nodes: 6_941_247, Edges: 194_200_000 / 2, FewHops: true}
	papers4  = Counts{Nodes: 27_764_989, Edges: 776_700_000 / 2, FewHops: true}
)

func TestExpectedHops(t *testing.T) {
	lsi := plan.Default().LSI
	for _, test := range []struct {
		name   string
		counts Counts
		want   int
	}{{"1/64", papers64, 13}, {"1/16", papers16, 21}, {"1/4", papers4, 27}, {"1", Counts{Nodes: 111_059_956, FewHops: true}, 20}} {
		if got := test.counts.ExpectedHops(lsi); got != test.want {
			t.Errorf("papers100m:scale=%s: %d hops are expected, %d were needed", test.name, got, test.want)
		}
	}
	few := lsi
	if few.Kmax = 4; papers4.ExpectedHops(few) != 4 {
		t.Errorf("%d hops with --kmax 4", papers4.ExpectedHops(few))
	}
	looser, closer := lsi, lsi
	looser.Epsilon, closer.Epsilon = 0.1, 0.01
	if a, b, c := papers64.ExpectedHops(looser), papers64.ExpectedHops(lsi), papers64.ExpectedHops(closer); a >= b || b >= c {
		t.Errorf("%d, %d and %d hops with ε 0.1, 0.03 and 0.01", a, b, c)
	}
	if found := (Counts{Nodes: 1 << 20}).ExpectedHops(lsi); found != lsi.Kmax {
		t.Errorf("%d hops of a published graph", found)
	}
	for _, test := range []struct {
		name  string
		nodes int64
		want  float64
	}{{"validation nodes at 1/64", 1_957, 6}, {"validation nodes at 1/16", 7_829, 6}, {"labelled nodes at 1/16", 96_674, 7}, {"labelled nodes at 1/4", 386_696, 9}} {
		if got := lastHop(test.nodes, lsi.Epsilon); math.Abs(got-test.want) > 1.2 {
			t.Errorf("%s: %.1f hops are expected, %.0f were needed", test.name, got, test.want)
		}
	}
}

// TestRowsThatStandAreSpared plans what lsi has found: further hops, and passes that read few edges.
func TestRowsThatStandAreSpared(t *testing.T) {
	rule, err := smooth.NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	o := smooth.Options{Rule: rule, Tolerance: 0.001, Standing: 0.0015, Targets: smooth.AllTargets(papers64.Nodes)}
	s := Sheet{Counts: papers64, Plan: plan.Default()}
	if passes, moves := s.OnGraph().passesOf(o, 200); passes != 39 || moves != 0 {
		t.Errorf("%d passes, the last %d of rows that move, where nothing is known", passes, moves)
	}
	s.Plain, s.MovingShare = 14, 0.07
	passes, moves := s.OnGraph().passesOf(o, 200)
	if want := o.Passes(186); moves != want || passes != 14+want {
		t.Errorf("%d passes, the last %d of rows that move, not 14 and %d", passes, moves, want)
	}
	if spared := s.OnGraph().spared(o, 8, passes, moves); spared < 0.9*float64(8*moves)-4 || spared > float64(8*moves) {
		t.Errorf("%.1f passes of %d are spared", spared, 8*moves)
	}
}

// TestNeedless: measured are the edges into rows that runs left out of their last hops, in passes.
func TestNeedless(t *testing.T) {
	for _, test := range []struct {
		name     string
		counts   Counts
		targets  int64
		last     int
		measured float64
	}{
		{"all rows at 1/64", papers64, papers64.Nodes, 13, 5.81},
		{"all rows at 1/16", papers16, papers16.Nodes, 21, 6.79},
		{"labelled rows at 1/4", papers4, 386_696, 9, 5.50},
		{"validation rows at 1/64", papers64, 1_957, 6, 4.41},
		{"validation rows at 1/16", papers16, 7_829, 6, 3.87},
	} {
		s := Sheet{Counts: test.counts, Plan: plan.Default()}
		if got := s.needless(test.targets, test.last); math.Abs(got-test.measured) > 0.8 {
			t.Errorf("%s: %.2f of %d passes are expected to be needless, %.2f were", test.name, got, test.last, test.measured)
		}
	}
	// Where all targets count the last hop, nearly all rows are needed at once.
	s := Sheet{Counts: papers64, Plan: plan.Default()}
	if got := s.needless(papers64.Nodes, 3); got > 0.1 {
		t.Errorf("%.2f of 3 passes are needless where all nodes count three hops", got)
	}
}
