package coordinator

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/storage"
)

// TestRefusesBeforeWork refuses what the stated counts do not fit, and leaves
// what they do not tell to the partition.
func TestRefusesBeforeWork(t *testing.T) {
	for _, tc := range []struct {
		name   string
		counts estimate.Counts
		memory int64
		want   error
	}{
		{"unknown", estimate.Counts{}, 1 << 30, nil},
		{"fits", estimate.Counts{Nodes: 10, Edges: 20, StatedNodes: true, Features: 3, Classes: 2}, 1 << 30, nil},
		{"memory", estimate.Counts{Nodes: 1 << 30, Edges: 20, StatedNodes: true}, 1 << 30, mem.ErrBudget},
		{"disk", estimate.Counts{Nodes: 1 << 30, Edges: 1 << 50, StatedNodes: true}, 1 << 50, estimate.ErrDisk},
	} {
		store, err := storage.NewLocal(filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		j, f := setup(t, store, labelled)
		j.Counts, j.Resources.Memory, j.Resources.Scratch = tc.counts, tc.memory, filepath.Join(store.URI(), "scratch")
		rec, err := j.Run(context.Background(), control.Stages...)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", tc.name, err)
		}
		if tc.want != nil && (len(f.executed) > 0 || rec.State != Failed) {
			t.Errorf("%s: executed %v, state %s", tc.name, f.executed, rec.State)
		}
	}
}

// TestPlansEachStageFromWhatIsKnown uses the K table once it is there.
func TestPlansEachStageFromWhatIsKnown(t *testing.T) {
	j, _ := setup(t, storage.NewMem(), labelled)
	j.Plan.LSI.Kmax = 1000
	rec := run(t, j, control.Stages...)
	if rec.Stage(control.Partition).Planned != nil {
		t.Error("the partition was planned without counts")
	}
	// The fake K table goes up to 300, and one block holds all of the columns.
	for stage, passes := range map[control.Stage]int{control.LSI: estimate.DefaultHops, control.Smooth: 300, control.SmoothLabels: j.Plan.Labels.Kmax} {
		x := rec.Stage(stage)
		if x.Planned == nil || x.PlannedPeak != x.Planned.PeakBytes {
			t.Errorf("%s: planned %+v", stage, x.Planned)
		} else if x.Planned.Passes%passes != 0 || x.Planned.Passes == 0 {
			t.Errorf("%s: %d passes planned", stage, x.Planned.Passes)
		}
	}
}
