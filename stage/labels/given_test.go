package labels_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage/storagetest"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestSoftLabelsOfAnotherModel smooths given soft labels: those of the run
// itself, exported by hand, must give what the run's own give; wrong files are
// refused.
func TestSoftLabelsOfAnotherModel(t *testing.T) {
	plan := stagetest.SmallPlan()
	plan.Train.Runs = 1
	store := storagetest.NewMem()
	stagetest.Run(t, store, plan, stagetest.On(t, stagetest.Small), registry.Always()...)
	plan.Labels.Depth = "3"
	stagetest.Run(t, store, plan, stagetest.On(t, stagetest.Small), control.SmoothLabels)
	want := stagetest.Rows(t, store, catalog.KindPredictions)

	dir := t.TempDir()
	soft := stagetest.Rows(t, store, catalog.KindSoftLabels)
	var text strings.Builder
	text.WriteString("id,a,b,c,d\n")
	for id := range int64(len(soft)) {
		fmt.Fprintf(&text, "%d", id)
		for _, x := range soft[id] {
			fmt.Fprintf(&text, ",%v", x)
		}
		text.WriteString("\n")
	}
	lines := strings.SplitAfter(text.String(), "\n")
	for name, c := range map[string]struct{ text, problem string }{
		"all.csv":      {text.String(), ""},
		"missing.csv":  {strings.Join(lines[:len(lines)-2], ""), "2999 rows for 3000 nodes"},
		"twice.csv":    {text.String() + lines[1], "has a second row"},
		"unknown.csv":  {text.String() + "3000,1,0,0,0\n", "unknown"},
		"negative.csv": {strings.Replace(text.String(), "\n17,", "\n17,-", 1), "probabilities are at least 0"},
		"narrow.csv":   {"id,a\n0,1\n", "give 4 probabilities"},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		other := storagetest.NewMem()
		p := plan
		p.Labels.SoftLabels = name
		res := stagetest.On(t, stagetest.Small)
		res.SoftLabels = path
		p.Labels.Depth = "3"
		stagetest.Run(t, other, p, res, control.Partition, control.LSI)
		_, err := stagetest.Execute(t.Context(), stagetest.Open(t, other), res.Task(control.SmoothLabels, p))
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v, want it to say %q", name, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got := stagetest.Rows(t, other, catalog.KindPredictions)
		for id, w := range want {
			if !slices.Equal(got[id], w) {
				t.Fatalf("node %d: %v, from the run's own soft labels %v", id, got[id], w)
			}
		}
	}
}
