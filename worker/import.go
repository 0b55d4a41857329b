package worker

import (
	"context"
	"errors"

	"ndls/dataset"
	"ndls/partition"
)

// partition imports the dataset and cuts it into shards, tiles and a node table.
func (j *job) partition(ctx context.Context) (err error) {
	ds, err := dataset.Open(ctx, j.inputs.Dataset, dataset.Options{NoFeatures: j.plan.Partition.Features == "none"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	s, err := partition.Run(ctx, ds, j.cat, partition.Options{
		Budget: j.budget, Threads: j.res.Threads, Scratch: j.res.Scratch,
		IntervalBlocks: j.plan.Partition.IntervalBlocks, Features: j.plan.Partition.Features != "none",
		Normalize: j.plan.Partition.Normalize, Split: j.plan.Partition.Split, Seed: j.plan.Seed,
	})
	j.report.Rows = s.Nodes
	return err
}
