package labels_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// guessed is a graph with labels, and soft labels of a model that is often right.
type guessed struct {
	graph   testgraph.Graph
	classes int
	label   []int // -1 for none
	train   []bool
	soft    [][]float64
	m       stagetest.Setup
}

func guess(t *testing.T, n, edges, classes int, spread float64) guessed {
	t.Helper()
	d := guessed{graph: testgraph.Random(n, edges, 7), classes: classes}
	uri := "src=src&dst=dst"
	if spread > 0 {
		d.graph, uri = d.graph.RandomWeights(spread, 5), uri+"&weight=w"
	}
	var lines, labels, splits, soft bytes.Buffer
	lines.WriteString("src,dst,w\n")
	labels.WriteString("id,label\n")
	splits.WriteString("id,split\n")
	for i, adj := range d.graph.Adj {
		fmt.Fprintf(&lines, "%d,%d,1\n", i, i) // a self-loop says that the node is there
		for k, j := range adj {
			w := float32(1)
			if spread > 0 {
				w = d.graph.Weights[i][k]
			}
			if int(j) > i {
				fmt.Fprintf(&lines, "%d,%d,%.9g\n", i, j, w)
			}
		}
		label := int(rng.Below(rng.Hash(4, uint64(i)), uint64(classes)))
		if i < classes {
			label = i
		}
		split := []string{"train", "valid", "test", "test"}[i%4]
		d.label, d.train = append(d.label, label), append(d.train, split == "train")
		fmt.Fprintf(&labels, "%d,%d\n", i, label)
		fmt.Fprintf(&splits, "%d,%s\n", i, split)
		row, sum := make([]float64, classes), 0.0
		for c := range row {
			if row[c] = rng.Float64(rng.Hash(5, uint64(i), uint64(c))); c == label {
				row[c] += 0.6
			}
			sum += row[c]
		}
		for c := range row {
			row[c] = float64(float32(row[c] / sum))
		}
		d.soft = append(d.soft, row)
		fmt.Fprint(&soft, i)
		for _, x := range row {
			fmt.Fprintf(&soft, ",%.9g", x)
		}
		soft.WriteByte('\n')
	}
	dir := t.TempDir()
	for name, text := range map[string]*bytes.Buffer{"edges.csv": &lines, "labels.csv": &labels, "splits.csv": &splits, "soft.csv": &soft} {
		if err := os.WriteFile(filepath.Join(dir, name), text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d.m = stagetest.On(t, fmt.Sprintf("edges:%s/edges.csv?%s&labels=%s/labels.csv&splits=%s/splits.csv", dir, uri, dir, dir))
	d.m.SoftLabels = filepath.Join(dir, "soft.csv")
	return d
}

// corrected is Correct & Smooth in float64: what it makes of the soft labels with k steps of
// each node at most.
func (d guessed) corrected(r, scale, correctAlpha, smoothAlpha float64, correctHops, smoothHops int, k map[int64]int) [][]float64 {
	n, o := len(d.soft), testgraph.NewOracle(d.graph, r, false)
	wrong, size, count := make([]float64, n*d.classes), 0.0, 0.0
	y := func(i, c int) float64 {
		if d.label[i] == c {
			return 1
		}
		return 0
	}
	for i, train := range d.train {
		if !train {
			continue
		}
		count++
		for c := range d.classes {
			wrong[i*d.classes+c] = y(i, c) - d.soft[i][c]
			size += math.Abs(wrong[i*d.classes+c])
		}
	}
	// steps gives the rows of each node after its own number of steps.
	steps := func(x []float64, most int, step func(x, next []float64)) []float64 {
		out := append([]float64{}, x...)
		now := x
		for hop := 1; hop <= most; hop++ {
			next := o.Apply(now, d.classes)
			step(x, next)
			now = next
			for i := range n {
				if k == nil || hop <= k[int64(i)] {
					copy(out[i*d.classes:(i+1)*d.classes], now[i*d.classes:])
				}
			}
		}
		return out
	}
	spread := steps(wrong, correctHops, func(x, next []float64) {
		for i := range next {
			next[i] *= correctAlpha
			switch {
			case scale == 0:
				next[i] += (1 - correctAlpha) * x[i]
			case d.train[i/d.classes]:
				next[i] = x[i]
			}
		}
	})
	g := make([]float64, n*d.classes)
	for i := range n {
		sum := 0.0
		for _, e := range spread[i*d.classes : (i+1)*d.classes] {
			sum += math.Abs(e)
		}
		by := scale
		if scale == 0 {
			if by = size / count / sum; !(by <= 1000) {
				by = 1
			}
		}
		for c := range d.classes {
			if g[i*d.classes+c] = d.soft[i][c] + by*spread[i*d.classes+c]; d.train[i] {
				g[i*d.classes+c] = y(i, c)
			}
		}
	}
	g = steps(g, smoothHops, func(x, next []float64) {
		for i := range next {
			next[i] = (1-smoothAlpha)*x[i] + smoothAlpha*next[i]
		}
	})
	out := make([][]float64, n)
	for i := range out {
		sum := 0.0
		for _, x := range g[i*d.classes : (i+1)*d.classes] {
			out[i] = append(out[i], max(x, 0))
			sum += max(x, 0)
		}
		for c := range out[i] {
			out[i][c] /= sum
		}
	}
	return out
}

// TestCorrectAndSmooth compares predictions with the steps of the paper in float64.
func TestCorrectAndSmooth(t *testing.T) {
	for _, tc := range []struct {
		name    string
		classes int
		weights float64
		change  func(*plan.Options)
	}{
		{"auto", 2, 0, func(*plan.Options) {}},
		{"auto, two panels, weights", 18, 8, func(p *plan.Options) { p.LSI.R = 0 }},
		{"a number", 7, 0, func(p *plan.Options) { p.Labels.CorrectScale = "1.5" }},
		{"a number, weights", 12, 8, func(p *plan.Options) { p.Labels.CorrectScale, p.Labels.CorrectAlpha = "0.7", 0.95 }},
		{"by node", 5, 0, func(p *plan.Options) { p.Labels.Rule = plan.CorrectSmoothByNode }},
		{"by node, a number", 12, 0, func(p *plan.Options) {
			p.Labels.Rule, p.Labels.CorrectScale, p.Labels.CorrectHops = plan.CorrectSmoothByNode, "1", 4
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			d := guess(t, 300, 500, tc.classes, tc.weights)
			opts := plan.Default()
			opts.Tolerance = 0
			opts.Partition.Dataset, opts.Labels.SoftLabels = d.m.Dataset, "soft.csv"
			opts.LSI.Epsilon, opts.LSI.Kmax, opts.LSI.Mode = 0.2, 12, "influence-exact"
			opts.Labels.Rule, opts.Labels.Depth, opts.Labels.SmoothAlpha = plan.CorrectSmooth, "9", 0.7
			tc.change(&opts)
			store := storagetest.NewMem()
			stages := []control.Stage{control.Partition, control.SmoothLabels}
			if opts.Labels.TakesK() {
				stages = []control.Stage{control.Partition, control.LSI, control.SmoothLabels}
			}
			stagetest.Run(t, store, opts, d.m, stages...)
			var k map[int64]int
			if opts.Labels.TakesK() {
				k = stagetest.K(t, store)
			}
			scale, alpha, hops := opts.Labels.Correction()
			want := d.corrected(opts.LSI.R, scale, alpha, 0.7, hops, 9, k)
			got := stagetest.Rows(t, store, catalog.KindPredictions)
			if len(got) != len(d.soft) {
				t.Fatalf("%d predictions", len(got))
			}
			changed := 0
			for i := range want {
				for c, w := range want[i] {
					if x := float64(got[int64(i)][c]); !(math.Abs(x-w) <= 1e-5) {
						t.Fatalf("node %d, class %d: %g, want %g", i, c, x, w)
					}
				}
				if !d.train[i] && math.Abs(want[i][0]-d.soft[i][0]) > 0.01 {
					changed++
				}
			}
			if changed < len(want)/4 {
				t.Errorf("only %d rows changed: nothing was tested", changed)
			}
			for path := range stagetest.Sums(t, store) {
				if filepath.Dir(path) == "predictions/errors" || filepath.Dir(path) == "predictions/corrected" {
					t.Errorf("%s is left behind", path)
				}
			}
		})
	}
}

// TestCorrectionLeavesNothing lets each operation of the store fail in turn while labels are
// corrected and smoothed. What resumes then gives the same bytes, and leaves none of its tiles.
func TestCorrectionLeavesNothing(t *testing.T) {
	testkit.NotUnderRace(t, "TestResourcesDoNotShow starts the same goroutines")
	d := guess(t, 60, 90, 3, 0)
	opts := plan.Default()
	opts.Partition.Dataset, opts.Labels.SoftLabels = d.m.Dataset, "soft.csv"
	opts.Labels.Rule, opts.Labels.Depth, opts.Labels.CorrectHops = plan.CorrectSmooth, "2", 2
	before := storagetest.NewMem()
	stagetest.Run(t, before, opts, d.m, control.Partition)
	smooth := func(store storage.Store) error {
		cat, err := catalog.Open(t.Context(), store)
		if err == nil {
			_, err = stagetest.Execute(t.Context(), cat, d.m.Task(control.SmoothLabels, opts))
		}
		return err
	}
	clean := storagetest.NewFaulty(before.CrashClone(), 0)
	if err := smooth(clean); err != nil {
		t.Fatal(err)
	}
	total := clean.Ops()
	want := stagetest.Sums(t, clean)
	for at := int64(1); at <= total; at++ {
		inner := before.CrashClone()
		_ = smooth(storagetest.NewFaulty(inner, at)) // some operations may fail
		left := inner.CrashClone()
		if err := smooth(left); err != nil {
			t.Fatal(err)
		}
		stagetest.Compare(t, fmt.Sprintf("operation %d of %d", at, total), stagetest.Sums(t, left), want)
	}
}
