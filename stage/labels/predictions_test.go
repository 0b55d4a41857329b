package labels_test

import (
	"context"
	"math"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
	"ndls/train"
)

// pickPlan is a plan with several models, which differ.
func pickPlan(predictions string) plan.Options {
	p := stagetest.SmallPlan()
	p.Train.Runs, p.Train.Epochs, p.Predictions, p.Labels.Kmax = 5, 12, predictions, 6
	return p
}

// pickedAccuracy is the accuracy of what is written, on the nodes of a split, by the node table.
func pickedAccuracy(t *testing.T, store storage.Store, part uint8) float64 {
	t.Helper()
	cat := stagetest.Open(t, store)
	predicted, _ := stagetest.Labels(t, store, catalog.KindPredictions)
	right, all := 0.0, 0.0
	for _, e := range cat.Entries(catalog.KindNodes) {
		r, err := cat.Open(context.Background(), e)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
			for i, id := range b.ID {
				if b.Split[i] == part && b.Label[i] >= 0 {
					if all++; predicted[id] == b.Label[i] {
						right++
					}
				}
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return right / all
}

// TestPredictionsAreTheBestThatMayBeWritten: what is written is at least as good on the validation nodes as the smoothed soft labels
// of every model and as their mean, and the report says of it what the files hold.
func TestPredictionsAreTheBestThatMayBeWritten(t *testing.T) {
	last := func(r []control.StageReport) *control.AccuracyReport { return r[len(r)-1].Accuracy }
	var means, picked float64
	for _, predictions := range []string{plan.MeanOfModels, plan.OfModel, plan.AutoPredictions, ""} {
		opts, store := pickPlan(predictions), storagetest.NewMem()
		a := last(stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), registry.Always()...))
		w := a.Predictions
		for part, x := range map[uint8]*float64{train.Valid: w.Accuracy.Valid, train.Test: w.Accuracy.Test} {
			if got := pickedAccuracy(t, store, part); x == nil || math.Abs(got-*x) > 1e-12 {
				t.Errorf("%q: the files have accuracy %v in split %d, the report says %v", predictions, got, part, x)
			}
		}
		if predictions == plan.MeanOfModels {
			if means = *w.Accuracy.Valid; w.Kind != plan.MeanOfModels || w.Models != 5 || w.Model != nil {
				t.Errorf("%+v is written, want the mean", w)
			}
			continue
		}
		for m, x := range a.Models {
			if *x.Smoothed.Valid > *w.Accuracy.Valid {
				t.Errorf("%q: model %d has %v on the validation nodes, what is written %v", predictions, m, *x.Smoothed.Valid, *w.Accuracy.Valid)
			}
		}
		if w.Model != nil && *a.Models[*w.Model].Smoothed.Test != *w.Accuracy.Test {
			t.Errorf("%q: model %d has %v on the test nodes, what is written %v", predictions, *w.Model, *a.Models[*w.Model].Smoothed.Test, *w.Accuracy.Test)
		}
		switch {
		case predictions == plan.OfModel:
			if picked = *w.Accuracy.Valid; w.Kind != plan.OfModel {
				t.Errorf("%+v is written, want a model", w)
			}
		case *w.Accuracy.Valid != max(picked, means):
			t.Errorf("%q: %v on the validation nodes, the best model has %v and the mean %v", predictions, *w.Accuracy.Valid, picked, means)
		}
	}
}

// TestMeanOfModels compares the mean that is written, without label smoothing, with that of what each model says.
func TestMeanOfModels(t *testing.T) {
	opts, store := pickPlan(plan.MeanOfModels), storagetest.NewMem()
	opts.Labels.Depth = "0"
	stages := []control.Stage{control.Partition, control.LSI, control.Smooth, control.Train, control.Predict, control.SmoothLabels, control.Evaluate}
	stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), stages...)
	ctx, cat := context.Background(), stagetest.Open(t, store)
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	src, err := train.OpenRows(ctx, cat, catalog.KindSmoothed)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	var models []*train.Model
	for _, e := range cat.Entries(catalog.KindModel) {
		if r, err := cat.Stream(ctx, e); err == nil && e.Path != "model/model.json" {
			m, err := train.LoadModel(r, e.Path, b)
			if err != nil {
				t.Fatal(err)
			}
			defer m.Free()
			models = append(models, m)
			_ = r.Close()
		}
	}
	if len(models) != opts.Train.Runs {
		t.Fatalf("%d models", len(models))
	}
	want := map[int64][]float64{}
	if err := train.Predict(ctx, src, models, train.Resources{Budget: b, Threads: 1}, func(_ int64, ids []int64, _ int, soft []float32) error {
		classes := len(soft) / len(ids)
		for i, id := range ids {
			if want[id] == nil {
				want[id] = make([]float64, classes)
			}
			for c, x := range soft[i*classes:][:classes] {
				want[id][c] += float64(x) / float64(len(models))
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	label, got := stagetest.Labels(t, store, catalog.KindPredictions)
	if len(got) != len(want) {
		t.Fatalf("%d predictions of %d nodes", len(got), len(want))
	}
	for id, row := range got {
		for c, x := range row {
			if math.Abs(float64(x)-want[id][c]) > 1e-6 {
				t.Fatalf("node %d has %v, want %v", id, row, want[id])
			}
		}
		if label[id] != train.Argmax(row) {
			t.Fatalf("node %d has class %d and %v", id, label[id], row)
		}
	}
}

// TestPredictionsInParts interrupts label smoothing between models, before the count, between the count and the choice, and before
// the rows are written: whatever was done before, with other threads and less memory, the files are the same.
func TestPredictionsInParts(t *testing.T) {
	testkit.NotUnderRace(t, "TestResourcesDoNotShow starts the same goroutines")
	for _, predictions := range []string{plan.MeanOfModels, plan.AutoPredictions} {
		opts := pickPlan(predictions)
		store := storagetest.NewMem()
		stagetest.Run(t, store, opts, stagetest.On(t, stagetest.Small), registry.Always()...)
		want := stagetest.Sums(t, store)
		for _, parts := range [][]control.Task{
			nil,
			{{Part: control.Columns, Last: 2}},
			{{Part: control.Columns, First: 2, Last: 5}, {Part: control.Columns, Last: 2}, {Part: control.Count, Last: 1}},
			{{Part: control.Columns, Last: 5}, {Part: control.Count, Last: 1}, {Part: control.Count, Last: 1}, {Part: control.Pick}},
			{{Part: control.Columns, Last: 5}, {Part: control.Count, Last: 1}, {Part: control.Pick}, {Part: control.Pick}, {Part: control.Rows, Last: 1}},
		} {
			again := storagetest.NewMem()
			res := stagetest.On(t, stagetest.Small)
			res.Threads, res.Memory = 1, 128<<20
			before := len(registry.Always()) - 2 // smooth-labels and evaluate
			stagetest.Run(t, again, opts, res, registry.Always()[:before]...)
			cat := stagetest.Open(t, again)
			for _, part := range parts {
				task := res.Task(control.SmoothLabels, opts)
				task.Part, task.First, task.Last = part.Part, part.First, part.Last
				if _, err := stagetest.Execute(context.Background(), cat, task); err != nil {
					t.Fatalf("%s: %v", task.ID(), err)
				}
			}
			stagetest.Run(t, again, opts, res, registry.Always()[before:]...)
			stagetest.Compare(t, predictions, stagetest.Sums(t, again), want)
		}
	}
}

// TestMeanOfTooManyModels is refused, and left out where nobody asked for it.
func TestMeanOfTooManyModels(t *testing.T) {
	testkit.NotUnderRace(t, "TestResourcesDoNotShow starts the same goroutines")
	const tiny = "synthetic:nodes=200,edges=600,features=8,classes=4,seed=3"
	opts, m, trained := stagetest.SmallPlan(), stagetest.On(t, tiny), storagetest.NewMem()
	opts.Partition.Dataset, opts.Train.Runs, opts.Train.Epochs, opts.Train.Hidden, opts.Labels.Depth = tiny, 1025, 1, 1, "0"
	stagetest.Run(t, trained, opts, m, control.Partition, control.LSI, control.Smooth, control.Train, control.Predict)
	for predictions, fails := range map[string]bool{plan.MeanOfModels: true, plan.AutoPredictions: false} {
		opts.Predictions = predictions
		_, err := stagetest.Execute(t.Context(), stagetest.Open(t, trained.CrashClone()), m.Task(control.SmoothLabels, opts))
		if fails != (err != nil) {
			t.Errorf("--predictions %s of 1025 models: %v", predictions, err)
		}
	}
}
