package coordinator

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/vfs"
	"ndls/internal/vfs/vfstest"
	"ndls/stage/registry"
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
		rec, err := j.Run(context.Background(), registry.Always()...)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", tc.name, err)
		}
		if tc.want != nil && (len(f.executed) > 0 || rec.State != "" || read(t, store) != nil) {
			t.Errorf("%s: executed %v, state %s: what is refused leaves nothing behind", tc.name, f.executed, rec.State)
		}
	}
}

// TestSpaceThatIsNotKnown runs where the file system is full, and where it does not say
// its size: ramfs reports no blocks at all.
func TestSpaceThatIsNotKnown(t *testing.T) {
	for _, tc := range []struct {
		name  string
		space vfs.Space
		want  error
	}{
		{"full", vfs.Space{Total: 1 << 30}, estimate.ErrDisk},
		{"no size", vfs.Space{}, nil},
	} {
		disk := vfstest.NewMem("/disks/space")
		disk.SetSpace(tc.space)
		unmount := disk.Mount()
		store, err := storage.NewLocal("/disks/space/run")
		if err != nil {
			t.Fatal(err)
		}
		j, _ := setup(t, store, labelled)
		j.Counts = estimate.Counts{Nodes: 10, Edges: 20, StatedNodes: true, Features: 3, Classes: 2}
		j.Resources.Memory, j.Resources.Scratch = 1<<30, "/disks/space/run/scratch"
		if _, err := j.Run(context.Background(), registry.Always()...); !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", tc.name, err)
		}
		unmount()
	}
}

// TestPlansEachStageFromWhatIsKnown uses the K table once it is there.
func TestPlansEachStageFromWhatIsKnown(t *testing.T) {
	j, _ := setup(t, storagetest.NewMem(), labelled)
	j.Plan.LSI.Kmax = 1000
	rec := run(t, j, registry.Always()...)
	if rec.Stage(control.Partition).Planned != nil {
		t.Error("the partition was planned without counts")
	}
	// The fake K table goes up to 300, and one block holds all of the columns. 8 + 104 passes take the place of 1000 hops,
	// 48 of 300, 17 of 40; K and features take 10 more to find the rows that move.
	for stage, passes := range map[control.Stage]int{control.LSI: 122, control.Smooth: 58, control.SmoothLabels: 17} {
		x := rec.Stage(stage)
		if x.Planned == nil || x.PlannedPeak != x.Planned.PeakBytes {
			t.Errorf("%s: planned %+v", stage, x.Planned)
		} else if x.Planned.Passes%passes != 0 || x.Planned.Passes == 0 {
			t.Errorf("%s: %d passes planned", stage, x.Planned.Passes)
		}
	}
}

// TestPartitionByWorkersIsPlanned: where each worker has its own memory, the one with
// most decides, before work.
func TestPartitionByWorkersIsPlanned(t *testing.T) {
	counts := estimate.Counts{Nodes: 1 << 26, Edges: 1 << 26, StatedNodes: true}
	for _, tc := range []struct {
		name   string
		memory []int64
		want   error
	}{
		{"too little", []int64{1 << 29, 1 << 29}, mem.ErrBudget},
		{"enough for one", []int64{1 << 29, 4 << 30}, nil},
	} {
		store := storagetest.NewMem()
		j, f := setup(t, store, labelled)
		o := &offered{fake: f}
		for i, m := range tc.memory {
			o.workers = append(o.workers, control.Hello{Worker: string(rune('a' + i)), Memory: m, Threads: 1})
		}
		j.Tasks, j.Counts, j.Resources = o, counts, control.Resources{}
		rec, err := ReadRecord(context.Background(), store)
		if err != nil {
			t.Fatal(err)
		}
		if rec == nil {
			rec = &Record{Format: RecordFormat}
		}
		planned, err := j.forecast().figures(context.Background(), rec, control.Partition)
		if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) {
			t.Errorf("%s: error %v", tc.name, err)
		}
		if err != nil {
			continue
		}
		alone, err := estimate.Run(counts, j.Plan, o.workers[1].Resources(), 0, registry.Costs(control.Partition)...)
		if err != nil || planned == nil || planned.BytesWritten <= alone[0].BytesWritten || planned.PeakDiskBytes <= alone[0].PeakDiskBytes {
			t.Errorf("%s: planned %+v, for one worker %+v, %v", tc.name, planned, alone, err)
		}
	}
}

// peopled has workers that are here, each with its own memory.
type peopled struct {
	*fake
	here []control.Hello
}

func (p *peopled) Here() []control.Hello { return p.here }
func (p *peopled) Workers() int          { return max(len(p.here), 1) }

// TestTimesOfACoordinator: stages are planned for the workers that are here, and not at all where none is.
func TestTimesOfACoordinator(t *testing.T) {
	j, f := setup(t, storagetest.NewMem(), labelled)
	p := &peopled{fake: f}
	j.Tasks, j.Resources = p, control.Resources{}
	// Of so many hops it counts little that one worker alone leaves rows out of the last ones.
	j.Counts = estimate.Counts{Nodes: 1 << 22, Edges: 1 << 26, StatedNodes: true, Features: 128, Classes: 10, Training: 1 << 10, Hops: 60}
	rec := &Record{Format: RecordFormat}
	later := []control.Stage{control.Smooth}
	expected := func() progress.Stage { return j.forecast().expected(t.Context(), rec, control.LSI, nil, later) }
	if x := expected(); x.Planned != 0 || x.After >= 0 {
		t.Errorf("without workers %+v is planned", x)
	}
	p.here = []control.Hello{{Worker: "a", Memory: 4 << 30, Threads: 2}, {Worker: "b", Memory: 16 << 30, Threads: 4}}
	two := expected()
	alone, err := estimate.Run(j.Counts, j.Plan, p.here[1].Resources(), 0, registry.Costs(control.LSI, control.Smooth)...)
	if err != nil || two.Planned <= 0 || two.After <= 0 || two.After >= alone[1].Seconds {
		t.Errorf("with two workers %+v is planned, with one %+v, %v", two, alone, err)
	}
	j.Resources = p.here[0].Resources() // of workers on this host
	if x := expected(); x.After <= two.After {
		t.Errorf("with the resources of one worker %+v is planned, with those of two %+v", x, two)
	}
}
