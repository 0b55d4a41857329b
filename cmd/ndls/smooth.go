package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) smoothCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageSmooth}}
	cmd := v.command("smooth --run DIR", "smoothed features as Arrow files",
		`smooth averages each node's features over its hops, as --rule says, and commits
them as Arrow files. It needs the output of ndls lsi.`)
	v.columnsFlag(cmd)
	v.plan.precision().smooth()
	cmd.Example = `  ndls smooth --run RUN
  ndls smooth --run RUN --rule sgc --hops 4 --resume=false`
	return cmd
}
