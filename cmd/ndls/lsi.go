package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) lsiCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageLSI}}
	cmd := v.command("lsi --run DIR", "the local smoothing iteration K of every node",
		`lsi commits the table of K(i, epsilon): the number of hops after which a node's
influence is within epsilon of its stationary state, for features and for labels.
It needs a partitioned run directory.`)
	v.columnsFlag(cmd)
	v.plan.precision().lsi()
	return cmd
}
