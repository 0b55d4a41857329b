package main

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTune searches, runs the printed command, and refuses what makes no sense.
func TestTune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my search")
	line := []string{
		"tune", "--dataset", "synthetic:nodes=300,edges=1200,features=20,classes=3,seed=1", "--run", dir, "--memory", "256MiB", "--threads", "2",
		"--epochs", "4", "--probes", "16", "--quiet", "--trials", "3", "--try", "rule=sgc,ndls", "--try", "hops=2,3", "--try", "lr=log:0.01:0.1", "--try", "dropout=0.2,0.4",
	}
	do := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(context.Background(), args, &out, &errs)
		return code, out.String(), errs.String()
	}
	code, out, errs := do(append(line, "--final")...)
	if code != 0 {
		t.Fatal(errs)
	}
	for _, want := range []string{"trial   models   patience   valid in %", "3 trials by the accuracy on validation nodes before label smoothing; 1 model in each, trained with all of --patience in the best quarter", "--run '" + dir + "/best'", "before label smoothing"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	printed := strings.TrimSpace(strings.Split(out[strings.Index(out, "  ndls run"):], "\n")[0])
	if again := strings.Count(printed, "--lr ") + strings.Count(printed, "--runs 1") + strings.Count(printed, "--epochs 4"); again != 3 {
		t.Error(printed)
	}
	// The same again makes nothing; a line of JSON has all.
	code, out, errs = do(append(line, "--json")...)
	if code != 0 || !strings.Contains(out, `"command":["ndls","run"`) || strings.Count(out, "\n") != 1 {
		t.Errorf("%d %s %s", code, out, errs)
	}
	// A measure that is named compares trials, and the printed command has it.
	code, out, errs = do(append(slices.Clone(line), "--score", "auc", "--run", filepath.Join(t.TempDir(), "areas"))...)
	if code != 0 || !strings.Contains(out, "3 trials by the ROC AUC on validation nodes") || !strings.Contains(out, "--metrics auc") {
		t.Errorf("%d %s %s", code, out, errs)
	}
	for _, c := range []struct {
		args string
		want string
		code int
	}{
		{"--try epsilom=1", "A search can try", 2},
		{"--lr 0.1", "--lr is given for all trials, and --try lr, too", 2},
		{"--search grid", "is a range", 2},
		{"--epochs 5", "--epochs: 5 here, 4 there", 5},
		{"--score after", "neither base, smoothed nor loss", 2},
		{"--trials 0", "--trials 0 is less than 1", 2},
	} {
		code, _, errs := do(append(line, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: status %d, %s", c.args, code, errs)
		}
	}
}

// TestTuneHalvesByDefault says where a search halves its trials without being told.
func TestTuneHalvesByDefault(t *testing.T) {
	line := []string{
		"tune", "--dataset", "synthetic:nodes=300,edges=1200,features=20,classes=3,seed=1", "--memory", "256MiB", "--threads", "2",
		"--epochs", "4", "--probes", "16", "--quiet", "--json", "--rule", "sgc", "--hops", "2",
	}
	do := func(dir string, args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(context.Background(), append(append(line, "--run", dir), args...), &out, &errs)
		return code, out.String(), errs.String()
	}
	for args, halves := range map[string]bool{
		"--trials 5 --try lr=log:0.01:0.1":                         true,
		"--trials 5 --try lr=log:0.01:0.1 --patience 159":          false,
		"--trials 5 --try lr=log:0.01:0.1 --patience 16 --halving": true,
		"--trials 5 --try lr=log:0.01:0.1 --runs 1 --patience 0":   false,
		"--trials 5 --try lr=log:0.01:0.1 --halving=false":         false,
		"--trials 5 --try lr=log:0.01:0.1 --score smoothed":        false,
		"--trials 3 --try label-rule=ndls,cs --try label-kmax=1,2": false,
		"--search grid --try lr=0.01,0.02,0.03,0.05,0.1":           false,
		"--search grid --try lr=0.01,0.02,0.03,0.05,0.1 --halving": true,
	} {
		code, out, errs := do(filepath.Join(t.TempDir(), "search"), strings.Fields(args)...)
		if code != 0 || strings.Contains(out, `"halving":true`) != halves {
			t.Errorf("%s: status %d, %s%s", args, code, out, errs)
		}
	}
	// A search keeps what it began with, and nobody halves what cannot be halved.
	dir := filepath.Join(t.TempDir(), "search")
	if code, _, errs := do(dir, strings.Fields("--trials 5 --try lr=log:0.01:0.1 --halving=false")...); code != 0 {
		t.Fatal(errs)
	}
	for args, want := range map[string]string{
		"--trials 9 --try lr=log:0.01:0.1":                                 "--halving: true here, false there",
		"--trials 5 --try lr=log:0.01:0.1 --halving --runs 1 --patience 1": "--halving needs trainings that it can end sooner",
	} {
		if code, _, errs := do(dir, strings.Fields(args)...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%s: status %d, %s", args, code, errs)
		}
	}
}

// TestQuoted quotes words for a shell.
func TestQuoted(t *testing.T) {
	got := quoted([]string{"ndls", "run", "--dataset", "edges:e.csv?features=x&labels=y", "--run", "it's", "", "--keep-features=false"})
	if want := `ndls run --dataset 'edges:e.csv?features=x&labels=y' --run 'it'\''s' '' --keep-features=false`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if fmt.Sprint(quoted([]string{"karate:"})) != "karate:" {
		t.Error(quoted([]string{"karate:"}))
	}
}
