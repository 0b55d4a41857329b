package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ndls"
	"ndls/internal/control"
	"ndls/internal/testkit"
	"ndls/internal/testprogram"
)

// binary is ndls with the points at which tests stop it.
var binary string

func TestMain(m *testing.M) {
	var err error
	if binary, err = testprogram.Build(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testkit.GrowHeap()
	os.Exit(m.Run())
}

// whole skips a test with -short, which draws and starts less.
func whole(t *testing.T) {
	t.Helper()
	testkit.Slow(t, "whole runs, of which make test has few")
}

// toy is a dataset on which the whole job takes a moment.
const toy = "synthetic:nodes=600,edges=2400,features=20,classes=3,seed=1"

var quickly = []string{"--memory", "512MiB", "--runs", "2", "--epochs", "20", "--quiet"}

// result holds the result of a command line.
type result struct {
	code           int
	stdout, stderr string
}

func command(t *testing.T, args ...string) result {
	t.Helper()
	cmd := exec.Command(binary, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// expect runs a command line and checks its status and what stdout and stderr
// together contain.
func expect(t *testing.T, code int, want string, args ...string) result {
	t.Helper()
	r := command(t, args...)
	if r.code != code || !strings.Contains(r.stdout+r.stderr, want) {
		t.Errorf("ndls %s\nstatus %d, want %d with %q; stdout:\n%s\nstderr:\n%s", strings.Join(args, " "), r.code, code, want, r.stdout, r.stderr)
	}
	if strings.Contains(r.stderr, "panic:") || strings.Contains(r.stderr, "goroutine ") {
		t.Errorf("ndls %s panicked:\n%s", strings.Join(args, " "), r.stderr)
	}
	return r
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestHelp(t *testing.T) {
	verbs := []string{
		"run", "partition", "lsi", "smooth", "train", "smooth-labels", "evaluate", "plan", "generate",
		"export", "inspect", "verify", "gc", "version", "coordinator", "worker", "status", "cluster-keys",
		"list", "diff", "explain", "man",
	}
	top := expect(t, 0, "EXIT STATUS", "--help").stdout
	for _, verb := range verbs {
		if !strings.Contains(top, "\n  "+verb+" ") {
			t.Errorf("ndls --help does not list %s", verb)
		}
		text := expect(t, 0, "EXIT STATUS", verb, "--help").stdout
		examples, options, statuses := strings.Index(text, "\nEXAMPLES\n"), strings.Index(text, "\nCOMMON\n"), strings.Index(text, "\nEXIT STATUS\n")
		if examples < 0 || options < examples || statuses < options || strings.Contains(text[statuses:], "--") {
			t.Errorf("ndls %s --help has examples at %d, options at %d and exit statuses at %d", verb, examples, options, statuses)
		}
		for _, flag := range []string{"--memory", "--threads", "--json", "--quiet", "--log-level", "--config"} {
			if !strings.Contains(text, flag) {
				t.Errorf("ndls %s --help does not show %s", verb, flag)
			}
		}
	}
	expect(t, 0, "", "completion", "bash")
	// Options are listed by the stage that they are of, each once.
	text := expect(t, 0, "", "run", "--help").stdout
	last := 0
	for _, place := range []string{"RUN\n", "--dataset", "PARTITION: ", "--split", "LSI: ", "--epsilon", "SMOOTH: ", "--rule", "TRAIN: ", "--epochs", "LABELS: ", "--label-kmax", "COMMON\n", "--memory", "EXPERT: ", "--kernel"} {
		at := strings.Index(text[last:], place)
		if at < 0 {
			t.Fatalf("ndls run --help does not have %q in its place:\n%s", place, text)
		}
		last += at
	}
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	yaml := func(text string) string {
		return write(t, filepath.Join(t.TempDir(), "c.yaml"), text)
	}
	for _, tc := range []struct {
		name, want string
		args       []string
	}{
		{"unknown verb", `unknown command "stauts" for "ndls"; did you mean status?`, []string{"stauts"}},
		{"flag cut short", "unknown flag: --data; did you mean --dataset?", []string{"run", "--run", run, "--data", "karate:"}},
		{"unknown flag", "unknown flag: --epsilom; did you mean --epsilon?", []string{"lsi", "--run", run, "--epsilom", "1"}},
		{"help of an unknown verb", `unknown command "runn" for "ndls"; did you mean run?`, []string{"help", "runn"}},
		{"help of an unknown kind", `unknown command "edge" for "ndls datasets"; did you mean edges?`, []string{"help", "datasets", "edge"}},
		{"letters exchanged", "unknown flag: --rnu; did you mean --run?", []string{"lsi", "--rnu", run}},
		{"argument", `and "extra" is no option`, []string{"lsi", "extra", "--run", run}},
		{"missing run", "--run is needed", []string{"lsi"}},
		{"missing options", "--dataset, --out and --run are needed", []string{"infer"}},
		{"one run of two", "give two run directories, and not 1\nusage: ndls diff RUN RUN", []string{"diff", run}},
		{"an option that words stand for", "unknown flag: --run\nusage: ndls report RUN...", []string{"report", "--run", run}},
		{"fraction of a count", `--threads: "1.5" is no whole number`, []string{"version", "--threads", "1.5"}},
		{"too large", "--threads: 1000000000000000000000 is too large", []string{"version", "--threads", "1000000000000000000000"}},
		{"word for yes", `--quiet: "maybe" is neither true nor false`, []string{"version", "--quiet=maybe"}},
		{"no time", `--interval: "5" is no time`, []string{"status", "--run", run, "--interval", "5"}},
		{"number that is none", `--probes: "many" is no whole number`, []string{"lsi", "--run", run, "--probes", "many"}},
		{"value out of range", "--r 2 is outside [0, 1]", []string{"run", "--dataset", "karate:", "--run", run, "--r", "2"}},
		{"name that is none", "--lsi", []string{"run", "--dataset", "karate:", "--run", run, "--lsi", "exact"}},
		{"memory", "no amount of memory", []string{"run", "--dataset", "karate:", "--run", run, "--memory", "much"}},
		{"threads", "--threads 0", []string{"version", "--threads", "0"}},
		{"kernel", "--kernel", []string{"version", "--kernel", "sse"}},
		{"log level", "--log-level", []string{"version", "--log-level", "loud"}},
		{"no dataset", "--dataset is needed", []string{"run", "--run", run}},
		{"dataset without a kind", "a kind and a colon come first", []string{"run", "--dataset", "cora", "--run", run}},
		{"kind without a colon", "did you mean karate:?", []string{"run", "--dataset", "karate", "--run", run}},
		{"misspelt kind", "did you mean edges:?", []string{"inspect", "--dataset", "egdes:FILE"}},
		{"unknown store", "give a local folder or s3://bucket/prefix", []string{"inspect", "--run", "gs://bucket/run"}},
		{"negative workers", "is negative", []string{"run", "--dataset", "karate:", "--run", run, "--workers", "-1"}},
		{"no keys", "neither keys nor a token", []string{"worker", "--run", run}},
		{"two ways to prove", "give one", []string{"coordinator", "--dataset", "karate:", "--run", run, "--keys", dir, "--token-file", run}},
		{"status of nothing", "give either --run or --coordinator", []string{"status"}},
		{"plan without a shape", "give either", []string{"plan"}},
		{"missing configuration", "there is no file ", []string{"version", "--config", filepath.Join(dir, "none.yaml")}},
		{"unknown key", `there is no option "epsilom"; did you mean epsilon?`, []string{"lsi", "--run", run, "--config", yaml("epsilom: 1\n")}},
		{"key twice", "line 2", []string{"lsi", "--run", run, "--config", yaml("r: 1\nr: 0\n")}},
		{"bad value", "line 1", []string{"lsi", "--run", run, "--config", yaml("probes: many\n")}},
		{"list", "takes one value", []string{"lsi", "--run", run, "--config", yaml("probes: [1, 2]\n")}},
		{"no mapping", "KEY: VALUE", []string{"lsi", "--run", run, "--config", yaml("- probes\n")}},
		{"colon without quotes", "line 1: mapping values are not allowed", []string{"lsi", "--run", run, "--config", yaml("dataset: karate:\n")}},
		{"empty run", "--run is empty", []string{"run", "--dataset", "karate:", "--run", ""}},
		{"empty memory", "--memory", []string{"run", "--dataset", "karate:", "--run", run, "--memory", ""}},
		{"cache size", "--cache-size", []string{"run", "--dataset", "karate:", "--run", run, "--cache-size", "abc"}},
		{"block columns", "--block-columns 17 is not a multiple of 16", []string{"run", "--dataset", "karate:", "--run", run, "--block-columns", "17"}},
		{"parallel of one", "--parallel", []string{"run", "--dataset", "karate:", "--run", run, "--parallel", "rows"}},
		{"parallel without workers", "give --workers", []string{"run", "--dataset", "karate:", "--run", run, "--parallel", "columns"}},
		{"large limit", "[1, 16777216]", []string{"run", "--dataset", "karate:", "--run", run, "--epochs", "0"}},
		{"no number", "--probes", []string{"lsi", "--run", run, "--probes", "2.5"}},
		{"no YAML", "line 1", []string{"lsi", "--run", run, "--config", yaml("\t:\n")}},
	} {
		t.Run(tc.name, func(t *testing.T) { expect(t, ndls.ExitUsage, tc.want, tc.args...) })
	}
	if _, err := os.Stat(run); err == nil {
		t.Error("wrong usage made a run directory")
	}
}

// TestOneSplitOnly has options that hold for one split, with several of them: each is refused with
// what to do instead, before anything is made, by every verb that takes it, and in a run directory
// of several splits.
func TestOneSplitOnly(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	given := []string{"--dataset", toy, "--run", run, "--split", "random:20,20", "--splits", "2", "--quiet"}
	several := filepath.Join(dir, "several")
	expect(t, 0, "", "partition", "--dataset", toy, "--run", several, "--split", "random:20,20", "--splits", "2", "--quiet")
	before := filesBelow(t, several, ".")
	soft := write(t, filepath.Join(dir, "soft.csv"), "id,a,b,c\n0,0.5,0.25,0.25\n")
	for _, tc := range []struct {
		want    string
		options []string
		// verbs take the options with --splits, stage takes them for a run that has several.
		verbs []string
		stage string
	}{
		{"with --only train,", []string{"--only", "train"}, []string{"run", "partition", "coordinator"}, ""},
		{"with --only train, as with --inductive", []string{"--inductive"}, []string{"run"}, ""},
		{"with --blank-features", []string{"--blank-features", "0.3"}, []string{"run", "partition", "coordinator"}, ""},
		{"with --train-on", []string{"--train-on", several}, []string{"run", "coordinator"}, "train"},
		{"with --soft-labels", []string{"--soft-labels", soft}, []string{"run", "coordinator"}, "smooth-labels"},
	} {
		t.Run(tc.options[0], func(t *testing.T) {
			commands := [][]string{}
			for _, verb := range tc.verbs {
				commands = append(commands, slices.Concat([]string{verb}, given, tc.options))
			}
			if tc.verbs[0] == "run" {
				commands = append(commands, slices.Concat([]string{"run", "--workers", "2"}, given, tc.options))
			}
			if tc.stage != "" {
				commands = append(commands, slices.Concat([]string{tc.stage, "--run", several, "--quiet"}, tc.options))
			}
			for _, args := range commands {
				if args[0] == "coordinator" {
					t.Setenv(ndls.TokenVariable, strings.Repeat("00112233", 8))
				}
				r := expect(t, ndls.ExitUsage, tc.want, args...)
				for _, remedy := range []string{"leave --splits out", "split=N", "--seed"} {
					if !strings.Contains(r.stderr, remedy) {
						t.Errorf("%v does not say %q: %s", args, remedy, r.stderr)
					}
				}
			}
		})
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != "several" && e.Name() != "soft.csv" {
			t.Errorf("%s was made", e.Name())
		}
	}
	if after := filesBelow(t, several, "."); !maps.Equal(before, after) {
		t.Error("a refusal has changed the run directory")
	}
	// What only the last of the runs of --inductive takes is refused before the first one.
	expect(t, ndls.ExitUsage, "--keep-hops", "run", "--dataset", toy, "--run", run, "--inductive", "--keep-hops", "many", "--quiet")
	if _, err := os.Stat(run + ndls.TrainSuffix); err == nil {
		t.Error("a run that is refused at its end was begun")
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	// Keys of other verbs (what, epochs) are allowed; the command line wins.
	config := write(t, filepath.Join(dir, "c.yaml"),
		fmt.Sprintf("dataset: 'karate:'\nrun: %s\nprobes: 32\nepsilon: 0.1\nkmax: 50\nquiet: true\nmemory: 256MiB\nwhat: lsi\nepochs: 7\n", run))
	expect(t, 0, "", "run", "--config", config, "--epsilon", "0.2")
	expect(t, 0, "", "lsi", "--config", write(t, filepath.Join(dir, "empty.yaml"), ""), "--run", run, "--quiet")
	var in struct {
		Plan struct {
			LSI   map[string]any
			Train map[string]any
		}
	}
	decode(t, expect(t, 0, "", "inspect", "--run", run, "--json").stdout, &in)
	for key, want := range map[string]any{"probes": 32.0, "epsilon": 0.2, "kmax": 50.0} {
		if in.Plan.LSI[key] != want {
			t.Errorf("lsi.%s = %v, want %v", key, in.Plan.LSI[key], want)
		}
	}
	if in.Plan.Train["epochs"] != 7.0 {
		t.Errorf("train.epochs = %v, want 7", in.Plan.Train["epochs"])
	}
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
}

// files lists a folder with sizes.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			list = append(list, fmt.Sprintf("%s %d %s", path, info.Size(), info.ModTime()))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	thesis := write(t, filepath.Join(dir, "thesis.tex"), "hello")
	before := files(t, dir)
	for _, args := range [][]string{
		{"run", "--dataset", "karate:", "--run", dir},
		{"partition", "--dataset", "karate:", "--run", dir},
		{"lsi", "--run", dir},
		{"inspect", "--run", dir},
		{"verify", "--run", dir},
		{"gc", "--run", dir, "--delete"},
		{"export", "--run", dir, "--what", "lsi", "--format", "csv", "--out", filepath.Join(dir, "x.csv")},
	} {
		expect(t, ndls.ExitError, "thesis.tex", args...)
	}
	expect(t, ndls.ExitError, "thesis.tex", "generate", "--dataset", toy, "--out", dir)
	expect(t, ndls.ExitError, "is a file", "inspect", "--run", thesis)
	if after := files(t, dir); !slices.Equal(after, before) {
		t.Errorf("the folder was changed: %v", after)
	}
	missing := filepath.Join(dir, "sub", "run")
	expect(t, ndls.ExitError, "does not exist", "lsi", "--run", missing)
	if _, err := os.Stat(missing); err == nil {
		t.Error("ndls lsi made a run directory")
	}
	expect(t, ndls.ExitError, "is a file, and a folder is wanted", "run", "--dataset", "karate:", "--run", filepath.Join(thesis, "run"))
	empty := t.TempDir()
	expect(t, ndls.ExitError, "holds no run", "lsi", "--run", empty)
}

func TestUnwritableFolder(t *testing.T) {
	// /proc takes no files, not even from root.
	expect(t, ndls.ExitError, "/proc", "run", "--dataset", "karate:", "--run", "/proc/ndls", "--quiet")
}

func TestWholeRun(t *testing.T) {
	run := filepath.Join(t.TempDir(), "run")
	whole := append([]string{"run", "--dataset", toy, "--run", run}, quickly...)
	out := expect(t, 0, "accuracy in %, 2 models", whole...).stdout
	for _, want := range []string{"before label smoothing", "after label smoothing", "600 nodes", "mean K", "peak memory", "predictions/"} {
		if !strings.Contains(out, want) {
			t.Errorf("ndls run does not print %q:\n%s", want, out)
		}
	}

	var record struct {
		State  string
		Stages []struct{ Name, State string }
	}
	text, err := os.ReadFile(filepath.Join(run, "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), &record)
	var stages []string
	for _, s := range record.Stages {
		stages = append(stages, s.Name+" "+s.State)
	}
	if want := []string{
		"partition COMPLETE", "lsi COMPLETE", "smooth COMPLETE", "train COMPLETE", "predict COMPLETE",
		"label-depth COMPLETE", "smooth-labels COMPLETE", "evaluate COMPLETE",
	}; record.State != "COMPLETE" || !slices.Equal(stages, want) {
		t.Errorf("run.json: %s, %v", record.State, stages)
	}

	var report struct {
		Dataset  map[string]any
		LSI      map[string]any
		Accuracy struct {
			Base, Smoothed map[string]struct{ Mean, Std float64 }
			Runs           int
		}
		Memory map[string]float64
		Stages []map[string]any
	}
	text, err = os.ReadFile(filepath.Join(run, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	decode(t, string(text), &report)
	for name, group := range map[string]struct {
		got  map[string]any
		keys []string
	}{
		"dataset": {report.Dataset, []string{"name", "nodes", "edges", "features", "classes", "components"}},
		"lsi":     {report.LSI, []string{"mode", "probes", "r", "epsilon", "kmax", "stationary", "mean", "max", "capped_share", "histogram"}},
		"stages":  {report.Stages[0], []string{"name", "seconds", "passes", "columns_per_pass", "edges_per_second", "bytes_read", "bytes_written"}},
	} {
		for _, key := range group.keys {
			if _, ok := group.got[key]; !ok {
				t.Errorf("report.json: %s has no %s", name, key)
			}
		}
	}
	// A third of the nodes of each class; better than chance by far.
	if test := report.Accuracy.Smoothed["test"].Mean; test < 0.6 || report.Accuracy.Runs != 2 {
		t.Errorf("accuracy on test %v over %d runs", test, report.Accuracy.Runs)
	}
	if peak := report.Memory["peak_rss_bytes"]; peak <= 0 || peak > report.Memory["budget_bytes"] {
		t.Errorf("memory %v", report.Memory)
	}

	// Again: nothing to do. With another plan: refused. As JSON: a line each.
	before := files(t, filepath.Join(run, "graph"))
	lines := strings.Split(strings.TrimSpace(expect(t, 0, "", append(whole, "--json")...).stdout), "\n")
	for _, line := range lines {
		var object map[string]any
		decode(t, line, &object)
	}
	if len(lines) != 9 {
		t.Errorf("%d lines of JSON, want one a stage and one for the run", len(lines))
	}
	r := expect(t, ndls.ExitMismatch, "lsi.epsilon: 0.5 here, 0.03 in the run directory", append(whole, "--epsilon", "0.5")...)
	if !strings.Contains(r.stderr, "another --run") {
		t.Errorf("no way out in %q", r.stderr)
	}
	expect(t, ndls.ExitMismatch, "partition.dataset: karate:", "run", "--dataset", "karate:", "--run", run)
	expect(t, ndls.ExitMismatch, "seed: 7 here", "lsi", "--run", run, "--seed", "7", "--quiet")
	if after := files(t, filepath.Join(run, "graph")); !slices.Equal(before, after) {
		t.Error("a refused plan changed the run directory")
	}

	// A stage again, with other options, and what reads it.
	expect(t, 0, "smooth: 600 rows", "smooth", "--run", run, "--rule", "sgc", "--hops", "3", "--resume=false", "--quiet")
	expect(t, 0, "FAILED: stages asked for earlier are not complete", "inspect", "--run", run)
	expect(t, 0, "accuracy in %", "run", "--run", run, "--quiet")
	expect(t, 0, "COMPLETE", "inspect", "--run", run)
	expect(t, 0, ": the run is COMPLETE", "status", "--run", run)
}

// filesBelow are the files of folders of a run directory with their bytes.
func filesBelow(t *testing.T, run string, folders ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, folder := range folders {
		if err := fs.WalkDir(os.DirFS(run), folder, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(filepath.Join(run, name))
			files[name] = string(text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// The verbs one by one leave the same files as the whole run, which knows the options of all
// stages when it begins.
func TestVerbByVerb(t *testing.T) {
	dir := t.TempDir()
	uri := strings.TrimSpace(expect(t, 0, "edges:", "generate", "--dataset", toy, "--out", filepath.Join(dir, "data"), "--quiet").stdout)
	whole, steps := filepath.Join(dir, "whole"), filepath.Join(dir, "steps")
	expect(t, 0, "accuracy", append([]string{"run", "--dataset", uri, "--run", whole, "--label-kmax", "5", "--label-epsilon", "0.2"}, quickly...)...)
	small := []string{"--run", steps, "--memory", "200MiB", "--threads", "1", "--quiet"}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"600 nodes", []string{"partition", "--dataset", uri}},
		{"mean K", []string{"lsi", "--kernel", "go", "--block-columns", "16"}},
		{"smooth: 600 rows", []string{"smooth", "--block-columns", "16"}},
		{"predict: 600 rows", []string{"train", "--runs", "2", "--epochs", "20"}},
		{"smooth-labels: 600 rows", []string{"smooth-labels", "--label-kmax", "5", "--label-epsilon", "0.2"}},
		{"accuracy", []string{"evaluate"}},
	} {
		expect(t, 0, c.want, append(c.args, small...)...)
	}
	folders := []string{"graph", "lsi", "smoothed", "soft_labels", "predictions", "model"}
	got, want := filesBelow(t, steps, folders...), filesBelow(t, whole, folders...)
	for name, text := range want {
		if other, ok := got[name]; !ok || other != text {
			t.Errorf("%s is not what a whole run leaves (there: %v)", name, ok)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("a whole run leaves no %s", name)
		}
	}

	// The steps before a stage are asked for.
	fresh := filepath.Join(dir, "fresh")
	expect(t, 0, "600 nodes", "partition", "--dataset", uri, "--run", fresh, "--quiet")
	expect(t, ndls.ExitError, "run this first: ndls lsi --run ", "smooth", "--run", fresh, "--quiet")
	expect(t, ndls.ExitError, "run this first: ndls train --run ", "export", "--run", fresh, "--what", "soft-labels", "--format", "csv", "--out", filepath.Join(dir, "x"), "--quiet")
}

func TestExportVerifyAndGC(t *testing.T) {
	dir := t.TempDir()
	run, out := filepath.Join(dir, "run"), filepath.Join(dir, "k.csv")
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", run}, quickly...)...)
	for _, what := range []string{"lsi", "features", "smoothed", "soft-labels", "predictions", "edges", "nodes"} {
		for _, format := range []string{"csv", "npy", "parquet", "arrow"} {
			expect(t, 0, " rows", "export", "--run", run, "--what", what, "--format", format, "--out", filepath.Join(dir, what+"."+format), "--quiet")
		}
	}
	f, err := os.Open(filepath.Join(dir, "lsi.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for i := -1; lines.Scan(); i++ {
		if i >= 0 && !strings.HasPrefix(lines.Text(), fmt.Sprintf("%d,", i)) {
			t.Fatalf("line %d of lsi.csv is %q", i+2, lines.Text())
		}
	}
	// The exported edges make the same graph again.
	again := filepath.Join(dir, "again")
	expect(t, 0, "600 nodes", "partition", "--dataset", "edges:"+filepath.Join(dir, "edges.npy")+"?nodes=600", "--run", again, "--quiet")
	if out, err := exec.Command("diff", "-r", filepath.Join(run, "graph", "edges"), filepath.Join(again, "graph", "edges")).CombinedOutput(); err != nil {
		t.Errorf("the edges changed on the way: %v\n%s", err, out)
	}

	expect(t, ndls.ExitUsage, "none of lsi", "export", "--run", run, "--what", "weights", "--format", "csv", "--out", out, "--quiet")
	expect(t, ndls.ExitError, "--force", "export", "--run", run, "--what", "lsi", "--format", "csv", "--out", filepath.Join(dir, "lsi.csv"), "--quiet")
	expect(t, ndls.ExitBudget, "--memory", "export", "--run", run, "--what", "lsi", "--format", "csv", "--out", out, "--memory", "1MiB", "--quiet")

	expect(t, 0, "all as committed", "verify", "--run", run, "--quiet")
	if r := expect(t, 0, "", "gc", "--run", run, "--quiet"); r.stdout != "" {
		t.Errorf("orphans after a complete run: %s", r.stdout)
	}
	left := write(t, filepath.Join(run, "graph", "edges", "part-00099.parquet"), "x")
	mine := []string{write(t, filepath.Join(run, "my-notes.txt"), "mine"), write(t, filepath.Join(run, "smoothed", "mine.csv"), "mine")}
	expect(t, 0, "part-00099.parquet", "gc", "--run", run, "--quiet")
	expect(t, 0, "my-notes.txt\t4 B\tnot of ndls, kept", "gc", "--run", run, "--delete", "--quiet")
	if _, err := os.Stat(left); err == nil {
		t.Error("gc --delete left the orphan")
	}
	for _, name := range mine {
		if text, err := os.ReadFile(name); err != nil || string(text) != "mine" {
			t.Errorf("gc --delete took %s, which ndls did not write: %v", name, err)
		}
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, ndls.ExitUsage, "inside the run directory", "export", "--run", run, "--what", "nodes", "--format", "parquet", "--out", filepath.Join(run, "graph", "nodes.parquet"), "--force", "--quiet")
	expect(t, ndls.ExitUsage, "inside the run directory", "generate", "--dataset", toy, "--out", filepath.Join(run, "new"))
	if r := expect(t, 0, "id,k,capped\n0,", "export", "--run", run, "--what", "lsi", "--format", "csv", "--out", "-"); strings.Contains(r.stdout, " rows") {
		t.Errorf("stdout holds more than the export: %s", r.stdout)
	}
	expect(t, 0, "all as committed", "verify", "--run", run, "--quiet")

	// One byte of one file.
	damaged := filepath.Join(run, "smoothed", "part-00000.arrow")
	data, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	write(t, damaged, string(data))
	expect(t, ndls.ExitCorrupt, "smoothed/part-00000.arrow", "verify", "--run", run, "--quiet")
	expect(t, ndls.ExitCorrupt, "smoothed/part-00000.arrow", "export", "--run", run, "--what", "smoothed", "--format", "csv", "--out", out, "--quiet")
	if _, err := os.Stat(out); err == nil {
		t.Error("a failed export left a file")
	}
}

// Parts on the command line: those that are none are refused, the others say which they are, and leave nothing in the run
// directory.
func TestParts(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	expect(t, 0, "", append([]string{"run", "--dataset", toy, "--run", run}, quickly...)...)
	before := files(t, run)
	lsi := []string{"export", "--run", run, "--what", "lsi", "--format", "csv"}
	for _, part := range []string{"0/8", "9/8", "8", "a/b", ""} {
		want := fmt.Sprintf("--part: %q is no part; give I/N, such as 3/8", part)
		expect(t, ndls.ExitUsage, want, "verify", "--run", run, "--part", part)
		expect(t, ndls.ExitUsage, want, append(lsi, "--part", part, "--out", filepath.Join(dir, "no.csv"))...)
	}
	expect(t, ndls.ExitUsage, "export parts of predictions", "export", "--run", run, "--what", "ogb-submission", "--format", "npz", "--part", "1/2", "--out", filepath.Join(dir, "no.npz"))

	var checked struct {
		Part         string
		Files, Bytes int64
		OfFiles      int64 `json:"of_files"`
		OfBytes      int64 `json:"of_bytes"`
	}
	var sum, size int64
	for i := 1; i <= 3; i++ {
		part := fmt.Sprintf("%d/3", i)
		text := expect(t, 0, "", "verify", "--run", run, "--part", part, "--json").stdout
		if err := json.Unmarshal([]byte(text), &checked); err != nil || checked.Part != part {
			t.Fatalf("part %s: %q, %v", part, text, err)
		}
		sum, size = sum+checked.Files, size+checked.Bytes
	}
	if sum != checked.OfFiles || size != checked.OfBytes || sum == 0 {
		t.Errorf("three parts checked %d files and %d bytes of %d and %d", sum, size, checked.OfFiles, checked.OfBytes)
	}
	expect(t, 0, fmt.Sprintf("part 100000/100000, 0 of %d files, 0 B of ", sum), "verify", "--run", run, "--part", "100000/100000", "--quiet")

	whole := expect(t, 0, "id,k,capped\n", append(lsi, "--out", "-")...).stdout
	parts := "id,k,capped\n"
	for i := 1; i <= 7; i++ {
		part := fmt.Sprintf("%d/7", i)
		text := expect(t, 0, "", append(lsi, "--part", part, "--out", "-")...).stdout
		parts += strings.TrimPrefix(text, "id,k,capped\n")
		out := filepath.Join(dir, fmt.Sprintf("k%d.csv", i))
		expect(t, 0, " rows, part "+part, append(lsi, "--part", part, "--out", out)...)
		expect(t, ndls.ExitError, "--force", append(lsi, "--part", part, "--out", out)...)
		if got, err := os.ReadFile(out); err != nil || string(got) != text {
			t.Errorf("part %s as a file is %q, %v, and %q on standard output", part, got, err, text)
		}
		expect(t, 0, " rows, part "+part, append(lsi, "--part", part, "--out", out+".gz")...)
		z, err := os.Open(out + ".gz")
		if err != nil {
			t.Fatal(err)
		}
		r, err := gzip.NewReader(z)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != text {
			t.Errorf("part %s compressed is %q, %v", part, got, err)
		}
		z.Close()
	}
	if parts != whole {
		t.Errorf("seven parts are %d bytes, the whole %d", len(parts), len(whole))
	}
	empty := filepath.Join(dir, "empty.csv")
	t.Setenv("NDLS_PART", "5/5000")
	expect(t, 0, "0 rows, part 5/5000", append(lsi, "--out", empty)...)
	if got, err := os.ReadFile(empty); err != nil || string(got) != "id,k,capped\n" {
		t.Errorf("an empty part is %q, %v", got, err)
	}
	if after := files(t, run); !slices.Equal(after, before) {
		t.Errorf("the run directory has\n%v, and had\n%v", after, before)
	}
}

func TestBudget(t *testing.T) {
	dir := t.TempDir()
	papers := []string{"plan", "--nodes", "111059956", "--edges", "1615000000", "--features", "128", "--classes", "172"}
	r := expect(t, ndls.ExitBudget, "is enough", append(papers, "--memory", "1GiB")...)
	if !strings.Contains(r.stdout, "partition") {
		t.Errorf("a refused plan shows no table: %q", r.stdout)
	}
	expect(t, 0, "smooth-labels", append(papers, "--memory", "40GiB")...)
	expect(t, 0, "partition", "plan", "--dataset", toy, "--memory", "1GiB")
	if few, many := passes(t, append(papers, "--memory", "40GiB", "--probes", "16", "--expect-hops", "5")), passes(t, append(papers, "--memory", "40GiB", "--probes", "16", "--expect-hops", "15")); few == 0 || many != 3*few {
		t.Errorf("lsi takes %d passes for 5 hops and %d for 15", few, many)
	}
	expect(t, ndls.ExitBudget, "--memory 128MiB is enough", "run", "--dataset", toy, "--run", filepath.Join(dir, "run"), "--memory", "64MiB", "--quiet")
	expect(t, ndls.ExitError, "does not exist", "inspect", "--run", filepath.Join(dir, "run")) // what is refused leaves nothing
	expect(t, 0, "accuracy", append([]string{"run", "--dataset", toy, "--run", filepath.Join(dir, "run")}, quickly...)...)
}

// passes returns the number of passes of the lsi stage of a plan.
func passes(t *testing.T, plan []string) int {
	t.Helper()
	for line := range strings.Lines(expect(t, 0, "", append(plan, "--json")...).stdout) {
		var f control.Figures
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err)
		}
		if f.Stage == control.LSI {
			return f.Passes
		}
	}
	return 0
}

func TestDamagedInput(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "edges.txt"), "0 1\n1 2\n2 x\n")
	expect(t, ndls.ExitCorrupt, "line 3", "run", "--dataset", "edges:"+edges, "--run", filepath.Join(dir, "run"), "--quiet")
	expect(t, ndls.ExitError, "there is no file ", "run", "--dataset", "edges:"+filepath.Join(dir, "none.txt"), "--run", filepath.Join(dir, "none"), "--quiet")
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a missing dataset made a run directory")
	}
}

// An error names what is wrong and nothing of how the program is made; the record has the
// same text, where there was a folder for it before. Such errors come once, whoever finds them.
func TestErrorsOfOneMachine(t *testing.T) {
	dir := t.TempDir()
	bad := write(t, filepath.Join(dir, "bad.txt"), "0 1\n1 x\n")
	good := write(t, filepath.Join(dir, "good.txt"), "0 1\n1 2\n2 0\n")
	notNumber := bad + ` line 2: column "2": node id "x" is not a number: ids are whole numbers from 0, renumber the nodes, or give the graph as table:, which takes ids of any type`
	for i, tc := range []struct {
		edges string
		args  []string
		code  int
		want  string
		run   bool // it left a record
	}{
		{bad, nil, ndls.ExitCorrupt, notNumber, true},
		{bad, []string{"--workers", "2", "--memory", "1GiB"}, ndls.ExitCorrupt, notNumber, true},
		{good, []string{"--scratch", good}, ndls.ExitUsage, "--scratch " + good + " is a file; give a folder", false},
		{good, []string{"--workers", "2", "--memory", "1GiB", "--scratch", good}, ndls.ExitUsage, "--scratch " + good + " is a file; give a folder", false},
		{good, []string{"--memory", "10MiB"}, ndls.ExitBudget, "--memory 10.0 MiB is below the smallest budget, 128.0 MiB; --memory 128MiB is enough", false},
	} {
		run := filepath.Join(dir, strconv.Itoa(i))
		if tc.run {
			if err := os.Mkdir(run, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(binary, append([]string{"run", "--dataset", "edges:" + tc.edges, "--run", run, "--quiet", "--log-level", "error"}, tc.args...)...)
		var errs bytes.Buffer
		cmd.Stderr = &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code != tc.code || errs.String() != "ndls: "+tc.want+"\n" {
			t.Errorf("%v: status %d, want %d; stderr %q, want %q", tc.args, code, tc.code, errs.String(), tc.want)
		}
		text, err := os.ReadFile(filepath.Join(run, "run.json"))
		if (err == nil) != tc.run {
			t.Errorf("%v: the record: %v", tc.args, err)
		}
		if !tc.run {
			continue
		}
		var rec ndls.Record
		decode(t, string(text), &rec)
		if rec.Reason != tc.want || len(rec.Stages) != 1 || rec.Stages[0].Reason != tc.want || len(rec.Losses) != 1 || rec.Losses[0].Reason != tc.want {
			t.Errorf("%v: the record gives %q, %+v, %+v", tc.args, rec.Reason, rec.Stages, rec.Losses)
		}
	}
}

// TestDamageIsMended damages one file after another. The verb that reads the file names it
// and the command that makes it again; after that command the run is whole.
func TestDamageIsMended(t *testing.T) {
	whole(t)
	run := filepath.Join(t.TempDir(), "run")
	dataset := []string{"--dataset", "synthetic:nodes=300,edges=900,features=20,classes=3,seed=1"}
	whole := append([]string{"run", "--run", run, "--quiet", "--runs", "1", "--epochs", "2", "--hidden", "8", "--probes", "16"}, dataset...)
	expect(t, 0, "accuracy", whole...)
	for _, tc := range []struct{ file, reader, mend string }{
		{"graph/features/tile-00000-00000.f32", "smooth", "partition --dataset URI"},
		{"graph/hops/part-00000.hops", "smooth", ""},
		{"lsi/part-00000.parquet", "smooth", "lsi"},
		{"smoothed/part-00000.arrow", "verify", "smooth"},
		{"model/run-000.mlp", "verify", "train"},
		{"graph/summary.json", "inspect", "partition --dataset URI"},
		{"graph/nodes.parquet", "lsi", "partition --dataset URI"},
	} {
		path := filepath.Join(run, tc.file)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/3] ^= 1 // behind the middle of hop streams this small nothing is read
		if err := os.WriteFile(path, b, 0o644); err != nil {
			t.Fatal(err)
		}
		want := "ndls " + tc.mend + " --run " + run + " --resume=false makes it again, and ndls run --run " + run
		if tc.mend == "" {
			want = "remove it and repeat the command"
		}
		reader := []string{tc.reader, "--run", run, "--quiet"}
		if tc.reader == "smooth" || tc.reader == "lsi" {
			reader = append(reader, "--resume=false")
		}
		r := expect(t, ndls.ExitCorrupt, want, reader...)
		if !strings.Contains(r.stderr, tc.file) || strings.Contains(r.stderr, "new run directory") {
			t.Errorf("%s: %s", tc.file, r.stderr)
		}
		if tc.mend == "" {
			_ = os.Remove(path)
			expect(t, 0, "", reader...)
		} else {
			verb := strings.Fields(strings.ReplaceAll(tc.mend, "URI", dataset[1]))
			expect(t, 0, "", append(verb, "--run", run, "--resume=false", "--quiet")...)
		}
		expect(t, 0, "accuracy", whole...)
		expect(t, 0, "COMPLETE", "verify", "--run", run, "--quiet")
	}
}

// Read verbs do not advise to choose an empty folder.
func TestReadVerbsOnAForeignFolder(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "notes.txt"), "mine")
	for _, verb := range []string{"inspect", "verify", "gc"} {
		r := expect(t, ndls.ExitError, "holds notes.txt and no run.json: it is no run directory", verb, "--run", dir, "--quiet")
		if strings.Contains(r.stderr, "empty or new folder") || !strings.Contains(r.stderr, "give a folder in which") {
			t.Errorf("%s: %s", verb, r.stderr)
		}
	}
	expect(t, ndls.ExitError, "nothing was changed; choose an empty or new folder", "partition", "--dataset", "karate:", "--run", dir, "--quiet")
}

// Values that float16, or sums of float32, cannot hold are refused, and never smoothed to
// infinity: also where only a sum over hops is too large, and where every hop is made.
func TestTooLargeFeatures(t *testing.T) {
	dir := t.TempDir()
	var edges, features strings.Builder
	for i := range 60 {
		fmt.Fprintf(&edges, "%d %d\n%d %d\n", i, (i+1)%60, i, i*7%60)
		fmt.Fprintf(&features, "%d,1e38,%d\n", i, i)
	}
	uri := "edges:" + write(t, filepath.Join(dir, "e.txt"), edges.String()) + "?features=" + write(t, filepath.Join(dir, "f.csv"), features.String())
	for i, tc := range []struct{ want, args string }{
		{"largest float32: scale the features down", ""},
		{"--precision float32", "--precision float16"},
		{"--precision float32", "--precision float16 --tolerance 0"},
	} {
		r := expect(t, ndls.ExitCorrupt, tc.want, append([]string{"run", "--dataset", uri, "--run", filepath.Join(dir, strconv.Itoa(i)), "--quiet"}, strings.Fields(tc.args)...)...)
		if strings.Contains(r.stderr, "conservation") || strings.Contains(r.stderr, "block") {
			t.Errorf("%s: %s", tc.args, r.stderr)
		}
	}
}

// Results that cannot be written are no success.
func TestFullOutput(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"version"}, {"plan", "--nodes", "1000", "--edges", "1000"}, {"run", "--help"}} {
		cmd := exec.Command(binary, args...)
		var errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = full, &errs
		_ = cmd.Run()
		if code := cmd.ProcessState.ExitCode(); code == 0 || !strings.Contains(errs.String(), "no space left") {
			t.Errorf("ndls %s > /dev/full: status %d, %s", strings.Join(args, " "), code, errs.String())
		}
	}
}

// A signal while a stage is running ends with its status and leaves a run that
// the same command finishes.
func TestSignals(t *testing.T) {
	for _, tc := range []struct {
		signal syscall.Signal
		code   int
		reason string
	}{{syscall.SIGINT, ndls.ExitInterrupted, "by the user"}, {syscall.SIGTERM, ndls.ExitTerminated, "by SIGTERM"}, {syscall.SIGHUP, ndls.ExitTerminated, "by SIGHUP"}, {syscall.SIGUSR1, ndls.ExitTerminated, "by SIGUSR1"}} {
		t.Run(tc.signal.String(), func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			args := []string{"run", "--dataset", toy, "--run", run, "--memory", "512MiB", "--epochs", "1000000", "--patience", "0", "--runs", "1"}
			heard := make(chan os.Signal, 1)
			signal.Notify(heard, tc.signal) // nohup may have started the tests
			defer signal.Stop(heard)
			cmd := exec.Command(binary, args...)
			pipe, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			guard := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
			defer guard.Stop()
			var text strings.Builder
			signalled := false
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				text.WriteString(lines.Text() + "\n")
				if !signalled && strings.Contains(lines.Text(), "msg=begin stage=train") {
					signalled = true
					// While it works, nobody else may write.
					expect(t, ndls.ExitError, "another ndls is working on it", "gc", "--run", run, "--delete", "--quiet")
					if err := cmd.Process.Signal(tc.signal); err != nil {
						t.Fatal(err)
					}
				}
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != tc.code {
				t.Fatalf("status %d, want %d; stderr:\n%s", code, tc.code, text.String())
			}
			expect(t, 0, "STOPPED: interrupted", "inspect", "--run", run)
			expect(t, 0, tc.reason, "inspect", "--run", run)
			var listed, looked struct {
				State   ndls.State
				Stage   ndls.Stage
				Stopped bool
			}
			decode(t, expect(t, 0, "", "list", run, "--json").stdout, &listed)
			decode(t, expect(t, 0, "", "status", "--run", run, "--json").stdout, &looked)
			if listed.State != ndls.Failed || !listed.Stopped || listed.Stage != ndls.StageTrain || looked.State != ndls.Failed || !looked.Stopped {
				t.Errorf("a run that was stopped: %+v in the list, %+v by its status", listed, looked)
			}
			expect(t, 0, "stopped in train", "list", run)
			expect(t, 0, "STOPPED: interrupted", "status", "--run", run)
			page := filepath.Join(t.TempDir(), "page.html")
			expect(t, 0, "", "report", run, "--out", page)
			if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "the run was stopped, and lacks train, predict, label-depth, smooth-labels, evaluate: interrupted") {
				t.Errorf("the report does not say that the run was stopped: %v", err)
			}
			if r := expect(t, 0, "", "gc", "--run", run, "--quiet"); strings.Contains(r.stdout, "not of ndls") {
				t.Errorf("gc does not know files that ndls made:\n%s", r.stdout)
			}
			// Training was begun with this plan: fewer epochs are another one.
			expect(t, ndls.ExitMismatch, "train.epochs", append(args, "--epochs", "20")...)
			expect(t, 0, "accuracy", append(args, "--epochs", "20", "--resume=false", "--quiet")...)
		})
	}
}

// TestInputIsExplained names the line of what contradicts itself, and says what was
// read as what.
func TestInputIsExplained(t *testing.T) {
	dir := t.TempDir()
	edges := write(t, filepath.Join(dir, "e.csv"), "src,dst,weight\n0,1,5\n1,2,5\n")
	uri := "edges:" + edges + "?features=" + write(t, filepath.Join(dir, "f.csv"), "0,1\n1,2\n2,3\n")
	for _, c := range []struct{ name, features, labels, want string }{
		{"missing", "0,1\n1,2\n", "id,label\n0,a\n", "f.csv: node 2 has no feature row: "},
		{"twice", "0,1\n1,2\n2,3\n0,4\n", "id,label\n0,a\n", "f.csv line 4: node 0 has a second feature row"},
		{"two labels", "0,1\n1,2\n2,3\n", "id,label\n0,a\n0,b\n", "l.csv line 3: node 0 has the label"},
	} {
		files := write(t, filepath.Join(dir, "f.csv"), c.features) + "&labels=" + write(t, filepath.Join(dir, "l.csv"), c.labels)
		expect(t, ndls.ExitCorrupt, c.want, "partition", "--dataset", "edges:"+edges+"?features="+files, "--run", filepath.Join(dir, c.name), "--quiet")
	}
	empty := write(t, filepath.Join(dir, "empty.txt"), "# nothing\n")
	expect(t, ndls.ExitCorrupt, "empty.txt: holds no edge", "partition", "--dataset", "edges:"+empty, "--run", filepath.Join(dir, "none"), "--quiet")

	write(t, filepath.Join(dir, "f.csv"), "0,1\n1,2\n2,3\n")
	run := filepath.Join(dir, "run")
	expect(t, 0, "3 nodes", "partition", "--dataset", uri, "--run", run)
	for _, part := range []string{`an edge joins the node in column`, "level=WARN", `weight`, "is ignored"} {
		if got := expect(t, 0, "", "partition", "--dataset", uri, "--run", run, "--resume=false"); !strings.Contains(got.stderr, part) {
			t.Errorf("%q lacks %q", got.stderr, part)
		}
	}
	for _, c := range [][]string{{"help", "datasets"}, {"help", "datasets", "edges"}} {
		if got := expect(t, 0, "src=", c...).stdout; strings.Contains(got, "Flags:") {
			t.Errorf("%v has options: %s", c, got)
		}
	}
}

func TestVersion(t *testing.T) {
	expect(t, 0, "ndls version "+ndls.Version, "--version")
	expect(t, 0, "kernel    go", "version", "--kernel", "go")
	var v map[string]string
	decode(t, expect(t, 0, "", "version", "--json").stdout, &v)
	for _, key := range []string{"ndls", "go", "kernel", "platform"} {
		if v[key] == "" {
			t.Errorf("ndls version --json has no %s: %v", key, v)
		}
	}
}

// A run that was killed is not said to go on; what a user must know is said once, and
// also with --quiet.
func TestWhatAUserIsTold(t *testing.T) {
	dir := t.TempDir()
	run := filepath.Join(dir, "run")
	bare := "synthetic:nodes=300,edges=900,features=0,classes=3,seed=1"
	r := expect(t, 0, "300 nodes", "run", "--dataset", bare, "--run", run, "--quiet")
	if n := strings.Count(r.stderr, "level=WARN"); n != 1 || !strings.Contains(r.stderr, "has no features") {
		t.Errorf("%d warnings, want one that stages are left out:\n%s", n, r.stderr)
	}
	r = expect(t, 0, "1 component,", "partition", "--dataset", "karate:", "--run", filepath.Join(dir, "karate"), "--quiet")
	if !strings.Contains(r.stdout, "34 labelled nodes in 2 classes; splits: none") {
		t.Errorf("partition does not tell what was imported:\n%s", r.stdout)
	}

	killed := filepath.Join(dir, "killed")
	cmd := exec.Command(binary, "run", "--dataset", toy, "--run", killed, "--memory", "512MiB", "--epochs", "1000000", "--patience", "0", "--runs", "1")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if strings.Contains(lines.Text(), "msg=begin stage=train") {
			if r := expect(t, 0, "RUNNING", "inspect", "--run", killed); strings.Contains(r.stdout, "no process") {
				t.Errorf("while it runs: %s", r.stdout)
			}
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait()
	expect(t, 0, "no process works on it", "inspect", "--run", killed)
}

func TestForecast(t *testing.T) {
	args := []string{"plan", "--measure=false", "--nodes", "111059956", "--edges", "1615000000", "--features", "128", "--classes", "172", "--training", "1200000", "--memory", "40GiB"}
	r := expect(t, 0, "total", args...)
	for _, option := range []string{"--runs 1", "--targets labelled"} {
		if !strings.Contains(r.stdout, option) {
			t.Errorf("the plan does not name %s:\n%s", option, r.stdout)
		}
	}
	// The promised saving equals what a plan with the option says.
	saving := regexp.MustCompile(`--runs 1 +(\S+) in place`).FindStringSubmatch(r.stdout)
	other := expect(t, 0, "total", append(args, "--runs", "1")...)
	if total := regexp.MustCompile(`total .* (\S+) *\n`).FindStringSubmatch(other.stdout); saving == nil || total == nil || saving[1] != total[1] {
		t.Errorf("said %v, is %v", saving, total)
	}
	// What it recommends it takes.
	advice := regexp.MustCompile(`(?m)^ +(--\S+) (\S+) +\S+ in place`).FindAllStringSubmatch(r.stdout, -1)
	if len(advice) != 3 {
		t.Errorf("%d options are recommended:\n%s", len(advice), r.stdout)
	}
	for _, option := range advice {
		expect(t, 0, "total", append(args, option[1], option[2])...)
	}
}
