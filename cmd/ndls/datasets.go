package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"ndls/dataset"
)

// datasetsTopic is no verb: `ndls help datasets` describes what --dataset takes, and
// `ndls help datasets KIND` one kind of it.
func datasetsTopic() *cobra.Command {
	intro, kinds := dataset.Formats()
	topic := &cobra.Command{Use: "datasets", Short: "values of --dataset: the kinds of URI and the files they read"}
	for _, k := range kinds {
		intro += "\n" + k.Text
		topic.AddCommand(&cobra.Command{Use: k.Name, Short: k.Title, Long: k.Text})
	}
	topic.Long = intro
	// A topic has neither usage nor options.
	topic.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		w, text := cmd.OutOrStdout(), cmd.Long
		if columns(w) != nil {
			text = paragraphs(text, helpColumns(w))
		}
		fmt.Fprint(w, text)
	})
	return topic
}
