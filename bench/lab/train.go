package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"ndls/bench/artifacts"
	"ndls/catalog"
	"ndls/shards"
	"ndls/train"
)

func (a *app) benchTrainCommand() *cobra.Command {
	o := artifacts.TrainingOptions{}
	var precision string
	cmd := a.command("train", "minibatches from disk beside a plain read, predictions, and epochs of training",
		`train writes random smoothed rows to a folder that it makes in --scratch (default:
here) and removes, and goes through all of them in several ways: "the same bytes"
reads the file plainly, past the page cache, 1 MiB at a time; "rows checked" reads
rows and compares checksums; "minibatches" is an epoch streamed from disk in
shuffled blocks; "predictions" are made by all threads; "training" is an epoch by
one thread, in batches of 4096, with the rows in memory. Everything is done once
in each round, in turn; medians are reported.`,
		func(ctx context.Context, _ []string) (err error) {
			if o.Half, err = isHalf(precision); err != nil {
				return err
			}
			if err := positive(map[string]int64{
				"rows": o.Rows, "columns": int64(o.Width), "hidden": int64(o.Hidden), "classes": int64(o.Classes), "rounds": int64(o.Rounds),
			}); err != nil {
				return err
			}
			budget, err := a.budget()
			if err != nil {
				return err
			}
			store, remove, err := a.benchStore()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			c, err := catalog.Open(ctx, store)
			if err != nil {
				return err
			}
			measured, err := artifacts.Training(ctx, c, o, train.Resources{Budget: budget, Threads: a.threads})
			if err != nil {
				return err
			}
			return a.printRates("train", o.Width, precision, measured)
		})
	f := cmd.Flags()
	f.Int64Var(&o.Rows, "rows", 1_200_000, "rows")
	f.IntVar(&o.Width, "columns", 128, "columns of a row")
	f.IntVar(&o.Hidden, "hidden", 256, "width of the hidden layer")
	f.IntVar(&o.Classes, "classes", 172, "classes")
	f.StringVar(&precision, "precision", shards.Float32, "type of the stored rows: float32 or float16")
	f.IntVar(&o.Rounds, "rounds", 3, "rounds")
	return cmd
}
