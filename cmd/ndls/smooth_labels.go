package main

import (
	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) smoothLabelsCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageLabelDepth, ndls.StageSmoothLabels}}
	cmd := v.command("smooth-labels RUN", "smoothed soft labels, and the predictions they give",
		`smooth-labels averages each node's soft labels over its hops and commits the
predictions. The soft labels are those of ndls train, or of any other model with
--soft-labels; where the run has a model of its own, --resume=false discards that one.
How many hops that are at most is chosen on the validation nodes, from
none to --label-kmax, unless --label-depth gives it.

With --label-rule cs it corrects and smooths them (Correct & Smooth): what they get
wrong on training nodes is propagated and taken off, and the result is propagated
with the labels of the training nodes in place. Depth 0 is the soft labels as they
are. Validation labels are used to choose the depth only; test labels are not used.`)
	v.softLabelsFlag(cmd)
	v.columnsFlag(cmd)
	v.plan.options("precision", "tolerance").groups(plan.Labels)
	cmd.Example = `  ndls smooth-labels RUN --label-depth 3
  ndls smooth-labels RUN --label-rule cs
  ndls smooth-labels RUN --soft-labels PROBABILITIES.arrow`
	return cmd
}
