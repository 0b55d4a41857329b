package stage

import (
	"context"
	"errors"

	"ndls/estimate"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/control"
	"ndls/partition"
	"ndls/shards"
)

// partitionStage imports the dataset.
type partitionStage struct{ each }

func (partitionStage) Name() control.Stage { return control.Partition }

func (partitionStage) About() string { return "the dataset, cut into shards that workers stream" }

func (partitionStage) Needs(control.Plan) []control.Stage { return nil }

func (partitionStage) Lacks(control.Plan, estimate.Facts) string { return "" }

func (partitionStage) Options(p control.Plan) map[string]any {
	o := map[string]any{"partition": p.Partition}
	if p.Partition.Split != "" {
		o["seed"] = p.Seed
	}
	return o
}

func (partitionStage) Writes() []Kind {
	return []Kind{
		{Name: catalog.KindSummary, Lasting: true},
		{Name: catalog.KindEdges, Lasting: true, Rows: countEdges},
		{Name: catalog.KindNodes, Lasting: true, Rows: countNodes},
		{Name: catalog.KindIDs, Lasting: true, Rows: countIDs},
		{Name: catalog.KindFeatures, Lasting: true},
		{Name: catalog.KindHops}, // derived from edges, and made again where missing
		{Name: catalog.KindRun},
	}
}

func (partitionStage) Cut(p control.Plan, _ shards.Summary) Cut {
	if dataset.IsKeyed(p.Partition.Dataset) {
		return Cut{Next: partition.NextNumbered}
	}
	return Cut{Next: partition.Next}
}

func (partitionStage) Shares(control.Plan) bool { return false }

// Cost implements estimate.Stage.
func (partitionStage) Cost(s *estimate.Sheet) {
	c := s.Partitioned()
	used, least := partition.Memory(c, s.Workers, s.Budget())
	if s.Budget() < least {
		used, _ = partition.Memory(c, s.Workers, least)
	}
	s.Takes(used, least)
	s.PeakDiskBytes, s.DiskBytes = partition.Disk(c, s.Workers, s.Budget())
	if s.Workers == 1 {
		s.ScratchBytes = max(s.PeakDiskBytes-s.DiskBytes, 0)
	}
	s.BytesRead, s.BytesWritten = partition.Traffic(c, s.Workers, s.Budget())
	s.Computes(float64(s.InputRows) * (pieceShare/float64(s.Workers) + orderShare) / partitionRows / float64(s.Threads))
}

const (
	// partitionRows is edge rows a second and thread through partition, on the machine of
	// bench/papers100m/RESULTS.md.
	partitionRows = 2.4e6
	// pieceShare and orderShare are what pieces take of that time which workers
	// share, and the steps that one does; run files are counted as bytes. Measured:
	// bench/cluster/RESULTS.md.
	pieceShare, orderShare = 0.9, 0.1
)

// Run implements Stage: it imports the dataset and cuts it into shards, tiles and a node
// table, or does a piece of that.
func (partitionStage) Run(ctx context.Context, env *Env) (err error) {
	open := func() (dataset.Dataset, error) {
		return dataset.Open(ctx, env.Inputs.Dataset, dataset.Options{NoFeatures: env.Plan.Partition.Features == "none"})
	}
	o := partition.Options{
		Budget: env.Budget, Threads: env.Resources.Threads, Scratch: env.Resources.Scratch,
		IntervalBlocks: env.Plan.Partition.IntervalBlocks, Features: env.Plan.Partition.Features != "none",
		Normalize: env.Plan.Partition.Normalize, Split: env.Plan.Partition.Split, Seed: env.Plan.Seed,
	}
	if t := env.Task; !env.Whole() {
		if !partition.IsStep(string(t.Part)) {
			return env.NoPart()
		}
		return partition.Execute(ctx, open, env.Catalog, o, string(t.Part), partition.Piece{First: t.First, Last: t.Last})
	}
	ds, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	s, err := partition.Run(ctx, ds, env.Catalog, o)
	env.Report.Rows = s.Nodes
	return err
}
