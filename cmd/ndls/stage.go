package main

import (
	"context"
	"fmt"

	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

// runFlag adds --run, which a verb cannot do without. The run directory may stand as a word in its place.
func (a *app) runFlag(cmd *cobra.Command) {
	a.orRunFlag(cmd, "run directory, or a word without --run (required)")
	_ = cmd.MarkFlagRequired("run")
}

// orRunFlag adds --run to a verb that can do without it.
func (a *app) orRunFlag(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&a.runDir, "run", "", usage)
	cmd.Args = runWord
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || cmd.Flags().Changed("run") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return folders(cmd, args, begin)
	}
}

// stageVerb holds the flags of a verb that runs stages.
type stageVerb struct {
	*app
	plan *planFlags
	// dataset and softLabels are the values of the flags, "" where the verb
	// has none.
	dataset, softLabels string
	trainOn             []string
	// inductive says that models are trained on parts of the graph.
	inductive bool
	// do is the action of the verb, execute unless set.
	do func(ctx context.Context) error
	// stages are those to execute, none for the whole job.
	stages []ndls.Stage
	// next are commands that a user may try when the run is complete.
	next []string
}

// command makes the verb; v.plan starts empty.
func (v *stageVerb) command(use, short, long string) *cobra.Command {
	cmd := v.app.command(use, short, long, func(ctx context.Context, _ *cobra.Command) error { return v.do(ctx) })
	if v.do == nil {
		v.do = v.execute
	}
	v.runFlag(cmd)
	v.cacheFlags(cmd)
	cmd.Flags().BoolVar(&v.resume, "resume", true, "continue what is there; --resume=false discards the output of these stages and of those that read it")
	v.diskFlag(cmd)
	inGroup(cmd.Flags(), groupRun, "run", "resume")
	v.plan = newPlanFlags(cmd)
	v.plan.groups(plan.Run)
	return cmd
}

// stageCommand is the verb of a stage that a whole run leaves out.
func (a *app) stageCommand(s ndls.Stage) *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{s}}
	cmd := v.command(fmt.Sprintf("%s RUN", s), ndls.About(s),
		fmt.Sprintf("%s finds %s. The result is in report.json,\ntoo. ndls run leaves this stage out. It needs a partitioned run directory.", s, ndls.About(s)))
	cmd.Example = fmt.Sprintf("  ndls %s RUN", s)
	return cmd
}

func (v *stageVerb) datasetFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.dataset, "dataset", "", "dataset URI, such as planetoid:DIR/cora (required to start)")
	inGroup(cmd.Flags(), groupRun, "dataset")
}

func (v *stageVerb) trainOnFlag(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&v.trainOn, "train-on", nil, "run directories whose smoothed features models are trained on, in place of the run's own: one with the training nodes, or two, with a comma between them, of which the second has the validation nodes")
	inGroup(cmd.Flags(), groupTrain, "train-on")
}

func (v *stageVerb) softLabelsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.softLabels, "soft-labels", "", "soft labels of another model: an Arrow or Parquet file of id and probability, or any file that features may come in")
	inGroup(cmd.Flags(), groupLabels, "soft-labels")
}

// config returns the configuration by the flags.
func (v *stageVerb) config() ndls.Config {
	return ndls.Config{
		Run: v.runDir, Dataset: v.dataset, SoftLabels: v.softLabels, TrainOn: v.trainOn, Options: v.plan.over,
		Check:     func(o ndls.Options) error { return v.plan.used(v.log, o) },
		Resources: v.resources(), Discard: !v.resume, Log: v.log,
	}
}

// execute runs the stages and prints what came of them.
func (v *stageVerb) execute(ctx context.Context) error {
	return v.run(ctx, v.config())
}

// run executes the stages as c says and prints what came of them.
func (v *stageVerb) run(ctx context.Context, c ndls.Config) error {
	var d *ndls.Directory
	var err error
	if v.inductive {
		d, err = ndls.RunInductive(ctx, c)
	} else {
		d, err = ndls.Run(ctx, c, v.stages...)
	}
	if err != nil {
		return v.plan.whence(err)
	}
	return v.print(ctx, d)
}
