package registry_test

import (
	"slices"
	"testing"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/internal/testkit"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// TestPlannedTraffic runs every stage on a store that counts, and compares bytes read, written and left, and the memory of the budget, with
// those that are planned once the graph and its hops are known. A stage that reads a table once more than it is planned to fails.
func TestPlannedTraffic(t *testing.T) {
	const graph = "synthetic:nodes=40000,edges=160000,features=40,classes=24,seed=1"
	const many = "synthetic:nodes=20000,edges=80000,features=16,classes=172,seed=1"
	for name, c := range map[string]struct {
		dataset string
		memory  int64
		always  bool
		change  func(*plan.Options)
	}{
		"in memory":          {graph, 1 << 30, true, func(*plan.Options) {}},
		"on disk":            {"synthetic:nodes=200000,edges=2000000,features=32,classes=8,seed=1", 144 << 20, false, func(*plan.Options) {}},
		"weights":            {graph + ",weights=6", 512 << 20, false, func(*plan.Options) {}},
		"two classes":        {"synthetic:nodes=40000,edges=160000,features=40,classes=2,seed=1", 512 << 20, false, func(*plan.Options) {}},
		"best probabilities": {many, 512 << 20, false, func(p *plan.Options) { p.Probabilities = plan.BestProbability }},
		"light": {many, 512 << 20, true, func(p *plan.Options) {
			p.Probabilities, p.DropFeatures, p.Partition.Shards = plan.BestProbability, true, "none"
			p.Smooth.SmoothedPrecision, p.Labels.Depth = "float16", "2"
		}},
		"float16": {many, 512 << 20, false, func(p *plan.Options) {
			p.Probabilities, p.DropFeatures, p.Labels.Depth, p.Precision = plan.BestProbability, true, "0", "float16"
		}},
		"label columns": {graph, 512 << 20, false, func(p *plan.Options) { p.Smooth.LabelColumns = 2 }},
		"correction":    {graph, 512 << 20, true, func(p *plan.Options) { p.Labels.Rule, p.Labels.CorrectHops = plan.CorrectSmooth, 2 }},
		"kept hops": {graph, 512 << 20, false, func(p *plan.Options) {
			p.Smooth.KeepHops, p.Smooth.Targets, p.Precision = "1,2", plan.LabelledTargets, "float16"
		}},
		"sign": {graph, 512 << 20, false, func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.LabelColumns, p.Precision = "sign", 2, 2, "float16"
		}},
		"nafs": {graph, 512 << 20, true, func(p *plan.Options) {
			p.Smooth.Rule, p.Smooth.Hops, p.Smooth.Depth, p.Smooth.Targets = "nafs", 3, plan.NodeDepth, plan.LabelledTargets
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.always {
				testkit.Slow(t, "the same for further options")
			}
			p := plan.Default()
			p.Partition.Dataset = c.dataset
			p.LSI.Epsilon, p.LSI.Probes = 0.1, 16
			p.Train.Runs, p.Train.Epochs, p.Train.Hidden, p.Labels.Kmax = 1, 1, 16, 2
			c.change(&p)
			checkTraffic(t, p, c.memory)
		})
	}
}

func checkTraffic(t *testing.T, p plan.Options, memory int64) {
	store := storage.NewCounting(storagetest.NewMem())
	setup := stagetest.On(t, p.Partition.Dataset)
	setup.Memory = memory
	var counts estimate.Counts
	left := int64(0)
	traffic := func() (read, written int64) {
		read, written = direct.ScratchTraffic()
		return read + store.BytesRead(), written + store.BytesWritten()
	}
	size := func() (bytes int64) {
		for _, e := range stagetest.Open(t, store).All() {
			bytes += e.Bytes
		}
		return bytes
	}
	stages := []control.Stage{control.Partition}
	for i := 0; i < len(stages); i++ {
		s := stages[i]
		readBefore, writtenBefore := traffic()
		report := stagetest.Run(t, store, p, setup, s)[0]
		read, written := traffic()
		read, written = read-readBefore, written-writtenBefore
		if s == control.Partition {
			cat := stagetest.Open(t, store)
			summary, err := shards.ReadSummary(t.Context(), cat)
			if err != nil {
				t.Fatal(err)
			}
			counts = stage.CountsOf(cat, summary)
			counts.StatedNodes = true
			stages = append(stages, slices.DeleteFunc(registry.Possible(p, counts), func(s control.Stage) bool { return s == control.Partition })...)
		}
		if s == control.LSI {
			stage.Learn(&counts, report)
		}
		list, err := estimate.Run(counts, p, setup.Resources, 0, registry.Costs(s)...)
		if err != nil {
			t.Fatal(err)
		}
		planned := list[0]
		stage.Learn(&counts, report)
		near := func(what string, planned, counted int64) {
			t.Helper()
			const share, slack = 0.1, 96 << 10
			over := float64(planned) > (1+share)*float64(counted)+slack && s != control.LSI // whether K is found by polynomials is not planned
			if over || float64(counted) > (1+share)*float64(planned)+slack {
				t.Errorf("%s: %d bytes %s are planned, %d are counted", s, planned, what, counted)
			}
		}
		near("read", planned.BytesRead, read)
		near("written", planned.BytesWritten, written)
		if left += planned.DiskBytes; i == len(stages)-1 {
			near("left by all stages", left, size())
		}
		const program = 71 << 20 // beside the budget, of which not all pages are touched
		if used := report.PlannedPeak - mem.Total(0) + program; used > planned.PeakBytes+planned.PeakBytes/20+16<<20 {
			t.Errorf("%s: %d bytes of memory are planned, %d are reserved", s, planned.PeakBytes, used)
		}
	}
}
