package control

import "cmp"

// StageReport is what executing a stage took and found.
type StageReport struct {
	Stage   Stage   `json:"name"`
	Seconds float64 `json:"seconds"`
	// Rows is the number of rows of the stage's output.
	Rows int64 `json:"rows"`
	// Passes counts reads of all shards, each with ColumnsPerPass columns.
	Passes         int `json:"passes"`
	ColumnsPerPass int `json:"columns_per_pass"`
	// EdgesStreamed is the number of directed edges that all passes together
	// read, in KernelSeconds of passing.
	EdgesStreamed int64   `json:"edges_streamed"`
	KernelSeconds float64 `json:"kernel_seconds"`
	// BytesRead and BytesWritten are of the run directory and scratch files.
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
	// NetworkBytes is what workers that share rows sent each other.
	NetworkBytes int64 `json:"network_bytes,omitempty"`
	// PlannedPeak and MeasuredPeak are bytes of memory, MeasuredDisk the most bytes
	// that the run directory and scratch held at a time: with several workers, what the
	// catalogue listed after a phase and the scratch files of one of them.
	PlannedPeak  int64 `json:"planned_peak_bytes"`
	MeasuredPeak int64 `json:"measured_peak_bytes"`
	MeasuredDisk int64 `json:"measured_peak_disk_bytes"`
	// Busy says how many of the threads computed, nil where that was not measured.
	Busy *Busy `json:"busy,omitempty"`
	// Planned is what the stage was expected to take, before it began, nil where
	// the dataset did not state its size.
	Planned *Figures `json:"planned,omitempty"`
	Findings
}

// Busy is how many threads of a worker computed while it worked on a stage, or on parts
// of it. A thread that waits, for the disk or for others, does not compute.
type Busy struct {
	// Threads is how many may compute.
	Threads int `json:"threads"`
	// Mean is how many did, as a mean over the wall time.
	Mean float64 `json:"mean"`
	// Fewer is the share of the wall time in which fewer than Threads did.
	Fewer float64 `json:"fewer"`
}

// Findings are what stages found out. Each is nil unless its stage found it.
type Findings struct {
	// Degrees is set by degrees, LSI by lsi, Deviation by smooth with settled rows,
	// LabelDepth by label-depth, Accuracy by evaluate.
	Degrees    *DegreesReport    `json:"degrees,omitempty"`
	LSI        *LSIReport        `json:"lsi,omitempty"`
	Deviation  *DeviationReport  `json:"deviation,omitempty"`
	LabelDepth *LabelDepthReport `json:"label_depth,omitempty"`
	Accuracy   *AccuracyReport   `json:"accuracy,omitempty"`
}

// Or adds what f lacks and g has.
func (f Findings) Or(g Findings) Findings {
	return Findings{cmp.Or(f.Degrees, g.Degrees), cmp.Or(f.LSI, g.LSI), cmp.Or(f.Deviation, g.Deviation), cmp.Or(f.LabelDepth, g.LabelDepth), cmp.Or(f.Accuracy, g.Accuracy)}
}

// DegreesReport describes how the degrees of nodes and the sizes of components are
// spread.
type DegreesReport struct {
	// Mean and Largest are of the degrees.
	Mean    float64 `json:"mean"`
	Largest int64   `json:"largest"`
	// Degrees counts nodes by degree, Components counts components by their number of
	// nodes. Ranges are in ascending order, without empty ones.
	Degrees    []Range `json:"histogram"`
	Components []Range `json:"components"`
}

// Range counts what lies between two numbers, both included.
type Range struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// DeviationReport compares smoothed rows of --active settled with those of exact
// on a sample of rows, by random combinations of their columns.
type DeviationReport struct {
	// Bound is the mean that was asked for, 0 where slack says when rows settle. K is then
	// found with settled rows, too, and what changes by that is not among the deviations.
	Bound float64 `json:"bound,omitempty"`
	Rows  int64   `json:"rows"`
	// Mean, P99 and Max are of ‖settled − exact‖ / ‖exact‖.
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
	// Edges is what the exact rows of the sample and the choice of rows that settle took, in
	// edges streamed; they are not among the stage's EdgesStreamed.
	Edges int64 `json:"edges"`
}

// LSIReport describes a K table.
type LSIReport struct {
	Mode       string  `json:"mode"`
	Probes     int     `json:"probes"`
	R          float64 `json:"r"`
	Epsilon    float64 `json:"epsilon"`
	Kmax       int     `json:"kmax"`
	Stationary string  `json:"stationary"`
	Mean       float64 `json:"mean"`
	Max        int     `json:"max"`
	// LabelledMax is the largest K of a node with a label.
	LabelledMax int `json:"labelled_max"`
	// ValidationMax is the largest K of a validation node with a label.
	ValidationMax int `json:"validation_max"`
	// CappedShare is the share of nodes that never settled.
	CappedShare float64 `json:"capped_share"`
	// Histogram lists [k, nodes] in ascending order of k, without empty entries.
	Histogram [][2]int64 `json:"histogram"`
}

// LabelDepthReport says how many hops label smoothing makes, and why: for each depth from
// 0, which leaves soft labels as they are, how many validation nodes are classified right.
type LabelDepthReport struct {
	// Chosen is the depth of the predictions: the smallest of those that are best on the
	// validation nodes.
	Chosen int `json:"chosen"`
	// Kmax is the largest depth that could be chosen.
	Kmax int `json:"kmax"`
	// ValidationNodes is the number of nodes that decided. If there is none, Chosen is Kmax.
	ValidationNodes int64 `json:"validation_nodes"`
	// Run is the model of the predictions, Depths is the depth chosen for each model.
	Run    int   `json:"run"`
	Depths []int `json:"depths"`
	// Curve is the validation accuracy of each depth, in order.
	Curve []DepthAccuracy `json:"curve"`
}

// DepthAccuracy is the share of validation nodes that are classified right at a depth.
type DepthAccuracy struct {
	Depth int `json:"depth"`
	// Valid is that of the model of the predictions, Mean is the mean over all models.
	Valid float64 `json:"valid"`
	Mean  float64 `json:"mean"`
}

// AccuracyReport is the share of nodes whose class is predicted right.
type AccuracyReport struct {
	// Base is before label smoothing, Smoothed after it.
	Base     SplitAccuracy `json:"base"`
	Smoothed SplitAccuracy `json:"smoothed,omitzero"`
	// Runs is the number of models behind each mean.
	Runs int `json:"runs"`
}

// SplitAccuracy is the accuracy on each split; a split without nodes is nil.
type SplitAccuracy struct {
	Train *Spread `json:"train,omitempty"`
	Valid *Spread `json:"valid,omitempty"`
	Test  *Spread `json:"test,omitempty"`
}

// Spread is a mean and the sample standard deviation over runs, 0 for one run.
type Spread struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
}

// MemoryReport compares the promise with what the process took.
type MemoryReport struct {
	BudgetBytes  int64 `json:"budget_bytes"`
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}

// Figures are what a stage is planned to take.
type Figures struct {
	Stage Stage `json:"name"`
	// PeakBytes is the memory that the stage takes, LeastBytes the smallest
	// budget with which it runs.
	PeakBytes  int64 `json:"peak_bytes"`
	LeastBytes int64 `json:"least_bytes"`
	// DiskBytes is what the stage adds to the run directory in the end,
	// ScratchBytes what its temporary files take beside that, PeakDiskBytes what
	// run directory and scratch hold at the peak, earlier stages included.
	DiskBytes     int64 `json:"disk_bytes"`
	ScratchBytes  int64 `json:"scratch_bytes"`
	PeakDiskBytes int64 `json:"peak_disk_bytes"`
	// BytesRead and BytesWritten are of the run directory and scratch.
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
	// NetworkBytes is what workers that share rows send each other, all together.
	NetworkBytes int64 `json:"network_bytes,omitempty"`
	Passes       int   `json:"passes"`
	// BytesPerPass is what a pass reads of packed edges, 0 where they stay in memory.
	BytesPerPass   int64   `json:"bytes_per_pass"`
	ColumnsPerPass int     `json:"columns_per_pass"`
	Seconds        float64 `json:"seconds"`
}
