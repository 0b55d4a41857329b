package models_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/stagetest"
)

// Training that ends after any of its commits goes on with the models that are missing,
// and leaves the files of training that was not interrupted.
func TestTrainingGoesOn(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"perceptron": func(o *plan.Options) { o.Train.Runs = threeModels },
		"LayerNorm": func(o *plan.Options) {
			o.Train.Runs, o.Train.HiddenNorm, o.Train.Choose = threeModels, plan.LayerNorm, plan.ByLoss
		},
		"ridge": func(o *plan.Options) {
			o.Train.Model, o.Partition.Split, o.Partition.Splits = plan.Ridge, "random:20,30", threeModels
		},
	} {
		opts := plan.Default()
		opts.Partition.Dataset, opts.Train.Epochs = "toy", 5
		change(&opts)
		t.Run(name, func(t *testing.T) { trainingGoesOn(t, opts) })
	}
}

const threeModels = 3

func trainingGoesOn(t *testing.T, opts plan.Options) {
	ctx := context.Background()
	const runs = threeModels
	res := stagetest.On(t, "synthetic:nodes=600,edges=2400,features=20,classes=3,seed=1")
	res.Threads = 1 // one model after the other

	// train executes the stage on what store holds. Its changes of the catalogue fail
	// from the one of number end on; the paths that it adds are given back.
	train := func(store storage.Store, end int) (added []string, err error) {
		owner := stagetest.Open(t, store)
		changes := 0
		view := catalog.NewView(store, owner.All(), func(ctx context.Context, a []catalog.Entry, removed []string, del bool) error {
			if changes++; changes > end {
				return errEnd
			}
			for _, e := range a {
				added = append(added, e.Path)
			}
			return owner.Apply(ctx, a, removed, del)
		})
		_, err = stagetest.Execute(ctx, view, res.Task(control.Train, opts))
		return added, err
	}
	prepared := func() storage.Store {
		store := storagetest.NewMem()
		stagetest.Run(t, store, opts, res, control.Partition, control.LSI, control.Smooth)
		return store
	}

	whole := prepared()
	if _, err := train(whole, 1000); err != nil {
		t.Fatal(err)
	}
	want := stagetest.Sums(t, whole)
	models := slices.DeleteFunc(slices.Sorted(maps.Keys(want)), func(path string) bool { return !strings.HasPrefix(path, "model/") })
	if !slices.Equal(models, []string{"model/model.json", "model/run-000.mlp", "model/run-001.mlp", "model/run-002.mlp"}) {
		t.Fatalf("training leaves %v", models)
	}

	const steps = runs + 2 // a model each, the index, and the removal of what only resuming needs
	for end := range steps {
		store := prepared()
		first, err := train(store, end)
		if !errors.Is(err, errEnd) {
			t.Fatalf("end after %d changes: %v", end, err)
		}
		if _, ok := stagetest.Sums(t, store)["model/model.json"]; ok != (end > runs) {
			t.Errorf("end after %d changes: there is an index: %v", end, ok)
		}
		second, err := train(store, 1000)
		if err != nil {
			t.Fatalf("resumed after %d changes: %v", end, err)
		}
		for _, path := range append(slices.Clone(models), "model/run-000.json", "model/run-001.json", "model/run-002.json") {
			in := 0
			for _, p := range append(slices.Clone(first), second...) {
				if p == path {
					in++
				}
			}
			if in != 1 {
				t.Errorf("end after %d changes: %s was committed %d times", end, path, in)
			}
		}
		if got := stagetest.Sums(t, store); !maps.Equal(got, want) {
			t.Errorf("end after %d changes: the files are %v, want %v", end, got, want)
		}
	}
}

var errEnd = errors.New("the end of the test's worker")
