package control

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"ndls/internal/byhop"
)

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
	// Hops says the same of each hop.
	Hops byhop.List `json:"hops,omitempty"`
	// BytesRead and BytesWritten are of the run directory and scratch files, and BytesRead of the
	// run directories whose rows models are trained on.
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

// MaxLines is how many lines a table of a report has at most, whatever the size of the graph.
const MaxLines = byhop.Most

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
	// Degrees is set by degrees, LSI by lsi, Spectrum by spectrum, Deviation by smooth with settled rows,
	// LabelDepth by label-depth, Accuracy by evaluate.
	Degrees    *DegreesReport    `json:"degrees,omitempty"`
	LSI        *LSIReport        `json:"lsi,omitempty"`
	Spectrum   *SpectrumReport   `json:"spectrum,omitempty"`
	Deviation  *DeviationReport  `json:"deviation,omitempty"`
	LabelDepth *LabelDepthReport `json:"label_depth,omitempty"`
	Accuracy   *AccuracyReport   `json:"accuracy,omitempty"`
}

// Or adds what f lacks and g has.
func (f Findings) Or(g Findings) Findings {
	return Findings{cmp.Or(f.Degrees, g.Degrees), cmp.Or(f.LSI, g.LSI), cmp.Or(f.Spectrum, g.Spectrum), cmp.Or(f.Deviation, g.Deviation), cmp.Or(f.LabelDepth, g.LabelDepth), cmp.Or(f.Accuracy, g.Accuracy)}
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
	// Edges is what the exact rows of the sample took, in edges streamed, where slack says when
	// rows settle; they are not among the stage's EdgesStreamed. What the program reads to choose
	// when rows settle is among those, and has the exact rows.
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
	// ByDegree is K by degree, in ascending order of degree, without empty ranges.
	ByDegree []DegreeK `json:"by_degree,omitempty"`
	// Sample has the distances of some nodes.
	Sample []SampledNode `json:"sample,omitempty"`
}

// DegreeK is K of the nodes whose degree lies between From and To, both included: the mean, and the smallest K that
// a tenth, half and nine tenths of them do not exceed.
type DegreeK struct {
	From      int64   `json:"from"`
	To        int64   `json:"to"`
	Nodes     int64   `json:"nodes"`
	Mean      float64 `json:"mean"`
	Tenth     int     `json:"p10"`
	Median    int     `json:"median"`
	Ninetieth int     `json:"p90"`
}

// SampledNode is a node with the distance of its influence row to the stationary row after each hop,
// from hop 0 to hop K: estimated by the probes where K is.
type SampledNode struct {
	Node     string    `json:"node"` // its input id
	Degree   int64     `json:"degree"`
	K        int       `json:"k"`
	Distance []float64 `json:"distance"`
}

// SpectrumReport is the second largest eigenvalue of Â in absolute value, λ₂, in the largest
// component.
type SpectrumReport struct {
	// Component is the number of nodes of that component, Components how many there are.
	Component  int64 `json:"component_nodes"`
	Components int64 `json:"components"`
	// Lambda2 is |λ₂|; an eigenvalue has an absolute value within Error of it. Hops is how many
	// hops it took.
	Lambda2 float64 `json:"lambda2"`
	Error   float64 `json:"error"`
	Hops    int     `json:"hops"`
	// Bound compares K with the bound of theorem 3.1. Without it, WithoutBound says why.
	Bound        *BoundReport `json:"bound,omitempty"`
	WithoutBound string       `json:"without_bound,omitempty"`
}

// BoundReport compares K of the component's nodes with ⌈log_λ₂(ε √(d̃/vol))⌉.
type BoundReport struct {
	// Nodes is how many settled, Capped how many did not, and are left out.
	Nodes  int64 `json:"nodes"`
	Capped int64 `json:"capped"`
	// Within is the share of Nodes whose K is not above the bound. All of them are where K is
	// exact; a sketch may overestimate a distance.
	Within float64 `json:"within"`
	// Slack is the bound minus K.
	Slack Quantiles `json:"slack"`
}

// Quantiles describe how numbers are spread.
type Quantiles struct {
	Least     int `json:"min"`
	Tenth     int `json:"p10"`
	Median    int `json:"median"`
	Ninetieth int `json:"p90"`
	Most      int `json:"max"`
}

// LabelDepthReport says how many hops label smoothing makes, and why: for each depth from
// 0, which leaves soft labels as they are, how many validation nodes are classified right.
type LabelDepthReport struct {
	// Chosen is the depth of the model that is best at its depth on the validation nodes: the smallest of those that are best
	// there.
	Chosen int `json:"chosen"`
	// Kmax is the largest depth that could be chosen.
	Kmax int `json:"kmax"`
	// ValidationNodes is the number of nodes that decided. If there is none, Chosen is Kmax.
	ValidationNodes int64 `json:"validation_nodes"`
	// Run is that model, Depths is the depth chosen for each model, and Mean the mean over all models of the validation
	// accuracy at their depths. Predictions may be of another model, or the mean of all ([PredictionsReport]).
	Run    int     `json:"run"`
	Depths []int   `json:"depths"`
	Mean   float64 `json:"mean_valid"`
	// Curve is the validation accuracy of each depth, in order.
	Curve []DepthAccuracy `json:"curve"`
}

// String says in a line how many hops there are, and what they bring: "0 to 5 hops, chosen for each model; 91.21 % → 97.58 % on
// validation".
func (d *LabelDepthReport) String() string {
	least, most := slices.Min(d.Depths), slices.Max(d.Depths)
	text := fmt.Sprintf("%d hops", most)
	if most == 1 && least == most {
		text = "1 hop"
	}
	if least < most {
		text = fmt.Sprintf("%d to %s", least, text)
	}
	if len(d.Curve) == 0 {
		return text
	}
	if len(d.Depths) > 1 {
		text += ", chosen for each model"
	}
	return fmt.Sprintf("%s; %.2f %% → %.2f %% on validation", text, 100*d.Curve[0].Mean, 100*d.Mean)
}

// DepthAccuracy is the share of validation nodes that are classified right at a depth.
type DepthAccuracy struct {
	Depth int `json:"depth"`
	// Valid is that of the model Run, Mean is the mean over all models.
	Valid float64 `json:"valid"`
	Mean  float64 `json:"mean"`
}

// AccuracyReport is the share of nodes whose class is predicted right, and other measures of
// the same predictions.
type AccuracyReport struct {
	// Base is before label smoothing, Smoothed after it.
	Base     SplitAccuracy `json:"base"`
	Smoothed SplitAccuracy `json:"smoothed,omitzero"`
	// Runs is the number of models of a split, Splits the number of splits: each mean is over
	// Runs times Splits models.
	Runs   int `json:"runs"`
	Splits int `json:"splits,omitempty"`
	// Metrics are further measures, over all models.
	Metrics Metrics[*Spread] `json:"metrics,omitzero"`
	// Models are the figures of each model, split by split.
	Models []ModelAccuracy `json:"models,omitempty"`
	// Predictions says which predictions are written, and how good they are.
	Predictions *PredictionsReport `json:"predictions,omitempty"`
	// Classes are the figures of each class, by the predictions that are written, on the test
	// nodes of the first split: after label smoothing, where labels are smoothed.
	Classes []ClassFigures `json:"classes,omitempty"`
	// Breakdown says of which test nodes the predictions are right.
	Breakdown *BreakdownReport `json:"breakdown,omitempty"`
	// Warnings are what a user should know of the models before trusting the figures.
	Warnings []string `json:"warnings,omitempty"`
}

// GivenPredictions are the soft labels of another model, smoothed.
const GivenPredictions = "given"

// PredictionsReport says which predictions are written, and how good they are on the nodes of the first split.
type PredictionsReport struct {
	// Kind is OfModel, MeanOfModels or GivenPredictions.
	Kind string `json:"kind"`
	// Files is where they are: predictions, or, where labels are not smoothed, soft_labels.
	Files string `json:"files"`
	// Model is the number of the model, Models that of the models of a mean, Depth how many hops the label smoothing of the model
	// makes at most.
	Model  *int `json:"model,omitempty"`
	Models int  `json:"models,omitempty"`
	Depth  *int `json:"depth,omitempty"`
	// Measure is by what they were chosen on the validation nodes.
	Measure  string             `json:"measure"`
	Accuracy OfSplits[*float64] `json:"accuracy"`
	Metrics  Measures[*float64] `json:"metrics,omitzero"`
}

// String says in a line which predictions are written, and how good they are: "predictions: model 5, valid 97.00 %, test 92.80 %".
func (p *PredictionsReport) String() string {
	text := strings.ReplaceAll(p.Files, "_", " ") + ": "
	switch {
	case p.Kind == MeanOfModels:
		text += fmt.Sprintf("mean of %d models", p.Models)
	case p.Model != nil:
		text += fmt.Sprintf("model %d", *p.Model)
	default:
		text += "those of another model"
	}
	put := func(before string, x OfSplits[*float64]) {
		for _, s := range []struct {
			name string
			x    *float64
		}{{"valid", x.Valid}, {"test", x.Test}} {
			if s.x != nil {
				text += fmt.Sprintf("%s%s %.2f %%", before, s.name, 100**s.x)
				before = ", "
			}
		}
	}
	put(", ", p.Accuracy)
	switch p.Measure {
	case MacroF1:
		put("; "+MeasureName(p.Measure)+" ", p.Metrics.MacroF1)
	case AUC:
		put("; "+MeasureName(p.Measure)+" ", p.Metrics.AUC)
	}
	return text
}

// MeasureName is a measure in words.
func MeasureName(measure string) string {
	switch measure {
	case MacroF1:
		return "macro F1"
	case AUC:
		return "ROC AUC"
	}
	return measure
}

// SplitAccuracy is the accuracy on each split; a split without nodes is nil.
type SplitAccuracy = OfSplits[*Spread]

// OfSplits is a figure for each part of the evaluation, nil for one without nodes.
type OfSplits[T any] struct {
	Train T `json:"train,omitempty"`
	Valid T `json:"valid,omitempty"`
	Test  T `json:"test,omitempty"`
}

// Metrics are measures before and after label smoothing.
type Metrics[T any] struct {
	Base     Measures[T] `json:"base,omitzero"`
	Smoothed Measures[T] `json:"smoothed,omitzero"`
}

// Measures are measures beside accuracy.
type Measures[T any] struct {
	// MacroF1 is the mean of F1 over the classes.
	MacroF1 OfSplits[T] `json:"macro_f1,omitzero"`
	// AUC is the area under the ROC curve: of two classes that of the second, of more
	// classes the mean over those that some nodes have and some have not. It is there if
	// --metrics asked for it.
	AUC OfSplits[T] `json:"roc_auc,omitzero"`
}

// ModelAccuracy are the figures of a model.
type ModelAccuracy struct {
	// Split and Run count from 0; models of the same run number and seed start from the
	// same weights in every split.
	Split    int                `json:"split"`
	Run      int                `json:"run"`
	Seed     uint64             `json:"seed"`
	Base     OfSplits[*float64] `json:"base"`
	Smoothed OfSplits[*float64] `json:"smoothed,omitzero"`
	// Epochs is how many the model was trained for, BestEpoch, counted from 1, the one whose
	// weights it has.
	Epochs    int               `json:"epochs,omitempty"`
	BestEpoch int               `json:"best_epoch,omitempty"`
	Metrics   Metrics[*float64] `json:"metrics,omitzero"`
	// Curve says how training went. Only the first models have one. Where there are many epochs, it has
	// some of them.
	Curve []LearningPoint `json:"curve,omitempty"`
}

// LearningPoint is an epoch of training, counted from 1: the mean loss of the training nodes, and
// the best validation accuracy so far.
type LearningPoint struct {
	Epoch int     `json:"epoch"`
	Loss  float64 `json:"loss"`
	Valid float64 `json:"valid"`
}

// BreakdownReport counts the test nodes of the first split that have a label, and how many of them
// the predictions that are written classify right: after label smoothing, where labels are smoothed.
type BreakdownReport struct {
	// Degrees and K are without empty ranges, in ascending order. K is empty where a graph has no K.
	Degrees []RangeRight `json:"by_degree"`
	K       []RangeRight `json:"by_k,omitempty"`
	// Confusion counts nodes by class and predicted class.
	Confusion ConfusionReport `json:"confusion"`
}

// RangeRight counts nodes between two numbers, both included, and those of them that are
// classified right.
type RangeRight struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Nodes int64 `json:"nodes"`
	Right int64 `json:"right"`
}

// ConfusionReport counts nodes: a row for each class that they have, a column for each that is
// predicted.
type ConfusionReport struct {
	// Classes names the classes with the most nodes, in their order; Others says how many classes
	// the last row and the last column put together.
	Classes []string  `json:"classes"`
	Others  int       `json:"others,omitempty"`
	Counts  [][]int64 `json:"counts"`
}

// ClassFigures are what was predicted of a class.
type ClassFigures struct {
	Class     string  `json:"class"`
	Nodes     int64   `json:"nodes"` // that have the class
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Spread is a mean and the sample standard deviation over all models, 0 for one model.
type Spread struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	// Where there are several splits: BetweenModels is the standard deviation between models
	// of the same split, the variance being the mean over splits, and BetweenSplits that of
	// the splits' means.
	BetweenModels float64 `json:"std_between_models,omitempty"`
	BetweenSplits float64 `json:"std_between_splits,omitempty"`
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
	// Lean says that the stage leaves out temporary files that save time, Spare how many bytes
	// copies of edges may take all the same.
	Lean  bool  `json:"lean,omitempty"`
	Spare int64 `json:"spare,omitempty"`
	// GroupSize is how many workers share the rows of a block of columns, 0 where each has all rows.
	GroupSize int `json:"group_size,omitempty"`
}

// Loss is work that has to be done again: that of a worker that was lost, or
// failed, since the task's last checkpoint.
type Loss struct {
	Task   string `json:"task"`
	Worker string `json:"worker"`
	Reason string `json:"reason"`
	// SecondsLost runs from the last commit, or the begin, to the last sign of
	// life; UnitsLost counts Unit, as the task's progress does.
	SecondsLost float64 `json:"seconds_lost"`
	UnitsLost   int64   `json:"units_lost,omitempty"`
	Unit        string  `json:"unit,omitempty"`
}

// InputFile is a file of the dataset as the partition has read it.
type InputFile struct {
	// Path is the file as the command named it.
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	// Device, Inode and Changed are the same later if and only if the file has the same bytes. They are missing where
	// the file system does not see to that: its bytes are then compared.
	Device  uint64    `json:"device,omitempty"`
	Inode   uint64    `json:"inode,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	// Version is that of a file in an object store, which has no digest here.
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}
