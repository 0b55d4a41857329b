package main

import (
	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) evaluateCommand() *cobra.Command {
	v := &stageVerb{app: a, stages: []ndls.Stage{ndls.StageEvaluate}}
	cmd := v.command("evaluate RUN", "accuracy on each split, before and after label smoothing",
		`evaluate says how often the most probable class is the label that the dataset has:
for the soft labels as they were trained, and for the predictions, which are made of
smoothed soft labels. It needs the output of ndls smooth-labels.`)
	cmd.Example = `  ndls evaluate RUN`
	return cmd
}
