package features_test

import (
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// weigh gives the edges of the graph weights. Some come in both directions.
func (d *drawn) weigh(t *testing.T, spread float64) {
	t.Helper()
	d.graph = d.graph.RandomWeights(spread, 4)
	var text strings.Builder
	text.WriteString("src,dst,w\n")
	for i, list := range d.graph.Adj {
		for k, j := range list {
			if i < int(j) || k%2 == 0 {
				fmt.Fprintf(&text, "%d,%d,%.9g\n", i, j, d.graph.Weights[i][k])
			}
		}
	}
	edges := d.uri[len("edges:"):strings.IndexByte(d.uri, '?')]
	if err := os.WriteFile(edges, []byte(text.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	d.uri += "&weight=w"
}

// nafsRows are rows of nafs by the definition, in float64: with K hops of each node, unless k is
// nil.
func (d drawn) nafsRows(o *testgraph.Oracle, depth int, k map[int64]int) [][]float64 {
	n, width := len(d.graph.Adj), len(d.features[0])
	var x []float64
	for _, row := range d.features {
		x = append(x, row...)
	}
	limit, hops := o.Stationary(x, width), [][]float64{x}
	for range depth {
		hops = append(hops, o.Apply(hops[len(hops)-1], width))
	}
	rows := make([][]float64, n)
	for i := range rows {
		last, total := depth, 0.0
		if k != nil {
			last = min(last, k[int64(i)])
		}
		rows[i] = make([]float64, width)
		for _, h := range hops[:last+1] {
			square := 0.0
			for c := i * width; c < (i+1)*width; c++ {
				square += math.Pow(h[c]-limit[c], 2)
			}
			w := math.Exp(math.Sqrt(square))
			total += w
			for c := range width {
				rows[i][c] += w * h[i*width+c]
			}
		}
		for c := range rows[i] {
			rows[i][c] /= total
		}
	}
	return rows
}

// TestNAFSEqualsTheOracle compares rows of nafs with their definition over dense float64 hops and
// stationary rows, for all nodes and some, with weights, and with K hops of each node.
func TestNAFSEqualsTheOracle(t *testing.T) {
	for _, c := range []struct {
		name     string
		weighted bool
		change   func(*plan.Options)
	}{
		{"component", false, func(*plan.Options) {}},
		{"global", false, func(p *plan.Options) { p.LSI.Stationary, p.LSI.R = "global", 0.8 }},
		{"weights, some targets", true, func(p *plan.Options) { p.Smooth.Targets, p.LSI.R = plan.LabelledTargets, 0 }},
		{"by node, some targets", false, func(p *plan.Options) { p.Smooth.Depth, p.Smooth.Targets = plan.NodeDepth, plan.LabelledTargets }},
		{"weights, by node", true, func(p *plan.Options) { p.Smooth.Depth, p.LSI.R = plan.NodeDepth, 1 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := draw(t, 300, 21)
			opts := plan.Default()
			opts.Partition.Dataset, opts.Partition.Normalize = "edges:drawn", "none"
			if c.weighted {
				d.weigh(t, 10)
				opts.Partition.Dataset += "?weight=w"
			}
			opts.LSI.Mode, opts.LSI.Epsilon, opts.LSI.Kmax = "influence-exact", 0.2, 12
			opts.Smooth.Rule, opts.Smooth.Hops = "nafs", 4
			c.change(&opts)
			store := storagetest.NewMem()
			m := stagetest.On(t, d.uri)
			m.BlockColumns = 16
			stagetest.Run(t, store, opts, m, control.Partition, control.LSI, control.Smooth)
			var k map[int64]int
			if opts.Smooth.Depth == plan.NodeDepth {
				k = stagetest.K(t, store)
				if all := slices.Sorted(maps.Values(k)); all[0] >= 4 || all[len(all)-1] <= 4 {
					t.Fatalf("K from %d to %d does not show whether --hops bounds it", all[0], all[len(all)-1])
				}
			}
			want := d.nafsRows(testgraph.NewOracle(d.graph, opts.LSI.R, opts.LSI.Stationary == "component"), 4, k)
			got := stagetest.Rows(t, store, catalog.KindSmoothed)
			stored := 0
			for i, label := range d.label {
				if opts.Smooth.Targets == plan.LabelledTargets && label < 0 {
					continue
				}
				stored++
				for c, w := range want[i] {
					if math.Abs(float64(got[int64(i)][c])-w) > 1e-5 {
						t.Fatalf("node %d, column %d: %g, the definition says %g", i, c, got[int64(i)][c], w)
					}
				}
			}
			if len(got) != stored {
				t.Errorf("%d rows of %d", len(got), stored)
			}
			if hops := stagetest.Rows(t, store, catalog.KindKeptHops); len(hops) > 0 {
				t.Errorf("%d rows of hops stay", len(hops))
			}
		})
	}
}
