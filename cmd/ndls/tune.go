package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/plan"
	"ndls/report"
	"ndls/tune"
)

// tuneVerb holds the flags of the verb.
type tuneVerb struct {
	*app
	plan          *planFlags
	dataset       string
	try           []string
	trials        int
	search, score string
	halving       bool
	final         bool
}

// trialModels is the number of models of a trial in each split.
const trialModels = 1

func (a *app) tuneCommand() *cobra.Command {
	v := &tuneVerb{app: a}
	cmd := a.command("tune --dataset URI --run DIR", "settings of ndls run, chosen by validation",
		fmt.Sprintf(`tune tries settings of ndls run, compares them by the accuracy on the validation nodes, and
prints the ndls run command with the best ones. It does not look at the labels of test
nodes. The dataset is imported once, K is found for all --epsilon at the same time, and trials
share the hops of the features, which stay in memory where they fit: then a trial takes as long
as its training.

A random search trains all trials for a short time, and the best quarter of them in full
(--halving). A trial that is trained in full gives what ndls run with its settings gives, bit for
bit.

The same command continues a search that was interrupted. With a larger --trials it goes on after
the last trial. DIR has tune.json, with all figures, and trials.csv.

WHAT IS TRIED
  --try epsilon=0.01,0.03,0.1       choices
  --try dropout=0:0.8               a range
  --try lr=log:0.001:0.1            a range, evenly by its logarithm
  --try default                     all of those that are tried without --try:
%s
Where features of training nodes are longer than 1, as a root mean square, the default learning
rates are divided by that length, and tune.json has those that were tried.
A random search begins with trials that are known for each rule: the defaults with the number
of hops, the epsilon or the alpha of the rule's paper, and then what its authors train with. Of options
that have another value there than is tried, these trials have the nearest one.

An option is tried where it decides something: hops is not with --rule ndls, residual with
that rule alone. Options that can be tried are
  %s
All other options, and those that are not tried, are given as for ndls run and hold for all
trials. A range of epsilon or of an option of SMOOTH has rows of its own for each trial.

HOW TRIALS ARE COMPARED
By the mean accuracy (or the measure that --metrics names first, or what --score says) on the validation nodes over
all models of all splits, before label smoothing, or after it where an option of LABELS is tried. Of equals the trial that was drawn
first is best. The accuracy of the best of many trials is partly luck: expect less on new nodes, and
give --splits 5 or --runs 3 for a surer choice. With --halving the best one is among those that are
trained in full.`, lines("      ", tune.Default()), wrapped(tune.Names())),
		func(ctx context.Context, cmd *cobra.Command) error { return v.do(ctx, cmd) })
	f := cmd.Flags()
	f.StringVar(&v.dataset, "dataset", "", "dataset URI, such as planetoid:DIR/cora (required)")
	_ = cmd.MarkFlagRequired("dataset")
	a.runFlag(cmd)
	f.StringArrayVar(&v.try, "try", nil, "an option and the values to try, NAME=VALUE,VALUE,… or NAME=LOW:HIGH or NAME=log:LOW:HIGH; give it once for each option. Use semicolons between values that contain commas")
	f.IntVar(&v.trials, "trials", tune.DefaultTrials, "trials of a random search; a grid has as many as it has combinations, and a given number bounds them")
	f.StringVar(&v.search, "search", tune.Random, "random draws each value of each trial by --seed, after the known settings of each rule; grid takes all combinations of choices")
	f.StringVar(&v.score, "score", "", "what trials are compared by, on the validation nodes: base, the measure before label smoothing; smoothed, the measure after it; loss, the mean negative log-likelihood before it, of which the least is best; or the name of a measure, as if --metrics named it first (default smoothed if an option of LABELS is tried, else base)")
	f.BoolVar(&v.halving, "halving", false, "train less where a trial is not among the best: one model a split of each trial, with an eighth of --patience; half of --runs, with all of it, of the best quarter; and all --runs of the best eighth. The choice is among those of the last step, and the tables say how many models a trial has, and how patient they were (default in a random search that compares trials before label smoothing, with a --patience of 160 or more; --halving=false trains all trials in full)")
	f.BoolVar(&v.final, "final", false, "run the printed command, too, in best in DIR, and show its accuracies: the only ones on test nodes")
	inGroup(f, groupRun, "dataset", "run", "try", "trials", "search", "score", "halving", "final")
	a.cacheFlags(cmd)
	a.diskFlag(cmd)
	a.columnsFlag(cmd)
	v.plan = newPlanFlags(cmd)
	v.plan.given.Train.Runs = trialModels
	v.plan.all()
	cmd.Example = `  ndls tune --dataset planetoid:DIR/cora --run RUN --batch-size 0
  ndls tune --dataset planetoid:DIR/cora --run RUN --trials 100 --try epsilon=0.03,0.1 --try lr=log:0.001:0.1
  ndls tune --dataset npz:FILE --split share:0.1,0.1 --splits 5 --run RUN --rule gbp --try hops=2,4,8 --try default
  ndls tune --dataset planetoid:DIR/cora --run RUN --trials 100 --runs 10
  ndls tune --dataset planetoid:DIR/cora --run RUN --halving=false
  ndls tune --dataset planetoid:DIR/cora --run RUN --search grid --try label-rule=ndls,cs --try label-epsilon=0.03,0.1`
	return cmd
}

// lines are dimensions, each on a line.
func lines(indent string, s tune.Space) string {
	var text strings.Builder
	for _, d := range s {
		fmt.Fprintf(&text, "%s%s\n", indent, d)
	}
	return text.String()
}

// wrapped are names in lines of the help.
func wrapped(names []string) string {
	const width = 76
	text, column := "", 0
	for i, name := range names {
		if i > 0 {
			text += ", "
			column += 2
		}
		if column+len(name) > width {
			text = strings.TrimRight(text, " ") + "\n  "
			column = 0
		}
		text += name
		column += len(name)
	}
	return text
}

// space returns the search space by the flags.
func (v *tuneVerb) space(cmd *cobra.Command) (tune.Space, error) {
	given := slices.DeleteFunc(tune.Names(), func(name string) bool { return !cmd.Flags().Changed(name) })
	if len(v.try) == 0 {
		return tune.Default(given...), nil
	}
	own := slices.DeleteFunc(slices.Clone(v.try), func(text string) bool { return text == tune.DefaultWord })
	space, err := tune.ParseSpace(own...)
	if err != nil {
		return nil, err
	}
	for _, d := range space {
		if slices.Contains(given, d.Name) {
			return nil, failure.Of(ndls.ErrOption, "--%s is given for all trials, and --try %s, too: leave out one of the two", d.Name, d.Name)
		}
		given = append(given, d.Name)
	}
	if len(own) < len(v.try) {
		space = append(space, tune.Default(given...)...)
	}
	return space, nil
}

// do searches, prints what came of it, and runs the chosen settings if that is asked for.
func (v *tuneVerb) do(ctx context.Context, cmd *cobra.Command) error {
	space, err := v.space(cmd)
	if err != nil {
		return err
	}
	measure := slices.Contains(plan.MeasureNames, v.score)
	c := tune.Config{
		Base: ndls.Config{
			Run: v.runDir, Dataset: v.dataset, Resources: v.resources(), Log: v.log,
			Options: func(o *ndls.Options) {
				o.Train.Runs = trialModels
				v.plan.over(o)
				if measure {
					names := slices.DeleteFunc(strings.Split(o.Metrics, ","), func(name string) bool { return name == "" || name == v.score })
					o.Metrics = strings.Join(append([]string{v.score}, names...), ",")
				}
			},
		},
		Space: space, Search: v.search, Score: v.score, Halving: v.halving, Done: v.made,
	}
	if measure {
		c.Score = ""
	}
	if !cmd.Flags().Changed("halving") {
		c.Halving = c.Halves()
	}
	if v.trials < 1 {
		return failure.Of(ndls.ErrOption, "--trials %d is less than 1", v.trials)
	}
	if v.search == tune.Random || cmd.Flags().Changed("trials") {
		c.Trials = v.trials
	}
	r, err := tune.Search(ctx, c)
	if err != nil {
		return err
	}
	done, err := v.asJSON(r)
	if !done {
		v.show(r)
	}
	if err != nil || !v.final {
		return err
	}
	return v.measure(ctx, c.Base, r)
}

// made logs a trial.
func (v *tuneVerb) made(t tune.Trial) {
	what := []any{"number", t.Number, "seconds", t.Seconds}
	if t.Failed != "" {
		what = append(what, "failed", t.Failed)
	} else {
		what = append(what, "valid", percent(t.Base.Mean), "models", len(t.Models))
		if t.Smoothed != nil {
			what = append(what, "smoothed", percent(t.Smoothed.Mean))
		}
		if t.Loss != nil {
			what = append(what, "loss", t.Loss.Mean)
		}
	}
	v.log.Info("trial", what...)
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }

// shownTrials is the number of trials that are printed.
const shownTrials = 10

// show prints the best trials and the command.
func (v *tuneVerb) show(r *tune.Result) {
	ranked := r.Ranked()
	printTrials(v.stdout, r, ranked[:min(len(ranked), shownTrials)])
	failed := 0
	for _, t := range r.Trials {
		if t.Failed != "" {
			failed++
		}
	}
	if failed > 0 {
		fmt.Fprintf(v.stdout, "%s: training ended in numbers that are not finite\n", count(int64(failed), "trial failed"))
	}
	in := "each"
	if r.Halving {
		in = "the best eighth, fewer in the others"
		if r.Runs == 1 {
			in = "each, trained with all of --patience in the best quarter"
		}
	}
	by, when := control.MeasureName(r.Measure), "before"
	switch r.Score {
	case tune.Smoothed:
		when = "after"
	case tune.Loss:
		by = "least loss"
	}
	fmt.Fprintf(v.stdout, "%s by the %s on validation nodes %s label smoothing; %s in %s. That of the best one is partly luck\n",
		count(int64(len(r.Trials)), "trial"), by, when, models(r.Splits, r.Runs), in)
	fmt.Fprintf(v.stdout, "all trials: %s, %s\n", filepath.Join(v.runDir, tune.ResultName), filepath.Join(v.runDir, tune.TableName))
	fmt.Fprintf(v.stdout, "the best one again, with its accuracy on test nodes:\n  %s\n", quoted(r.Command))
}

// models says how many there are.
func models(splits, runs int) string {
	text := count(int64(runs), "model")
	if splits > 1 {
		text = fmt.Sprintf("%d splits with %s each", splits, text)
	}
	return text
}

// printTrials prints trials as a table.
func printTrials(w io.Writer, r *tune.Result, trials []tune.Trial) {
	var names []string // of options that any trial has
	for _, x := range tune.Names() {
		if slices.ContainsFunc(r.Trials, func(t tune.Trial) bool { return value(t, x) != "" }) {
			names = append(names, x)
		}
	}
	spread := func(s *ndls.Spread) string {
		switch {
		case s == nil:
			return "–"
		case r.Splits > 1:
			return fmt.Sprintf("%.2f ± %.2f splits, %.2f models", 100*s.Mean, 100*s.BetweenSplits, 100*s.BetweenModels)
		case r.Runs > 1:
			return fmt.Sprintf("%.2f ± %.2f", 100*s.Mean, 100*s.Std)
		}
		return fmt.Sprintf("%.2f", 100*s.Mean)
	}
	t := newTable(w, 3, 0)
	head := "valid in %"
	if r.Score != tune.Base {
		head += "\t" + r.Score
	}
	if r.Halving {
		head = "models\tpatience\t" + head
	}
	fmt.Fprintf(t, "trial\t%s\t%s\n", head, strings.Join(names, "\t"))
	for _, x := range trials {
		fmt.Fprintf(t, "%d", x.Number)
		if r.Halving {
			fmt.Fprintf(t, "\t%d\t%d", len(x.Models), x.Patience)
		}
		fmt.Fprintf(t, "\t%s", spread(x.Base))
		switch {
		case r.Score == tune.Smoothed:
			fmt.Fprintf(t, "\t%s", spread(x.Smoothed))
		case r.Score == tune.Loss && x.Loss != nil:
			fmt.Fprintf(t, "\t%.4f", x.Loss.Mean)
		case r.Score == tune.Loss:
			fmt.Fprint(t, "\t–")
		}
		for _, name := range names {
			fmt.Fprintf(t, "\t%s", value(x, name))
		}
		fmt.Fprintln(t)
	}
	_ = t.Flush()
}

// value is a setting of a trial, "" if it has none of the name.
func value(t tune.Trial, name string) string {
	for _, s := range t.Settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

// quoted returns a command line as a shell takes it.
func quoted(words []string) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = report.Quoted(w)
	}
	return strings.Join(list, " ")
}

// measure runs the chosen settings.
func (v *tuneVerb) measure(ctx context.Context, c ndls.Config, r *tune.Result) error {
	fixed := c.Options
	c.Run = strings.TrimRight(v.runDir, "/") + "/" + tune.BestName
	c.Options = func(o *ndls.Options) {
		fixed(o)
		r.Apply(o)
	}
	d, err := ndls.Run(ctx, c)
	if err != nil {
		return err
	}
	run := &stageVerb{app: v.app}
	run.runDir = c.Run
	return run.print(ctx, d)
}
