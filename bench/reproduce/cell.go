package reproduce

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/vfs"
	"ndls/tune"
)

// cell is one experiment: a method on a data set under a condition.
type cell struct {
	set       set
	condition condition
	// name is the name of the recipe.
	name string
	recipe
	// options are the options of the run except those that are chosen, in the order in which they
	// are laid over each other.
	options string
	// search is all that is chosen by validation, "" for nothing.
	search string
	// labelSearch is all that is chosen of label smoothing, "" for its depth alone.
	labelSearch string
	// inductive is described at grid. last is the last stage that is run.
	inductive bool
	last      ndls.Stage
	trials    int
	// splits is the number of random splits, 1 for a published split; models is the number of
	// models of each.
	splits, models int
	seed           uint64
}

// format is the version of what an experiment is and how it is stored.
const format = 2

// searchSplits is the largest number of splits by which settings are chosen.
const searchSplits = 3

// cell is the experiment of a recipe.
func (j Job) cell(g grid, s set, c condition, name string) (x cell, err error) {
	r, ok := recipes[name]
	if !ok {
		return x, fmt.Errorf("reproduce: no recipe is called %q", name)
	}
	split := s.split
	if g.split != "" && !s.inductive {
		split = g.split
	}
	x = cell{
		set: s, condition: c, name: name, recipe: r, inductive: g.inductive,
		options: strings.Join(strings.Fields(strings.Join([]string{s.options, split, g.options, c.options, r.options, j.Options}, " ")), " "),
		trials:  cmp.Or(j.Trials, DefaultTrials), seed: 1, last: ndls.StageEvaluate,
	}
	switch {
	case r.program != "":
		x.search = r.program // the program chooses what a forest, or boosting, has to choose
	case r.search != fixed && g.search != fixed:
		x.search = strings.TrimSpace(g.search + " " + r.search)
	}
	if x.search == "" {
		x.trials = 0
	} else {
		x.labelSearch = r.labelSearch
	}
	o, err := x.plan("")
	if err != nil {
		return x, err
	}
	x.splits, x.models = 1, cmp.Or(j.Models, DefaultPublishedModels)
	if g.seconds {
		x.last, x.models = ndls.StagePredict, cmp.Or(j.Models, 1)
	} else if o.Partition.Split != "" || o.Partition.LabelsPerClass > 0 {
		x.splits, x.models = cmp.Or(j.Splits, DefaultSplits), cmp.Or(j.Models, DefaultModels)
	}
	return x, nil
}

// plan are the options of the cell and of more, which are laid over them.
func (x cell) plan(more string) (ndls.Options, error) {
	o := ndls.DefaultOptions()
	o.Seed = x.seed
	err := lay(&o, x.options+" "+more)
	if o.Partition.Splits == 1 {
		o.Partition.Splits = 0 // the plan's way to say one
	}
	return o, err
}

// lay sets options as a command line spells them.
func lay(o *ndls.Options, flags string) error {
	words := strings.Fields(flags)
	for len(words) > 0 {
		name, isFlag := strings.CutPrefix(words[0], "--")
		if !isFlag || len(words) == 1 {
			return failure.Of(ndls.ErrOption, "%q is no list of options with their values, such as --epochs 200 --patience 50", flags)
		}
		if err := o.Set(name, words[1]); err != nil {
			return err
		}
		words = words[2:]
	}
	return nil
}

// byItself says that each split is a run of its own: ndls run takes one split with these options.
func (x cell) byItself() bool {
	return x.inductive || x.program != "" || strings.Contains(x.options, "--blank-features")
}

// place names the files of a cell: its data set, its condition, and more.
func (x cell) place(more ...string) string {
	words := append([]string{x.set.name, x.condition.name}, more...)
	slug := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '_', r == '.':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return ' '
	}, strings.Join(words, " "))
	return strings.Join(strings.Fields(slug), "-")
}

// key identifies what decides a result.
func key(what ...any) string {
	text, err := json.Marshal(append([]any{format}, what...))
	if err != nil {
		panic(fmt.Sprintf("reproduce: an experiment holds only numbers and strings: %v", err))
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:4])
}

// Outcome holds the result of an experiment. Accuracies are shares.
type Outcome struct {
	Set       string `json:"set"`
	Condition string `json:"condition,omitempty"`
	Recipe    string `json:"recipe"`
	// Command is the line that repeats it, with DATA for the folder of data sets and RUN for a
	// run directory; for a program, the lines.
	Command string `json:"command"`
	Choice
	Splits int `json:"splits"`
	// Train and Test count the training and the test nodes of the first split.
	Train  int64   `json:"train,omitempty"`
	Test   int64   `json:"test,omitempty"`
	Models []Model `json:"models"`
	// Before are the figures before label smoothing, After those after it.
	Before Figures `json:"before"`
	After  Figures `json:"after"`
	// MeanK is the mean number of hops of nodes, nil where no K table was made.
	MeanK *float64 `json:"mean_k,omitempty"`
	// Stages are the seconds that stages took, in all runs together. A program counts as training.
	Stages []Seconds `json:"stages"`
	// Memory is the peak of a program in bytes.
	Memory int64 `json:"memory,omitempty"`
}

// Choice holds what validation chose.
type Choice struct {
	// Chosen are the chosen options, Valid their validation accuracy in the search, Trials how
	// many were tried, and LabelTrials how many of label smoothing, with the network that was chosen
	// before.
	Chosen      string  `json:"chosen,omitempty"`
	Valid       float64 `json:"chosen_by,omitempty"`
	Trials      int     `json:"trials"`
	LabelTrials int     `json:"label_trials,omitempty"`
}

// Model are the accuracies of one model.
type Model struct {
	// Split and Run count from 0.
	Split int `json:"split"`
	Run   int `json:"run"`
	// A figure is nil where there are no such nodes, or no label smoothing.
	Valid         *float64 `json:"valid"`
	Test          *float64 `json:"test"`
	SmoothedValid *float64 `json:"smoothed_valid,omitempty"`
	SmoothedTest  *float64 `json:"smoothed_test,omitempty"`
	Epochs        int      `json:"epochs,omitempty"`
}

// Figures are accuracies over all models.
type Figures struct {
	Valid *ndls.Spread `json:"valid,omitempty"`
	Test  *ndls.Spread `json:"test,omitempty"`
}

// Seconds is the time of a stage.
type Seconds struct {
	Stage   ndls.Stage `json:"stage"`
	Seconds float64    `json:"seconds"`
}

// outcome returns the result of a cell: the stored one of an earlier call, or a new measurement,
// which it stores.
func (j Job) outcome(ctx context.Context, x cell) (Outcome, error) {
	id := key(x.set.uri, x.options, x.labels, x.search, x.program, x.inductive, x.trials, x.splits, x.models, x.seed)
	if x.last != ndls.StageEvaluate {
		id = key(id, x.last)
	}
	if x.labelSearch != "" {
		id = key(id, x.labelSearch)
	}
	return stored(filepath.Join(j.Out, "experiments", x.place(x.name, id)+".json"), func() (Outcome, error) {
		o := Outcome{Set: x.set.name, Condition: x.condition.name, Recipe: x.name, Splits: x.splits}
		all := splits{x, filepath.Join(j.Out, "experiments", x.place(x.name, id, "splits"))}
		measure := j.measureProgram
		if x.program == "" {
			choice, err := j.choose(ctx, x)
			if err != nil {
				return o, err
			}
			o.Choice, measure = choice, j.measure
		}
		if err := measure(ctx, all, &o); err != nil {
			return o, err
		}
		o.sum()
		return o, vfs.RemoveAll(all.folder)
	})
}

// splits holds the splits of a cell, of which each is a run of its own. The result of a split is
// stored in a folder until the outcome of the cell is stored.
type splits struct {
	cell
	folder string
}

// each adds to an outcome what came of one split after the other: what an earlier call has stored, or what measure finds for
// the cell with the seed of the split. If the first split has a choice, it becomes that of the outcome.
func (s splits) each(o *Outcome, measure func(split int, x cell, of *Outcome) error) error {
	for split := range s.splits {
		of, err := stored(filepath.Join(s.folder, fmt.Sprintf("%d.json", split)), func() (of Outcome, err error) {
			x := s.cell
			x.seed += uint64(split)
			err = measure(split, x, &of)
			return of, err
		})
		if err != nil {
			return err
		}
		if split == 0 && of.Trials > 0 {
			o.Choice = of.Choice
		}
		o.join(of)
	}
	return nil
}

// stored reads what a file holds, or finds it and writes the file, which appears when it is
// complete.
func stored[T any](path string, find func() (T, error)) (v T, err error) {
	text, err := vfs.ReadFile(path)
	if err == nil {
		if err := json.Unmarshal(text, &v); err != nil {
			return v, failure.Of(ndls.ErrCorrupt, "%s: %w; remove the file to repeat the experiment", path, err)
		}
		return v, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return v, err
	}
	if v, err = find(); err != nil {
		return v, err
	}
	text, err = json.MarshalIndent(v, "", "  ")
	if err != nil {
		return v, err
	}
	if _, err := vfs.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return v, err
	}
	return v, vfs.ReplaceFile(path, append(text, '\n'), 0o666)
}

// config returns the configuration of a run in a folder, with the options of the cell and more.
func (j Job) config(x cell, folder, more string) (ndls.Config, error) {
	o, err := x.plan(more)
	c := j.Config
	c.Run, c.Dataset = filepath.Join(j.Out, "work", folder), x.set.in(j.Data)
	c.Options = func(to *ndls.Options) { *to = o }
	return c, err
}

// choose finds the settings of a cell by validation: those of rows and network by the accuracy before
// label smoothing, and then those of label smoothing by the accuracy after it. Cells that differ in
// label smoothing alone share the former.
func (j Job) choose(ctx context.Context, x cell) (Choice, error) {
	if x.search == "" {
		return Choice{}, nil
	}
	network, err := j.search(ctx, x, tune.Base, none)
	if err != nil || x.labelSearch == "" {
		return network, err
	}
	x.options, x.search = strings.TrimSpace(x.options+" "+network.Chosen+" "+x.labels), x.labelSearch
	labels, err := j.search(ctx, x, tune.Smoothed, "")
	return Choice{network.Chosen + " " + labels.Chosen, labels.Valid, network.Trials, labels.Trials}, err
}

// search finds the best of x.search by a score, with further options for all trials.
func (j Job) search(ctx context.Context, x cell, score, more string) (Choice, error) {
	id := key(x.set.uri, x.options, x.search, x.inductive, x.trials, min(x.splits, searchSplits), x.seed)
	name := x.place("search", id)
	return stored(filepath.Join(j.Out, "experiments", name+".json"), func() (choice Choice, err error) {
		splits, models := min(x.splits, searchSplits), 1
		switch {
		case x.inductive:
			splits = 1
			more += " --only train,valid" // test nodes are not there yet
		case x.byItself():
			splits = 1
		case x.splits == 1:
			models = 2
		}
		c, err := j.config(x, name, fmt.Sprintf("%s --splits %d --runs %d", more, splits, models))
		if err != nil {
			return choice, err
		}
		space, err := tune.ParseSpace(strings.Fields(x.search)...)
		if err != nil {
			return choice, err
		}
		r, err := tune.Search(ctx, tune.Config{Base: c, Space: space, Trials: x.trials, Score: score})
		if err != nil {
			return choice, fmt.Errorf("settings of %s on %s: %w", x.name, x.set.name, err)
		}
		best := r.Best()
		figure := best.Base
		if score == tune.Smoothed {
			figure = best.Smoothed
		}
		if figure == nil {
			return choice, fmt.Errorf("settings of %s on %s: no trial has an accuracy: %s", x.name, x.set.name, best.Failed)
		}
		choice = Choice{Valid: figure.Mean, Trials: len(r.Trials)}
		for _, s := range best.Settings {
			choice.Chosen = strings.TrimSpace(choice.Chosen + " --" + s.Name + " " + s.Value)
		}
		return choice, vfs.RemoveAll(c.Run)
	})
}

// measure trains models with the chosen settings, and fills in what they are right about.
func (j Job) measure(ctx context.Context, all splits, o *Outcome) error {
	x := all.cell
	chosen := strings.TrimSpace(o.Chosen + " " + x.labels)
	if !x.byItself() {
		more := fmt.Sprintf("%s --splits %d --runs %d", chosen, x.splits, x.models)
		o.Command = x.command(more)
		c, err := j.config(x, x.place(), more)
		if err != nil {
			return err
		}
		d, err := again(ctx, c, x.last)
		if err == nil {
			err = o.add(ctx, d, needed(c, x.last), 0, 0)
		}
		return err
	}
	more := fmt.Sprintf("%s --runs %d", chosen, x.models)
	o.Command = x.command(more + " --seed SEED")
	return all.each(o, func(split int, x cell, of *Outcome) error {
		c, err := j.config(x, x.place(), more)
		if err != nil {
			return err
		}
		measure := func() (*ndls.Directory, error) { return again(ctx, c, x.last) }
		if x.inductive {
			c.Run = filepath.Join(j.Out, "work", x.place(x.name, key(more, split)))
			measure = func() (*ndls.Directory, error) { return ndls.RunInductive(ctx, c) }
		}
		d, err := measure()
		if err == nil {
			err = of.add(ctx, d, needed(c, x.last), split, 0)
		}
		if err != nil || !x.inductive {
			return err
		}
		for _, suffix := range []string{"", ndls.TrainSuffix, ndls.ValidSuffix} {
			if err := vfs.RemoveAll(c.Run + suffix); err != nil {
				return err
			}
		}
		return nil
	})
}

// command is the line of ndls run with the options of the cell and more, but for those that decide
// nothing.
func (x cell) command(more string) string {
	words := []string{"ndls", "run", "--dataset", quoted(x.set.uri), "--run", "RUN"}
	if x.inductive {
		words = append(words, "--inductive")
	}
	o, _ := x.plan(more) // words that stand for a value, such as SEED, come last
	unused := ndls.UnusedOptions(o)
	for given := range slices.Chunk(strings.Fields(x.options+" "+more), 2) {
		if !slices.ContainsFunc(unused, func(u ndls.UnusedOption) bool { return "--"+u.Option == given[0] }) {
			words = append(words, given...)
		}
	}
	return strings.Join(words, " ")
}

// quoted keeps the shell away from the characters of a URI.
func quoted(text string) string {
	if strings.ContainsAny(text, "?&#*'\" ") {
		return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
	}
	return text
}

// needed lists the stages that a run makes up to the last one.
func needed(c ndls.Config, last ndls.Stage) []ndls.Stage {
	o := ndls.DefaultOptions()
	c.Options(&o)
	if c.SoftLabels != "" {
		o.Labels.SoftLabels = c.SoftLabels // any name will do, to see which stages there are
	}
	return ndls.Needed(o, last)
}

// again runs the stages up to the last one in a run directory that may have those of other
// options: stages whose options are the same stay, and the first other one and all after it are
// repeated.
func again(ctx context.Context, c ndls.Config, last ndls.Stage) (*ndls.Directory, error) {
	stages := needed(c, last)
	d, err := ndls.Run(ctx, c, stages...)
	if !errors.Is(err, ndls.ErrPlanMismatch) {
		return d, err
	}
	there, err := ndls.Open(ctx, c.Run)
	if err != nil {
		return nil, err
	}
	from := slices.IndexFunc(stages, func(s ndls.Stage) bool { return !there.Record().Done(s) })
	if from < 0 {
		from = len(stages) - 1
	}
	c.Discard = true
	for ; from >= 0; from-- {
		d, err = ndls.Run(ctx, c, stages[from:]...)
		if !errors.Is(err, ndls.ErrPlanMismatch) {
			break
		}
	}
	return d, err
}

// add takes the figures of a run whose first split and first model are these of the experiment.
// stages are those whose time counts.
func (o *Outcome) add(ctx context.Context, d *ndls.Directory, stages []ndls.Stage, split, run int) error {
	report, err := d.Report(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(stages, ndls.StageEvaluate) {
		if report.Accuracy == nil {
			return fmt.Errorf("reproduce: %s has no accuracy", d.URI())
		}
		o.models(report.Accuracy, split, run)
		graph, err := d.Graph(ctx)
		if err != nil {
			return err
		}
		o.counts(graph.Splits["train"], graph.Splits["test"])
	}
	if report.LSI != nil && o.MeanK == nil && slices.Contains(stages, ndls.StageLSI) {
		o.MeanK = &report.LSI.Mean
	}
	for _, s := range report.Stages {
		if slices.Contains(stages, s.Name) {
			o.took(Seconds{s.Name, s.Seconds})
		}
	}
	return nil
}

// counts sets the numbers of training and test nodes, unless an earlier split has set them.
func (o *Outcome) counts(train, test int64) {
	if o.Train == 0 {
		o.Train, o.Test = train, test
	}
}

// took adds the time of a stage.
func (o *Outcome) took(s Seconds) {
	for i := range o.Stages {
		if o.Stages[i].Stage == s.Stage {
			o.Stages[i].Seconds += s.Seconds
			return
		}
	}
	o.Stages = append(o.Stages, s)
}

// join adds what was found of further splits.
func (o *Outcome) join(of Outcome) {
	o.Models = append(o.Models, of.Models...)
	o.MeanK = cmp.Or(o.MeanK, of.MeanK)
	o.counts(of.Train, of.Test)
	o.Memory = max(o.Memory, of.Memory)
	for _, s := range of.Stages {
		o.took(s)
	}
}

// models takes the figures of models.
func (o *Outcome) models(a *ndls.Accuracy, split, run int) {
	for _, m := range a.Models {
		o.Models = append(o.Models, Model{
			Split: split + m.Split, Run: run + m.Run, Valid: m.Base.Valid, Test: m.Base.Test,
			SmoothedValid: m.Smoothed.Valid, SmoothedTest: m.Smoothed.Test, Epochs: m.Epochs,
		})
	}
}

// sum fills in the figures over all models, where there are any.
func (o *Outcome) sum() {
	if len(o.Models) == 0 {
		return
	}
	splits := 1 + o.Models[len(o.Models)-1].Split
	of := func(value func(Model) *float64) *ndls.Spread {
		var x []float64
		for _, m := range o.Models {
			if v := value(m); v != nil {
				x = append(x, *v)
			}
		}
		if len(x) == 0 || len(x) < len(o.Models) {
			return nil
		}
		return ndls.SpreadOf(x, splits)
	}
	o.Before = Figures{of(func(m Model) *float64 { return m.Valid }), of(func(m Model) *float64 { return m.Test })}
	o.After = Figures{of(func(m Model) *float64 { return m.SmoothedValid }), of(func(m Model) *float64 { return m.SmoothedTest })}
}
