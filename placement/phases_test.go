package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/registry"
	"ndls/steps"
)

// small has 7 panels of features, 2 panels of classes and 3 intervals.
var small = shards.Summary{Nodes: 25, IntervalRows: 10, Features: 100, Classes: make([]string, 20)}

// files are committed files, by kind.
type files map[string][]cell

func (f files) entries(kind string) (list []catalog.Entry) {
	for _, c := range f[kind] {
		e := catalog.Entry{Kind: kind, Interval: int32(c.interval), Block: int32(c.panel)}
		if kind == catalog.KindCorrection {
			lo := int64(c.interval) * small.IntervalRows
			e = e.Holding(lo, min(lo+small.IntervalRows, small.Nodes))
		}
		list = append(list, e)
	}
	return list
}

// grid is all cells of some intervals and panels.
func grid(intervals, panels []int) (all []cell) {
	for _, i := range intervals {
		for _, p := range panels {
			all = append(all, cell{i, p})
		}
	}
	return all
}

// rows is the cells of files of whole intervals.
func rows(intervals ...int) []cell { return grid(intervals, []int{catalog.NotApplicable}) }

// text lists tasks phase by phase. It leaves out the stage where a part is named.
func text(phases ...[]control.Task) string {
	var names []string
	for _, phase := range phases {
		var of []string
		for _, t := range phase {
			of = append(of, strings.TrimPrefix(t.ID(), string(t.Stage)+"/"))
		}
		names = append(names, strings.Join(of, " "))
	}
	return strings.Join(names, "; ")
}

// group returns groups of two workers, each of which has one strip.
func group(groups int) *Sharing {
	return &Sharing{Groups: groups, Strips: []control.Task{{Part: control.Strips, First: 0, Last: 1}, {Part: control.Strips, First: 1, Last: 2}}}
}

func TestPhases(t *testing.T) {
	all := []int{0, 1, 2, 3, 4, 5, 6}
	corrects := func(p *plan.Options) { p.Train.Runs, p.Labels.Rule = 2, plan.CorrectSmooth }
	three := func(p *plan.Options) { p.Train.Runs = 3 }
	for _, tc := range []struct {
		name    string
		stage   control.Stage
		change  func(*plan.Options)
		have    files
		workers int
		groups  *Sharing
		want    string
	}{
		{"one worker", control.Smooth, nil, nil, 1, nil, "smooth"},
		{"a stage of one task", control.Evaluate, nil, nil, 4, nil, "evaluate"},
		{"a stage of steps", control.LSI, nil, nil, 4, nil, "lsi"},
		{"three workers", control.Smooth, nil, nil, 3, nil, "columns/0-2 columns/2-4 columns/4-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3"},
		{"the last tasks are small", control.Smooth, nil, nil, 2, nil, "columns/0-2 columns/2-4 columns/4-5 columns/5-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3"},
		{
			"many workers", control.Smooth, nil, nil, 4, nil,
			"columns/0-1 columns/1-2 columns/2-3 columns/3-4 columns/4-5 columns/5-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"some panels exist", control.Smooth, nil,
			files{catalog.KindSmoothedTile: append(grid([]int{0, 1, 2}, []int{0, 3, 4}), grid([]int{0, 2}, []int{5})...)},
			2, nil, "columns/1-3 columns/5-7; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"rows that exist need no tiles", control.Smooth, nil,
			files{catalog.KindSmoothedTile: grid([]int{1, 2}, all), catalog.KindSmoothed: rows(0)},
			2, nil, "rows/1-2 rows/2-3",
		},
		{
			"tiles left behind", control.Smooth, nil,
			files{catalog.KindSmoothedTile: grid([]int{1}, []int{3}), catalog.KindSmoothed: rows(0, 1, 2)},
			2, nil, "rows/1-2",
		},
		{
			"pieces of tiles left behind", control.Smooth, nil,
			files{catalog.KindSmoothedPart: grid([]int{2}, []int{3}), catalog.KindSmoothed: rows(0, 1, 2)},
			2, nil, "rows/2-3",
		},
		{"all exists", control.Smooth, nil, files{catalog.KindSmoothed: rows(0, 1, 2)}, 2, nil, "smooth"},
		{
			"labels of three models", control.SmoothLabels, three, nil,
			3, nil, "columns/0-2 columns/2-4 columns/4-6; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels that were counted, some of which are written", control.SmoothLabels, three,
			files{
				catalog.KindSmoothedSoftTile: grid([]int{1, 2}, []int{0, 1, 2, 3, 4, 5}), catalog.KindLabelTally: rows(0, 1, 2),
				catalog.KindWritten: {{-1, -1}}, catalog.KindPredictions: rows(0, 1),
			},
			3, nil, "rows/1-2 rows/2-3",
		},
		{
			"labels in tiles and best classes", control.SmoothLabels, three,
			files{catalog.KindSmoothedSoftTile: grid([]int{0, 1, 2}, []int{0, 1, 2}), catalog.KindBestClasses: grid([]int{0, 1, 2}, []int{3, 5})},
			2, nil, "columns/4-5; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels whose K is found by run", control.SmoothLabels, func(p *plan.Options) { p.Train.Runs, p.Labels.Rule = 5, "ndls-reference" },
			files{catalog.KindSmoothedSoftTile: grid([]int{0, 1, 2}, []int{2, 3, 4})},
			2, nil, "columns/0-2 columns/4-8 columns/8-10; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{"labels that are corrected first", control.LabelDepth, corrects, nil, 2, nil, "choose/0-0; columns/0-2 columns/2-4; rows/0-1"},
		{
			"labels that were corrected", control.SmoothLabels, corrects,
			files{catalog.KindCorrection: rows(0, 1, 2)},
			2, nil, "columns/0-2 columns/2-4; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels from elsewhere", control.SmoothLabels, func(p *plan.Options) { p.Labels.SoftLabels = "other" },
			files{catalog.KindPredictions: rows(1)},
			2, nil, "columns/0-1 columns/1-2; count/0-1 count/2-3; pick/0-0; rows/0-1 rows/2-3",
		},
		{"one group", control.Smooth, nil, nil, 2, group(1), "strips/0-1 strips/1-2; rows/0-1 rows/1-2 rows/2-3"},
		{
			"two groups, some panels exist", control.Smooth, nil,
			files{catalog.KindSmoothedTile: grid([]int{0, 1, 2}, []int{0, 1, 2})},
			4, group(2),
			"strips/0-1/panels/3-5 strips/1-2/panels/3-5 strips/0-1/panels/5-7 strips/1-2/panels/5-7; rows/0-1 rows/1-2 rows/2-3",
		},
		{"a group without work", control.Smooth, nil, files{catalog.KindSmoothed: rows(0, 1)}, 2, group(1), "strips/0-1 strips/1-2; rows/2-3"},
		{"only rows for a group", control.Smooth, nil, files{catalog.KindSmoothedTile: grid([]int{0, 1, 2}, all)}, 2, group(1), "rows/0-1 rows/1-2 rows/2-3"},
		{"a group that trains all models", control.Train, three, nil, 2, group(1), "strips/0-1 strips/1-2; train"},
		{
			"two groups that train three models", control.Train, three, nil, 4, group(2),
			"strips/0-1/panels/0-1 strips/1-2/panels/0-1 strips/0-1/panels/1-3 strips/1-2/panels/1-3; train",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := plan.Default()
			if tc.change != nil {
				tc.change(&p)
			}
			if tc.groups != nil {
				for i := range tc.groups.Strips {
					tc.groups.Strips[i].Stage = tc.stage
				}
			}
			got := text(Phases(tc.stage, registry.Of(tc.stage)[0].Shape(p, small), tc.have.entries, tc.workers, tc.groups)...)
			if got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}

// TestPhasesCoverAll: the tasks of a stage that has not begun cover each piece once, for any number of workers.
func TestPhasesCoverAll(t *testing.T) {
	shape := registry.Of(control.Smooth)[0].Shape(plan.Default(), small)
	for workers := 2; workers < 20; workers++ {
		covered := map[control.Part][]int{}
		for _, task := range slices.Concat(Phases(control.Smooth, shape, files{}.entries, workers, nil)...) {
			for i := task.First; i < task.Last; i++ {
				covered[task.Part] = append(covered[task.Part], i)
			}
		}
		if got := fmt.Sprint(covered); got != "map[columns:[0 1 2 3 4 5 6] rows:[0 1 2]]" {
			t.Errorf("%d workers: %s", workers, got)
		}
	}
}

// units returns pieces of one each, from the first to the last of each pair of bounds.
func units(bounds ...int) (all []steps.Piece) {
	for i := 0; i < len(bounds); i += 2 {
		for k := bounds[i]; k < bounds[i+1]; k++ {
			all = append(all, steps.Unit(k))
		}
	}
	return all
}

func TestStep(t *testing.T) {
	const columns, rows = string(control.Columns), string(control.Rows)
	each := func(workers int) int { return workers }
	for _, tc := range []struct {
		name    string
		left    steps.Left
		workers int
		groups  *Sharing
		want    string
	}{
		{"one worker", steps.Left{Step: "split", Pieces: units(0, 1024)}, 1, nil, "partition"},
		{"two workers", steps.Left{Step: "split", Pieces: units(0, 1024)}, 2, nil, "split/0-256 split/256-512 split/512-768 split/768-1024"},
		{"little work", steps.Left{Step: "split", Pieces: units(0, 1024), Small: true}, 2, nil, "partition"},
		{"one worker is left", steps.Left{Step: "merge", Shared: true, Pieces: units(0, 1024)}, 1, nil, "merge/0-1024"},
		{
			"some parts are left",
			steps.Left{Step: "split", Shared: true, Pieces: units(0, 10, 300, 302)},
			2, nil, "split/0-3 split/3-6 split/6-9 split/9-10 split/300-302",
		},
		{"one order", steps.Left{Step: "order", Shared: true, Pieces: units(0, 1)}, 3, nil, "order/0-1"},
		{
			"files to relabel",
			steps.Left{Step: "relabel", Shared: true, Pieces: []steps.Piece{{First: 0, Last: 400}, {First: 400, Last: 600}, {First: 600, Last: 1024}}},
			1, nil, "relabel/0-1024",
		},
		{
			"files of few edges",
			steps.Left{Step: "rows", Shared: true, Pieces: units(1, 6), Weights: []int64{60, 40, 5, 4, 1}},
			2, nil, "rows/1-2 rows/2-3 rows/3-6",
		},
		{"features are read by each worker", steps.Left{Step: "columns", Shared: true, Pieces: units(0, 7), Count: steps.Each}, 2, nil, "columns/0-4 columns/4-7"},
		{"the summary", steps.Left{Step: "whole"}, 3, nil, "partition"},
		{"nothing", steps.Left{}, 3, nil, "partition"},
		{"groups take panels", steps.Left{Step: columns, Pieces: units(0, 3), Count: each}, 4, group(2), "strips/0-1/panels/0-2 strips/1-2/panels/0-2 strips/0-1/panels/2-3 strips/1-2/panels/2-3"},
		{"a group has all panels", steps.Left{Step: columns, Pieces: units(0, 3), Count: each}, 2, group(1), "strips/0-1 strips/1-2"},
		{"a group has the panels that are left", steps.Left{Step: columns, Shared: true, Pieces: units(1, 3), Count: each}, 2, group(1), "strips/0-1/panels/1-3 strips/1-2/panels/1-3"},
		{"each worker of groups has pieces of nodes", steps.Left{Step: rows, Pieces: units(0, 4)}, 2, group(1), "rows/0-1 rows/1-2 rows/2-3 rows/3-4"},
		{"groups are done", steps.Left{Small: true}, 2, group(1), "partition"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := text(Step(control.Partition, tc.left, tc.workers, tc.groups)); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
