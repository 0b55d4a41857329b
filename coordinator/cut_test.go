package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
)

// cutGraph has 7 panels of features and 3 intervals.
var cutGraph = shards.Summary{Nodes: 25, IntervalRows: 10, Features: 100, Classes: make([]string, 20)}

// listed is a catalogue of files of some kinds in some cells.
func listed(t *testing.T, files map[string][]cell) *catalog.Catalog {
	t.Helper()
	cat, err := catalog.Open(context.Background(), storage.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	var entries []catalog.Entry
	for kind, cells := range files {
		for _, p := range cells {
			entries = append(entries, catalog.Entry{Kind: kind, Path: fmt.Sprint(kind, p), Interval: int32(p.interval), Block: int32(p.panel)})
		}
	}
	if err := cat.Apply(context.Background(), entries, nil, false); err != nil {
		t.Fatal(err)
	}
	return cat
}

// grid is all cells of some intervals and panels.
func grid(intervals, panels []int) (all []cell) {
	for _, i := range intervals {
		for _, g := range panels {
			all = append(all, cell{i, g})
		}
	}
	return all
}

func ids(phases [][]control.Task) string {
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

func cutOf(p plan.Options, s control.Stage) stage.Cut { return stage.Of(s)[0].Cut(p, cutGraph) }

func TestCut(t *testing.T) {
	const none = catalog.NotApplicable
	all := []int{0, 1, 2, 3, 4, 5, 6}
	rows := func(intervals ...int) []cell { return grid(intervals, []int{none}) }
	for _, tc := range []struct {
		name    string
		stage   control.Stage
		workers int
		change  func(*plan.Options)
		files   map[string][]cell
		want    string
	}{
		{"one worker", control.Smooth, 1, nil, nil, "smooth"},
		{"a stage without columns", control.LSI, 4, nil, nil, "lsi"},
		{"three workers", control.Smooth, 3, nil, nil, "columns/0-2 columns/2-4 columns/4-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3"},
		{"the last tasks are small", control.Smooth, 2, nil, nil, "columns/0-2 columns/2-4 columns/4-5 columns/5-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3"},
		{"many workers", control.Smooth, 4, nil, nil, "columns/0-1 columns/1-2 columns/2-3 columns/3-4 columns/4-5 columns/5-6 columns/6-7; rows/0-1 rows/1-2 rows/2-3"},
		{
			"some panels are there", control.Smooth, 2, nil,
			map[string][]cell{catalog.KindSmoothedTile: append(grid([]int{0, 1, 2}, []int{0, 3, 4}), grid([]int{0, 2}, []int{5})...)},
			"columns/1-3 columns/5-7; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"rows that are there need no tiles", control.Smooth, 2, nil,
			map[string][]cell{catalog.KindSmoothedTile: grid([]int{1, 2}, all), catalog.KindSmoothed: rows(0)},
			"rows/1-2 rows/2-3",
		},
		{
			"tiles left behind", control.Smooth, 2, nil,
			map[string][]cell{catalog.KindSmoothedTile: grid([]int{1}, []int{3}), catalog.KindSmoothed: rows(0, 1, 2)},
			"rows/1-2",
		},
		{"all is there", control.Smooth, 2, nil, map[string][]cell{catalog.KindSmoothed: rows(0, 1, 2)}, "smooth"},
		{
			"labels of three models", control.SmoothLabels, 3, func(p *plan.Options) { p.Train.Runs = 3 }, nil,
			"columns/0-2 columns/2-4 columns/4-6; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels that were counted, some of which are written", control.SmoothLabels, 3, func(p *plan.Options) { p.Train.Runs = 3 },
			map[string][]cell{
				catalog.KindSmoothedSoftTile: grid([]int{1, 2}, []int{0, 1, 2, 3, 4, 5}), catalog.KindLabelTally: rows(0, 1, 2),
				catalog.KindWritten: {{-1, -1}}, catalog.KindPredictions: rows(0, 1),
			},
			"rows/1-2 rows/2-3",
		},
		{
			"labels whose K is found by run", control.SmoothLabels, 2, func(p *plan.Options) { p.Train.Runs, p.Labels.Rule = 5, "ndls-reference" },
			map[string][]cell{catalog.KindSmoothedSoftTile: grid([]int{0, 1, 2}, []int{2, 3, 4})},
			"columns/0-2 columns/4-8 columns/8-10; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels that are corrected first", control.LabelDepth, 2, func(p *plan.Options) { p.Train.Runs, p.Labels.Rule = 2, plan.CorrectSmooth }, nil,
			"choose/0-0; columns/0-2 columns/2-4; rows/0-1",
		},
		{
			"labels that were corrected", control.SmoothLabels, 2, func(p *plan.Options) { p.Train.Runs, p.Labels.Rule = 2, plan.CorrectSmooth },
			map[string][]cell{catalog.KindCorrection: rows(0, 1, 2)},
			"columns/0-2 columns/2-4; count/0-1 count/1-2 count/2-3; pick/0-0; rows/0-1 rows/1-2 rows/2-3",
		},
		{
			"labels from elsewhere", control.SmoothLabels, 2, func(p *plan.Options) { p.Labels.SoftLabels = "other" },
			map[string][]cell{catalog.KindPredictions: rows(1)},
			"columns/0-1 columns/1-2; count/0-1 count/2-3; pick/0-0; rows/0-1 rows/2-3",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := plan.Default()
			if tc.change != nil {
				tc.change(&p)
			}
			if got := ids(cut(tc.stage, cutOf(p, tc.stage), listed(t, tc.files), tc.workers)); got != tc.want {
				t.Errorf("cut %q, want %q", got, tc.want)
			}
		})
	}
}

// Whatever the number of workers, a fresh stage's tasks cover each piece once.
func TestCutCoversAll(t *testing.T) {
	for workers := 2; workers < 20; workers++ {
		var columns, rows []int
		for _, phase := range cut(control.Smooth, cutOf(plan.Default(), control.Smooth), listed(t, nil), workers) {
			for _, task := range phase {
				for i := task.First; i < task.Last; i++ {
					if task.Part == control.Columns {
						columns = append(columns, i)
					} else {
						rows = append(rows, i)
					}
				}
			}
		}
		if !slices.Equal(columns, []int{0, 1, 2, 3, 4, 5, 6}) || !slices.Equal(rows, []int{0, 1, 2}) {
			t.Errorf("%d workers: columns %v, rows %v", workers, columns, rows)
		}
	}
}

func TestCutPartition(t *testing.T) {
	pieces := func(bounds ...int) (all []partition.Piece) {
		for i := 0; i < len(bounds); i += 2 {
			for k := bounds[i]; k < bounds[i+1]; k++ {
				all = append(all, partition.Piece{First: k, Last: k + 1})
			}
		}
		return all
	}
	for _, tc := range []struct {
		name    string
		left    partition.Left
		workers int
		want    string
	}{
		{"one worker", partition.Left{Step: partition.Split, Pieces: pieces(0, 1024)}, 1, "partition"},
		{"two workers", partition.Left{Step: partition.Split, Pieces: pieces(0, 1024)}, 2, "split/0-256 split/256-512 split/512-768 split/768-1024"},
		{"one worker is left", partition.Left{Step: partition.Merge, Shared: true, Pieces: pieces(0, 1024)}, 1, "merge/0-1024"},
		{"some parts are left", partition.Left{Step: partition.Split, Shared: true, Pieces: pieces(0, 10, 300, 302)}, 2, "split/0-3 split/3-6 split/6-9 split/9-10 split/300-302"},
		{"one order", partition.Left{Step: partition.Order, Shared: true, Pieces: pieces(0, 1)}, 3, "order/0-1"},
		{
			"files to relabel",
			partition.Left{Step: partition.Relabel, Shared: true, Pieces: []partition.Piece{{First: 0, Last: 400}, {First: 400, Last: 600}, {First: 600, Last: 1024}}},
			1, "relabel/0-1024",
		},
		{"files of few edges", partition.Left{Step: partition.Rows, Shared: true, Pieces: pieces(1, 6), Weights: []int64{60, 40, 5, 4, 1}}, 2, "rows/1-2 rows/2-3 rows/3-6"},
		{"features are read by each worker", partition.Left{Step: partition.Columns, Shared: true, Pieces: pieces(0, 7)}, 2, "columns/0-4 columns/4-7"},
		{"the summary", partition.Left{Step: partition.Whole}, 3, "partition"},
		{"nothing", partition.Left{}, 3, "partition"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := ids([][]control.Task{cutStep(control.Partition, tc.left, tc.workers, nil)}); got != tc.want {
				t.Errorf("cut %q, want %q", got, tc.want)
			}
		})
	}
}
