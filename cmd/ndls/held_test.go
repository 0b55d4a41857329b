package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/testgraph"
	"ndls/plan"
)

// TestOptionsThatHold: a command says which options of earlier ones hold, and an error that names one of them says where it comes from.
func TestOptionsThatHold(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	if r := expect(t, 0, "600 nodes", "partition", "--dataset", toy, "--run", run); strings.Contains(r.stderr, "earlier commands hold") {
		t.Errorf("options of earlier commands hold in a new run directory: %s", r.stderr)
	}
	if r := expect(t, 0, "", "smooth", "--run", run, "--rule", "sgc", "--hops", "2", "--keep-hops", "0..2"); strings.Contains(r.stderr, "earlier commands hold") {
		t.Errorf("options that were given are said to be those of earlier commands: %s", r.stderr)
	}
	expect(t, 0, "options of earlier commands hold: --hops 2, --keep-hops 0..2", "smooth", "--run", run, "--rule", "s2gc", "--resume=false")
	r := expect(t, ndls.ExitUsage, "This command does not give --keep-hops 0..2: an earlier one gave it to the run directory", "smooth", "--run", run, "--rule", "nafs", "--resume=false")
	if !strings.Contains(r.stderr, `--keep-hops=""`) {
		t.Errorf("the error does not say how to take the option back: %s", r.stderr)
	}
	expect(t, 0, "", "lsi", "--run", run)
	expect(t, 0, "smooth: 600 rows", "smooth", "--run", run, "--rule", "nafs", "--keep-hops=", "--resume=false")
}

// TestOptionsOverEarlierOnes lays options of a command over those of a run directory: what belongs to another choice goes with it.
func TestOptionsOverEarlierOnes(t *testing.T) {
	for _, c := range []struct {
		args          string
		earlier, want func(*ndls.Options)
	}{
		{"--epsilon 0.2", func(o *ndls.Options) { o.Seed = 7 }, func(o *ndls.Options) { o.Seed, o.LSI.Epsilon = 7, 0.2 }},
		{"--rule sgc", func(o *ndls.Options) { o.Smooth.Residual = 0.3 }, func(o *ndls.Options) { o.Smooth.Rule = "sgc" }},
		{"--rule ndls --residual 0.2", func(o *ndls.Options) { o.Smooth.Rule, o.Smooth.Depth = "nafs", "node" }, func(o *ndls.Options) { o.Smooth.Residual = 0.2 }},
		{"--rule ndls", func(o *ndls.Options) {
			s := &o.Smooth
			s.Rule, s.Dimensions, s.HopWeights, s.DegreePower, s.Sparsity = ndls.FastRP, 32, "1,1", -0.5, 2
		}, func(*ndls.Options) {}},
		{"--label-rule ndls", func(o *ndls.Options) {
			l := &o.Labels
			l.Rule, l.CorrectScale, l.CorrectAlpha, l.CorrectHops, l.SmoothAlpha = "cs", "2", 0.5, 7, 0.3
		}, func(*ndls.Options) {}},
		{"--label-rule cs", func(o *ndls.Options) { o.Labels.Epsilon = 0.1 }, func(o *ndls.Options) { o.Labels.Rule = "cs" }},
		{"--keep-features=false", func(*ndls.Options) {}, func(o *ndls.Options) { o.DropFeatures = true }},
	} {
		cmd := &cobra.Command{}
		f := newPlanFlags(cmd).groups(plan.LSI, plan.Smooth, plan.Labels)
		if err := cmd.ParseFlags(strings.Fields(c.args)); err != nil {
			t.Fatal(err)
		}
		got, want := ndls.DefaultOptions(), ndls.DefaultOptions()
		c.earlier(&got)
		c.want(&want)
		if f.over(&got); got != want {
			t.Errorf("%s: %+v, want %+v", c.args, got, want)
		}
	}
}

// TestFewOfOneClass: on a graph with four fifths of one class, where accuracy does not move, the area chooses weights that tell the
// classes apart, and a warning says that predictions are of one class.
func TestFewOfOneClass(t *testing.T) {
	data := testgraph.Published(t, "data/minesweeper/minesweeper.npz")
	r := expect(t, 0, `the predictions are of one class, "0"`, "run", "--dataset", "npz:"+data, "--metrics", "auc", "--runs", "2", "--epochs", "60", "--run", filepath.Join(t.TempDir(), "run"))
	if !strings.Contains(r.stdout, "warning: the predictions are of one class") || !strings.Contains(r.stdout, "; ROC AUC valid ") {
		t.Errorf("the end of the run does not say what was written: %s", r.stdout)
	}
	if !strings.Contains(r.stderr, "the predictions are of one class") {
		t.Errorf("the log does not warn: %s", r.stderr)
	}
}
