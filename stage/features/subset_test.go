package features_test

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/stagetest"
)

// sparse is a graph of which 1.4 % of the nodes are labelled.
const sparse = "papers100m:scale=1/4096,seed=1,tails=0"

func sparsePlan() plan.Options {
	p := plan.Default()
	p.Partition.Dataset = sparse
	p.LSI.Probes, p.LSI.Kmax, p.LSI.Epsilon = 16, 3, 0.1
	p.Train.Epochs, p.Train.Runs, p.Train.Hidden = 3, 2, 16
	return p
}

// smoothedRow is one row of smoothed features.
type smoothedRow struct {
	id     int64
	labels int32
	split  uint8
	values []float32
}

// storedRows reads the smoothed rows, in node order, with the labels of the node
// table.
func storedRows(t *testing.T, store storage.Store) (all []smoothedRow) {
	t.Helper()
	values := stagetest.Rows(t, store, catalog.KindSmoothed)
	cat := stagetest.Open(t, store)
	e := cat.Entries(catalog.KindNodes)[0]
	r, err := cat.Open(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	err = shards.ReadNodes(r, e.Path, shards.Readers{}, func(_ int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			all = append(all, smoothedRow{id, b.Label[i], b.Split[i], values[id]})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// replaceRows puts other smoothed rows in the place of those of a store, a part
// for each interval, in record batches of 100 rows.
func replaceRows(t *testing.T, store storage.Store, parts ...[]smoothedRow) {
	t.Helper()
	ctx, cat := t.Context(), stagetest.Open(t, store)
	if err := cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindSmoothed }); err != nil {
		t.Fatal(err)
	}
	for i, part := range parts {
		f, err := cat.Create(ctx, catalog.Describe(catalog.KindSmoothed, fmt.Sprintf("smoothed/part-%05d.arrow", i)).In(i))
		if err != nil {
			t.Fatal(err)
		}
		w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "feature", Width: 128}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for batch := range slices.Chunk(part, 100) {
			var ids []int64
			var values []float32
			for _, r := range batch {
				ids, values = append(ids, r.id), append(values, r.values...)
			}
			if err := w.Write(ids, nil, values); err != nil {
				t.Fatal(err)
			}
		}
		if f.Rows, err = w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := cat.Commit(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
}

// models lists the checksums of what is in model/.
func models(t *testing.T, store storage.Store) map[string]string {
	t.Helper()
	all := stagetest.Sums(t, store)
	for path := range all {
		if !strings.HasPrefix(path, "model/") {
			delete(all, path)
		}
	}
	return all
}

// TestSomeRowsAreStored trains, predicts and evaluates on the rows of labelled nodes and a few
// others. Rows are matched by id, so models and accuracies equal those of all rows.
func TestSomeRowsAreStored(t *testing.T) {
	testkit.Slow(t, "whole runs by every rule")
	opts, res := sparsePlan(), stagetest.On(t, sparse)
	full, some := storagetest.NewMem(), storagetest.NewMem()
	upTo := []control.Stage{control.Partition, control.LSI, control.Smooth}
	after := []control.Stage{control.Train, control.Predict, control.Evaluate}
	stagetest.Run(t, full, opts, res, upTo...)
	stagetest.Run(t, some, opts, res, upTo...)
	all := storedRows(t, some)
	kept := slices.DeleteFunc(slices.Clone(all), func(r smoothedRow) bool { return r.labels < 0 && r.id%50 != 0 })
	if len(kept) < 500 || len(kept) > 1500 {
		t.Fatalf("%d of %d rows kept", len(kept), len(all))
	}

	opts.Smooth.Targets = "ids.txt"
	replaceRows(t, some, nil, kept[:250], nil, kept[250:], nil)
	reports := stagetest.Run(t, some, opts, res, after...)

	opts.Smooth.Targets = plan.AllTargets
	tight := res
	tight.Memory = mem.MinBudget
	want := stagetest.Run(t, full, opts, tight, control.Train, control.Predict)
	want = append(want, stagetest.Run(t, full, opts, res, control.LabelDepth, control.SmoothLabels, control.Evaluate)...)
	// Tallies differ: soft labels of some nodes are the predictions, and are broken down by degree and K.
	trained := func(all map[string]string) map[string]string {
		maps.DeleteFunc(all, func(path, _ string) bool { return strings.HasPrefix(path, "model/tally-") })
		return all
	}
	stagetest.Compare(t, "models", trained(models(t, some)), trained(models(t, full)))
	if got, all := reports[2].Accuracy, want[4].Accuracy; !reflect.DeepEqual(got.Base, all.Base) || got.Base.Test == nil || got.Runs != 2 {
		t.Errorf("accuracy %+v, of all rows %+v", got, all)
	} else if got.Smoothed != (control.SplitAccuracy{}) || all.Smoothed.Test == nil {
		t.Errorf("soft labels of some nodes were smoothed: %+v; of all: %+v", got.Smoothed, all.Smoothed)
	}
	if reports[1].Rows != int64(len(kept)) || want[1].Rows != int64(len(all)) {
		t.Errorf("%d and %d rows predicted", reports[1].Rows, want[1].Rows)
	}
	soft, softOfAll := stagetest.Rows(t, some, catalog.KindSoftLabels), stagetest.Rows(t, full, catalog.KindSoftLabels)
	if len(soft) != len(kept) || len(softOfAll) != len(all) {
		t.Fatalf("%d and %d soft labels", len(soft), len(softOfAll))
	}
	for id, p := range soft {
		if !slices.Equal(p, softOfAll[id]) {
			t.Fatalf("node %d: %v, with all rows stored %v", id, p, softOfAll[id])
		}
	}
	if parts := stagetest.Open(t, some).Entries(catalog.KindSoftLabels); len(parts) != 5 || parts[0].Rows != 0 || parts[1].Rows != 250 {
		t.Errorf("soft labels are in %+v", parts)
	}
}

func TestRowsThatDoNotFitTheNodeTable(t *testing.T) {
	testkit.Slow(t, "seven damaged runs")
	opts, res := sparsePlan(), stagetest.On(t, sparse)

	store := storagetest.NewMem()
	stagetest.Run(t, store, opts, res, control.Partition, control.LSI, control.Smooth)
	all := storedRows(t, store)
	without := func(split uint8) []smoothedRow {
		i := slices.IndexFunc(all, func(r smoothedRow) bool { return r.split == split && r.labels >= 0 })
		return slices.Delete(slices.Clone(all), i, i+1)
	}
	swapped := slices.Clone(all)
	swapped[1000], swapped[1001] = swapped[1001], swapped[1000]
	stranger := slices.Clone(all)
	stranger[1000].id = 1 << 40
	for _, c := range []struct {
		name    string
		targets string
		rows    []smoothedRow
		text    string
		kind    error
	}{
		{"a training row is missing", "ids.txt", without(1), "--targets all or labelled", nil},
		{"a validation row is missing", "ids.txt", without(2), "--targets all or labelled", nil},
		{"a test row is missing", "ids.txt", without(3), "--targets all or labelled", nil},
		{"rows out of order", "ids.txt", swapped, "run ndls smooth again", seal.ErrCorrupt},
		{"an id of no node", "ids.txt", stranger, "run ndls smooth again", seal.ErrCorrupt},
		{"fewer rows than nodes", plan.AllTargets, all[:len(all)-1], "run ndls smooth again", seal.ErrCorrupt},
		{"a row too many", "ids.txt", append(slices.Clone(all), all[0]), "run ndls smooth again", seal.ErrCorrupt},
	} {
		t.Run(c.name, func(t *testing.T) {
			replaceRows(t, store, c.rows)
			opts := opts
			opts.Smooth.Targets = c.targets
			_, err := stagetest.Execute(t.Context(), stagetest.Open(t, store), res.Task(control.Train, opts))
			if err == nil || !strings.Contains(err.Error(), c.text) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v, want %q", err, c.text)
			}
		})
	}
}
