package evaluate_test

import (
	"archive/zip"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/rng"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// masked writes a graph of four classes with three published splits as masks, and returns its
// path. Some nodes are labelled with the class after their own.
func masked(t *testing.T, mistaken ...int) string {
	t.Helper()
	const nodes, edges, width, classes, splits = 400, 1600, 12, 4, 3
	s := rng.New(3)
	label := func(node int) int { return node * 7 % classes }
	var pairs, labels []int64
	for range edges {
		u := s.Intn(nodes)
		v := s.Intn(nodes)
		for range 2 { // ends of the same class are more frequent
			if label(u) != label(v) {
				v = s.Intn(nodes)
			}
		}
		pairs = append(pairs, int64(u), int64(v))
	}
	var features []float32
	for node := range nodes {
		labels = append(labels, int64(label(node)))
		if slices.Contains(mistaken, node) {
			labels[node] = (labels[node] + 1) % classes
		}
		for c := range width {
			x := rng.Normal(s.Uint64())
			if c%classes == label(node) {
				x += 0.7
			}
			features = append(features, float32(x))
		}
	}
	masks := [3][]uint8{}
	for split := range splits {
		for node := range nodes {
			draw := rng.Hash(uint64(split), uint64(node)) % 10
			for i, in := range []bool{draw < 2, draw >= 2 && draw < 5, draw >= 5} {
				bit := uint8(0)
				if in {
					bit = 1
				}
				masks[i] = append(masks[i], bit)
			}
		}
	}
	path := filepath.Join(t.TempDir(), "masked.npz")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	array := func(name, descr string, data any, shape ...int) {
		w, err := z.Create(name + ".npy")
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", ", "), "[]")
		head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s,), }", descr, text)
		head += strings.Repeat(" ", 117-len(head)) + "\n"
		fmt.Fprintf(w, "\x93NUMPY\x01\x00\x76\x00%s", head)
		if err := binary.Write(w, binary.LittleEndian, data); err != nil {
			t.Fatal(err)
		}
	}
	array("edges", "<i8", pairs, edges, 2)
	array("node_features", "<f4", features, nodes, width)
	array("node_labels", "<i8", labels, nodes)
	for i, name := range []string{"train_masks", "val_masks", "test_masks"} {
		array(name, "|b1", masks[i], splits, nodes)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSplits runs the three published splits of a graph in one command, and each by itself:
// models, their depths of label smoothing and all of their measures are the same, and the predictions equal those of the first split. Neither threads nor memory show. Correct & Smooth
// starts from the labels of the training nodes of each split.
func TestSplits(t *testing.T) {
	for _, rule := range []string{"ndls", plan.CorrectSmooth} {
		t.Run(rule, func(t *testing.T) { splitsAreAlone(t, rule) })
	}
}

func splitsAreAlone(t *testing.T, rule string) {
	path := masked(t)
	opts := stagetest.SmallPlan()
	opts.Labels.Rule = rule
	opts.LSI.Kmax, opts.Labels.Kmax, opts.Train.Epochs, opts.Train.Runs, opts.Metrics = 8, 5, 12, 2, "f1,auc"
	accuracy := func(reports []control.StageReport) (a *control.AccuracyReport, d *control.LabelDepthReport) {
		for _, r := range reports {
			if r.Accuracy != nil {
				a = r.Accuracy
			}
			if r.LabelDepth != nil {
				d = r.LabelDepth
			}
		}
		return a, d
	}
	uri := "npz:" + path
	all := opts
	all.Partition.Dataset, all.Partition.Splits = uri, 3
	store := storagetest.NewMem()
	got, depth := accuracy(stagetest.Run(t, store, all, stagetest.On(t, uri), registry.Always()...))
	if got.Runs != 2 || got.Splits != 3 || len(got.Models) != 6 || len(depth.Depths) != 6 {
		t.Fatalf("%+v, %+v", got, depth)
	}
	text := func(x any) string {
		b, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	files := stagetest.Sums(t, store)
	for split := range 3 {
		one := opts
		uri := fmt.Sprintf("%s?split=%d", uri, split)
		one.Partition.Dataset = uri
		alone := storagetest.NewMem()
		want, d := accuracy(stagetest.Run(t, alone, one, stagetest.On(t, uri), registry.Always()...))
		theirs := stagetest.Sums(t, alone)
		for run := range 2 {
			model := 2*split + run
			if x, y := files[fmt.Sprintf("model/run-%03d.mlp", model)], theirs[fmt.Sprintf("model/run-%03d.mlp", run)]; x == "" || x != y {
				t.Errorf("model %d is %s, by itself %s", model, x, y)
			}
			if depth.Depths[model] != d.Depths[run] {
				t.Errorf("model %d has depth %d, by itself %d", model, depth.Depths[model], d.Depths[run])
			}
			w := want.Models[run]
			w.Split = split
			if text(got.Models[model]) != text(w) {
				t.Errorf("model %d: %s, by itself %s", model, text(got.Models[model]), text(w))
			}
			if w.Metrics.Smoothed.AUC.Test == nil || w.Metrics.Base.AUC.Valid == nil || w.Metrics.Base.AUC.Train != nil || w.Epochs == 0 {
				t.Errorf("model %d lacks measures: %s", model, text(w))
			}
		}
		if split == 0 {
			for _, path := range []string{"predictions/part-00000.arrow", "soft_labels/part-00000.arrow"} {
				if files[path] == "" || files[path] != theirs[path] {
					t.Errorf("%s is %s, of the first split by itself %s", path, files[path], theirs[path])
				}
			}
			if text(got.Classes) != text(want.Classes) || len(got.Classes) != 4 {
				t.Errorf("classes %s, of the first split by itself %s", text(got.Classes), text(want.Classes))
			}
			checkMeasures(t, alone, want)
		}
	}
	var tests []float64
	for _, m := range got.Models {
		tests = append(tests, *m.Smoothed.Test)
	}
	within, means := 0.0, []float64{}
	for i := 0; i < 6; i += 2 {
		within += (tests[i] - tests[i+1]) * (tests[i] - tests[i+1]) / 2 / 3
		means = append(means, (tests[i]+tests[i+1])/2)
	}
	mean, between := (means[0]+means[1]+means[2])/3, 0.0
	for _, x := range means {
		between += (x - mean) * (x - mean) / 2
	}
	s := got.Smoothed.Test
	if math.Abs(s.Mean-mean)+math.Abs(s.BetweenModels-math.Sqrt(within))+math.Abs(s.BetweenSplits-math.Sqrt(between)) > 1e-12 || s.BetweenSplits == 0 {
		t.Errorf("%+v of %v", s, tests)
	}
	res := stagetest.On(t, uri)
	res.Threads, res.Memory = 1, 128<<20
	again := storagetest.NewMem()
	stagetest.Run(t, again, all, res, registry.Always()...)
	stagetest.Compare(t, "one thread and less memory", stagetest.Sums(t, again), files)
}

// TestLabelColumnsOfSplits runs three splits with label columns. Each split has the columns of a run
// of that split alone. The label of a node that tests in the first split and trains in the second
// changes models of the second, and none of the first.
func TestLabelColumnsOfSplits(t *testing.T) {
	const width, classes = 12, 4
	place := func(split, node int) uint64 { return rng.Hash(uint64(split), uint64(node)) % 10 }
	node := 0
	for ; place(0, node) < 5 || place(1, node) >= 2; node++ {
	}
	opts := stagetest.SmallPlan()
	opts.Smooth.LabelColumns, opts.LSI.Kmax, opts.Labels.Kmax, opts.Train.Epochs, opts.Train.Runs = 2, 8, 3, 8, 1
	run := func(uri string, splits int) *storagetest.Mem {
		p := opts
		p.Partition.Dataset, p.Partition.Splits = uri, splits
		store := storagetest.NewMem()
		stagetest.Run(t, store, p, stagetest.On(t, uri), registry.Always()...)
		return store
	}
	path := masked(t)
	all := run("npz:"+path, 3)
	joined := stagetest.Rows(t, all, catalog.KindSmoothed)
	for split := range 3 {
		for id, row := range stagetest.Rows(t, run(fmt.Sprintf("npz:%s?split=%d", path, split), 0), catalog.KindSmoothed) {
			of := slices.Concat(joined[id][:width], joined[id][width+split*classes:][:classes])
			if len(joined[id]) != width+3*classes || !slices.Equal(row, of) {
				t.Fatalf("node %d has %v, and in split %d by itself %v", id, joined[id], split, row)
			}
		}
	}
	before, after := stagetest.Sums(t, all), stagetest.Sums(t, run("npz:"+masked(t, node), 3))
	for _, path := range []string{"model/run-000.mlp", "soft_labels/part-00000.arrow"} {
		if before[path] == "" || before[path] != after[path] {
			t.Errorf("%s depends on the label of node %d, which tests there", path, node)
		}
	}
	if before["model/run-001.mlp"] == after["model/run-001.mlp"] {
		t.Errorf("the label of node %d reaches no model of the split in which it trains", node)
	}
	p := opts
	uri := "npz:" + path
	p.Partition.Dataset, p.Partition.Splits = uri, 3
	res, again := stagetest.On(t, uri), storagetest.NewMem()
	res.Threads, res.Memory = 1, 128<<20
	stagetest.Run(t, again, p, res, registry.Always()...)
	stagetest.Compare(t, "one thread and less memory", stagetest.Sums(t, again), before)
}

// checkMeasures compares the measures of the model whose soft labels are written, and of the predictions, with those that are
// computed from all of their probabilities.
func checkMeasures(t *testing.T, store storage.Store, a *control.AccuracyReport) {
	t.Helper()
	cat := stagetest.Open(t, store)
	label, split := map[int64]int32{}, map[int64]uint8{}
	for _, e := range cat.Entries(catalog.KindNodes) {
		r, err := cat.Open(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
			for i, id := range b.ID {
				label[id], split[id] = b.Label[i], b.Split[i]
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	var index struct {
		Chosen int `json:"chosen"`
	}
	e, _ := cat.Lookup("model/model.json")
	r, err := cat.Stream(context.Background(), e)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := json.NewDecoder(r).Decode(&index); err != nil {
		t.Fatal(err)
	}
	m, w := a.Models[index.Chosen], a.Predictions
	for _, c := range []struct {
		kind      string
		part      uint8
		auc, f1   *float64
		accuracy  *float64
		whichever string
	}{
		{catalog.KindSoftLabels, 2, m.Metrics.Base.AUC.Valid, m.Metrics.Base.MacroF1.Valid, m.Base.Valid, "base valid"},
		{catalog.KindSoftLabels, 3, m.Metrics.Base.AUC.Test, m.Metrics.Base.MacroF1.Test, m.Base.Test, "base test"},
		{catalog.KindPredictions, 2, w.Metrics.AUC.Valid, w.Metrics.MacroF1.Valid, w.Accuracy.Valid, "smoothed valid"},
		{catalog.KindPredictions, 3, w.Metrics.AUC.Test, w.Metrics.MacroF1.Test, w.Accuracy.Test, "smoothed test"},
	} {
		_, p := stagetest.Labels(t, store, c.kind)
		right, rows, auc, f1 := 0.0, 0.0, 0.0, 0.0
		var counts [4]struct{ true, predicted, right float64 }
		for id, row := range p {
			if split[id] != c.part {
				continue
			}
			best := 0
			for class, x := range row {
				if x > row[best] {
					best = class
				}
			}
			rows++
			counts[label[id]].true++
			counts[best].predicted++
			if int(label[id]) == best {
				right++
				counts[best].right++
			}
		}
		for class := range 4 {
			pairs, won := 0.0, 0.0
			for x, yes := range p {
				if split[x] != c.part || int(label[x]) != class {
					continue
				}
				for y, no := range p {
					if split[y] != c.part || int(label[y]) == class {
						continue
					}
					pairs++
					if yes[class] > no[class] {
						won++
					} else if yes[class] == no[class] {
						won += 0.5
					}
				}
			}
			auc += won / pairs / 4
			f1 += 2 * counts[class].right / (counts[class].true + counts[class].predicted) / 4
		}
		if math.Abs(*c.accuracy-right/rows)+math.Abs(*c.auc-auc)+math.Abs(*c.f1-f1) > 1e-12 {
			t.Errorf("%s: accuracy %v, AUC %v, F1 %v; want %v, %v, %v", c.whichever, *c.accuracy, *c.auc, *c.f1, right/rows, auc, f1)
		}
	}
}
