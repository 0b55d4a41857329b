package estimate

import (
	"fmt"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/shards"
	"ndls/tiles"
)

// Counts is what is known of a graph.
type Counts struct {
	Nodes int64 `json:"nodes"`
	// Edges counts undirected edges, or directed ones where they are Directed, InputRows the
	// rows of the edge list, 0 if those are as many.
	Edges     int64 `json:"edges"`
	InputRows int64 `json:"input_rows"`
	// StatedNodes says that the dataset states the number of nodes.
	StatedNodes bool `json:"stated_nodes"`
	// Weighted says that edges have weights.
	Weighted bool `json:"weighted,omitempty"`
	// Directed says that edges have directions.
	Directed   bool  `json:"directed,omitempty"`
	Components int64 `json:"components"`
	// Features is the width of a feature row; Half says that all are exactly
	// float16.
	Features int  `json:"features"`
	Half     bool `json:"half"`
	// IDs is the size of all input ids where they are numbered, 0 elsewhere. NodeTable says
	// that they are those of a table of nodes.
	IDs       int64 `json:"ids,omitempty"`
	NodeTable bool  `json:"node_table,omitempty"`
	Classes   int   `json:"classes"`
	// Training, Validation and Labelled count nodes.
	Training   int64 `json:"training"`
	Validation int64 `json:"validation"`
	Labelled   int64 `json:"labelled"`
	// Hops is the largest K, found or expected, LabelledHops that of the labelled
	// nodes if it was found, else 0.
	Hops         int `json:"hops"`
	LabelledHops int `json:"labelled_hops"`
	// FewHops says that the graph is generated without chains.
	FewHops bool `json:"few_hops,omitempty"`
	// ValidationHops is the largest K of a validation node with a label, if it was found.
	ValidationHops int `json:"validation_hops,omitempty"`
	// Epsilons lists, with commas, distances for which the LSI stage finds K beside its own.
	Epsilons string `json:"epsilons,omitempty"`
	// LabelDepth is one more than the largest depth of label smoothing that was chosen, 0
	// before it is.
	LabelDepth int `json:"label_depth,omitempty"`
	// TrainOn is what the run directories have on whose rows models are trained, if those are
	// other ones.
	TrainOn OtherRows `json:"train_on,omitzero"`
}

// OtherRows are the smoothed rows of other run directories.
type OtherRows struct {
	// Rows counts them, Training and Validation those that models take.
	Rows, Training, Validation int64
	// Nodes are those of the directories, and NodeBytes the size of their node tables.
	Nodes, NodeBytes int64
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

// Facts are what a graph has, as far as stages ask for it. OneClass says that all labels are the same.
type Facts struct{ Features, Labels, Splits, Directed, OneClass bool }

// Facts says what a graph of these counts has under plan p. Counts do not tell whether
// there are splits: those are taken to be there.
func (c Counts) Facts(p control.Plan) Facts {
	return Facts{Features: c.Features > 0 && p.Partition.Features != "none", Labels: c.Classes > 0, Splits: true, Directed: c.Directed, OneClass: c.Classes == 1}
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
// --memory would do. A stage that does not fit r.Disk leaves out temporary files that save
// time; whether it fits then, [CheckDisk] says.
func Run(c Counts, p control.Plan, r control.Resources, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage, r control.Resources) control.Figures { return newSheet(c, p, r).figures(s) })
}

// RunCut is [Run] for so many workers with r each, that have a stage's columns or
// pieces: what one does alone is the same. Memory is that of a worker, as are temporary
// files; other figures are of all workers together.
func RunCut(c Counts, p control.Plan, r control.Resources, workers int, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage, r control.Resources) control.Figures {
		x := newSheet(c, p, r)
		x.Workers = max(workers, 1)
		return x.figures(s)
	})
}

func run(c Counts, p control.Plan, r control.Resources, held int64, stages []Stage, figures func(Stage, control.Resources) control.Figures) ([]control.Figures, error) {
	var list []control.Figures
	var worst control.Figures
	for _, s := range stages {
		f := figures(s, r)
		if r.Disk > 0 && held+f.PeakDiskBytes > r.Disk {
			lean := r
			lean.Lean = true
			if x := figures(s, lean); x.PeakDiskBytes < f.PeakDiskBytes {
				if lean.Spare = max(r.Disk-held-x.PeakDiskBytes, 0); lean.Spare > 0 {
					x = figures(s, lean)
				}
				f, f.Lean, f.Spare = x, true, lean.Spare
			}
		}
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

// programUse is how much of the program's own file is in memory once it runs: its code and
// tables. The others are that with what the runtime and small buffers take as a rule: encodesUse
// with the heap of the writers of shards and hop streams, recordsUse with that of a reader of the
// node table, runtimeUse in other stages. The column of weights adds weightsUse to encodesUse.
// mem.RuntimeShare is the most.
const (
	programUse = 41 << 20
	runtimeUse = programUse + 30<<20
	recordsUse = programUse + 34<<20
	encodesUse = programUse + 41<<20
	weightsUse = 12 << 20
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
	// Teams is how many blocks of the columns that were added last a worker smooths side by side.
	Teams int

	sharing int64     // workers among which rows are shared out, 1 if they are not
	members int       // of a group
	groups  int       // of such workers, which share the columns
	spilled bool      // not all rows of a column block are in memory
	runtime int64     // memory beside the budget's
	seconds float64   // of computing on all threads, and of reading what passes read
	each    float64   // of computing that each worker does, whatever its share
	readers int64     // memory of threads that read tables, beside the first, and beside what the stage needs at least
	needs   int64     // memory that the stage needs at least, beside the runtime's
	passed  int64     // bytes that are read while threads compute, of BytesRead
	scratch int64     // bytes of scratch files, of BytesWritten
	piped   bool      // bytes are read and written while threads compute
	pieces  int       // which workers share, 0 if one does all
	width   float64   // of a pass: how many times as long it computes as one over 16 float32 columns
	way     group.Way // of rows between workers
	ahead   int64     // bytes of rows that a worker of two can hold while it adds its own
	swaps   swaps     // of workers that share the stage
}

func newSheet(c Counts, p control.Plan, r control.Resources) *Sheet {
	if p.Partition.Features == "none" {
		c.Features = 0
	}
	if c.InputRows == 0 {
		c.InputRows = c.Edges
	}
	c.Components = max(c.Components, 1)
	if c.FewHops && c.LabelledHops == 0 {
		c.LabelledHops, c.ValidationHops = c.hopsOf(c.Labelled, p.LSI.Epsilon), c.hopsOf(c.Validation, p.LSI.Epsilon)
	}
	return &Sheet{Counts: c, Plan: p, Resources: r, Threads: max(r.Threads, 1), Workers: 1, sharing: 1, members: 1, groups: 1, Part: c.Nodes, runtime: runtimeUse, swaps: swaps{network: swappedBytes, delay: swapDelay}}
}

// figures are those of a stage, once its cost is written.
func (s *Sheet) figures(of Stage) control.Figures {
	of.Cost(s)
	f := s.Figures
	f.Stage = of.Name()
	if f.PeakDiskBytes == 0 {
		f.PeakDiskBytes = f.DiskBytes + f.ScratchBytes
	}
	if s.readers > 0 { // tables are read before the rows of a block are held
		f.PeakBytes = max(f.PeakBytes, s.needs+s.readers+s.runtime)
	}
	f.PeakBytes = min(f.PeakBytes, max(s.Resources.Memory, f.LeastBytes))
	moving := float64(f.BytesRead-s.passed)/s.reads() + float64(s.scratch)/s.scratches() + float64(f.BytesWritten-s.scratch)/s.commits()
	together := s.seconds + moving
	if s.piped {
		together = max(s.seconds, moving)
	}
	together += pieceSeconds*float64(s.pieces)/float64(max(s.Teams, 1)) + s.swaps.seconds(float64(s.members), float64(s.Threads))
	f.Seconds = stageSeconds + s.each + s.share()*together
	return f
}

// share is the part of the pieces that the worker, or the group, has which has most of them.
func (s *Sheet) share() float64 {
	if s.pieces == 0 {
		return 1
	}
	takers := s.takers()
	return float64((s.pieces+takers-1)/takers) / float64(s.pieces)
}

// takers is how many workers there are for pieces, or groups of them.
func (s *Sheet) takers() int {
	if s.sharing > 1 {
		return s.groups
	}
	return s.Workers
}

// Pieces says that workers share what the stage computes, reads and writes, but for what each of them
// does, in so many equal pieces.
func (s *Sheet) Pieces(n int) { s.pieces = n }

// Members is the number of workers among which a stage is shared by rows, 1 for one that is not.
func (s *Sheet) Members() int { return s.members }

// Groups is the number of such groups of workers, each of which has some of the columns.
func (s *Sheet) Groups() int { return s.groups }

// Budget is what the stages can use of --memory.
func (s *Sheet) Budget() int64 { return mem.Usable(s.Resources.Memory) }

// Takes records memory beside that of the runtime.
func (s *Sheet) Takes(peak, least int64) {
	s.PeakBytes = max(s.PeakBytes, peak+s.runtime)
	s.LeastBytes = max(s.LeastBytes, mem.Total(least), mem.MinBudget)
	s.needs = max(s.needs, least)
}

// Partitioned are the counts as package partition has them.
func (s *Sheet) Partitioned() partition.Counts {
	return partition.Counts{
		Nodes: s.Nodes, Rows: s.InputRows, Edges: s.Edges, StatedNodes: s.StatedNodes && s.Plan.Partition.Only == "", Weighted: s.Weighted, Directed: s.Directed,
		Features: s.Features, Half: s.Half, IDs: s.IDs, NodeTable: s.NodeTable, Part: s.Plan.Partition.Only != "", Blanks: s.Plan.Partition.BlankFeatures > 0, Threads: s.Threads,
		NoShards: s.Plan.Partition.NoShards(),
	}
}

// ReadNodes adds reading the node table, which each worker does.
func (s *Sheet) ReadNodes(times int64) {
	s.readsNodes(times, s.Nodes, partition.NodeBytes(s.Partitioned()))
}

// ReadOtherNodes adds reading the node tables of other run directories once.
func (s *Sheet) ReadOtherNodes(o OtherRows) { s.readsNodes(1, o.Nodes, o.NodeBytes) }

func (s *Sheet) readsNodes(times, nodes, bytes int64) {
	s.BytesRead += times * bytes
	if nodes > 0 {
		s.readsTable(times, nodes, bytes/nodes, nodeRow)
	}
}

// nodeRow and decodedK are about what a row of the node table and of the K table takes in memory.
const nodeRow, decodedK = 25, 13

// readsTable adds reading a table so many times, a row of which takes so many bytes on disk and in memory.
func (s *Sheet) readsTable(times, rows, stored, decoded int64) {
	bytes := shards.ReaderBytes(rows, stored, decoded)
	readers := shards.NumReaders(s.Threads, rows, bytes, s.Budget())
	s.readers = max(s.readers, int64(readers-1)*bytes)
	s.each += float64(times*rows) / s.rate(readNodes) / readsAtOnce(readers)
}

// kRow is about what a row of the K table takes on disk.
const kRow = 5

// WriteK adds writing the K table, which stays; one thread does most of it.
func (s *Sheet) WriteK() {
	s.DiskBytes += kRow * s.Nodes
	s.BytesWritten += kRow * s.Nodes
	s.each += float64(s.Nodes) / s.rate(readNodes)
}

// Records says that the stage reads the node table while its rows are in memory.
func (s *Sheet) Records() { s.runtime = recordsUse }

// Encodes says that the stage writes shards and hop streams, whose heap is more than that of
// other stages.
func (s *Sheet) Encodes() {
	if s.runtime = encodesUse; s.Weighted {
		s.runtime += weightsUse
	}
}

// Computes adds an amount of work that all threads share, at a rate a second and thread.
func (s *Sheet) Computes(amount float64, rate Rate) {
	s.seconds += amount / s.rate(rate) / float64(s.Threads)
}

// Streams adds work whose input of so many bytes is read ahead: the slower of the two decides.
func (s *Sheet) Streams(bytes int64, work func()) {
	before := s.seconds
	work()
	s.BytesRead += bytes
	s.passed += bytes
	s.seconds = before + max(s.seconds-before, float64(bytes)/s.reads())
}

// Scratches adds bytes that are written to scratch files.
func (s *Sheet) Scratches(bytes int64) {
	s.BytesWritten = min(s.BytesWritten+bytes, hops.MostBytes)
	s.scratch = min(s.scratch+bytes, hops.MostBytes)
}

// Piped says that the stage reads and writes while it computes.
func (s *Sheet) Piped() { s.piped = true }

// ReadK adds reading the K table, which each worker does.
func (s *Sheet) ReadK() {
	s.BytesRead += kRow * s.Nodes
	s.readsTable(1, s.Nodes, kRow, decodedK)
}

// Stored is the number of smoothed rows.
func (s *Sheet) Stored() int64 {
	if s.Plan.Smooth.Targets == control.LabelledTargets {
		return max(s.Labelled, s.Training+s.Validation)
	}
	return s.Nodes
}

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

// RowBytes is the size of the rows that models take, as they are stored.
func (s *Sheet) RowBytes() int64 { return s.StoredBytes(s.Output().Trained()) }

// StoredBytes is the size of target rows of so many values as they are stored.
func (s *Sheet) StoredBytes(values int) int64 { return s.BytesOfRows(s.Stored(), values) }

// BytesOfRows is the size of so many smoothed rows of so many values as they are stored.
func (s *Sheet) BytesOfRows(rows int64, values int) int64 {
	return SmoothedBytes(s.Plan, rows, values)
}

// SmoothedBytes is the size of so many smoothed rows of so many values under plan p.
func SmoothedBytes(p control.Plan, rows int64, values int) int64 {
	return rows * (8 + int64(values)*valueBytes(p.HalfSmoothed()))
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

// ReadsLists says that rows of so many values are put together, a record batch at a time, from
// tiles of so many columns, beside held bytes.
func (s *Sheet) ReadsLists(held, rows int64, values, columns int, half bool) {
	s.joins(held, rows, shards.BatchRows(values), values, columns, half)
}

// Joins is [Sheet.ReadsLists] where a record batch is as small as if a row had all columns.
func (s *Sheet) Joins(held, rows int64, values, columns int, half bool) {
	s.joins(held, rows, shards.BatchRows(columns), values, columns, half)
}

func (s *Sheet) joins(held, rows int64, most, values, columns int, half bool) {
	batch := int(min(int64(most), rows))
	least := held + tiles.ReadBytes(columns, batch, int64(shards.TileRowBytes(half))) + 4*int64(values)*int64(batch) + 4096
	peak := least
	if more := 4*int64(columns)*int64(batch) + 4096; s.Threads > 1 && least+more <= s.Budget() {
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
