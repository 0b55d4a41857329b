package main

import (
	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) partitionCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StagePartition}}
	cmd := v.command("partition --dataset URI --run DIR", "import a dataset and cut it into shards",
		`partition symmetrises the graph (unless its URI says directed=true), drops self-loops and repeated edges, relabels
nodes by descending degree, and commits edge shards, the node table and feature
tiles. ndls run --help lists the dataset URIs.`)
	v.datasetFlag(cmd)
	v.plan.groups(plan.Partition)
	cmd.Example = `  ndls partition --dataset planetoid:DIR/cora --run RUN`
	return cmd
}
