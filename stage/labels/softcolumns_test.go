package labels

import (
	"slices"
	"testing"

	"ndls/catalog"
	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/train"
)

// smallModels is a run of n nodes with two models of 40 classes.
func smallModels(t *testing.T, n int64) labelsRun {
	t.Helper()
	ctx := t.Context()
	const width, classes = 5, 40
	budget, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if budget.Free() != budget.Limit() {
			t.Errorf("%d bytes of the budget did not come back", budget.Limit()-budget.Free())
		}
	})
	cat, err := catalog.Open(ctx, storagetest.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	f, err := cat.Create(ctx, catalog.Describe(catalog.KindSmoothed, "smoothed/part-00000.arrow").In(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := shards.NewRowWriter(f, shards.RowSchema{Column: "feature", Width: width}, nil)
	if err != nil {
		t.Fatal(err)
	}
	labels, splits := make([]int32, n), make([]uint8, n)
	for lo := int64(0); lo < n; lo += 3000 {
		rows := min(n-lo, 3000)
		ids, values := make([]int64, rows), make([]float32, rows*width)
		for i := range ids {
			node := lo + int64(i)
			ids[i], labels[node], splits[node] = node, int32(node%classes), train.Train
			for c := range width {
				values[i*width+c] = float32(node%int64(7+c)) - 3
			}
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
	env := &stage.Env{
		Session: &stage.Session{Budget: budget}, Catalog: cat, Plan: plan.Default(), Disk: noDisk{}, Group: group.Solo(n),
		Summary:   shards.Summary{Nodes: n, IntervalRows: 1 << 20, Features: width, Classes: make([]string, classes)},
		Resources: control.Resources{Threads: 3, Scratch: t.TempDir()},
	}
	env.Plan.Train.Runs, env.Plan.Train.Epochs, env.Plan.Train.Hidden = 2, 1, 8
	src, err := train.OpenRows(ctx, cat, catalog.KindSmoothed)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	truth, err := measures.NewLabelled(budget, n, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer truth.Free()
	copy(truth.Label.S, labels)
	copy(truth.Split(0), splits)
	env.Task.Part, env.Summary.Splits = control.Whole, map[string]int64{"train": n}
	if err := (models.Train{Rows: &models.RowsWithLabels{Source: src, Labelled: truth}}).Run(ctx, env); err != nil {
		t.Fatal(err)
	}
	return labelsRun{Env: env}
}

type noDisk struct{}

func (noDisk) Look() {}

// allRows reads columns.
func allRows(t *testing.T, c graph.Columns, first, columns int) (all []float32) {
	t.Helper()
	if err := c(t.Context(), first, columns, func(rows []float32) error {
		all = append(all, rows...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// Columns of models are the same whether they come from the disk or from the models themselves, and
// equal those of the models' rows, for all rows and for those of a task.
func TestModelColumns(t *testing.T) {
	const nodes, classes, per = 70_000, 40, 3
	env := smallModels(t, nodes)
	for _, strips := range [][2]int{{0, 3}, {1, 2}} {
		env.Task = control.Task{Part: control.Strips, First: strips[0], Last: strips[1]}
		lo, hi := env.Span(nodes)
		want := make([][]float32, 2) // of a run, as rows
		for run := range want {
			c, err := env.modelColumns(t.Context(), 2*per, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := c.eachPredicted(t.Context(), run, func(_ int64, soft []float32) error {
				want[run] = append(want[run], soft...)
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if err := c.free(); err != nil {
				t.Fatal(err)
			}
		}
		for _, way := range []struct {
			scratch int64
			once    bool
			block   int // panels
			passes  bool
		}{
			{1 << 30, true, 1, false}, {1 << 30, false, 2, false}, // all panels of a run in a file
			{0, true, 1, true}, {0, true, 3, true}, // no block in a file
			{0, false, 1, false}, {0, true, 2, true}, // blocks of several runs in a file
		} {
			c, err := env.modelColumns(t.Context(), 2*per, way.once)
			if err != nil {
				t.Fatal(err)
			}
			c.scratch = way.scratch
			columns := way.block * packed.PanelColumns
			passed := true
			for panel := 0; panel < 2*per; panel += way.block {
				got := allRows(t, c.columns, panel*packed.PanelColumns, columns)
				if int64(len(got)) != (hi-lo)*int64(columns) {
					t.Fatalf("%+v: panel %d has %d values, want %d", way, panel, len(got), (hi-lo)*int64(columns))
				}
				if panel/per == (panel+way.block-1)/per {
					passed = passed && c.from == c.to
				}
				for i := range hi - lo {
					for k := range way.block {
						run, class := (panel+k)/per, (panel+k)%per*packed.PanelColumns
						row := make([]float32, packed.PanelColumns)
						copy(row, want[run][i*classes:][class:min(class+packed.PanelColumns, classes)])
						if at := i*int64(columns) + int64(k)*packed.PanelColumns; !slices.Equal(got[at:at+packed.PanelColumns], row) {
							t.Fatalf("%+v: row %d of panel %d is %v, want %v", way, lo+i, panel+k, got[at:at+packed.PanelColumns], row)
						}
					}
				}
				if way.scratch == 0 {
					c.from, c.to = 0, 0
				}
			}
			if passed != way.passes {
				t.Errorf("%+v: blocks went past the disk: %v", way, passed)
			}
			if err := c.free(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
