package depth

import (
	"testing"

	"ndls/plan"
)

// TestProbesFitTheGraph: how many columns a sketch has where the plan leaves that open.
func TestProbesFitTheGraph(t *testing.T) {
	for _, c := range []struct {
		name         string
		mode         string
		asked        int
		nodes, edges int64
		features     int
		want         string
		probes       int
		directions   int
	}{
		{"as asked", "influence-sketch", 5, 111_059_956, 1_615_685_872, 128, "influence-sketch", 5, 0},
		{"karate", "influence-sketch", 0, 34, 78, 0, "influence-exact", 0, 0},
		{"karate as asked", "influence-sketch", 64, 34, 78, 0, "influence-sketch", 64, 0},
		{"cora", "influence-sketch", 0, 2708, 5278, 1433, "influence-sketch", 128, 128},
		{"cora's features", "feature-sketch", 0, 2708, 5278, 1433, "feature-sketch", 1024, 0},
		{"few features", "feature-sketch", 0, 2708, 5278, 100, "feature", 0, 0},
		{"pubmed", "influence-sketch", 0, 19717, 44324, 500, "influence-sketch", 128, 128},
		{"facebook", "influence-sketch", 0, 22470, 170823, 128, "influence-sketch", 64, 64},
		{"just medium", "influence-sketch", 0, 1, manyEdges/2 - 1, 0, "influence-exact", 0, 0},
		{"medium", "influence-sketch", 0, 1001, manyEdges/2 - 501, 0, "influence-sketch", 64, 0},
		{"large", "influence-sketch", 0, 1000, manyEdges/2 - 500, 0, "influence-sketch", 32, 0},
		{"papers", "influence-sketch", 0, 111_059_956, 1_615_685_872, 128, "influence-sketch", 32, 0},
		{"all probes are the features", "feature", 0, 2708, 5278, 1433, "feature", 0, 0},
		{"the definition", "influence-exact", 0, 2708, 5278, 1433, "influence-exact", 0, 0},
	} {
		o := sized(plan.LSIOptions{Mode: c.mode, Probes: c.asked}, c.nodes, c.edges, c.features)
		if o.Mode != c.want || o.Probes != c.probes || o.Directions != c.directions {
			t.Errorf("%s: %s with %d probes and %d directions, want %s with %d and %d", c.name, o.Mode, o.Probes, o.Directions, c.want, c.probes, c.directions)
		}
	}
}
