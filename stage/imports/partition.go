package imports

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/steps"
)

func countEdges(r storage.Reader, name string) (n int64, err error) {
	edges, err := shards.OpenEdges(r, name)
	if err != nil {
		return 0, err
	}
	src, dst := make([]uint32, 1<<16), make([]uint32, 1<<16)
	for {
		got, err := edges.Read(src, dst)
		n += int64(got)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

func countNodes(r storage.Reader, name string) (n int64, err error) {
	err = shards.ReadNodes(r, name, shards.Readers{}, func(_ int64, b shards.NodeBatch) error { n += int64(len(b.ID)); return nil })
	return n, err
}

func countIDs(r storage.Reader, name string) (n int64, err error) {
	ids, err := shards.OpenIDs(r, name)
	if err != nil {
		return 0, err
	}
	err = ids.Each(func(_ int64, keys [][]byte) error { n += int64(len(keys)); return nil })
	return n, err
}

// Partition imports the dataset.
type Partition struct{ stage.InWhole }

func (Partition) Name() control.Stage { return control.Partition }

func (Partition) About() string { return "the dataset, cut into shards that workers stream" }

func (Partition) Needs(plan.Options) []control.Stage { return nil }

func (Partition) Lacks(plan.Options, estimate.Facts) string { return "" }

func (Partition) Options(p plan.Options) map[string]any {
	options := map[string]any{"partition": p.Partition}
	if o := p.Partition; o.Split != "" || o.LabelsPerClass > 0 || o.DropEdges > 0 || o.BlankFeatures > 0 {
		options["seed"] = p.Seed
	}
	return options
}

func (Partition) Writes() []stage.Kind {
	return []stage.Kind{
		{Name: catalog.KindSummary, Lasting: true},
		{Name: catalog.KindEdges, Lasting: true, Rows: countEdges},
		{Name: catalog.KindReversed, Lasting: true, Rows: countEdges},
		{Name: catalog.KindNodes, Lasting: true, Rows: countNodes},
		{Name: catalog.KindSplits, Lasting: true},
		{Name: catalog.KindIDs, Lasting: true, Rows: countIDs},
		{Name: catalog.KindColumns, Lasting: true},
		{Name: catalog.KindFeatures, Lasting: true},
		{Name: catalog.KindUnfilled},
		{Name: catalog.KindNeighbours},
		{Name: catalog.KindAnswers, Lasting: true},
		{Name: catalog.KindHops}, // rebuilt from edges if missing, if there are shards
		{Name: catalog.KindReversedHops},
		{Name: catalog.KindRun},
	}
}

func (Partition) Shape(p plan.Options, _ shards.Summary) stage.Shape {
	next := partition.Next
	if dataset.IsKeyed(p.Partition.Dataset) {
		next = partition.NextNumbered
	}
	if partition.Fits(p.Partition.Dataset, PartitionOptions(p)) {
		next = partition.NextFitted(next)
	}
	if p.Partition.Fill == partition.FillNeighbours {
		next = thenFilled(next)
	}
	if p.Answers() {
		next = thenAnswers(next)
	}
	return stage.Steps{Next: next}
}

func (Partition) Shares(plan.Options) bool { return false }

// Cost implements estimate.Stage.
func (Partition) Cost(s *estimate.Sheet) {
	c := s.Partitioned()
	s.Encodes()
	used, least := partition.Memory(c, s.Workers, s.Budget())
	if s.Budget() < least {
		used, _ = partition.Memory(c, s.Workers, least)
	}
	splits, drawing := int64(s.Plan.NumSplits()-1), int64(0)
	if splits > 0 {
		drawing += s.Nodes
	}
	if s.Plan.Partition.LabelsPerClass > 0 {
		drawing += 4 * s.Nodes
	}
	s.Takes(used+drawing, least+drawing)
	s.PeakDiskBytes, s.DiskBytes = partition.Disk(c, s.Workers, s.Budget())
	s.PeakDiskBytes += splits * s.Nodes
	s.DiskBytes += splits * s.Nodes
	if s.Workers == 1 {
		s.ScratchBytes = max(s.PeakDiskBytes-s.DiskBytes, 0)
	}
	s.BytesRead, s.BytesWritten = partition.Traffic(c, s.Workers, s.Budget())
	s.BytesWritten += splits * s.Nodes
	if s.IDs > 0 {
		s.Sorts(textKeys * float64(2*s.InputRows+3*s.Nodes)) // ids of edges are looked up; those of nodes are sorted, looked up and written
	}
	s.Sorts(4 * float64(s.InputRows) / float64(s.Workers)) // as a pair; then in both directions; then it is written
	if s.Plan.Answers() {
		CostOfRows(s, estimate.TileBytes(s.Nodes, s.Classes, false))
	}
	s.Moves(2 * float64(s.Nodes) * float64(packed.Panels(s.Features)*packed.PanelColumns) / float64(s.Workers)) // read and stored
	s.Moves(float64(s.Nodes) * float64(s.Fitted) * float64(partition.FitReadings(PartitionOptions(s.Plan), s.Fitted, s.Budget())))
	if s.Filled > 0 && s.Features > 0 {
		costOfFilling(s)
	}
}

// textKeys is the number of numbers that a thread puts in order while it sorts one text id or looks it up.
const textKeys = 15

// PartitionOptions returns the options of package partition under a plan, without resources.
func PartitionOptions(p plan.Options) partition.Options {
	o := p.Partition
	return partition.Options{
		IntervalBlocks: o.IntervalBlocks, Features: o.Features != "none", Normalize: o.Normalize, Fill: o.Fill, Seed: p.Seed, NoShards: o.NoShards(),
		Split: o.Split, Splits: p.NumSplits(), LabelsPerClass: o.LabelsPerClass,
		Only: o.Only, DropEdges: o.DropEdges, BlankFeatures: o.BlankFeatures,
	}
}

// columnsOf reads how columns become features from the run directory of the training nodes.
func columnsOf(ctx context.Context, env *stage.Env) ([]byte, error) {
	dir := env.Inputs.TrainRows
	if dir == "" {
		return nil, errors.New("means, quantiles and categories of this run are those of the run of its training nodes: repeat the command with --inductive, which names it")
	}
	store, err := rundir.Open(ctx, dir, false)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	e, there := cat.Lookup(partition.ColumnsPath)
	if !there || e.Checksum != env.Plan.Partition.Columns {
		return nil, fmt.Errorf("%s of %s has changed since this run began: repeat the command with --inductive and --resume=false: %w", partition.ColumnsPath, dir, control.ErrPlanMismatch)
	}
	return partition.ColumnsText(ctx, cat, e)
}

// Run implements Stage: it imports the dataset and cuts it into shards, tiles and a node table, or executes a piece of that.
func (Partition) Run(ctx context.Context, env *stage.Env) (err error) {
	open := func() (dataset.Dataset, error) {
		return dataset.Open(ctx, env.Inputs.Dataset, DatasetOptions(env.Plan))
	}
	o := PartitionOptions(env.Plan)
	o.Budget, o.Threads, o.Scratch = env.Budget, env.Resources.Threads, env.Resources.Scratch
	if env.Plan.Partition.Columns != "" {
		o.Columns = func(ctx context.Context) ([]byte, error) { return columnsOf(ctx, env) }
	}
	if t := env.Task; !env.Whole() && string(t.Part) != summaryStep {
		switch string(t.Part) {
		case answersStep:
			return Answers{env}.commit(ctx)
		case neighboursStep, fillStep:
			return fill(ctx, env)
		}
		if !partition.IsStep(string(t.Part)) {
			return env.NoPart()
		}
		return partition.Execute(ctx, open, env.Catalog, o, string(t.Part), steps.Piece{First: t.First, Last: t.Last})
	}
	ds, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	s, err := partition.Run(ctx, ds, env.Catalog, o)
	env.Report.Rows = s.Nodes
	if err == nil && env.Whole() {
		err = fill(ctx, env)
	}
	if err != nil || !env.Whole() {
		return err
	}
	return Answers{env}.commit(ctx)
}
