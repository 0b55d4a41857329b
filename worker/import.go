package worker

import (
	"context"
	"errors"

	"ndls/dataset"
	"ndls/partition"
)

// partition imports the dataset and cuts it into shards, tiles and a node table, or
// does a piece of that.
func (j *job) partition(ctx context.Context) (err error) {
	open := func() (dataset.Dataset, error) {
		return dataset.Open(ctx, j.inputs.Dataset, dataset.Options{NoFeatures: j.plan.Partition.Features == "none"})
	}
	o := partition.Options{
		Budget: j.budget, Threads: j.res.Threads, Scratch: j.res.Scratch,
		IntervalBlocks: j.plan.Partition.IntervalBlocks, Features: j.plan.Partition.Features != "none",
		Normalize: j.plan.Partition.Normalize, Split: j.plan.Partition.Split, Seed: j.plan.Seed,
	}
	if t := j.task; !isWhole(t.Part) {
		if !partition.IsStep(string(t.Part)) {
			return j.noPart()
		}
		return partition.Execute(ctx, open, j.cat, o, string(t.Part), partition.Piece{First: t.First, Last: t.Last})
	}
	ds, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	s, err := partition.Run(ctx, ds, j.cat, o)
	j.report.Rows = s.Nodes
	return err
}
