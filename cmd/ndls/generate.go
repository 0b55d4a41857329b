package main

import (
	"context"

	"github.com/spf13/cobra"

	"ndls"
)

func (a *app) generateCommand() *cobra.Command {
	var uri, out string
	cmd := a.command("generate --dataset synthetic:… --out DIR", "write a synthetic graph in a published format",
		`generate writes a graph whose features and labels can
be learned, synthetic: as NumPy and CSV files, papers100m: as the Open Graph
Benchmark publishes its graphs, and prints the URI that reads it. With weights=N
the edges are written as Parquet, with a column weight.`,
		func(ctx context.Context, _ *cobra.Command) error {
			written, err := ndls.Generate(ctx, uri, out)
			if err != nil {
				return err
			}
			return a.lineOr(map[string]string{"dataset": written}, "%s\n", written)
		})
	cmd.Flags().StringVar(&uri, "dataset", "", "a generated graph, synthetic: or papers100m: with its settings (required); ndls help datasets lists them")
	cmd.Flags().StringVar(&out, "out", "", "folder to write (required)")
	_ = cmd.MarkFlagRequired("dataset")
	_ = cmd.MarkFlagRequired("out")
	cmd.Example = `  ndls generate --dataset synthetic:nodes=100000,edges=1000000,features=64,classes=8,seed=1 --out DIR`
	return cmd
}
