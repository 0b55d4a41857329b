package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) smoothLabelsCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageSmoothLabels}}
	cmd := v.command("smooth-labels --run DIR", "smoothed soft labels, and the predictions they give",
		`smooth-labels averages each node's soft labels over its hops and commits the
predictions. The soft labels are those of ndls train, the mean of its models, or of
any other model with --soft-labels.`)
	v.softLabelsFlag(cmd)
	v.columnsFlag(cmd)
	v.plan.precision().labels()
	cmd.Example = `  ndls smooth-labels --run RUN --label-kmax 1
  ndls smooth-labels --run RUN --soft-labels PROBABILITIES.arrow`
	return cmd
}
