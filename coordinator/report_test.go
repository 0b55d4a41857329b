package coordinator

import (
	"context"
	"io"
	"strings"
	"testing"

	"ndls/internal/control"
	"ndls/internal/storage"
)

// TestReportOfSplits has the figures of models and classes on the page, and both deviations.
func TestReportOfSplits(t *testing.T) {
	x := func(v float64) *float64 { return &v }
	spread := &control.Spread{Mean: 0.81, Std: 0.02, BetweenModels: 0.0031, BetweenSplits: 0.0177}
	r := Report{Dataset: DatasetReport{Name: "g", Normalization: "auto chose l1: few"}}
	r.Accuracy = &control.AccuracyReport{
		Base: control.SplitAccuracy{Train: spread, Test: spread}, Smoothed: control.SplitAccuracy{Test: spread}, Runs: 1, Splits: 2,
		Metrics: control.Metrics[*control.Spread]{
			Base:     control.Measures[*control.Spread]{MacroF1: control.SplitAccuracy{Train: spread, Test: spread}, AUC: control.SplitAccuracy{Test: &control.Spread{Mean: 0.9377}}},
			Smoothed: control.Measures[*control.Spread]{AUC: control.SplitAccuracy{Test: &control.Spread{Mean: 0.9388}}},
		},
		Models: []control.ModelAccuracy{
			{Base: control.OfSplits[*float64]{Test: x(0.8123)}, Epochs: 70, BestEpoch: 20},
			{Split: 1, Base: control.OfSplits[*float64]{Test: x(0.8077)}, Epochs: 90, BestEpoch: 40},
		},
		Classes:  []control.ClassFigures{{Class: "<b>", Nodes: 77, Precision: 0.5, Recall: 0.25, F1: 1. / 3}},
		Warnings: []string{"give more --epochs"},
	}
	r.Absent = []Absent{{Folder: "graph/features/", Option: "--keep-features=false", Why: "they were removed", Bytes: 3 << 20}}
	store := storage.NewMem()
	ctx := context.Background()
	if err := r.Write(ctx, store); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"report.html": {
			"over 2 splits with 1 model each", "is 0.31 between models of the same split and 1.77 between splits", "auto chose l1: few",
			"<td>1</td><td>0</td><td>40 of 90</td>", "<td>80.77</td>", "<td>93.77 ± 0.00</td>", "<td>93.88 ± 0.00</td>",
			"<td>&lt;b&gt;</td><td>77</td><td>50.00</td><td>25.00</td><td>33.33</td>", "macro F1 before label smoothing", "<strong>give more --epochs.</strong>",
			"<td>graph/features/</td><td>--keep-features=false</td><td>3.0 MiB</td><td>they were removed</td>",
		},
		"report.json": {`"std_between_splits": 0.0177`, `"best_epoch": 40`, `"roc_auc": {`, `"normalization": "auto chose l1: few"`},
	} {
		f, err := store.Open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(text), w) {
				t.Errorf("%s lacks %q:\n%s", name, w, text)
			}
		}
	}
}
