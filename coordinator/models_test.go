package coordinator

import (
	"testing"

	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/stage"
)

// TestModelGroups: workers train a model together where there are fewer models than workers, and that saves time by
// what they have measured, or a size of groups is asked for.
func TestModelGroups(t *testing.T) {
	const enough = 8 << 30
	large := shards.Summary{
		Nodes: 40 * packed.StripRows, Edges: 400 * packed.StripRows, Features: 128, Components: 1, BlockRows: 1 << 20, IntervalRows: 1 << 24,
		Classes: make([]string, 172), Labelled: 1_200_000, Splits: map[string]int64{"train": 1_000_000, "valid": 100_000},
	}
	small := large
	small.Splits = map[string]int64{"train": 140, "valid": 500}
	strip := large
	strip.Nodes = packed.StripRows
	lan := control.Rates{Edges: 100e6, Network: 1e9, Store: 1e9, Delay: 0.1e-3}
	slow := control.Rates{Edges: 100e6, Network: 1e6, Store: 1e9, Delay: 0.1e-3}
	far := control.Rates{Edges: 100e6, Network: 1e9, Store: 1e9, Delay: 0.05}
	for _, tc := range []struct {
		name        string
		sum         shards.Summary
		parallel    Parallel
		size        int
		workers     int
		runs        int
		memory      int64
		rates       control.Rates
		group, many int // workers of a group, 0 for models alone, and groups
	}{
		{"one model", large, Auto, 0, 2, 1, enough, lan, 2, 1},
		{"rows are shared", large, Intervals, 0, 2, 1, enough, lan, 2, 1},
		{"two models", large, Auto, 0, 4, 2, enough, lan, 2, 2},
		{"a model for each", large, Auto, 0, 4, 4, enough, lan, 0, 0},
		{"a slow network", large, Auto, 0, 2, 1, enough, slow, 0, 0},
		{"a distant one", large, Auto, 0, 2, 1, enough, far, 0, 0},
		{"nobody has measured", large, Auto, 0, 2, 1, enough, control.Rates{}, 0, 0},
		{"few rows", small, Auto, 0, 2, 1, enough, lan, 0, 0},
		{"one strip", strip, Auto, 0, 2, 1, enough, lan, 0, 0},
		{"little memory", large, Auto, 0, 2, 1, 32 << 20, lan, 0, 0},
		{"columns are asked for", large, Columns, 0, 2, 1, enough, lan, 0, 0},
		{"a size is asked for", small, Grid, 3, 4, 1, enough, control.Rates{}, 3, 1},
		{"none is asked for", large, Grid, 1, 4, 1, enough, lan, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j, rec := partitioned(t, tc.sum, tc.workers, control.Hello{Memory: tc.memory, Rates: tc.rates})
			j.Parallel, j.Groups.Size = tc.parallel, tc.size
			j.Plan.Train.Runs, j.Plan.Train.Hidden = tc.runs, 256
			phases, _, err := j.phases(t.Context(), rec, stage.Of(control.Train)[0], tc.sum)
			if err != nil {
				t.Fatal(err)
			}
			if tc.group == 0 {
				if phases != nil {
					t.Fatalf("phases %v", phases)
				}
				return
			}
			if len(phases) != 2 || len(phases[0]) != tc.group*tc.many || len(phases[1]) != 1 || phases[1][0].Part != control.Whole {
				t.Fatalf("phases %v", phases)
			}
			models := 0
			for i, task := range phases[0] {
				if i%tc.group == 0 && (task.First != 0 || task.LastPanel > 0 && task.FirstPanel != models) ||
					i%tc.group > 0 && task.First != phases[0][i-1].Last || i%tc.group == tc.group-1 && task.Last != packed.Strips(tc.sum.Nodes) {
					t.Errorf("%s after others", task.ID())
				}
				models = task.LastPanel
				if task.Needs > tc.memory || task.Needs < 1<<20 {
					t.Errorf("%s needs %d bytes", task.ID(), task.Needs)
				}
			}
			if tc.many > 1 && models != tc.runs {
				t.Errorf("groups have %d models of %d", models, tc.runs)
			}
		})
	}
}
