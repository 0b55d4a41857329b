package tune_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ndls"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/tune"
)

const toy = "synthetic:nodes=600,edges=2400,features=20,classes=3,seed=1"

// quick is a search on a small graph.
func quick(t testing.TB, dir string, dimensions ...string) tune.Config {
	t.Helper()
	space, err := tune.ParseSpace(dimensions...)
	if err != nil {
		t.Fatal(err)
	}
	return tune.Config{
		Base: ndls.Config{
			Run: dir, Dataset: toy, Resources: ndls.Resources{Memory: 512 << 20, Threads: 2},
			Options: func(o *ndls.Options) {
				o.Train.Epochs, o.Train.Runs, o.Partition.Split, o.Partition.Splits, o.LSI.Probes = 6, 2, "random:20,30", 2, 32
			},
		},
		Space: space, Trials: 6,
	}
}

func search(t testing.TB, c tune.Config) *tune.Result {
	t.Helper()
	r, err := tune.Search(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func table(t testing.TB, c tune.Config) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Base.Run, tune.TableName))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestTrialsAreRuns compares the figures of trials with those of runs with the same options, bit by bit.
func TestTrialsAreRuns(t *testing.T) {
	for _, c := range []struct {
		name       string
		dimensions []string
		trials     int
		change     func(*ndls.Options)
		files      bool // of smoothed rows, which are not added up in memory
	}{
		{name: "base", dimensions: []string{"rule=ndls,gbp", "hops=2,3", "residual=0,0.2", "epsilon=0.03,0.1", "hidden=8,16", "lr=log:0.003:0.1", "batch-size=0,16"}, trials: 9},
		{name: "smoothed", dimensions: []string{"label-rule=ndls,cs,ndls-reference", "label-depth=auto,2", "label-epsilon=0.05,0.2", "lr=0.01,0.05"}, trials: 6},
		{name: "smoothed by the rule and epsilon", dimensions: []string{"rule=ndls,sgc", "epsilon=0.03,0.1", "hops=2,3", "label-kmax=3,5"}, trials: 6},
		{name: "distances", dimensions: []string{"r=0.3,0.5", "epsilon=0.02:0.2", "kmax=3,200"}, trials: 6},
		{name: "hops", dimensions: []string{"rule=sign,sgc,nafs,ndls", "hops=2,3"}, trials: 6, files: true},
		{name: "hops, K last", dimensions: []string{"rule=sign,sgc,nafs,ndls", "hops=2,3"}, trials: 3, files: true},
		{name: "small rows", dimensions: []string{"epsilon=0.03,0.1"}, change: func(o *ndls.Options) { o.Precision = "float16" }, trials: 2, files: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			files, trials, change := c.files, c.trials, c.change
			c := quick(t, filepath.Join(t.TempDir(), "search"), c.dimensions...)
			c.Trials = trials
			if testing.Short() {
				c.Trials = min(trials, 3)
			}
			if change != nil {
				same := c.Base.Options
				c.Base.Options = func(o *ndls.Options) { same(o); change(o) }
			}
			var made []int
			c.Done = func(x tune.Trial) { made = append(made, x.Number) }
			r := search(t, c)
			if _, err := os.Stat(filepath.Join(c.Base.Run, "work", "smoothed")); (err == nil) != files {
				t.Errorf("smoothed rows are in files: %v, want %v", err == nil, files)
			}
			if len(r.Trials) != c.Trials || len(made) != c.Trials {
				t.Fatalf("%d trials, %d made", len(r.Trials), len(made))
			}
			for _, x := range r.Trials {
				run := c.Base
				run.Run = filepath.Join(t.TempDir(), "run")
				run.Options = func(o *ndls.Options) {
					c.Base.Options(o)
					for _, s := range x.Settings {
						if err := o.Set(s.Name, s.Value); err != nil {
							t.Fatal(err)
						}
					}
				}
				d, err := ndls.Run(t.Context(), run)
				if err != nil {
					t.Fatal(err)
				}
				report, err := d.Report(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				want := report.Accuracy
				if *x.Base != *want.Base.Valid {
					t.Errorf("%v: %+v, and the run has %+v", x.Settings, *x.Base, *want.Base.Valid)
				}
				if (x.Smoothed != nil) != (r.Score == tune.Smoothed) || x.Smoothed != nil && *x.Smoothed != *want.Smoothed.Valid {
					t.Errorf("%v: smoothed %+v, and the run has %+v", x.Settings, x.Smoothed, want.Smoothed.Valid)
				}
				if len(x.Models) != 4 || len(want.Models) != 4 {
					t.Fatalf("%d models, and the run has %d", len(x.Models), len(want.Models))
				}
				for i, m := range x.Models {
					w := want.Models[i]
					if m.Split != w.Split || m.Run != w.Run || m.Base != *w.Base.Valid || m.Epochs != w.Epochs || m.BestEpoch != w.BestEpoch ||
						m.Smoothed != nil && *m.Smoothed != *w.Smoothed.Valid {
						t.Errorf("%v: model %+v, and the run has %+v", x.Settings, m, w)
					}
				}
			}
			best := r.Ranked()[0]
			if r.Best().Number != best.Number || len(r.Command) < 6 || !slices.Contains(r.Command, "--splits") {
				t.Errorf("best %d, ranked %d, command %q", r.Best().Number, best.Number, r.Command)
			}
			o := ndls.DefaultOptions()
			r.Apply(&o)
			for _, s := range best.Settings {
				alone := ndls.DefaultOptions()
				if err := alone.Set(s.Name, s.Value); err != nil || o.Get(s.Name) != alone.Get(s.Name) {
					t.Errorf("%s is %s, not %s", s.Name, o.Get(s.Name), s.Value)
				}
			}
		})
	}
}

// TestLeastLoss compares trials by the loss of the validation nodes: the one with the least mean is chosen, and the table has all of them.
// Models over several splits may have label columns.
func TestLeastLoss(t *testing.T) {
	c := quick(t, filepath.Join(t.TempDir(), "search"), "lr=0.0001,0.01,0.1", "label-columns=0,2")
	c.Score = tune.Loss
	r := search(t, c)
	if len(r.Trials) != 6 {
		t.Fatalf("%d trials", len(r.Trials))
	}
	for _, x := range r.Trials {
		sum := 0.0
		for _, m := range x.Models {
			sum += *m.Loss / float64(len(x.Models))
		}
		if x.Loss == nil || math.Abs(x.Loss.Mean-sum) > 1e-12 || x.Loss.Mean < r.Best().Loss.Mean {
			t.Errorf("%v: loss %+v of models with the mean %g; the chosen trial has %+v", x.Settings, x.Loss, sum, r.Best().Loss)
		}
	}
	if text := string(table(t, c)); !strings.Contains(text, "loss_mean") || strings.Contains(text, "smoothed_mean") {
		t.Error(text)
	}
}

// TestSameTable makes a search with other threads, other memory, in several calls, and with more trials.
func TestSameTable(t *testing.T) {
	dimensions := []string{"epsilon=0.03,0.1", "dropout=0:0.8", "hidden=8,16"}
	c := quick(t, filepath.Join(t.TempDir(), "search"), dimensions...)
	search(t, c)
	want := table(t, c)
	if n := bytes.Count(want, []byte("\n")); n != 7 {
		t.Fatalf("%d lines:\n%s", n, want)
	}
	other := quick(t, filepath.Join(t.TempDir(), "search"), dimensions...)
	other.Base.Resources = ndls.Resources{Memory: 160 << 20, Threads: 1, Kernel: "go"}
	search(t, other)
	if got := table(t, other); !bytes.Equal(got, want) {
		t.Errorf("on one thread:\n%s\nwant\n%s", got, want)
	}
	// Each call is stopped after a trial, the last one is not.
	stopped := quick(t, filepath.Join(t.TempDir(), "search"), dimensions...)
	made := map[int]int{}
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped.Done = func(x tune.Trial) {
			made[x.Number]++
			cancel(ndls.ErrInterrupted)
		}
		_, err := tune.Search(ctx, stopped)
		cancel(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, ndls.ErrInterrupted) || stops > 6 {
			t.Fatal(err)
		}
	}
	if got := table(t, stopped); !bytes.Equal(got, want) {
		t.Errorf("after stops:\n%s\nwant\n%s", got, want)
	}
	for number, times := range made {
		if times != 1 {
			t.Errorf("trial %d was made %d times", number, times)
		}
	}
	// More trials begin with these.
	stopped.Trials, stopped.Done = 8, func(x tune.Trial) { made[x.Number]++ }
	r := search(t, stopped)
	if got := table(t, stopped); !bytes.HasPrefix(got, want) || len(made) != 8 {
		t.Errorf("with more trials, of which %d are made:\n%s", len(made), got)
	}
	var file tune.Result
	text, err := os.ReadFile(filepath.Join(stopped.Base.Run, tune.ResultName))
	if err == nil {
		err = json.Unmarshal(text, &file)
	}
	if err != nil || len(file.Trials) != 8 || file.Chosen != r.Chosen || file.Best().Base.Mean != r.Best().Base.Mean {
		t.Errorf("%s, %v", text, err)
	}
	if left, err := os.ReadDir(filepath.Join(stopped.Base.Run, "work", "scratch", "trials")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	// Another search is refused, and so are damaged trials.
	changed := stopped
	changed.Base.Options = func(o *ndls.Options) {
		stopped.Base.Options(o)
		o.Train.Layers = 3
	}
	if _, err := tune.Search(t.Context(), changed); !errors.Is(err, ndls.ErrPlanMismatch) || !strings.Contains(err.Error(), "--layers: 3 here, 2 there") {
		t.Error(err)
	}
	name := filepath.Join(stopped.Base.Run, "trials", "000003.json")
	if err := os.WriteFile(name, []byte(strings.Replace(read(t, name), "0.", "1.", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tune.Search(t.Context(), stopped); !errors.Is(err, ndls.ErrCorrupt) || !strings.Contains(err.Error(), "000003.json") {
		t.Error(err)
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	search(t, stopped)
	if got := table(t, stopped); !bytes.HasPrefix(got, want) {
		t.Errorf("after a damaged trial:\n%s\nwant\n%s", got, want)
	}
	foreign := quick(t, t.TempDir(), dimensions...)
	if err := os.WriteFile(filepath.Join(foreign.Base.Run, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tune.Search(t.Context(), foreign); !errors.Is(err, ndls.ErrForeign) {
		t.Error(err)
	}
}

// TestHalving trains longer, and more models, of the better trials, gives the figures of such models, and continues after each stop.
func TestHalving(t *testing.T) {
	dimensions := []string{"dropout=0:0.8", "hidden=4,8,16", "lr=log:0.001:0.1"}
	patient := func(halving bool, patience, runs int) tune.Config {
		c := quick(t, filepath.Join(t.TempDir(), "search"), dimensions...)
		same := c.Base.Options
		c.Base.Options = func(o *ndls.Options) {
			same(o)
			o.Train.Runs, o.Train.Epochs, o.Train.Patience = runs, 20, patience
		}
		c.Trials, c.Halving = 9, halving
		return c
	}
	with := func(halving bool) tune.Config { return patient(halving, 10, 4) }
	whole, short := search(t, with(false)), search(t, patient(false, 1, 1))
	c := with(true)
	r := search(t, c)
	of := func(x tune.Trial, runs int) *ndls.Spread {
		var figures []float64
		for _, m := range x.Models {
			if m.Run < runs {
				figures = append(figures, m.Base)
			}
		}
		return ndls.SpreadOf(figures, 2)
	}
	models := map[int]int{}
	for i, x := range r.Trials {
		runs := len(x.Models) / 2
		models[runs]++
		like, patience := whole, 10
		if runs == 1 {
			like, patience = short, 1
		}
		if want := of(like.Trials[i], runs); *x.Base != *want || x.Patience != patience || x.Short != nil {
			t.Errorf("trial %d with %d models a split and patience %d: %+v, want %+v", x.Number, runs, x.Patience, *x.Base, *want)
		}
		for _, y := range r.Trials {
			if more := len(y.Models) / 2; more > runs && of(like.Trials[i], runs).Mean > of(like.Trials[y.Number-1], runs).Mean {
				t.Errorf("trial %d has more models than trial %d, which was better with %d", y.Number, x.Number, runs)
			}
		}
	}
	if models[1] != 6 || models[2] != 1 || models[4] != 2 || len(r.Best().Models) != 8 || !strings.Contains(strings.Join(r.Command, " "), "--runs 4") {
		t.Errorf("trials by models a split: %v; command %q", models, r.Command)
	}
	want := table(t, c)
	stopped := with(true)
	for stops := 0; ; stops++ {
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped.Done = func(tune.Trial) { cancel(ndls.ErrInterrupted) }
		_, err := tune.Search(ctx, stopped)
		cancel(nil)
		if err == nil {
			break
		}
		if !errors.Is(err, ndls.ErrInterrupted) || stops > 20 {
			t.Fatal(err)
		}
	}
	if got := table(t, stopped); !bytes.Equal(got, want) {
		t.Errorf("after stops:\n%s\nwant\n%s", got, want)
	}
	// With more trials others may be the best, and those that were before have as many models as in a new search.
	more := with(true)
	more.Trials = 14
	search(t, more)
	stopped.Trials, stopped.Done = 14, nil
	search(t, stopped)
	if got, want := table(t, stopped), table(t, more); !bytes.Equal(got, want) {
		t.Errorf("with more trials:\n%s\nwant\n%s", got, want)
	}
	one := patient(true, 10, 1)
	r = search(t, one)
	patience := map[int]int{}
	for _, x := range r.Trials {
		patience[x.Patience]++
	}
	if best := r.Best(); patience[1] != 6 || patience[10] != 3 || best.Patience != 10 || len(best.Models) != 2 {
		t.Errorf("trials by patience: %v; the best is %+v", patience, best)
	}
	if _, err := tune.Search(t.Context(), patient(true, 0, 1)); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), "--halving") {
		t.Error(err)
	}
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestLabelsOfTestNodes gives two datasets that differ in the labels of test nodes alone the same trials.
func TestLabelsOfTestNodes(t *testing.T) {
	dir := t.TempDir()
	var edges, labels, other, splits, features strings.Builder
	for i := range 300 {
		class, split := i%3, []string{"train", "valid", "test", "test", "test"}[i%5]
		fmt.Fprintf(&edges, "%d %d\n%d %d\n", i, (i+3)%300, i, (i*7+1)%300)
		fmt.Fprintf(&labels, "%d %d\n", i, class)
		if split == "test" && i > 10 { // all classes stay
			class = (class + 1) % 3
		}
		fmt.Fprintf(&other, "%d %d\n", i, class)
		fmt.Fprintf(&splits, "%d %s\n", i, split)
		fmt.Fprintf(&features, "%d %d %d %d\n", i, i%3, i%2, i%5)
	}
	for name, text := range map[string]string{
		"edges.txt": edges.String(), "labels.txt": labels.String(), "other.txt": other.String(), "splits.txt": splits.String(), "features.txt": features.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var tables [][]byte
	for _, name := range []string{"labels.txt", "other.txt"} {
		c := quick(t, filepath.Join(t.TempDir(), "search"), "label-rule=ndls,cs", "lr=0.01,0.1")
		c.Base.Dataset = fmt.Sprintf("edges:%[1]s/edges.txt?features=%[1]s/features.txt&labels=%[1]s/%[2]s&splits=%[1]s/splits.txt", dir, name)
		c.Base.Options = func(o *ndls.Options) { o.Train.Epochs, o.Train.Runs, o.Partition.Normalize = 6, 2, "none" }
		search(t, c)
		tables = append(tables, table(t, c))
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Errorf("labels of test nodes change trials:\n%s\n%s", tables[0], tables[1])
	}
	c := quick(t, filepath.Join(t.TempDir(), "search"), "lr=0.01,0.1")
	c.Base.Options = func(o *ndls.Options) { o.Partition.Split = "random:20,0" }
	if _, err := tune.Search(t.Context(), c); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), "valid") {
		t.Errorf("without validation nodes: %v", err)
	}
}

// TestDiverged marks a trial whose training ends in numbers that are not finite, and takes another one.
func TestDiverged(t *testing.T) {
	c := quick(t, filepath.Join(t.TempDir(), "search"), "lr=0.01,1e38")
	c.Search, c.Trials = tune.Grid, 0
	r := search(t, c)
	if r.Chosen != 1 || r.Trials[1].Failed == "" || r.Trials[1].Base != nil {
		t.Errorf("%+v", r.Trials)
	}
	c = quick(t, filepath.Join(t.TempDir(), "search"), "lr=1e37,1e38")
	c.Search, c.Trials = tune.Grid, 0
	if _, err := tune.Search(t.Context(), c); !errors.Is(err, ndls.ErrDiverged) {
		t.Error(err)
	}
}

// TestCora finds for the settings of bench/accuracy/RESULTS.md what they give there on validation nodes, before a trial that is worse.
func TestCora(t *testing.T) {
	testkit.Slow(t, "it trains on a published data set")
	c := quick(t, filepath.Join(t.TempDir(), "search"), "lr=0.01,0.0003")
	c.Base.Dataset = "planetoid:" + filepath.Join(testgraph.Published(t, "data/cora"), "cora")
	c.Search, c.Trials = tune.Grid, 0
	c.Base.Options = func(o *ndls.Options) { o.Train.BatchSize, o.Train.Runs, o.Train.Epochs = 0, 1, 100 }
	r := search(t, c)
	if r.Chosen != 1 || r.Best().Base.Mean < 0.7 {
		t.Errorf("%+v", r.Trials)
	}
}
