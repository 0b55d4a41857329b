package main

import (
	"context"
	"os"

	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) runCommand() *cobra.Command {
	v := &stageVerb{app: a}
	var workers int
	var parallel string
	var size int
	var watching ndls.Watching
	var cmd *cobra.Command
	v.do = func(ctx context.Context) error {
		c := v.config()
		program, err := os.Executable()
		if err != nil {
			program = os.Args[0] // without /proc
		}
		if cmd.Flags().Changed("parallel") {
			c.Parallel = parallel
		}
		c.GroupSize, c.Watching = size, watching
		c.Workers = ndls.Workers{Processes: workers, Program: program, LogLevel: v.logLevel, Output: v.stderr}
		return v.run(ctx, c)
	}
	cmd = v.command("run --dataset URI --run DIR", "the whole job, from a dataset to accuracies",
		`run imports a dataset, cuts it into shards, finds the local smoothing iteration
of every node, smooths the features, trains, predicts, smooths the predictions
and evaluates them. It continues where an earlier run of the same plan stopped.
Stages that the dataset has nothing for (no features, no labels, no splits) are
left out with a warning.

With --workers the work is done by so many processes on this machine, which share
--memory and --threads. One that dies is started again.

DATASET URIS
  karate:
  synthetic:nodes=100000,edges=1000000,features=64,classes=8,seed=1
  papers100m:scale=1/256,seed=1     the shape of ogbn-papers100M
  planetoid:DIR/cora
  npz:FILE
  ogb:DIR                           npz or csv.gz layout
  edges:FILE?features=F&labels=L&splits=S
ndls help datasets describes these and all other kinds.`)
	v.datasetFlag(cmd)
	v.softLabelsFlag(cmd)
	v.trainOnFlag(cmd)
	cmd.Flags().BoolVar(&v.inductive, "inductive", false, "train before anything of a test node is read: models are fitted to the training nodes, smoothed over the graph of these alone (in RUN-train), choose their epoch by the validation nodes, smoothed over the graph of both (in RUN-valid), and predict the nodes of the whole graph (in RUN)")
	v.columnsFlag(cmd)
	v.plan.groups(plan.Partition, plan.LSI, plan.Smooth, plan.Train, plan.Labels)
	cmd.Flags().IntVar(&workers, "workers", 0, "worker processes to start (default none: this process works)")
	parallelFlag(cmd, &parallel, "auto")
	groupFlag(cmd, &size)
	watchFlags(cmd, &watching)
	cmd.Example = `  ndls run --dataset planetoid:DIR/cora --run RUN --batch-size 0
  ndls run --dataset 'edges:EDGES.csv?features=X.npy&labels=Y.csv' --split random:20,30 --run RUN
  ndls run --dataset ogb:DIR --run RUN --memory 48GiB --workers 4
  ndls run --dataset graphsaint:DIR --run RUN --inductive`
	return cmd
}

// parallelFlag says how workers share stages.
func parallelFlag(cmd *cobra.Command, to *string, standard string) {
	cmd.Flags().StringVar(to, "parallel", standard,
		"how workers share lsi, smooth and smooth-labels, and whether groups train a model: columns of all rows, intervals of rows, grid: groups that share the rows of some columns, or auto: intervals where 16 columns do not fit one worker")
}

// groupFlag says how many workers share rows.
func groupFlag(cmd *cobra.Command, to *int) {
	cmd.Flags().IntVar(to, "group-size", 0, "workers that share the rows of the same columns, or train a model together, with --parallel grid (default chosen)")
}
