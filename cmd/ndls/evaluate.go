package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) evaluateCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageEvaluate}}
	return v.command("evaluate --run DIR", "accuracy on each split, before and after label smoothing",
		`evaluate compares soft labels and predictions with the labels of the dataset.
It needs the output of ndls smooth-labels.`)
}
