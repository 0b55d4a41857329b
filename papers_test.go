package ndls_test

import (
	"path/filepath"
	"testing"

	"ndls"
)

// TestPapersHops holds how K of papers100m: is spread at ε 0.05: most rows stand after a few hops,
// and as many need more than 40 as of facebook (5 %) or Cora (15 %); with mix=slow half of the
// rows stand as late as those of Cora, whose median is 17.
func TestPapersHops(t *testing.T) {
	type bounds struct{ least, most float64 }
	for _, c := range []struct {
		uri    string
		median [2]int64
		above  map[int64]bounds // the share of the nodes with a larger K
	}{
		{"papers100m:scale=1/1024,tails=0", [2]int64{2, 4}, map[int64]bounds{8: {0, 0.002}, 16: {0, 0.001}}},
		{"papers100m:scale=1/1024", [2]int64{2, 4}, map[int64]bounds{16: {0.10, 0.16}, 40: {0.05, 0.09}, 64: {0.02, 0.05}, 199: {0.001, 0.01}}},
		{"papers100m:scale=1/1024,mix=slow", [2]int64{14, 20}, map[int64]bounds{4: {0.85, 1}, 16: {0.45, 0.6}, 40: {0.09, 0.16}, 64: {0.03, 0.09}}},
	} {
		run := quick(filepath.Join(t.TempDir(), "run"))
		run.Dataset = c.uri
		run.Options = func(o *ndls.Options) {
			o.Partition.Features = "none"
			o.LSI.Epsilon, o.LSI.Probes, o.LSI.Kmax = 0.05, 16, 200
		}
		d, err := ndls.Run(t.Context(), run, ndls.StagePartition, ndls.StageLSI)
		if err != nil {
			t.Fatal(err)
		}
		report, err := d.Report(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		nodes := float64(report.Dataset.Nodes)
		above := func(k int64) (share float64) {
			for _, h := range report.LSI.Histogram {
				if h[0] > k {
					share += float64(h[1]) / nodes
				}
			}
			return share
		}
		if above(c.median[0]-1) < 0.5 || above(c.median[1]) > 0.5 {
			t.Errorf("%s: K is above %d for %.3f of the nodes, and above %d for %.3f", c.uri, c.median[0]-1, above(c.median[0]-1), c.median[1], above(c.median[1]))
		}
		for k, want := range c.above {
			if got := above(k); got < want.least || got > want.most {
				t.Errorf("%s: K is above %d for %.4f of the nodes, not for %g to %g", c.uri, k, got, want.least, want.most)
			}
		}
	}
}
