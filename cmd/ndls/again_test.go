package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"ndls"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/plan"
	"ndls/stage/registry"
)

// otherValues are values of options that are words or lists, and not those of the defaults.
var otherValues = map[string]string{
	"keep-features": "false", "keep-smoothed": "false",
	"only": "train", "split": "random:5,6", "normalize": "none", "features": "none", "shards": "none", "lsi": "feature", "stationary": "global",
	"rule": "sgc", "direction": "out", "depth": "node", "keep-hops": "0,1", "hop-weights": "1,2", "targets": "labelled",
	"precision": "float16", "smoothed-precision": "float16", "probabilities": "best", "metrics": "auc", "schedule": "cosine",
	"label-rule": "cs", "label-depth": "3", "cs-scale": "2",
}

// TestAgainForEachOption: whatever option of a whole run is given another value, the command that
// the error prints makes the first stage which the option decides on, its verb takes the option,
// and the plan that it makes is the one that was asked for, as far as this stage goes.
func TestAgainForEachOption(t *testing.T) {
	for _, name := range plan.Names() {
		there := ndls.DefaultOptions()
		there.Partition.Dataset = "karate:"
		if strings.HasPrefix(name, "cs-") {
			there.Labels.Rule = plan.CorrectSmooth
		}
		if slices.Contains([]string{"dimensions", "hop-weights", "degree-power", "sparsity"}, name) {
			there.Smooth.Rule = plan.FastRP
		}
		here := there
		value, ok := otherValues[name]
		if !ok {
			value = "7"
		}
		if err := here.Set(name, value); err != nil {
			t.Fatal(err)
		}
		for _, both := range [][2]plan.Options{{here, there}, {there, here}} {
			here, there := both[0], both[1]
			i := slices.IndexFunc(registry.Names(), func(s control.Stage) bool { return len(registry.Diff(here, there, s)) > 0 })
			if i < 0 {
				t.Errorf("--%s decides on nothing", name)
				continue
			}
			first := registry.Names()[i]
			line := coordinator.Again(here, there, "RUN", control.Inputs{Dataset: "karate:"}, first)
			a := newApp(&strings.Builder{}, &strings.Builder{})
			cmd, rest, err := a.root().Find(strings.Fields(strings.ReplaceAll(line, "'", ""))[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err != nil || cmd.Name() != registry.Verb(first) || !strings.HasSuffix(line, " --resume=false") {
				t.Errorf("--%s: %s: %v", name, line, err)
				continue
			}
			made := there
			cmd.Flags().Visit(func(f *pflag.Flag) {
				if slices.Contains(plan.Names(), f.Name) {
					if err := made.Set(f.Name, f.Value.String()); err != nil {
						t.Errorf("%s: %v", line, err)
					}
				}
			})
			if d := registry.Diff(made.Canonical(), here.Canonical(), first); len(d) > 0 {
				t.Errorf("--%s: %s makes another plan: %v", name, line, d)
			}
		}
	}
}

// TestAgain: a run with other options names the command that discards the least, which does what it says.
func TestAgain(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	more := []string{"--memory", "512MiB", "--epochs", "5", "--quiet"}
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", run, "--runs", "1"}, more...)...)
	before := filesBelow(t, run, "lsi", "smoothed")
	r := expect(t, ndls.ExitMismatch, "discard the output of train, predict, label-depth, smooth-labels and evaluate and make it again", append([]string{"run", "--run", run, "--runs", "2", "--label-kmax", "9"}, more...)...)
	line := "ndls train --run " + run + " --runs=2 --resume=false"
	if !strings.Contains(r.stderr, "\n  "+line+"\n") {
		t.Fatalf("no %q in\n%s", line, r.stderr)
	}
	expect(t, 0, "", append(strings.Fields(line)[1:], "--memory", "512MiB", "--quiet")...)
	expect(t, 0, "2 models", append([]string{"run", "--run", run, "--runs", "2", "--label-kmax", "9"}, more...)...)
	for name, bytes := range filesBelow(t, run, "lsi", "smoothed") {
		if before[name] != bytes {
			t.Errorf("%s was made again", name)
		}
	}
	expect(t, ndls.ExitMismatch, "ndls partition --run "+run+" --dataset "+toy+" --features=none --resume=false", append([]string{"run", "--dataset", toy, "--run", run, "--runs", "2", "--label-kmax", "9", "--features", "none"}, more...)...)
}

// TestRunAsWord: verbs that work on a run directory take it as a word, as they take it behind --run.
func TestRunAsWord(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	expect(t, 0, "", append([]string{"run", run, "--dataset", toy}, quickly...)...)
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"COMPLETE", []string{"inspect"}},
		{"all as committed", []string{"verify"}},
		{"neighbours' K", []string{"explain", "--node", "5"}},
		{"600 rows", []string{"export", "--what", "lsi", "--format", "csv", "--out", filepath.Join(dir, "k.csv")}},
		{"the run is COMPLETE", []string{"status"}},
		{"nothing is left behind", []string{"gc"}},
		{"nodes of a component", []string{"degrees"}},
		{"accuracy in %", []string{"evaluate"}},
		{"mean K", []string{"lsi"}},
		{"accuracy in %", []string{"run"}},
	} {
		expect(t, 0, tc.want, append([]string{tc.args[0], run}, tc.args[1:]...)...)
	}
	expect(t, ndls.ExitUsage, `has a run directory, --run `+run+`, and "other" is no option`, "verify", "--run", run, "other")
	expect(t, ndls.ExitUsage, `"other" is one word more`, "verify", run, "other")
	expect(t, ndls.ExitUsage, `"karate:" is a dataset, and ndls run takes a run directory for a word; give --dataset karate:`, "run", "karate:")
	expect(t, ndls.ExitUsage, "--run is needed", "verify")
}

// TestOneTruthOfDistances: what a run says of how it has measured distances is the same everywhere. Of a small graph
// probes are not drawn, so none are counted.
func TestOneTruthOfDistances(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	expect(t, 0, "", append([]string{"run", run, "--dataset", "karate:"}, quickly...)...)
	expect(t, 0, "distances by influence-exact", "explain", run, "--node", "1")
	expect(t, 0, `"lsi":"influence-exact"`, "explain", run, "--node", "1", "--json")
	expect(t, 0, `"mode":"influence-exact","probes":0,`, "report", run, "--json")
	if r := expect(t, 0, "<p>influence-exact, r = 0.5", "report", run); strings.Contains(r.stdout, " probes, r = ") {
		t.Error("the page counts probes that nobody drew")
	}
	expect(t, 0, "", append([]string{"lsi", run, "--probes", "16", "--resume=false"}, "--memory", "512MiB", "--quiet")...)
	expect(t, 0, "distances by influence-sketch", "explain", run, "--node", "1")
	expect(t, 0, `"mode":"influence-sketch","probes":16,`, "report", run, "--json")
}

// TestRefusedFirst: what cannot be done leaves nothing behind.
func TestRefusedFirst(t *testing.T) {
	dir := t.TempDir()
	csv := write(t, filepath.Join(dir, "e.csv"), "src,dst\n1,2\n2,3\n3,1\n")
	x := write(t, filepath.Join(dir, "x.csv"), "id,a\n1,1\n2,2\n3,3\n")
	y := write(t, filepath.Join(dir, "y.csv"), "id,label\n1,a\n2,b\n3,a\n")
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"no trial can be made: the run has no features", []string{"--dataset", "karate:"}},
		{"no trial can be made", []string{"--dataset", "edges:" + csv}},
		{"no trial can be made", []string{"--dataset", "edges:" + csv + "?features=" + x}},
		{"splits", []string{"--dataset", "edges:" + csv + "?features=" + x + "&labels=" + y}},
		{"no node is in the split valid", []string{"--dataset", toy, "--split", "random:5,0"}},
	} {
		run := filepath.Join(dir, "search")
		expect(t, ndls.ExitUsage, tc.want, append([]string{"tune", "--run", run, "--trials", "2", "--quiet"}, tc.args...)...)
		expect(t, 0, "no run directory is there", "list", dir)
		if left, _ := filepath.Glob(run + "*"); len(left) > 0 {
			t.Errorf("%v: %v is left", tc.args, left)
		}
	}
	expect(t, ndls.ExitUsage, "give --edges, too", "plan", "--nodes", "1000000")
	expect(t, ndls.ExitUsage, "give --nodes, too", "plan", "--edges", "1000000")
	expect(t, 0, "no features, so that smooth", "plan", "--nodes", "1000", "--edges", "5000", "--measure=false")
	expect(t, 0, "no classes, so that train", "plan", "--nodes", "1000", "--edges", "5000", "--features", "20", "--measure=false")
}

// TestErrorsOfTheSystem: an error says which file or folder is missing, and what to do, not which system call failed.
func TestErrorsOfTheSystem(t *testing.T) {
	t.Chdir(t.TempDir())
	expect(t, 0, "", append([]string{"run", "a", "--dataset", toy}, quickly...)...)
	file := write(t, "file", "x")
	for _, tc := range []struct {
		want string
		args []string
	}{
		{"there is no file nofile.csv: look at the name", []string{"inspect", "--dataset", "edges:nofile.csv"}},
		{"there is no file nodir/e.csv, and no folder nodir: look at the name", []string{"inspect", "--dataset", "edges:nodir/e.csv"}},
		{"--out: there is no folder nodir: make it", []string{"export", "a", "--what", "lsi", "--format", "csv", "--out", "nodir/p.csv"}},
		{"there is no folder no: make it", []string{"export", "a", "--what", "lsi", "--format", "csv", "--out", "no/such/p.csv"}},
		{"--out: there is no folder nodir: make it", []string{"report", "a", "--out", "nodir/r.html"}},
		{", and no folder keys.pem: look at the name", []string{"worker", "a", "--keys", "keys.pem"}},
		{"--out: file is a file, and a folder is wanted\n", []string{"report", "a", "--out", file + "/r.html"}},
		{`"karat:" is no dataset; did you mean karate:? `, []string{"inspect", "--dataset", "karat:"}},
		{`there is no option "epsilom"; did you mean epsilon?`, []string{"lsi", "a", "--config", write(t, "c.yaml", "epsilom: 1\n")}},
	} {
		r := command(t, tc.args...)
		if r.code == 0 || !strings.Contains(r.stderr, tc.want) {
			t.Errorf("%v: %q, want %q", tc.args, r.stderr, tc.want)
		}
		for _, not := range []string{"no such file", ".tmp", "stat ", "not a directory"} {
			if strings.Contains(r.stderr, not) {
				t.Errorf("%v: %q", tc.args, r.stderr)
			}
		}
	}
}
