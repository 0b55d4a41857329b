package evaluate_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// drawnNeighbours writes a graph of two classes, of which so many nodes in a hundred are of the first, and so many edges in a hundred join
// nodes of the same class, and returns its URI. Half of the nodes train. The class shows in the features of a node.
func drawnNeighbours(t *testing.T, first, alike uint64) (uri string, label []int, edges [][2]int) {
	t.Helper()
	const nodes = 800
	draw := func(keys ...uint64) uint64 { return rng.Hash(17, keys...) % 100 }
	var table, list strings.Builder
	table.WriteString("id,x,y,label,split\n")
	for i := range uint64(nodes) {
		class := 1
		if draw(0, i) < first {
			class = 0
		}
		label = append(label, class)
		split := []string{"train", "train", "valid", "test"}[i%4]
		fmt.Fprintf(&table, "%d,%.6g,%.6g,%d,%s\n", i, float64(class)+float64(draw(1, i))/60, float64(draw(2, i))/100, class, split)
	}
	list.WriteString("src,dst\n")
	for e := uint64(0); len(edges) < 6*nodes; e++ {
		u, v := int(rng.Hash(5, e)%nodes), int(rng.Hash(6, e)%nodes)
		if u == v || (label[u] == label[v]) != (draw(3, e) < alike) {
			continue
		}
		edges = append(edges, [2]int{u, v})
		fmt.Fprintf(&list, "%d,%d\n", u, v)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"nodes.csv": table.String(), "edges.csv": list.String()} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return fmt.Sprintf("table:%[1]s/edges.csv?src=src&dst=dst&nodes=%[1]s/nodes.csv&id=id&features=x,y&label=label&split=split", dir), label, edges
}

func evaluated(t *testing.T, uri string, change func(*plan.Options)) *control.AccuracyReport {
	t.Helper()
	opts := stagetest.SmallPlan()
	opts.Partition.Dataset, opts.Partition.Normalize, opts.LSI.Kmax, opts.Labels.Kmax = uri, "none", 8, 1
	change(&opts)
	for _, r := range stagetest.Run(t, storagetest.NewMem(), opts, stagetest.On(t, uri), registry.Always()...) {
		if r.Accuracy != nil {
			return r.Accuracy
		}
	}
	t.Fatal("no stage reports accuracy")
	return nil
}

// TestNeighboursThatDiffer compares the counts of the warning with those of the edge list, and finds no warning where neighbours are alike
// or where hops stay side by side.
func TestNeighboursThatDiffer(t *testing.T) {
	for _, c := range []struct {
		alike uint64
		rule  string
		warns bool
	}{{50, "ndls", true}, {20, "sgc", true}, {50, "sign", false}, {85, "ndls", false}} {
		uri, label, list := drawnNeighbours(t, 50, c.alike)
		edges, same, seen := 0, 0, map[[2]int]bool{}
		for _, e := range list {
			u, v := min(e[0], e[1]), max(e[0], e[1])
			if u%4 > 1 || v%4 > 1 || seen[[2]int{u, v}] {
				continue
			}
			seen[[2]int{u, v}] = true
			if edges++; label[u] == label[v] {
				same++
			}
		}
		want := fmt.Sprintf("of %d edges between training nodes %.1f %% join nodes of one class", edges, 100*float64(same)/float64(edges))
		r := evaluated(t, uri, func(p *plan.Options) { p.Smooth.Rule, p.Smooth.Hops, p.Train.Epochs = c.rule, 2, 3 })
		if text := strings.Join(r.Warnings, "\n"); strings.Contains(text, want) != c.warns || strings.Contains(text, "neighbours differ") != c.warns {
			t.Errorf("%d %% alike, --rule %s: warnings %q, want %q: %v", c.alike, c.rule, text, want, c.warns)
		}
	}
}

// TestWeightsOfTheBestArea trains on a set of which 78 % have one class. By accuracy, an early model that says this class of all nodes is
// kept; with auc as the first measure, the weights, the model and the written predictions have the best area on the validation nodes.
func TestWeightsOfTheBestArea(t *testing.T) {
	uri, label, _ := drawnNeighbours(t, 81, 50)
	first := 0
	for _, x := range label {
		first += 1 - x
	}
	if share := float64(first) / float64(len(label)); share < 0.76 || share > 0.8 {
		t.Fatalf("%.2f of the nodes have the first class", share)
	}
	run := func(metrics string) *control.AccuracyReport {
		return evaluated(t, uri, func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops = "sgc", 1
			p.Metrics, p.Train.Epochs, p.Train.Patience, p.Train.Runs, p.Train.LR = metrics, 40, 0, 2, 0.003
		})
	}
	byArea, byAccuracy := run("auc"), run("accuracy,auc")
	for m := range byArea.Models {
		x, y := byArea.Models[m], byAccuracy.Models[m]
		if *x.Metrics.Base.AUC.Valid < *y.Metrics.Base.AUC.Valid || *x.Base.Valid > *y.Base.Valid {
			t.Errorf("model %d: area %.4f by auc and %.4f by accuracy, accuracy %.4f and %.4f", m,
				*x.Metrics.Base.AUC.Valid, *y.Metrics.Base.AUC.Valid, *x.Base.Valid, *y.Base.Valid)
		}
	}
	best := max(*byArea.Models[0].Metrics.Base.AUC.Valid, *byArea.Models[1].Metrics.Base.AUC.Valid)
	p := byArea.Predictions
	if p.Measure != plan.AUC || *p.Metrics.AUC.Valid < best {
		t.Errorf("the predictions, chosen by %s, have the area %.4f, and a model %.4f", p.Measure, *p.Metrics.AUC.Valid, best)
	}
	if !strings.Contains(strings.Join(byAccuracy.Warnings, "\n"), "one class") {
		t.Errorf("no warning that a model predicts one class: %q", byAccuracy.Warnings)
	}
}
