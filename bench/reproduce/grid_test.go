package reproduce

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ndls"
	"ndls/tune"
)

// withToy adds a small data set that needs no files.
func withToy(t *testing.T) {
	t.Helper()
	before := sets
	sets = append(slices.Clone(sets), set{name: "toy", uri: "synthetic:nodes=600,edges=2400,features=20,classes=3,seed=1", split: "--split share:0.3,0.2", options: "--batch-size 0"})
	t.Cleanup(func() { sets = before })
}

// quick are options with which a run takes a moment.
const quick = "--epochs 8 --probes 16 --kmax 12 --label-kmax 3"

func tableJob(t *testing.T, out string) Job {
	t.Helper()
	j := job()
	j.Data, j.Out, j.Options, j.Trials, j.Splits, j.Models = t.TempDir(), out, quick, 2, 2, 1
	return j
}

// files are the contents of the files below a folder.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// text returns the tables that the command prints and writes.
func text(t *testing.T, r Result) string {
	t.Helper()
	var all bytes.Buffer
	for _, table := range r.Tables {
		if err := table.Write(&all); err != nil {
			t.Fatal(err)
		}
		if err := table.WriteCSV(&all); err != nil {
			t.Fatal(err)
		}
	}
	return all.String() + strings.Join(r.Notes, "\n")
}

// TestTablesAreValid takes the experiments of all tables, and has ndls plan each of them, with the
// first and the last of the values that are searched.
func TestTablesAreValid(t *testing.T) {
	counts := ndls.Counts{Nodes: 3000, Edges: 9000, Features: 100, Classes: 5, Labelled: 3000, Training: 300, Validation: 300}
	planned := map[string]bool{}
	for _, g := range grids {
		for _, name := range g.sets {
			s, err := findSet(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range g.conditionList() {
				for _, r := range g.rows {
					x, err := Job{}.cell(g, s, c, r.recipe)
					if err != nil {
						t.Fatalf("%s, %s, %s: %v", g.name, name, r.recipe, err)
					}
					var space tune.Space
					if x.search != "" && x.program == "" {
						all := strings.Fields(x.search + " " + x.labelSearch)
						if space, err = tune.ParseSpace(all...); err != nil || len(space) == 0 {
							t.Fatalf("%s, %s: %q: %v", g.name, r.recipe, all, err)
						}
					}
					for _, at := range []func([]string) string{func(v []string) string { return v[0] }, func(v []string) string { return v[len(v)-1] }} {
						chosen := ""
						for _, d := range space {
							if d.Name != "label-alpha" || !strings.Contains(chosen, "--label-rule ndls ") {
								chosen += " --" + d.Name + " " + at(d.Values)
							}
						}
						o, err := x.plan(chosen + " " + x.labels)
						if err != nil {
							t.Fatalf("%s, %s, %s: %v", g.name, name, r.recipe, err)
						}
						if !x.byItself() {
							o.Partition.Splits = x.splits
						}
						line := x.command(chosen)
						if planned[line+x.labels] {
							continue
						}
						planned[line+x.labels] = true
						if _, err := ndls.Plan(context.Background(), ndls.PlanConfig{Counts: counts, Options: func(to *ndls.Options) { *to = o }, Resources: ndls.Resources{Memory: 2 << 30, Threads: 1}}); err != nil {
							t.Errorf("%s: %v", line, err)
						}
					}
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		if !slices.ContainsFunc(grids, func(g grid) bool { return slices.Contains(g.recipes(), name) }) {
			t.Errorf("no table has %s", name)
		}
	}
}

// TestTable makes a table, and makes it again: nothing is repeated, and all bytes are the same.
// Then a part of what is stored is missing, as after an interruption.
func TestTable(t *testing.T) {
	withToy(t)
	g := grid{
		name: "toys", sets: []string{"toy", "cora"}, search: "dropout=0.2,0.5",
		conditions: []condition{{"all", ""}, {"few edges", "--drop-edges 0.5"}},
		rows: []row{
			{name: "MLP", recipe: "mlp", paper: "toy=99.9"},
			{name: "SGC", recipe: "sgc"},
			{name: "NDLS-F", recipe: "ndls", ours: true},
			{name: "NDLS", recipe: "ndls", smoothed: true, ours: true},
			{name: "C&S", recipe: "mlp-cs", smoothed: true},
		},
	}
	ctx, out := context.Background(), t.TempDir()
	j := tableJob(t, out)
	first, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	experiments := files(t, filepath.Join(out, "experiments"))
	// MLP and C&S share a search of the network, and C&S has one of its own: under each condition 4
	// searches and 4 experiments.
	if len(experiments) != 16 {
		t.Errorf("%d files in experiments: %v", len(experiments), slices.Sorted(maps.Keys(experiments)))
	}
	if _, err := os.Stat(filepath.Join(out, "work")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("run directories are left: %v", err)
	}
	printed := text(t, first)
	for _, l := range first.Data.(tableData).Lines {
		if o := l.Outcome; strings.HasPrefix(o.Recipe, "mlp") && strings.Contains(o.Chosen, "--cs-correct-alpha") != (l.Name == "C&S") || (o.LabelTrials == 2) != (l.Name == "C&S") {
			t.Errorf("%s has %d settings of label smoothing and %q was chosen", l.Name, o.LabelTrials, o.Chosen)
		}
	}
	for _, want := range []string{"(99.9)", "| toy all | toy few edges |", "by validation, NDLS", "toys: the best method with hops by node", "toy,all,MLP,1,0,", "cora is missing: cora/ind.cora.x and 7 more", "ndls reproduce toys --sets cora", "--drop-edges 0.5"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the table lacks %q:\n%s", want, printed)
		}
	}
	for name, text := range experiments {
		if strings.Contains(text, out) || strings.Contains(text, j.Data) {
			t.Errorf("%s names folders of this run:\n%s", name, text)
		}
	}
	again, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if text(t, again) != printed || !maps.Equal(files(t, filepath.Join(out, "experiments")), experiments) {
		t.Errorf("another call gives another table:\n%s\n%s", printed, text(t, again))
	}
	// Experiments after an interruption are repeated one by one; seconds are measured anew.
	accuracy := func(r Result) string {
		var all bytes.Buffer
		for _, table := range r.Tables {
			if err := table.Write(&all); err != nil {
				t.Fatal(err)
			}
		}
		return all.String()
	}
	for name := range experiments {
		if strings.Contains(name, "ndls") || strings.Contains(name, "mlp-cs") {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	unlock, err := lock(out)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := g.make(ctx, j); !errors.Is(err, ndls.ErrBusy) {
		t.Errorf("another process makes tables in the same folder: %v", err)
	}
	unlock()
	stopped, stop := context.WithCancel(ctx)
	stop()
	if _, err := g.make(stopped, j); err == nil {
		t.Error("a table is made under a cancelled context")
	}
	resumed, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if accuracy(resumed) != accuracy(first) {
		t.Errorf("after an interruption:\n%s\nbefore:\n%s", accuracy(resumed), accuracy(first))
	}
	j.Conditions = []string{"few edges"}
	some, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if header := some.Tables[0].Header; !slices.Equal(header, []string{"method", "toy few edges"}) {
		t.Errorf("the table of one condition has the columns %q", header)
	}
	j.Conditions = []string{"few edge"}
	if _, err := g.make(ctx, j); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), "did you mean few edges?") {
		t.Errorf("a condition that the table does not have: %v", err)
	}
}

// TestSplitsByThemselves makes the tables whose splits are runs of their own.
func TestSplitsByThemselves(t *testing.T) {
	withToy(t)
	rows := []row{{name: "SGC", recipe: "sgc"}, {name: "NDLS", recipe: "ndls", smoothed: true, ours: true}}
	for _, g := range []grid{
		{name: "later", sets: []string{"toy"}, rows: rows, search: "dropout=0.2,0.5", inductive: true},
		{name: "blank", sets: []string{"toy"}, rows: rows, search: "dropout=0.2,0.5", conditions: []condition{{"half", "--blank-features 0.5"}}},
	} {
		j := tableJob(t, t.TempDir())
		r, err := g.make(context.Background(), j)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		lines := r.Data.(tableData).Lines
		for _, l := range lines {
			o := l.Outcome
			if len(o.Models) != 2 || o.Splits != 2 || o.Models[1].Split != 1 || o.Before.Test == nil || o.Before.Test.BetweenSplits <= 0 {
				t.Errorf("%s, %s: %d models, %d splits, %+v", g.name, l.Name, len(o.Models), o.Splits, o.Before.Test)
			}
			if strings.Contains(o.Command, "--inductive") != g.inductive {
				t.Errorf("%s: %s", g.name, o.Command)
			}
		}
	}
}

// TestTrees makes a table of trees where Python has the packages, and says what is missing where
// it has not.
func TestTrees(t *testing.T) {
	withToy(t)
	g := grid{name: "woods", sets: []string{"toy"}, rows: []row{
		{name: "MLP", recipe: "mlp"},
		{name: "forest", recipe: "forest-ndls", ours: true},
		{name: "forest, smoothed", recipe: "forest-ndls", smoothed: true, ours: true},
		{name: "XGBoost", recipe: "xgboost-ndls", ours: true},
	}}
	ctx := context.Background()
	j := tableJob(t, t.TempDir())
	j.Python = "false"
	r, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if printed := text(t, r); !strings.Contains(printed, "pip install numpy pyarrow scikit-learn xgboost") || !strings.Contains(printed, "ndls reproduce woods") {
		t.Errorf("without Python:\n%s", printed)
	}
	j.Python = os.Getenv("NDLS_PYTHON")
	if err := j.checkPython(ctx, programOf("forest")); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("NDLS_PYTHON names no Python with scikit-learn and XGBoost")
	}
	if r, err = g.make(ctx, j); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Data.(tableData).Lines[1:] {
		o := l.Outcome
		if len(o.Models) != 2 || o.Trials != 2 || o.Before.Test.Mean < 0.5 || o.After.Test == nil {
			t.Errorf("%s: %+v", l.Name, o)
		}
	}
	goOnWithTrees(t, g, j)
}

// goOnWithTrees makes a table whose first split was measured before: the others have the bits that they have in a table
// that was not interrupted, whose rows come from the first split.
func goOnWithTrees(t *testing.T, g grid, j Job) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(j.Out, "experiments", "toy-forest-ndls-*.json"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var whole Outcome
	text, err := os.ReadFile(found[0])
	if err == nil {
		err = json.Unmarshal(text, &whole)
	}
	if err != nil {
		t.Fatal(err)
	}
	begun := Outcome{Choice: whole.Choice}
	for _, m := range whole.Models {
		if m.Split == 0 {
			begun.Models = append(begun.Models, m)
		}
	}
	again := tableJob(t, t.TempDir())
	again.Python, again.Methods = j.Python, []string{"forest-ndls"}
	name := strings.TrimSuffix(filepath.Base(found[0]), ".json")
	folder := filepath.Join(again.Out, "experiments", name+"-splits")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if text, err = json.Marshal(begun); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "0.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := g.make(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	var later Outcome
	if text, err = os.ReadFile(filepath.Join(again.Out, "experiments", name+".json")); err == nil {
		err = json.Unmarshal(text, &later)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(begun.Models) == len(whole.Models) || !reflect.DeepEqual(later.Models, whole.Models) {
		t.Errorf("after an interruption %+v, without one %+v", later.Models, whole.Models)
	}
}

// TestSplitsGoOn interrupts an experiment between two splits: those that were measured are not measured again.
func TestSplitsGoOn(t *testing.T) {
	x := cell{splits: 4, models: 2, seed: 7}
	all := splits{x, filepath.Join(t.TempDir(), "splits")}
	interrupted := errors.New("interrupted")
	var measured []int
	measure := func(until int) func(int, cell, *Outcome) error {
		return func(split int, x cell, of *Outcome) error {
			if split == until {
				return interrupted
			}
			measured = append(measured, split)
			if x.seed != 7+uint64(split) {
				t.Errorf("split %d has seed %d", split, x.seed)
			}
			valid, k := float64(split)/10, 3+float64(split)
			of.Choice, of.MeanK = Choice{Chosen: fmt.Sprint("setting of ", split), Trials: 2}, &k
			of.took(Seconds{ndls.StageTrain, 1})
			for run := range x.models {
				of.Models = append(of.Models, Model{Split: split, Run: run, Valid: &valid})
			}
			return nil
		}
	}
	var first, o Outcome
	if err := all.each(&first, measure(2)); !errors.Is(err, interrupted) {
		t.Fatal(err)
	}
	if err := all.each(&o, measure(4)); err != nil {
		t.Fatal(err)
	}
	o.sum()
	if !slices.Equal(measured, []int{0, 1, 2, 3}) {
		t.Errorf("splits %v were measured", measured)
	}
	if len(o.Models) != 8 || o.Models[7].Split != 3 || o.Before.Valid == nil || math.Abs(o.Before.Valid.Mean-0.15) > 1e-12 ||
		o.Chosen != "setting of 0" || *o.MeanK != 3 || len(o.Stages) != 1 || o.Stages[0].Seconds != 4 {
		t.Errorf("%+v", o)
	}
}

// TestRefusedTables asks for what tables do not have.
func TestRefusedTables(t *testing.T) {
	e := find(t, "transductive")
	for want, change := range map[string]func(*Job){
		"--sets karate":     func(j *Job) { j.Sets = []string{"karate"} },
		"--methods gin":     func(j *Job) { j.Methods = []string{"gin"} },
		"has no conditions": func(j *Job) { j.Conditions = []string{"2 %"} },
		"epochs":            func(j *Job) { j.Options, j.Data = "--epochs", dataOf(t) },
		"speed":             func(j *Job) { j.Options, j.Data = "--speed 9", dataOf(t) },
	} {
		j := tableJob(t, t.TempDir())
		change(&j)
		if _, err := e.Make(context.Background(), j); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// dataOf is a folder in which the files of Cora seem to be.
func dataOf(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range planetoid("cora").files {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestDifference compares with what scipy 1.17 gives: ttest_1samp, ttest_ind with equal_var=False. Where
// the difference is the same in each split, the sign test says how likely that is.
func TestDifference(t *testing.T) {
	near := func(what string, got, want float64) {
		if math.Abs(got-want) > 1e-4*math.Abs(want) {
			t.Errorf("%s: %g, not %g", what, got, want)
		}
	}
	alone := paired([]float64{0.1, 0.2, 0.3, 0.4}, 0)
	near("mean", alone.mean, 0.25)
	near("error", alone.deviation, 0.0645497)
	near("p", alone.p, 0.0304663)
	// Three times as many nodes train as are tested: Nadeau and Bengio add a third of the variance.
	near("error with overlap", paired([]float64{0.1, 0.2, 0.3, 0.4}, Outcome{Train: 300, Test: 100}.overlap()).deviation, 0.0986013)
	near("overlap of few training nodes", Outcome{Train: 140, Test: 2380}.overlap(), 140./2380)
	models := unpaired([]float64{0.5, 0.6, 0.9}, []float64{0.4, 0.5})
	near("mean", models.mean, 0.2166667)
	near("error", models.deviation, 0.1301708)
	near("p", models.p, 0.2085210)
	same := [][]float64{{0.52, 0.54}, {0.92, 0.94}}
	line := func(x [][]float64, shift float64) (l line) {
		l.Outcome.Splits = len(x)
		for split, models := range x {
			for run, v := range models {
				v += shift
				l.Outcome.Models = append(l.Outcome.Models, Model{Split: split, Run: run, Test: &v})
			}
		}
		return l
	}
	if d := compare(line(same, 0.02), line(same, 0), testOf); math.Abs(d.mean-0.02) > 1e-9 || d.p != 0.5 || d.verdict() != "level with" {
		t.Errorf("%+v", d)
	}
	if d := paired([]float64{0.02, 0.02, 0.02, 0.02, 0.02, 0.02}, 0); d.p != 1./32 || d.verdict() != "ahead of" {
		t.Errorf("%+v", d)
	}
	if d := compare(line(same, 0), line(same, 0), testOf); d.p != 1 || d.verdict() != "level with" {
		t.Errorf("%+v", d)
	}
}

// TestHolm adjusts p-values as statsmodels 0.15 does (multipletests, method="holm").
func TestHolm(t *testing.T) {
	all := []comparison{{test: difference{p: 0.01}}, {test: difference{p: 0.04}}, {test: difference{p: 0.03}}, {test: difference{p: 0.005}}}
	adjust(all, func(c *comparison) *difference { return &c.test })
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if got := all[i].test.adjusted; math.Abs(got-want) > 1e-12 {
			t.Errorf("comparison %d: %g, not %g", i, got, want)
		}
	}
}

// TestLaTeX writes a table with characters that LaTeX reads as commands.
func TestLaTeX(t *testing.T) {
	var text bytes.Buffer
	table := Table{Title: "a title", Header: []string{"method", "cora_ml 2 %"}, Rows: [][]string{{"C&S", "80.10 ± 0.20"}, {"S²GC", "–"}}}
	if err := table.WriteLaTeX(&text); err != nil {
		t.Fatal(err)
	}
	want := `% a title
\begin{tabular}{lr}
\toprule
method & cora\_ml 2 \% \\
\midrule
C\&S & 80.10 $\pm$ 0.20 \\
S\textsuperscript{2}GC & -- \\
\bottomrule
\end{tabular}
`
	if text.String() != want {
		t.Errorf("%s", text.String())
	}
}

// TestSeconds makes a table of seconds: only methods that take K have the time of K.
func TestSeconds(t *testing.T) {
	withToy(t)
	g := grid{
		name: "speed", sets: []string{"toy"}, options: "--hops 2 " + none, search: fixed, seconds: true,
		rows: []row{{name: "NDLS", recipe: "ndls", ours: true}, {name: "SGC", recipe: "sgc"}},
	}
	r, err := g.make(context.Background(), tableJob(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	rows := r.Tables[0].Rows
	if len(rows) != 2 || rows[0][2] == "–" || rows[1][2] != "–" || rows[1][3] == "–" || rows[1][4] == "–" {
		t.Errorf("%v", rows)
	}
}

// TestPeers measures networks of other papers where Python has what they need, in a table whose test nodes come later and in one of
// seconds. They are left out of tables that are not asked for them.
func TestPeers(t *testing.T) {
	withToy(t)
	ctx := context.Background()
	j := tableJob(t, t.TempDir())
	g := grid{name: "nets", sets: []string{"toy"}, search: "dropout=0.2,0.5", rows: slices.Concat([]row{{name: "SGC", recipe: "sgc"}, {name: "NDLS-F", recipe: "ndls", ours: true}}, transductivePeers)}
	r, err := g.make(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	if lines := r.Data.(tableData).Lines; len(lines) != 2 {
		t.Fatalf("%d lines without peers", len(lines))
	}
	j.Peers, j.Trials, j.Python = true, 1, os.Getenv("NDLS_PYTHON")
	if err := j.checkPython(ctx, programOf("gcn")); err != nil {
		t.Skip("NDLS_PYTHON names no Python with PyTorch and PyTorch Geometric:", err)
	}
	g.inductive = true
	if r, err = g.make(ctx, j); err != nil {
		t.Fatal(err)
	}
	for _, l := range r.Data.(tableData).Lines[2:] {
		if o := l.Outcome; len(o.Models) != 2 || o.Trials != 1 || o.Memory == 0 || o.Before.Test.Mean < 0.5 || o.After.Test == nil || !strings.Contains(o.Command, "--inductive") {
			t.Errorf("%s: %+v", l.Name, o)
		}
	}
	g = grid{name: "clock", sets: []string{"toy"}, search: fixed, seconds: true, options: none, rows: slowPeers}
	if r, err = g.make(ctx, j); err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Tables[0].Rows {
		if row[4] == "–" || row[8] == "–" {
			t.Errorf("%v", row)
		}
	}
}
