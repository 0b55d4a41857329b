package ndls

import (
	"errors"
	"math"
	"testing"
)

// TestPlanOfTheLargestGraph plans for the web graph of Common Crawl 2012, and for as many nodes
// as ids of 32 bits allow: no figure overflows, and what is more is refused.
func TestPlanOfTheLargestGraph(t *testing.T) {
	const gib = 1 << 30
	web := Counts{Nodes: 3_563_602_789, Edges: 128_000_000_000, Features: 128, Classes: 172, Hops: 20}
	full := web
	full.Nodes, full.Hops, full.Classes = math.MaxUint32, 200, 1000
	for name, counts := range map[string]Counts{"web": web, "full": full} {
		for _, parallel := range []string{"columns", "intervals", "grid", "auto"} {
			f, err := Plan(t.Context(), PlanConfig{Counts: counts, Resources: Resources{Memory: 256 * gib, Threads: 16}, Workers: 1000, Parallel: parallel})
			if err != nil {
				t.Errorf("%s, %s: %v", name, parallel, err)
				continue
			}
			for _, x := range append(f.Stages, f.Total) {
				for what, n := range map[string]int64{
					"memory": x.PeakBytes, "least memory": x.LeastBytes, "disk": x.PeakDiskBytes, "read": x.BytesRead, "written": x.BytesWritten, "network": x.NetworkBytes, "passes": int64(x.Passes),
				} {
					if n < 0 {
						t.Errorf("%s, %s, %s: %s %d", name, parallel, x.Stage, what, n)
					}
				}
				if !(x.Seconds >= 0) || math.IsInf(x.Seconds, 0) {
					t.Errorf("%s, %s, %s: %v s", name, parallel, x.Stage, x.Seconds)
				}
			}
			// The hop streams alone are three bytes for each of the two directions of an edge.
			if least := 6 * counts.Edges; f.Total.PeakDiskBytes < least || f.Total.BytesRead < least*int64(min(counts.Hops, 20)) {
				t.Errorf("%s, %s: %+v is less than the edges take", name, parallel, f.Total)
			}
		}
	}
	for _, counts := range []Counts{{Nodes: 1 << 32, Edges: 1e9}, {Nodes: 10_000_000_000, Edges: 1e9}, {Nodes: 1e9, Edges: math.MaxInt64}} {
		if _, err := Plan(t.Context(), PlanConfig{Counts: counts}); !errors.Is(err, ErrOption) {
			t.Errorf("%d nodes and %d edges: %v", counts.Nodes, counts.Edges, err)
		}
	}
}
