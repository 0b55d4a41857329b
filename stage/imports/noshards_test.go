package imports_test

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/seal"
	"ndls/internal/storage/storagetest"
	"ndls/plan"
	"ndls/stage/registry"
	"ndls/stage/stagetest"
)

// With --shards none there are no edge shards, and the files of all stages after the partition equal those of a run that has shards.
func TestShardsThatAreNotWritten(t *testing.T) {
	for name, change := range map[string]func(*plan.Options){
		"ndls":      func(*plan.Options) {},
		"every hop": func(p *plan.Options) { p.Tolerance, p.LSI.Kmax, p.LSI.Epsilon = 0, 60, 0.01 },
		"features":  func(p *plan.Options) { p.LSI.Mode = "feature" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts, stages := stagetest.SmallPlan(), registry.Always()
			opts.Train.Runs, opts.Labels.Kmax = 1, 2
			change(&opts)
			m := stagetest.On(t, stagetest.Small)
			m.BlockColumns = 16
			with, without := storagetest.NewMem(), storagetest.NewMem()
			stagetest.Run(t, with, opts, m, stages...)
			opts.Partition.Shards = "none"
			stagetest.Run(t, without, opts, m, stages...)
			edges := func(path, _ string) bool {
				return strings.HasPrefix(path, "graph/edges/") || strings.HasPrefix(path, "graph/hops/")
			}
			want, got := stagetest.Sums(t, with), stagetest.Sums(t, without)
			maps.DeleteFunc(want, edges)
			maps.DeleteFunc(got, edges)
			stagetest.Compare(t, name, got, want)
			cat := stagetest.Open(t, without)
			if n := len(cat.Entries(catalog.KindEdges)); n > 0 || len(cat.Entries(catalog.KindHops)) == 0 {
				t.Errorf("%d shards, %d hop streams", n, len(cat.Entries(catalog.KindHops)))
			}
		})
	}
}

// A hop stream that is lost is made again from its shard. Where there is none, the error says that
// the import has to be repeated.
func TestHopStreamLostWithoutShards(t *testing.T) {
	for _, written := range []string{"", "none"} {
		opts, m, store := stagetest.SmallPlan(), stagetest.On(t, stagetest.Small), storagetest.NewMem()
		opts.Partition.Shards = written
		stagetest.Run(t, store, opts, m, control.Partition)
		cat := stagetest.Open(t, store)
		if err := store.Remove(t.Context(), cat.Entries(catalog.KindHops)[0].Path); err != nil {
			t.Fatal(err)
		}
		_, err := stagetest.Execute(t.Context(), cat, m.Task(control.LSI, opts))
		switch {
		case written == "" && err != nil:
			t.Errorf("with shards: %v", err)
		case written == "none" && (!errors.Is(err, seal.ErrCorrupt) || !strings.Contains(registry.Explain(err, cat).Error(), "ndls partition --dataset URI")):
			t.Errorf("without shards: %v", err)
		}
	}
}
