package main

import (
	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) lsiCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageLSI}}
	cmd := v.command("lsi RUN", "the local smoothing iteration K of every node",
		`lsi commits K of every node, its local smoothing iteration: the number of hops after
which what the node gets from its neighbours is within --epsilon of the stationary
state, which further hops only come nearer to. A node that needs more than --kmax
hops has that. It needs a partitioned run directory.`)
	v.columnsFlag(cmd)
	v.plan.groups(plan.LSI).options("precision", "tolerance")
	cmd.Example = `  ndls lsi RUN --epsilon 0.05`
	return cmd
}
