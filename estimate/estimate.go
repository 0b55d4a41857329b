package estimate

import (
	"fmt"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/shards"
	"ndls/smooth"
	"ndls/train"
)

// DefaultHops is how many hops nodes are expected to need before the K table is
// known.
const DefaultHops = 10

// Counts is what is known of a graph.
type Counts struct {
	Nodes int64 `json:"nodes"`
	// Edges counts undirected edges, InputRows the rows of the edge list, 0 if
	// those are as many.
	Edges     int64 `json:"edges"`
	InputRows int64 `json:"input_rows"`
	// StatedNodes says that the dataset states the number of nodes.
	StatedNodes bool  `json:"stated_nodes"`
	Components  int64 `json:"components"`
	// Features is the width of a feature row; Half says that all are exactly
	// float16.
	Features int  `json:"features"`
	Half     bool `json:"half"`
	Classes  int  `json:"classes"`
	// Training, Validation and Labelled count nodes.
	Training   int64 `json:"training"`
	Validation int64 `json:"validation"`
	Labelled   int64 `json:"labelled"`
	// Hops is the largest K, found or expected, LabelledHops that of the labelled
	// nodes if it was found, else 0.
	Hops         int `json:"hops"`
	LabelledHops int `json:"labelled_hops"`
}

// validate reports counts that no graph has.
func (c Counts) validate() error {
	if c.Nodes < 1 || c.Edges < 0 || c.Features < 0 || c.Classes < 0 || c.Hops < 0 || c.Components < 0 ||
		min(c.Training, c.Validation, c.Labelled) < 0 || max(c.Training, c.Validation, c.Labelled) > c.Nodes {
		return fmt.Errorf("estimate: no graph has %d nodes, %d edges, %d features and %d classes: %w",
			c.Nodes, c.Edges, c.Features, c.Classes, control.ErrOption)
	}
	return nil
}

// Stages lists those that a graph of these counts allows under plan p, in order.
func Stages(c Counts, p control.Plan) []control.Stage {
	list := []control.Stage{control.Partition, control.LSI}
	if c.Features == 0 || p.Partition.Features == "none" {
		return list
	}
	list = append(list, control.Smooth)
	if c.Classes == 0 {
		return list
	}
	list = append(list, control.Train, control.Predict)
	if !p.SomeTargets() {
		list = append(list, control.SmoothLabels)
	}
	return append(list, control.Evaluate)
}

// Run gives the figures of some stages, one after the other, with held bytes in
// the run directory before the first. Where one does not fit r.Memory the list is
// complete nonetheless, and the error wraps [mem.ErrBudget] and says which
// --memory would do.
func Run(c Counts, p control.Plan, r control.Resources, held int64, stages ...control.Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s control.Stage) control.Figures { return newStage(c, p, r).figures(s) })
}

// RunCut is [Run] for so many workers with r each, that have a stage's columns or
// pieces: what one does alone is the same. Memory is that of a worker, as are temporary
// files; other figures are of all workers together.
func RunCut(c Counts, p control.Plan, r control.Resources, workers int, held int64, stages ...control.Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s control.Stage) control.Figures {
		x := newStage(c, p, r)
		x.crew = max(workers, 1)
		return x.figures(s)
	})
}

func run(c Counts, p control.Plan, r control.Resources, held int64, stages []control.Stage, figures func(control.Stage) control.Figures) ([]control.Figures, error) {
	var list []control.Figures
	var worst control.Figures
	for _, s := range stages {
		f := figures(s)
		f.PeakDiskBytes += held
		held += f.DiskBytes
		list = append(list, f)
		if f.LeastBytes > worst.LeastBytes {
			worst = f
		}
	}
	if worst.LeastBytes > r.Memory {
		return list, fmt.Errorf("estimate: %s needs %s at least, --memory is %s; --memory %dMiB would do: %w",
			worst.Stage, mem.Bytes(worst.LeastBytes), mem.Bytes(r.Memory), (worst.LeastBytes+1<<20-1)>>20, mem.ErrBudget)
	}
	return list, nil
}

// runtimeUse is what the runtime, program text and small buffers take as a rule
// of mem.RuntimeShare, which is the most; recordsUse is that with the heap of
// stages that read and write records in a process that has run for a while.
const (
	runtimeUse = 32 << 20
	recordsUse = 44 << 20
)

// Rates for one thread of the machine of bench/papers100m/RESULTS.md. They scale seconds
// only.
const (
	// partitionRows is edge rows a second through partition, of which more than
	// two threads make no more.
	partitionRows = 2.4e6
	// pieceShare and orderShare are what pieces take of that time which workers
	// share, and the steps that one does; run files are counted as bytes. Measured:
	// bench/cluster/RESULTS.md.
	pieceShare, orderShare = 0.9, 0.1
	// passedEdges is directed edges a second past 16 columns of float32; wider
	// rows take longer by their share to the power widthPower. A pass that reads
	// its edges takes overlap times the seconds of the slower of the two.
	passedEdges = 200e6
	widthPower  = 0.85
	overlap     = 1.25
	// filledValues is values a second with which the probes of the LSI stage are
	// made and their first distances found, whatever the threads.
	filledValues = 40e6
	// readBytes and writtenBytes are bytes a second of sequential transfers.
	readBytes    = 1.1e9
	writtenBytes = 1.6e9
	// trainFlops is float32 operations a second in matrix products.
	trainFlops = 18e9
)

// stage works out one stage.
type stage struct {
	Counts
	plan    control.Plan
	res     control.Resources
	threads int
	control.Figures
	crew    int     // workers that are there
	workers int64   // among which rows are shared out, 1 if they are not
	part    int64   // the rows of the worker that has most
	spilled bool    // not all rows of a column block are in memory
	runtime int64   // memory beside the budget's
	seconds float64 // of computing, and of reading what passes read
	passed  int64   // bytes that passes read, of BytesRead
	peak    int64   // disk at the peak, beside what was there before
}

func newStage(c Counts, p control.Plan, r control.Resources) *stage {
	if p.Partition.Features == "none" {
		c.Features = 0
	}
	if c.InputRows == 0 {
		c.InputRows = c.Edges
	}
	c.Components = max(c.Components, 1)
	return &stage{Counts: c, plan: p, res: r, threads: max(r.Threads, 1), crew: 1, workers: 1, part: c.Nodes, runtime: runtimeUse}
}

func (s *stage) figures(name control.Stage) control.Figures {
	switch name {
	case control.Partition:
		s.partition()
	case control.LSI:
		s.lsi()
	case control.Smooth:
		s.smooth()
	case control.Train:
		s.train()
	case control.Predict:
		s.predict()
	case control.SmoothLabels:
		s.smoothLabels()
	case control.Evaluate:
		s.evaluate()
	}
	s.Stage = name
	if s.peak == 0 {
		s.peak = s.DiskBytes + s.ScratchBytes
	}
	s.PeakDiskBytes = s.peak
	s.PeakBytes = min(s.PeakBytes, max(s.res.Memory, s.LeastBytes))
	s.Seconds = s.seconds + float64(s.BytesRead-s.passed)/readBytes + float64(s.BytesWritten)/writtenBytes
	return s.Figures
}

// budget is what the stages can use of --memory.
func (s *stage) budget() int64 { return s.res.Memory - mem.RuntimeShare }

// takes records memory beside that of the runtime.
func (s *stage) takes(peak, least int64) {
	s.PeakBytes = max(s.PeakBytes, peak+s.runtime)
	s.LeastBytes = max(s.LeastBytes, least+mem.RuntimeShare, mem.MinBudget)
}

func (s *stage) counts() partition.Counts {
	return partition.Counts{
		Nodes: s.Nodes, Rows: s.InputRows, Edges: s.Edges, StatedNodes: s.StatedNodes,
		Features: s.Features, Half: s.Half, Threads: s.threads,
	}
}

func (s *stage) partition() {
	c := s.counts()
	used, least := partition.Memory(c, s.crew, s.budget())
	if s.budget() < least {
		used, _ = partition.Memory(c, s.crew, least)
	}
	s.takes(used, least)
	s.peak, s.DiskBytes = partition.Disk(c, s.crew, s.budget())
	if s.crew == 1 {
		s.ScratchBytes = max(s.peak-s.DiskBytes, 0)
	}
	s.BytesRead, s.BytesWritten = partition.Traffic(c, s.crew, s.budget())
	s.seconds = float64(s.InputRows) * (pieceShare/float64(s.crew) + orderShare) / partitionRows / float64(min(s.threads, 2))
}

// readNodes adds reading the node table.
func (s *stage) readNodes(times int64) { s.BytesRead += times * partition.NodeBytes(s.counts()) }

// kRow is about what a row of the K table takes on disk.
const kRow = 5

// readK adds reading the K table.
func (s *stage) readK() { s.BytesRead += kRow * s.Nodes }

// stored is the number of smoothed rows.
func (s *stage) stored() int64 {
	if s.plan.Smooth.Targets == control.LabelledTargets {
		return max(s.Labelled, s.Training+s.Validation)
	}
	return s.Nodes
}

func (s *stage) halfRows() bool { return s.plan.Precision == "float16" }

func valueBytes(half bool) int64 {
	if half {
		return 2
	}
	return 4
}

// tileBytes is the size of the tiles of some columns.
func tileBytes(rows int64, columns int, half bool) int64 {
	return rows * int64(packed.Panels(columns)) * int64(shards.TileRowBytes(half))
}

// rowBytes is the size of smoothed rows as they are stored.
func (s *stage) rowBytes() int64 {
	return s.stored() * (8 + int64(s.Features)*valueBytes(s.halfRows()))
}

// readRows is the memory for reading rows of tiles, a record batch at a time.
func readRows(rows int64, width int, half bool) int64 {
	batch := min(int64(shards.BatchRows(width)), rows)
	return batch*(4*int64(width)+int64(shards.TileRowBytes(half))) + 2*4096
}

// interval is the number of rows whose tiles are put together at a time.
func (s *stage) interval(rows int64) int64 {
	return min(rows, int64(s.plan.Partition.IntervalBlocks)*partition.BlockRows)
}

func (s *stage) smooth() {
	half, stored := s.halfRows(), s.stored()
	o := smooth.Options{Targets: smooth.AllTargets(s.part)}
	held := int64(0)
	if stored < s.Nodes {
		o.Targets = smooth.CountedTargets(s.part, min(stored, s.part))
		held = smooth.TargetsBytes(s.Nodes)
		s.readNodes(1)
	}
	rule, err := smooth.NewRule(s.plan.Smooth.Rule, s.plan.Smooth.Alpha, s.plan.Smooth.Hops)
	if err != nil {
		return // the plan is not valid
	}
	o.Rule = rule
	last := s.plan.Smooth.Hops
	if rule.NodeDependent {
		last = s.Hops
		if s.LabelledHops > 0 && s.plan.Smooth.Targets == control.LabelledTargets {
			last = s.LabelledHops
		}
		last = min(last, s.plan.LSI.Kmax)
		if rule.Name == "ndls-reference" {
			last = max(last-1, 0) // hop K is not counted
		}
		held += 2 * s.part
		s.readK()
	}
	s.readNodes(2) // degrees, then ids
	s.columns(o, s.Features, last, held, s.Half)
	tiles, rows := tileBytes(stored, s.Features, half), s.rowBytes()
	s.takes(4*stored+readRows(stored, s.Features, half), 0)
	s.BytesRead += tiles
	s.BytesWritten += tiles + rows
	if s.settled() {
		s.checkSettled(o, last, held, tiles)
	}
	s.DiskBytes = rows
	// Tiles give way to rows, interval by interval.
	s.peak = max(s.ScratchBytes+tiles, tiles+int64(float64(rows)*float64(s.interval(stored))/float64(max(stored, 1))), rows)
}

func (s *stage) settled() bool { return s.plan.LSI.Active == "settled" }

func (s *stage) train() {
	s.runtime = recordsUse
	o, shape := s.trainOptions(), s.trainShape()
	labels := 5*shape.Rows + 2*4096
	peak, least, streamed := train.PlanFit(shape, o, s.threads, s.budget()-labels)
	s.takes(labels+peak, labels+least)
	weights := train.NumWeights(shape, o)
	s.DiskBytes = 4 * weights * int64(o.Runs)
	s.BytesWritten = s.DiskBytes
	s.readNodes(1)
	s.BytesRead += 8*shape.Rows + s.rowBytes()
	if streamed {
		s.BytesRead += int64(o.Runs*o.Epochs) * s.rowBytes()
	}
	steps := float64(shape.Train) * float64(o.Epochs*o.Runs)
	s.seconds = steps * 6 * float64(weights) / trainFlops / float64(min(s.threads, o.Runs))
}

func (s *stage) trainOptions() train.Options {
	t := s.plan.Train
	return train.Options{Hidden: t.Hidden, Layers: t.Layers, BatchSize: t.BatchSize, Epochs: t.Epochs, Runs: t.Runs}
}

func (s *stage) trainShape() train.Shape {
	return train.Shape{Rows: s.stored(), Train: s.Training, Valid: s.Validation, Width: s.Features, Classes: s.Classes}
}

// openTiles bounds how many tiles are written at a time.
const openTiles = 8

// predict passes every row through all models, or through as many at a time as
// may write tiles.
func (s *stage) predict() {
	s.runtime = recordsUse
	o, shape := s.trainOptions(), s.trainShape()
	group, tiles := o.Runs, int64(0)
	if s.plan.Smooth.Targets == control.AllTargets {
		group = min(max(openTiles/packed.Panels(s.Classes), 1), o.Runs)
		tiles = int64(o.Runs) * tileBytes(s.Nodes, s.Classes, false)
	}
	batch := int64(shards.BatchRows(s.Classes))
	held := 5*shape.Rows + batch*(8+4*int64(s.Classes)) + 4*4096
	peak, least := train.PlanPredict(shape, o, group, s.threads, s.budget()-held)
	s.takes(held+peak, held+least)
	s.DiskBytes = (8+4*int64(s.Classes))*shape.Rows + tiles
	s.BytesWritten = s.DiskBytes
	s.readNodes(1)
	s.BytesRead += 8*shape.Rows + int64((o.Runs+group-1)/group)*s.rowBytes()
	s.seconds = float64(o.Runs) * float64(shape.Rows) * 2 * float64(train.NumWeights(shape, o)) / trainFlops / float64(s.threads)
}

// evaluate reads the smoothed soft labels of all runs.
func (s *stage) evaluate() {
	s.takes(0, 0)
	if s.plan.SomeTargets() {
		return
	}
	s.takes(5*s.Nodes+readRows(s.Nodes, s.Classes, false)+2*4096, 5*s.Nodes+readRows(s.Nodes, s.Classes, false)+2*4096)
	s.readNodes(1)
	s.BytesRead += int64(s.labelRuns()) * tileBytes(s.Nodes, s.Classes, false)
}
