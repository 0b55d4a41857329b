package coordinator

import (
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/shards"
	"ndls/stage"
)

// TestProbeGroups: groups share the rows of panels of a probe where that is fastest by what workers have measured, or a size
// of groups is asked for. One group of all workers has all panels, and needs no steps, unless others have begun them.
func TestProbeGroups(t *testing.T) {
	const nodes, enough = 64 << 20, 64 << 30
	sum := shards.Summary{Nodes: nodes, Edges: 14 * nodes, Features: 128, Components: 1, BlockRows: 1 << 20, IntervalRows: 1 << 24}
	fast := control.Rates{Edges: 300e6, Network: 12e9, Store: 12e9}
	slow := control.Rates{Edges: 300e6, Network: 1e9, Store: 1e9}
	for _, tc := range []struct {
		name     string
		parallel Parallel
		size     int
		workers  int
		probes   int
		rates    control.Rates
		begun    bool
		group    int   // workers of a group, 0 where each has panels alone
		panels   []int // where those of groups begin, nil where there are no steps
	}{
		{"a network that decides", Grid, 0, 16, 32, slow, false, 8, []int{0, 1}},
		{"a fast one", Grid, 0, 16, 32, fast, false, 16, nil},
		{"columns would do", Auto, 0, 16, 32, slow, false, 8, []int{0, 1}},
		{"nobody has measured", Grid, 0, 16, 32, control.Rates{}, false, 8, []int{0, 1}},
		{"a size is asked for", Grid, 4, 16, 32, slow, false, 4, []int{0, 1}},
		{"several panels each", Grid, 4, 8, 64, slow, false, 4, []int{0, 2}},
		{"one panel", Grid, 4, 16, 16, slow, false, 16, nil},
		{"rows are shared", Intervals, 0, 16, 32, slow, false, 16, nil},
		{"others have begun", Intervals, 0, 16, 32, slow, true, 16, []int{0}},
		{"columns are asked for", Columns, 0, 16, 32, slow, false, 0, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, rec := partitioned(t, sum, tc.workers, control.Hello{Memory: enough, Rates: tc.rates})
			j.Parallel, j.Groups.Size = tc.parallel, tc.size
			j.Plan.LSI.Probes = tc.probes
			s := stage.Of(control.LSI)[0]
			if tc.begun {
				f, err := j.Catalog.Create(t.Context(), catalog.Describe(catalog.KindLSIRows, "lsi/rows/00001-00004").Panels(1, 2).AtHop(4))
				if err != nil {
					t.Fatal(err)
				}
				if err := j.Catalog.Commit(t.Context(), f); err != nil {
					t.Fatal(err)
				}
			}
			phases, g, err := j.phases(t.Context(), rec, s, sum)
			if err != nil {
				t.Fatal(err)
			}
			if tc.panels == nil {
				switch {
				case g != nil || tc.group == 0 && phases != nil:
					t.Fatalf("phases %v, groups %+v", phases, g)
				case tc.group > 0 && (len(phases) != 2 || len(phases[0]) != tc.group || phases[0][0].LastPanel > 0):
					t.Fatalf("phases %v", phases)
				}
				return
			}
			if g == nil || phases != nil {
				t.Fatalf("phases %v, groups %+v", phases, g)
			}
			left, err := s.Cut(j.Plan, sum).Next(t.Context(), j.Catalog)
			if err != nil {
				t.Fatal(err)
			}
			tasks := cutStep(control.LSI, left, tc.workers, g)
			if len(tasks) != tc.group*len(tc.panels) {
				t.Fatalf("%d tasks: %v", len(tasks), tasks)
			}
			for i, task := range tasks {
				if task.Part != control.Strips || task.FirstPanel != tc.panels[i/tc.group] || task.LastPanel <= task.FirstPanel || task.Needs == 0 || task.Needs > enough {
					t.Errorf("%s needs %d", task.ID(), task.Needs)
				}
			}
		})
	}
}
