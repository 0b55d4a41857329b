package main

import (
	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) smoothCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageSmooth}}
	cmd := v.command("smooth RUN", "smoothed features as Arrow files",
		`smooth averages each node's features over its hops, as --rule says, and commits
them as Arrow files. The rules ndls, ndls-reference and nafs, and --depth node, need the
output of ndls lsi, which has --r then. The others need that of ndls partition alone.

The rule appnp propagates features before a model is trained. The paper applies the same
linear operator to the outputs of its network while that is trained.`)
	v.columnsFlag(cmd)
	v.plan.options("r").groups(plan.Smooth)
	cmd.Example = `  ndls smooth RUN
  ndls smooth RUN --rule sgc --hops 4 --resume=false`
	return cmd
}
