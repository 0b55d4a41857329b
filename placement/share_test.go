package placement

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testprogram"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage/registry"
)

// These are rates of workers: near ones, of which eight compute a hop sooner than they receive it, and others.
var (
	unknown = control.Rates{}
	fast    = control.Rates{Edges: 100e6, Network: 5e9, Store: 1e9}
	near    = control.Rates{Edges: 100e6, Network: 1.25e9, Store: 1e9}
	slow    = control.Rates{Edges: 100e6, Network: 1e6, Store: 1e9}
	local   = control.Rates{Edges: 300e6, Network: 12e9, Store: 12e9}
	gigabit = control.Rates{Edges: 300e6, Network: 1e9, Store: 1e9}
	lan     = control.Rates{Edges: 100e6, Network: 1e9, Store: 1e9, Delay: 0.1e-3}
	thin    = control.Rates{Edges: 100e6, Network: 1e6, Store: 1e9, Delay: 0.1e-3}
	far     = control.Rates{Edges: 100e6, Network: 1e9, Store: 1e9, Delay: 0.05}
)

// shared is one case: workers, and the groups that they form.
type shared struct {
	name     string
	parallel Parallel
	size     int // --group-size
	workers  int
	memory   int64
	rates    control.Rates
	want     string // groups of workers, "alone" or "misfit"
}

// work returns the work of a stage on a graph.
func work(name control.Stage, p plan.Options, sum shards.Summary, hops int) Work {
	s := registry.Of(name)[0]
	c := estimate.Counts{
		Nodes: sum.Nodes, Edges: sum.Edges, Components: 1, Features: sum.Features, Classes: len(sum.Classes), Hops: hops,
		Training: sum.Splits["train"], Validation: sum.Splits["valid"], Labelled: sum.Labelled,
	}
	edges := slices.Repeat([]float64{float64(sum.Edges) / float64(packed.Strips(sum.Nodes))}, packed.Strips(sum.Nodes))
	return Work{Stage: s, Shape: s.Shape(p, sum), Plan: p, Counts: c, Edges: edges}
}

// share compares how the workers of rows share with what they want.
func share(t *testing.T, w Work, table []shared) {
	t.Helper()
	for _, tc := range table {
		t.Run(tc.name, func(t *testing.T) {
			if testprogram.Small && tc.want == "10 of 6" {
				t.Skip("workers share smaller strips more evenly: 7 in a group")
			}
			var workers []control.Hello
			for i := range tc.workers {
				workers = append(workers, control.Hello{Worker: fmt.Sprint(i), Memory: tc.memory, Threads: 1, Rates: tc.rates})
			}
			w.Parallel, w.GroupSize = tc.parallel, tc.size
			g, err := w.Share(workers)
			if got := described(g, err); got != tc.want {
				t.Fatalf("%s, want %s", got, tc.want)
			}
			if g != nil {
				check(t, g, packed.Strips(w.Counts.Nodes), tc.memory)
			}
		})
	}
}

func described(g *Sharing, err error) string {
	_, misfit := errors.AsType[Misfit](err)
	switch {
	case misfit && errors.Is(err, mem.ErrBudget):
		return "misfit"
	case err != nil:
		return err.Error()
	case g == nil:
		return "alone"
	}
	return fmt.Sprintf("%d of %d", g.Groups, len(g.Strips))
}

// check sees that the workers of a group have all strips, and that each has the memory for its own.
func check(t *testing.T, g *Sharing, strips int, memory int64) {
	t.Helper()
	borders := g.Borders()
	if !slices.IsSorted(borders) || len(slices.Compact(slices.Clone(borders))) != len(borders) || borders[0] != 0 || borders[len(borders)-1] != strips {
		t.Errorf("borders %v of %d strips", borders, strips)
	}
	for _, task := range g.Strips {
		if task.Needs > memory || task.Needs < 1<<20 {
			t.Errorf("%s needs %d bytes of %d", task.ID(), task.Needs, memory)
		}
	}
}

// TestShareColumns: groups are as large as memory, columns and rates make best, or as asked for, and all workers have columns.
func TestShareColumns(t *testing.T) {
	const nodes = 64 << 20
	sum := shards.Summary{Nodes: nodes, Edges: 8 * nodes, Features: 128, IntervalRows: 1 << 24}
	w := work(control.Smooth, plan.Default(), sum, 10)
	alone, err := estimate.Run(w.Counts, w.Plan, control.Resources{Memory: 1 << 40, Threads: 1}, 0, w.Stage)
	if err != nil {
		t.Fatal(err)
	}
	least, enough := alone[0].LeastBytes, 4*alone[0].PeakBytes
	share(t, w, []shared{
		{"more workers than panels", Grid, 0, 16, enough, unknown, "8 of 2"},
		{"fewer workers than panels", Grid, 0, 4, enough, unknown, "2 of 2"},
		{"a size that is asked for", Grid, 4, 16, enough, unknown, "4 of 4"},
		{"one that is too large", Grid, 40, 16, enough, unknown, "1 of 16"},
		{"columns that are asked for", Grid, 1, 16, enough, unknown, "alone"},
		{"nobody has measured", Auto, 0, 16, enough, unknown, "alone"},
		{"a fast network", Auto, 0, 16, enough, fast, "8 of 2"},
		{"a slow network", Auto, 0, 16, enough, slow, "alone"},
		{"a fast network, and enough panels", Auto, 0, 8, enough, fast, "alone"},
		{"little memory", Auto, 0, 16, least * 3 / 4, slow, "8 of 2"},
		{"little memory, and nobody has measured", Auto, 0, 2, least * 3 / 4, unknown, "1 of 2"},
		{"too little memory for shares", Auto, 0, 2, least / 50, unknown, "misfit"},
		{"too little memory for the shares that are asked for", Intervals, 0, 2, least / 50, unknown, "misfit"},
		{"all rows in one group", Intervals, 0, 16, enough, fast, "1 of 16"},
		{"a network that decides", Grid, 0, 64, enough, near, "10 of 6"},
		{"a network that decides, automatically", Auto, 0, 64, enough, near, "10 of 6"},
		{"one worker", Intervals, 0, 1, enough, fast, "alone"},
		{"nobody", Grid, 0, 0, enough, fast, "alone"},
	})
}

// TestShareProbe: groups share the rows of panels of a probe where that is fastest by the measured rates, or a size is asked for.
func TestShareProbe(t *testing.T) {
	const nodes, enough = 64 << 20, 64 << 30
	sum := shards.Summary{Nodes: nodes, Edges: 14 * nodes, Features: 128, IntervalRows: 1 << 24}
	probes := func(n int) Work {
		p := plan.Default()
		p.LSI.Probes = n
		w := work(control.LSI, p, sum, 0)
		w.Counts.Hops = p.LSI.Kmax
		return w
	}
	share(t, probes(32), []shared{
		{"a network that decides", Grid, 0, 16, enough, gigabit, "2 of 8"},
		{"a fast one", Grid, 0, 16, enough, local, "1 of 16"},
		{"columns suffice", Auto, 0, 16, enough, gigabit, "2 of 8"},
		{"nobody has measured", Grid, 0, 16, enough, unknown, "2 of 8"},
		{"a size is asked for", Grid, 4, 16, enough, gigabit, "4 of 4"},
		{"rows are shared", Intervals, 0, 16, enough, gigabit, "1 of 16"},
	})
	share(t, probes(64), []shared{{"several panels each", Grid, 4, 8, enough, gigabit, "2 of 4"}})
	share(t, probes(16), []shared{{"one panel", Grid, 4, 16, enough, gigabit, "1 of 16"}})
}

// TestShareModels: workers train a model together where there are fewer models than workers, and that saves time by the measured rates, or
// a size is asked for.
func TestShareModels(t *testing.T) {
	const enough, little = 8 << 30, 32 << 20
	large := shards.Summary{
		Nodes: 40 * packed.StripRows, Edges: 400 * packed.StripRows, Features: 128, IntervalRows: 1 << 24,
		Classes: make([]string, 172), Labelled: 1_200_000, Splits: map[string]int64{"train": 1_000_000, "valid": 100_000},
	}
	few, strip := large, large
	few.Splits = map[string]int64{"train": 140, "valid": 500}
	strip.Nodes = packed.StripRows
	models := func(n int, sum shards.Summary) Work {
		p := plan.Default()
		p.Train.Runs, p.Train.Hidden = n, 256
		w := work(control.Train, p, sum, 0)
		w.Counts.Hops = p.LSI.Kmax
		return w
	}
	share(t, models(1, large), []shared{
		{"one model", Auto, 0, 2, enough, lan, "1 of 2"},
		{"rows are shared", Intervals, 0, 2, enough, lan, "1 of 2"},
		{"a slow network", Auto, 0, 2, enough, thin, "alone"},
		{"a distant one", Auto, 0, 2, enough, far, "alone"},
		{"nobody has measured", Auto, 0, 2, enough, unknown, "alone"},
		{"little memory", Auto, 0, 2, little, lan, "alone"},
		{"no groups are asked for", Grid, 1, 4, enough, lan, "alone"},
	})
	share(t, models(2, large), []shared{{"two models", Auto, 0, 4, enough, lan, "2 of 2"}})
	share(t, models(4, large), []shared{{"a model for each", Auto, 0, 4, enough, lan, "alone"}})
	share(t, models(1, strip), []shared{{"one strip", Auto, 0, 2, enough, lan, "alone"}})
	share(t, models(1, few), []shared{
		{"few rows", Auto, 0, 2, enough, lan, "alone"},
		{"few rows, and a size is asked for", Grid, 3, 4, enough, unknown, "1 of 3"},
	})
}

func TestMayShare(t *testing.T) {
	for _, tc := range []struct {
		stage    control.Stage
		parallel Parallel
		want     bool
	}{
		{control.Smooth, Auto, true},
		{control.Smooth, Intervals, true},
		{control.Train, Grid, true},
		{control.Smooth, Columns, false},
		{control.Smooth, "", false},
		{control.Predict, Grid, false},
	} {
		w := work(tc.stage, plan.Default(), small, 10)
		if w.Parallel = tc.parallel; w.MayShare() != tc.want {
			t.Errorf("%s with %q: %v", tc.stage, tc.parallel, !tc.want)
		}
	}
}

func TestCutStrips(t *testing.T) {
	for _, tc := range []struct {
		name   string
		edges  []float64
		even   float64
		memory []int64 // of each worker
		want   []int
	}{
		{"even rows", []float64{9, 1, 1, 1}, 0, []int64{5, 5}, []int{0, 2, 4}},
		{"even edges", []float64{6, 2, 2, 2}, 1, []int64{5, 5}, []int{0, 1, 4}},
		{"more memory", []float64{1, 1, 1, 1}, 0, []int64{30, 10}, []int{0, 3, 4}},
		{"a strip for each", []float64{100, 0, 0}, 1, []int64{1, 1, 1}, []int{0, 1, 2, 3}},
		{"no edges", []float64{0, 0}, 1, []int64{1, 1}, []int{0, 1, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var workers []control.Hello
			for _, m := range tc.memory {
				workers = append(workers, control.Hello{Memory: m})
			}
			nodes := int64(len(tc.edges)) * packed.StripRows
			if got := cutStrips(tc.edges, nodes, tc.even, workers); !slices.Equal(got, tc.want) {
				t.Errorf("borders %v, want %v", got, tc.want)
			}
		})
	}
}
