package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) smoothLabelsCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageLabelDepth, ndls.StageSmoothLabels}}
	cmd := v.command("smooth-labels --run DIR", "smoothed soft labels, and the predictions they give",
		`smooth-labels averages each node's soft labels over its hops and commits the
predictions. The soft labels are those of ndls train, or of any other model with
--soft-labels. How many hops that are at most is chosen on the validation nodes, from
none to --label-kmax, unless --label-depth gives it.`)
	v.softLabelsFlag(cmd)
	v.columnsFlag(cmd)
	v.plan.precision().labels().probabilities()
	cmd.Example = `  ndls smooth-labels --run RUN --label-depth 3
  ndls smooth-labels --run RUN --soft-labels PROBABILITIES.arrow`
	return cmd
}
