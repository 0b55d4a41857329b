package main

import (
	"ndls/plan"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) trainCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageTrain, ndls.StagePredict}}
	cmd := v.command("train RUN", "a classifier on the smoothed features, and its soft labels",
		`train fits --runs multilayer perceptrons to the smoothed features of the training
nodes, keeps for each the epoch that is best on the validation nodes, and commits
the models and the soft labels of all nodes. It needs the output of ndls smooth.`)
	v.trainOnFlag(cmd)
	v.plan.groups(plan.Train).options("probabilities", "predictions", "metrics")
	cmd.Example = `  ndls train RUN --hidden 256 --runs 5`
	return cmd
}
