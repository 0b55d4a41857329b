package estimate

import (
	"fmt"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/tiles"
)

// Counts holds what is known of a graph.
type Counts struct {
	Nodes int64 `json:"nodes"`
	// Edges counts undirected edges, or directed ones if Directed is set. InputRows counts the rows
	// of the edge list; 0 stands for as many as Edges.
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
	// Fitted is the number of columns of numbers and categories of the dataset if they are read before the import of features, else 0.
	Fitted int `json:"fitted,omitempty"`
	// Filled is the number of columns that neighbours fill, at most.
	Filled int `json:"filled,omitempty"`
	// RowMemory is the memory of a reader of feature rows in bytes, 0 for little ([dataset.Info]).
	RowMemory int64 `json:"row_memory,omitempty"`
	// EdgeMemory is the memory of a reader of edges in bytes, 0 for little ([dataset.Info]).
	EdgeMemory int64 `json:"edge_memory,omitempty"`
	// IDs is the size of all input ids in bytes if ids are numbered, 0 otherwise. NodeTable says
	// that a table of nodes lists them.
	IDs       int64 `json:"ids,omitempty"`
	NodeTable bool  `json:"node_table,omitempty"`
	Classes   int   `json:"classes"`
	// Training, Validation and Labelled count nodes.
	Training   int64 `json:"training"`
	Validation int64 `json:"validation"`
	Labelled   int64 `json:"labelled"`
	// Hops is the largest K, found or assumed: Kmax before it is known. LabelledHops is the largest K of the labelled nodes
	// if it was found, else 0.
	Hops         int `json:"hops"`
	LabelledHops int `json:"labelled_hops"`
	// MovingShare is the share of the edges that lead into rows that moved when polynomials found their K, 0 if that is not known, or no row
	// was left out.
	MovingShare float64 `json:"moving_share,omitempty"`
	// ValidationHops is the largest K of a labelled validation node, if it was found.
	ValidationHops int `json:"validation_hops,omitempty"`
	// Epsilons lists, separated by commas, further distances for which the LSI stage finds K.
	Epsilons string `json:"epsilons,omitempty"`
	// LabelDepth is one more than the largest chosen depth of label smoothing, 0 before the choice.
	LabelDepth int `json:"label_depth,omitempty"`
	// TrainOn describes the smoothed rows of other run directories if models are trained on those.
	TrainOn OtherRows `json:"train_on,omitzero"`
}

// OtherRows describes the smoothed rows of other run directories.
type OtherRows struct {
	// Rows counts the rows, Training and Validation those that models use.
	Rows, Training, Validation int64
	// Nodes counts the nodes of the directories, NodeBytes the bytes of their node tables.
	Nodes, NodeBytes int64
}

// validate refuses counts that no graph has.
func (c Counts) validate() error {
	if c.Nodes < 1 || c.Edges < 0 || c.Features < 0 || c.Classes < 0 || c.Hops < 0 || c.Components < 0 ||
		min(c.Training, c.Validation, c.Labelled) < 0 || max(c.Training, c.Validation, c.Labelled) > c.Nodes {
		return fmt.Errorf("estimate: no graph has %d nodes, %d edges, %d features and %d classes: %w",
			c.Nodes, c.Edges, c.Features, c.Classes, failure.ErrOption)
	}
	return nil
}

// Facts says what a graph has, as far as stages ask for it. OneClass says that all labels are the
// same.
type Facts struct{ Features, Labels, Splits, Directed, OneClass bool }

// Facts returns what a graph of these counts has under plan p. Counts do not tell whether there are
// splits: Facts assumes that there are.
func (c Counts) Facts(p plan.Options) Facts {
	return Facts{Features: c.Features > 0 && p.Partition.Features != "none", Labels: c.Classes > 0, Splits: true, Directed: c.Directed, OneClass: c.Classes == 1}
}

// Stage is the part of a stage that an estimate reads.
type Stage interface {
	// Name returns the stage's name in plans, records and commands.
	Name() control.Stage
	// Lacks says what the graph lacks for the stage under plan p, or why the stage does not apply,
	// and what the user can do; "" if nothing.
	Lacks(p plan.Options, f Facts) string
	// Shares reports whether workers may share the rows of the graph in the stage.
	Shares(p plan.Options) bool
	// Cost writes the cost of the stage into s.
	Cost(s *Sheet)
}

// Run returns the figures of some stages, one after the other, with held bytes in the run directory
// before the first. The list is complete even if a stage exceeds r.Memory; the error then wraps
// [mem.ErrBudget] and names a sufficient --memory. A stage that exceeds r.Disk leaves out temporary
// files that only save time; [CheckDisk] tells whether it fits then.
func Run(c Counts, p plan.Options, r control.Resources, held int64, stages ...Stage) ([]control.Figures, error) {
	return RunCut(c, p, r, 1, held, stages...)
}

// RunCut is [Run] for so many workers with r each, which share the columns or pieces of a stage.
// Work that one worker does alone does not change. Memory and temporary files count one worker;
// other figures count all workers together.
func RunCut(c Counts, p plan.Options, r control.Resources, workers int, held int64, stages ...Stage) ([]control.Figures, error) {
	return RunShared(c, p, r, workers, []int{1}, held, stages...)
}

func run(r control.Resources, held int64, stages []Stage,
	figures func(Stage, control.Resources) control.Figures,
) ([]control.Figures, error) {
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
		return list, fmt.Errorf("estimate: %s needs at least %s, --memory is %s; --memory %dMiB is enough: %w",
			worst.Stage, mem.Bytes(worst.LeastBytes), mem.Bytes(r.Memory), (worst.LeastBytes+1<<20-1)>>20, mem.ErrBudget)
	}
	return list, nil
}

// programUse is the memory of the running program's own file: its code and tables. The other values
// include it, and add what the runtime and small buffers usually use. encodesUse adds the heap of
// the writers of shards and hop streams, recordsUse the heap of a reader of the node table, and
// runtimeUse the heap of other stages. A column of weights adds weightsUse to encodesUse.
// mem.RuntimeShare bounds them all.
const (
	programUse = 41 << 20
	runtimeUse = programUse + 30<<20
	recordsUse = programUse + 34<<20
	encodesUse = programUse + 41<<20
	weightsUse = 12 << 20
)

// Sheet collects the cost of a stage.
type Sheet struct {
	Counts
	Plan      plan.Options
	Resources control.Resources
	Threads   int
	// Figures holds the cost so far. Figures.PeakDiskBytes comes on top of what was on disk before
	// the stage; if it is 0, the sum of output and scratch stands for it.
	control.Figures
	// Workers is the number of workers. Part is the number of rows of the worker with the most
	// rows, which is less than all if workers share the rows.
	Workers int
	Part    int64
	// Teams is the number of blocks, of the columns added last, that a worker smooths side by side.
	Teams int

	sharing int64   // workers that share the rows, 1 if none share them
	members int     // of a group
	groups  int     // number of groups, which share the columns
	spilled bool    // not all rows of a column block are in memory
	runtime int64   // memory beside the budget's
	seconds float64 // of computing on all threads, and of reading during passes
	each    float64 // of computing that each worker repeats, whatever its share
	readers int64   // memory of further threads that read tables, beyond what the stage needs at least
	needs   int64   // least memory of the stage, without the runtime's
	passed  int64   // part of BytesRead that is read while threads compute
	scratch int64   // part of BytesWritten in scratch files
	pieces  int     // pieces that workers share, 0 if one worker does all
	lines   float64 // of 64 bytes in a row of a column block
	speeds  control.Speeds
	way     group.Way // in which workers exchange rows
	ahead   int64     // bytes of rows that one of two workers can hold while it adds its own
	swaps   swaps     // of workers that share the stage
}

func newSheet(c Counts, p plan.Options, r control.Resources) *Sheet {
	if p.Partition.Features == "none" {
		c.Features = 0
	}
	if c.InputRows == 0 {
		c.InputRows = c.Edges
	}
	c.Components = max(c.Components, 1)
	return &Sheet{
		Counts: c, Plan: p, Resources: r, Threads: max(r.Threads, 1), Workers: 1, sharing: 1, members: 1, groups: 1,
		Part: c.Nodes, runtime: runtimeUse, speeds: withUsual(r.Speeds), swaps: swaps{network: swappedBytes, delay: swapDelay},
	}
}

// figures returns the figures of a stage after its cost is written.
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
	moving := float64(f.BytesRead-s.passed)/s.speeds.Read + float64(f.BytesWritten)/s.speeds.Write
	f.Seconds = s.each + s.share()*(s.seconds+moving+s.swaps.seconds(float64(s.members), float64(s.Threads)))
	return f
}

// share returns the share of the pieces of the worker, or group, with the most pieces.
func (s *Sheet) share() float64 {
	if s.pieces == 0 {
		return 1
	}
	takers := s.takers()
	return float64((s.pieces+takers-1)/takers) / float64(s.pieces)
}

// takers returns the number of workers, or groups of workers, that share pieces.
func (s *Sheet) takers() int {
	if s.sharing > 1 {
		return s.groups
	}
	return s.Workers
}

// Pieces says that workers share the computing, reading and writing of the stage in so many equal
// pieces. Work that each worker repeats is not shared.
func (s *Sheet) Pieces(n int) { s.pieces = n }

// Members is the number of workers among which a stage is shared by rows, 1 for one that is not.
func (s *Sheet) Members() int { return s.members }

// Groups returns the number of groups of workers; each group takes some of the columns.
func (s *Sheet) Groups() int { return s.groups }

// Budget returns the part of --memory that stages can use.
func (s *Sheet) Budget() int64 { return mem.Usable(s.Resources.Memory) }

// Takes records memory without that of the runtime.
func (s *Sheet) Takes(peak, least int64) {
	s.PeakBytes = max(s.PeakBytes, peak+s.runtime)
	s.LeastBytes = max(s.LeastBytes, mem.Total(least), mem.MinBudget)
	s.needs = max(s.needs, least)
}

// Partitioned returns the counts in the form of package partition.
func (s *Sheet) Partitioned() partition.Counts {
	return partition.Counts{
		Nodes: s.Nodes, Rows: s.InputRows, Edges: s.Edges, StatedNodes: s.StatedNodes && s.Plan.Partition.Only == "",
		Weighted: s.Weighted, Directed: s.Directed,
		Features: s.Features, Half: s.Half, RowMemory: s.RowMemory, EdgeMemory: s.EdgeMemory, IDs: s.IDs, NodeTable: s.NodeTable, Part: s.Plan.Partition.Only != "", Blanks: s.Plan.Partition.BlankFeatures > 0, Threads: s.Threads,
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

// nodeRow and decodedK are the approximate bytes of a row of the node table and of the K table in
// memory.
const nodeRow, decodedK = 25, 13

// readsTable adds reading a table so many times; stored and decoded are the bytes of a row on disk
// and in memory.
func (s *Sheet) readsTable(times, rows, stored, decoded int64) {
	bytes := shards.ReaderBytes(rows, stored, decoded)
	readers := shards.NumReaders(s.Threads, rows, bytes, s.Budget())
	s.readers = max(s.readers, int64(readers-1)*bytes)
	s.each += float64(times*rows) / s.speeds.Values
}

// kRow is the approximate size of a row of the K table on disk, in bytes.
const kRow = 5

// WriteK adds writing the K table, which stays; one thread does most of it.
func (s *Sheet) WriteK() {
	s.DiskBytes += kRow * s.Nodes
	s.BytesWritten += kRow * s.Nodes
	s.each += float64(s.Nodes) / s.speeds.Values
}

// Records says that the stage reads the node table while its rows are in memory.
func (s *Sheet) Records() { s.runtime = recordsUse }

// Encodes says that the stage writes shards and hop streams, which need more heap than other
// stages.
func (s *Sheet) Encodes() {
	if s.runtime = encodesUse; s.Weighted {
		s.runtime += weightsUse
	}
}

// Scratches adds bytes written to scratch files.
func (s *Sheet) Scratches(bytes int64) {
	s.BytesWritten = min(s.BytesWritten+bytes, hops.MostBytes)
	s.scratch = min(s.scratch+bytes, hops.MostBytes)
}

// ReadK adds reading the K table, which each worker does.
func (s *Sheet) ReadK() {
	s.BytesRead += kRow * s.Nodes
	s.readsTable(1, s.Nodes, kRow, decodedK)
}

// Stored returns the number of smoothed rows.
func (s *Sheet) Stored() int64 {
	if s.Plan.Smooth.Targets == plan.LabelledTargets {
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

// TileBytes returns the size of the tiles of some columns.
func TileBytes(rows int64, columns int, half bool) int64 {
	return rows * int64(packed.Panels(columns)) * int64(shards.TileRowBytes(half))
}

// RowBytes returns the stored size of the rows that models read.
func (s *Sheet) RowBytes() int64 { return s.StoredBytes(s.Output().Trained()) }

// StoredBytes returns the stored size of target rows of so many values.
func (s *Sheet) StoredBytes(values int) int64 { return s.BytesOfRows(s.Stored(), values) }

// BytesOfRows returns the stored size of so many smoothed rows of so many values.
func (s *Sheet) BytesOfRows(rows int64, values int) int64 {
	return SmoothedBytes(s.Plan, rows, values)
}

// SmoothedBytes returns the size of so many smoothed rows of so many values under plan p.
func SmoothedBytes(p plan.Options, rows int64, values int) int64 {
	return rows * (8 + int64(values)*valueBytes(p.HalfSmoothed()))
}

// ReadsRows adds reading rows of tiles, a record batch at a time, beside held bytes.
func (s *Sheet) ReadsRows(held, rows int64, width int, half bool) {
	batch := int(min(int64(shards.BatchRows(width)), rows))
	least := held + tiles.ReadBytes(width, batch, int64(shards.TileRowBytes(half)))
	peak := least
	if more := 4*int64(width)*int64(batch) + 4096; s.Threads > 1 && least+more <= s.Budget() {
		peak += more
	}
	s.Takes(peak, least)
}

// ReadsLists adds joining rows of so many values from tiles of so many columns, a record batch at a
// time, beside held bytes.
func (s *Sheet) ReadsLists(held, rows int64, values, columns int, half bool) {
	s.joins(held, rows, shards.BatchRows(values), values, columns, half)
}

// Joins is [Sheet.ReadsLists] with record batches as small as if a row had all columns.
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

// Interval returns the number of rows whose tiles are joined at a time.
func (s *Sheet) Interval(rows int64) int64 {
	return min(rows, int64(s.Plan.Partition.IntervalBlocks)*partition.BlockRows)
}

// OpenTiles bounds the number of tiles that are written at a time.
const OpenTiles = 8
