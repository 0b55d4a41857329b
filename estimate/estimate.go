package estimate

import (
	"fmt"

	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/shards"
	"ndls/tiles"
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
	// ValidationHops is the largest K of a validation node with a label, if it was found.
	ValidationHops int `json:"validation_hops,omitempty"`
	// LabelDepth is one more than the largest depth of label smoothing that was chosen, 0
	// before it is.
	LabelDepth int `json:"label_depth,omitempty"`
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

// Facts are what a graph has, as far as stages ask for it.
type Facts struct{ Features, Labels, Splits bool }

// Facts says what a graph of these counts has under plan p. Counts do not tell whether
// there are splits: those are taken to be there.
func (c Counts) Facts(p control.Plan) Facts {
	return Facts{Features: c.Features > 0 && p.Partition.Features != "none", Labels: c.Classes > 0, Splits: true}
}

// Stage is what an estimate asks of a stage of a run.
type Stage interface {
	// Name is the stage's name in plans, records and commands.
	Name() control.Stage
	// Lacks says what the graph lacks for the stage under plan p, or why it does not
	// come into question, and what the user can do; "" if nothing.
	Lacks(p control.Plan, f Facts) string
	// Shares says whether workers may share the rows of the graph in the stage.
	Shares(p control.Plan) bool
	// Cost writes into s what the stage takes.
	Cost(s *Sheet)
}

// Run gives the figures of some stages, one after the other, with held bytes in
// the run directory before the first. Where one does not fit r.Memory the list is
// complete nonetheless, and the error wraps [mem.ErrBudget] and says which
// --memory would do.
func Run(c Counts, p control.Plan, r control.Resources, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage) control.Figures { return newSheet(c, p, r).figures(s) })
}

// RunCut is [Run] for so many workers with r each, that have a stage's columns or
// pieces: what one does alone is the same. Memory is that of a worker, as are temporary
// files; other figures are of all workers together.
func RunCut(c Counts, p control.Plan, r control.Resources, workers int, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage) control.Figures {
		x := newSheet(c, p, r)
		x.Workers = max(workers, 1)
		return x.figures(s)
	})
}

func run(c Counts, p control.Plan, r control.Resources, held int64, stages []Stage, figures func(Stage) control.Figures) ([]control.Figures, error) {
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
	// TrainFlops is float32 operations a second of training and prediction on one
	// thread, counted in matrix products.
	TrainFlops = 40e9
)

// Sheet is where a stage writes what it takes.
type Sheet struct {
	Counts
	Plan      control.Plan
	Resources control.Resources
	Threads   int
	// Figures is what was written so far. Figures.PeakDiskBytes is beside what was on
	// disk before the stage; where it is 0 the sum of output and scratch stands for it.
	control.Figures
	// Workers is how many are there, Part the rows of the worker that has most of them:
	// fewer than all where workers share the rows.
	Workers int
	Part    int64

	sharing int64   // workers among which rows are shared out, 1 if they are not
	spilled bool    // not all rows of a column block are in memory
	runtime int64   // memory beside the budget's
	seconds float64 // of computing, and of reading what passes read
	passed  int64   // bytes that passes read, of BytesRead
}

func newSheet(c Counts, p control.Plan, r control.Resources) *Sheet {
	if p.Partition.Features == "none" {
		c.Features = 0
	}
	if c.InputRows == 0 {
		c.InputRows = c.Edges
	}
	c.Components = max(c.Components, 1)
	return &Sheet{Counts: c, Plan: p, Resources: r, Threads: max(r.Threads, 1), Workers: 1, sharing: 1, Part: c.Nodes, runtime: runtimeUse}
}

// figures are those of a stage, once its cost is written.
func (s *Sheet) figures(of Stage) control.Figures {
	of.Cost(s)
	f := s.Figures
	f.Stage = of.Name()
	if f.PeakDiskBytes == 0 {
		f.PeakDiskBytes = f.DiskBytes + f.ScratchBytes
	}
	f.PeakBytes = min(f.PeakBytes, max(s.Resources.Memory, f.LeastBytes))
	f.Seconds = s.seconds + float64(f.BytesRead-s.passed)/readBytes + float64(f.BytesWritten)/writtenBytes
	return f
}

// Budget is what the stages can use of --memory.
func (s *Sheet) Budget() int64 { return s.Resources.Memory - mem.RuntimeShare }

// Takes records memory beside that of the runtime.
func (s *Sheet) Takes(peak, least int64) {
	s.PeakBytes = max(s.PeakBytes, peak+s.runtime)
	s.LeastBytes = max(s.LeastBytes, least+mem.RuntimeShare, mem.MinBudget)
}

// Partitioned are the counts as package partition has them.
func (s *Sheet) Partitioned() partition.Counts {
	return partition.Counts{
		Nodes: s.Nodes, Rows: s.InputRows, Edges: s.Edges, StatedNodes: s.StatedNodes,
		Features: s.Features, Half: s.Half, Threads: s.Threads,
	}
}

// ReadNodes adds reading the node table.
func (s *Sheet) ReadNodes(times int64) { s.BytesRead += times * partition.NodeBytes(s.Partitioned()) }

// kRow is about what a row of the K table takes on disk.
const kRow = 5

// WriteK adds writing the K table, which stays.
func (s *Sheet) WriteK() {
	s.DiskBytes = kRow * s.Nodes
	s.BytesWritten += s.DiskBytes
}

// Records says that the stage reads and writes records, whose heap is more than that of
// other stages.
func (s *Sheet) Records() { s.runtime = recordsUse }

// Computes adds seconds of computing.
func (s *Sheet) Computes(seconds float64) { s.seconds += seconds }

// ReadK adds reading the K table.
func (s *Sheet) ReadK() { s.BytesRead += kRow * s.Nodes }

// Stored is the number of smoothed rows.
func (s *Sheet) Stored() int64 {
	if s.Plan.Smooth.Targets == control.LabelledTargets {
		return max(s.Labelled, s.Training+s.Validation)
	}
	return s.Nodes
}

// HalfRows says whether smoothed rows are float16.
func (s *Sheet) HalfRows() bool { return s.Plan.Precision == "float16" }

func valueBytes(half bool) int64 {
	if half {
		return 2
	}
	return 4
}

// TileBytes is the size of the tiles of some columns.
func TileBytes(rows int64, columns int, half bool) int64 {
	return rows * int64(packed.Panels(columns)) * int64(shards.TileRowBytes(half))
}

// RowBytes is the size of smoothed rows as they are stored.
func (s *Sheet) RowBytes() int64 {
	return s.Stored() * (8 + int64(s.Features)*valueBytes(s.HalfRows()))
}

// ReadsRows says that rows of tiles are read, a record batch at a time, beside held bytes.
func (s *Sheet) ReadsRows(held, rows int64, width int, half bool) {
	batch := int(min(int64(shards.BatchRows(width)), rows))
	least := held + tiles.ReadBytes(width, batch, int64(shards.TileRowBytes(half)))
	peak := least
	if more := 4*int64(width)*int64(batch) + 4096; s.Threads > 1 && least+more <= s.Budget() {
		peak += more
	}
	s.Takes(peak, least)
}

// Interval is the number of rows whose tiles are put together at a time.
func (s *Sheet) Interval(rows int64) int64 {
	return min(rows, int64(s.Plan.Partition.IntervalBlocks)*partition.BlockRows)
}

// OpenTiles bounds how many tiles are written at a time.
const OpenTiles = 8
