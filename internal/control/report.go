package control

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"ndls/internal/byhop"
	"ndls/plan"
)

// StageReport holds what a stage used and found.
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
	// Hops reports the same for each hop.
	Hops byhop.List `json:"hops,omitempty"`
	// Polynomials says how few passes took the place of hops, nil if none did.
	Polynomials *Polynomials `json:"polynomials,omitempty"`
	// BytesRead and BytesWritten count the run directory and scratch files. BytesRead also counts
	// the run directories whose rows models are trained on.
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
	// NetworkBytes counts the bytes that workers that share rows sent each other.
	NetworkBytes int64 `json:"network_bytes,omitempty"`
	// PlannedPeak and MeasuredPeak are bytes of memory. MeasuredDisk is the largest number of bytes
	// that the run directory and scratch held at a time. With several workers it is the size in the
	// catalogue after a phase plus the scratch files of one of them.
	PlannedPeak  int64 `json:"planned_peak_bytes"`
	MeasuredPeak int64 `json:"measured_peak_bytes"`
	MeasuredDisk int64 `json:"measured_peak_disk_bytes"`
	// Busy reports how many of the threads computed, nil if that was not measured.
	Busy *Busy `json:"busy,omitempty"`
	// Planned is the estimate of the stage before it began, nil if the dataset did not state its
	// size.
	Planned *Figures `json:"planned,omitempty"`
	Findings
}

// Polynomials says how rows were made of few of Chebyshev's polynomials in place of all hops.
type Polynomials struct {
	// Tolerance is the option: the largest share of the weights of a node's hops that its row leaves out.
	Tolerance float64 `json:"tolerance"`
	// Passes is the number of passes of each column block, Hops the largest number of hops of a node. Nodes with at most as many hops as
	// passes have their rows up to rounding.
	Passes int `json:"passes"`
	Hops   int `json:"hops"`
	// Plain is the number of the first of these passes, which make a hop each. Share is the share of all edges that lead into the rows that
	// the other passes compute: the others stand after the plain hops. It is 1 if none is left out.
	Plain int     `json:"plain,omitempty"`
	Share float64 `json:"share"`
}

// MaxLines bounds the number of lines of a table in a report, whatever the size of the graph.
const MaxLines = byhop.Most

// Busy reports how many threads of a worker computed while it worked on a stage, or on parts of it.
// A thread that waits, for the disk or for others, does not compute.
type Busy struct {
	// Threads is the number of threads that may compute.
	Threads int `json:"threads"`
	// Mean is the mean number of computing threads over the wall time.
	Mean float64 `json:"mean"`
	// Fewer is the share of the wall time in which fewer than Threads computed.
	Fewer float64 `json:"fewer"`
}

// Findings holds the results of stages. Each field is nil unless its stage has set it.
type Findings struct {
	// Stage degrees sets Degrees, lsi LSI, spectrum Spectrum, label-depth
	// LabelDepth, evaluate Accuracy.
	Degrees    *DegreesReport    `json:"degrees,omitempty"`
	LSI        *LSIReport        `json:"lsi,omitempty"`
	Spectrum   *SpectrumReport   `json:"spectrum,omitempty"`
	LabelDepth *LabelDepthReport `json:"label_depth,omitempty"`
	Accuracy   *AccuracyReport   `json:"accuracy,omitempty"`
}

// Or returns f with its missing fields copied from g.
func (f Findings) Or(g Findings) Findings {
	return Findings{
		cmp.Or(f.Degrees, g.Degrees), cmp.Or(f.LSI, g.LSI), cmp.Or(f.Spectrum, g.Spectrum),
		cmp.Or(f.LabelDepth, g.LabelDepth), cmp.Or(f.Accuracy, g.Accuracy),
	}
}

// DegreesReport describes the distribution of the degrees of nodes and of the sizes of components.
type DegreesReport struct {
	// Mean and Largest describe the degrees.
	Mean    float64 `json:"mean"`
	Largest int64   `json:"largest"`
	// Degrees counts nodes by degree, Components counts components by their number of
	// nodes. Ranges are in ascending order, without empty ones.
	Degrees    []Range `json:"histogram"`
	Components []Range `json:"components"`
}

// Range counts values between two numbers, both included.
type Range struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Count int64 `json:"count"`
}

// LSIReport describes a K table.
type LSIReport struct {
	Mode       string  `json:"mode"`
	Probes     int     `json:"probes"`
	Directions int     `json:"directions,omitempty"`
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
	// Uncertain counts the nodes whose K may differ from that of hops that are all made one by one, because their distance comes so near ε
	// that what polynomials leave out decides. It is 0 if every hop was made.
	Uncertain int64 `json:"uncertain,omitempty"`
	// Histogram lists [k, nodes] in ascending order of k, without empty entries.
	Histogram [][2]int64 `json:"histogram"`
	// ByDegree reports K by degree, in ascending order of degree, without empty ranges.
	ByDegree []DegreeK `json:"by_degree,omitempty"`
	// Sample holds the distances of some nodes.
	Sample []SampledNode `json:"sample,omitempty"`
}

// DegreeK describes K of the nodes with a degree between From and To, both included: the mean, and
// the smallest K that a tenth, half and nine tenths of them do not exceed.
type DegreeK struct {
	From      int64   `json:"from"`
	To        int64   `json:"to"`
	Nodes     int64   `json:"nodes"`
	Mean      float64 `json:"mean"`
	Tenth     int     `json:"p10"`
	Median    int     `json:"median"`
	Ninetieth int     `json:"p90"`
}

// SampledNode holds the distance of a node's influence row to the stationary row after each hop,
// from hop 0 to hop K. The distances are estimated by the probes if K is.
type SampledNode struct {
	Node     string    `json:"node"` // its input id
	Degree   int64     `json:"degree"`
	K        int       `json:"k"`
	Distance []float64 `json:"distance"`
}

// SpectrumReport describes the second largest eigenvalue of Â in absolute value, λ₂, in the largest
// component.
type SpectrumReport struct {
	// Component is the number of nodes of that component, Components the number of components.
	Component  int64 `json:"component_nodes"`
	Components int64 `json:"components"`
	// Lambda2 is |λ₂|; an eigenvalue has an absolute value within Error of it. Hops is the number
	// of hops made to find it.
	Lambda2 float64 `json:"lambda2"`
	Error   float64 `json:"error"`
	Hops    int     `json:"hops"`
	// Bound compares K with the bound of theorem 3.1. If it is nil, WithoutBound says why.
	Bound        *BoundReport `json:"bound,omitempty"`
	WithoutBound string       `json:"without_bound,omitempty"`
}

// BoundReport compares K of the component's nodes with ⌈log_λ₂(ε √(d̃/vol))⌉.
type BoundReport struct {
	// Nodes counts settled nodes, Capped counts the others, which are left out.
	Nodes  int64 `json:"nodes"`
	Capped int64 `json:"capped"`
	// Within is the share of Nodes whose K is at most the bound. It is 1 if K is exact; a sketch
	// may overestimate a distance.
	Within float64 `json:"within"`
	// Slack is the bound minus K.
	Slack Quantiles `json:"slack"`
}

// Quantiles describes a distribution of numbers.
type Quantiles struct {
	Least     int `json:"min"`
	Tenth     int `json:"p10"`
	Median    int `json:"median"`
	Ninetieth int `json:"p90"`
	Most      int `json:"max"`
}

// LabelDepthReport says how many hops label smoothing makes, and why: for each depth from 0, which
// leaves soft labels unchanged, the share of validation nodes classified right.
type LabelDepthReport struct {
	// Chosen is the depth of the model that is best on the validation nodes at its own depth: the
	// smallest of its best depths.
	Chosen int `json:"chosen"`
	// Kmax is the largest depth that could be chosen.
	Kmax int `json:"kmax"`
	// ValidationNodes is the number of nodes that decided. If there is none, Chosen is Kmax.
	ValidationNodes int64 `json:"validation_nodes"`
	// Run is that model, Depths lists the depth chosen for each model, and Mean is the mean over
	// all models of the validation accuracy at their depths. Predictions may come from another
	// model, or from the mean of all ([PredictionsReport]).
	Run    int     `json:"run"`
	Depths []int   `json:"depths"`
	Mean   float64 `json:"mean_valid"`
	// Curve is the validation accuracy of each depth, in order.
	Curve []DepthAccuracy `json:"curve"`
	// Errors has, of labels and numbers, the squared error of a validation node at each depth as the mean over all models, in place of
	// Curve, and MeanError that at the depths chosen for each model.
	Errors    []float64 `json:"errors,omitempty"`
	MeanError float64   `json:"mean_error,omitempty"`
}

// String returns one line with the number of hops and their effect: "0 to 5 hops, chosen for each
// model; 91.21 % → 97.58 % on validation".
func (d *LabelDepthReport) String() string {
	least, most := slices.Min(d.Depths), slices.Max(d.Depths)
	text := fmt.Sprintf("%d hops", most)
	if most == 1 && least == most {
		text = "1 hop"
	}
	if least < most {
		text = fmt.Sprintf("%d to %s", least, text)
	}
	if !d.Chose() {
		return text
	}
	if len(d.Depths) > 1 {
		text += ", chosen for each model"
	}
	if len(d.Errors) > 0 {
		return fmt.Sprintf("%s; squared error %.4g → %.4g on validation", text, d.Errors[0], d.MeanError)
	}
	return fmt.Sprintf("%s; %.2f %% → %.2f %% on validation", text, 100*d.Curve[0].Mean, 100*d.Mean)
}

// Chose reports whether validation nodes chose the depths.
func (d *LabelDepthReport) Chose() bool { return len(d.Curve)+len(d.Errors) > 0 }

// DepthAccuracy is the share of validation nodes that are classified right at a depth.
type DepthAccuracy struct {
	Depth int `json:"depth"`
	// Valid is the accuracy of the model Run, Mean the mean over all models.
	Valid float64 `json:"valid"`
	Mean  float64 `json:"mean"`
}

// AccuracyReport reports the share of nodes whose class is predicted right, and other measures of
// the same predictions.
type AccuracyReport struct {
	// Base is measured before label smoothing, Smoothed after it.
	Base     SplitAccuracy `json:"base"`
	Smoothed SplitAccuracy `json:"smoothed,omitzero"`
	// Runs is the number of models of a split, Splits the number of splits: each mean is over
	// Runs times Splits models.
	Runs   int `json:"runs"`
	Splits int `json:"splits,omitempty"`
	// Metrics holds further measures, over all models.
	Metrics Metrics[*Spread] `json:"metrics,omitzero"`
	// Models holds the figures of each model, split by split.
	Models []ModelAccuracy `json:"models,omitempty"`
	// Predictions says which predictions are written, and how good they are.
	Predictions *PredictionsReport `json:"predictions,omitempty"`
	// Classes holds the figures of each class for the written predictions, on the test nodes of the
	// first split: after label smoothing if labels are smoothed.
	Classes []ClassFigures `json:"classes,omitempty"`
	// Breakdown says for which test nodes the predictions are right.
	Breakdown *BreakdownReport `json:"breakdown,omitempty"`
	// Warnings lists what a user should know of the models before trusting the figures.
	Warnings []string `json:"warnings,omitempty"`
}

// GivenPredictions are the smoothed soft labels of another model.
const GivenPredictions = "given"

// PredictionsReport says which predictions are written, and how good they are on the nodes of the first split.
type PredictionsReport struct {
	// Kind is OfModel, plan.MeanOfModels or GivenPredictions.
	Kind string `json:"kind"`
	// Files names the files that hold them: predictions, or soft_labels if labels are not smoothed.
	Files string `json:"files"`
	// Model is the number of the model, Models the number of models of a mean, Depth the largest
	// number of hops of the model's label smoothing.
	Model  *int `json:"model,omitempty"`
	Models int  `json:"models,omitempty"`
	Depth  *int `json:"depth,omitempty"`
	// Measure names the measure that chose them on the validation nodes.
	Measure  string             `json:"measure"`
	Accuracy OfSplits[*float64] `json:"accuracy"`
	Metrics  Measures[*float64] `json:"metrics,omitzero"`
}

// String returns one line with the written predictions and their accuracy: "predictions: model 5,
// valid 97.00 %, test 92.80 %".
func (p *PredictionsReport) String() string {
	text := strings.ReplaceAll(p.Files, "_", " ") + ": "
	switch {
	case p.Kind == plan.MeanOfModels:
		text += fmt.Sprintf("mean of %d models", p.Models)
	case p.Model != nil:
		text += fmt.Sprintf("model %d", *p.Model)
	default:
		text += "those of another model"
	}
	write := func(before, format string, factor float64, x OfSplits[*float64]) {
		for _, s := range []struct {
			name string
			x    *float64
		}{{"valid", x.Valid}, {"test", x.Test}} {
			if s.x != nil {
				text += fmt.Sprintf("%s%s "+format, before, s.name, factor**s.x)
				before = ", "
			}
		}
	}
	write(", ", "%.2f %%", 100, p.Accuracy)
	format, factor := "%.2f %%", 100.0
	if p.Measure == plan.Determination {
		format, factor = "%.4f", 1
	}
	write("; "+MeasureName(p.Measure)+" ", format, factor, p.Metrics.Of(p.Measure))
	return text
}

// MeasureName returns the name of a measure in words.
func MeasureName(measure string) string {
	switch measure {
	case plan.MacroF1:
		return "macro F1"
	case plan.AUC:
		return "ROC AUC"
	case plan.Precision:
		return "average precision"
	case plan.Determination:
		return "R²"
	}
	return measure
}

// SplitAccuracy is the accuracy on each split; a split without nodes is nil.
type SplitAccuracy = OfSplits[*Spread]

// OfSplits holds a figure for each part of the evaluation, nil for a part without nodes.
type OfSplits[T any] struct {
	Train T `json:"train,omitempty"`
	Valid T `json:"valid,omitempty"`
	Test  T `json:"test,omitempty"`
}

// Metrics holds measures before and after label smoothing.
type Metrics[T any] struct {
	Base     Measures[T] `json:"base,omitzero"`
	Smoothed Measures[T] `json:"smoothed,omitzero"`
}

// Measures holds measures beside accuracy.
type Measures[T any] struct {
	// MacroF1 is the mean of F1 over the classes.
	MacroF1 OfSplits[T] `json:"macro_f1,omitzero"`
	// AUC is the area under the ROC curve. For two classes it is the area of the second; for more
	// it is the mean over the classes that some nodes have and some have not. It is present if
	// --metrics asked for it.
	AUC OfSplits[T] `json:"roc_auc,omitzero"`
	// Precision is the average precision with --task labels, the mean over the labels that some nodes have and some have not.
	Precision OfSplits[T] `json:"average_precision,omitzero"`
	// Determination is R² with --task regression, and MeanError the mean absolute error, in units of the numbers. Both are means over the
	// columns.
	Determination OfSplits[T] `json:"r2,omitzero"`
	MeanError     OfSplits[T] `json:"mean_absolute_error,omitzero"`
}

// Of returns a measure by its name in a plan, the zero value for accuracy.
func (m Measures[T]) Of(measure string) OfSplits[T] {
	switch measure {
	case plan.MacroF1:
		return m.MacroF1
	case plan.AUC:
		return m.AUC
	case plan.Precision:
		return m.Precision
	case plan.Determination:
		return m.Determination
	}
	return OfSplits[T]{}
}

// MeanErrorName is the name of the measure of which less is better.
const MeanErrorName = "mean absolute error"

// Figure is a measure of all models.
type Figure struct {
	// Name is the name of the measure in words. Unit multiplies the values that are shown: 100 for shares.
	Name           string
	Unit           float64
	Base, Smoothed SplitAccuracy
}

// Figures lists the measures that the models have, in the order in which they are shown: accuracy first, which numbers do not have.
func (a *AccuracyReport) Figures() (list []Figure) {
	base, smoothed := a.Metrics.Base, a.Metrics.Smoothed
	for _, f := range []Figure{
		{"accuracy", 100, a.Base, a.Smoothed},
		{"macro F1", 100, base.MacroF1, smoothed.MacroF1},
		{"ROC AUC", 100, base.AUC, smoothed.AUC},
		{"average precision", 100, base.Precision, smoothed.Precision},
		{"R²", 1, base.Determination, smoothed.Determination},
		{MeanErrorName, 1, base.MeanError, smoothed.MeanError},
	} {
		if f.Base != (SplitAccuracy{}) {
			list = append(list, f)
		}
	}
	return list
}

// ModelAccuracy holds the figures of a model.
type ModelAccuracy struct {
	// Split and Run count from 0; models of the same run number and seed start from the
	// same weights in every split.
	Split    int                `json:"split"`
	Run      int                `json:"run"`
	Seed     uint64             `json:"seed"`
	Base     OfSplits[*float64] `json:"base"`
	Smoothed OfSplits[*float64] `json:"smoothed,omitzero"`
	// Epochs is the number of epochs of training. BestEpoch, counted from 1, is the epoch whose
	// weights were kept.
	Epochs    int               `json:"epochs,omitempty"`
	BestEpoch int               `json:"best_epoch,omitempty"`
	Metrics   Metrics[*float64] `json:"metrics,omitzero"`
	// ValidLoss is the mean negative log-likelihood of the validation nodes before label smoothing, for models of a search alone.
	ValidLoss *float64 `json:"valid_loss,omitempty"`
	// Curve describes the course of training. Only the first models have one. If there are many
	// epochs, it holds some of them.
	Curve []LearningPoint `json:"curve,omitempty"`
}

// LearningPoint describes an epoch of training, counted from 1: the mean loss of the training
// nodes, and the best validation accuracy so far.
type LearningPoint struct {
	Epoch int     `json:"epoch"`
	Loss  float64 `json:"loss"`
	Valid float64 `json:"valid"`
}

// BreakdownReport counts the labelled test nodes of the first split, and those that the written
// predictions classify right: after label smoothing if labels are smoothed.
type BreakdownReport struct {
	// Degrees and K are in ascending order, without empty ranges. K is empty if a graph has no K.
	Degrees []RangeRight `json:"by_degree"`
	K       []RangeRight `json:"by_k,omitempty"`
	// Confusion counts nodes by class and predicted class.
	Confusion ConfusionReport `json:"confusion"`
}

// RangeRight counts nodes between two numbers, both included, and those of them that are classified
// right.
type RangeRight struct {
	From  int64 `json:"from"`
	To    int64 `json:"to"`
	Nodes int64 `json:"nodes"`
	Right int64 `json:"right"`
}

// ConfusionReport counts nodes: one row for each class, one column for each predicted class.
type ConfusionReport struct {
	// Classes names the classes with the most nodes, in their order. Others is the number of
	// classes that the last row and the last column combine.
	Classes []string  `json:"classes"`
	Others  int       `json:"others,omitempty"`
	Counts  [][]int64 `json:"counts"`
}

// ClassFigures describes the predictions of a class.
type ClassFigures struct {
	Class     string  `json:"class"`
	Nodes     int64   `json:"nodes"` // nodes with the class
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
}

// Spread holds a mean and the sample standard deviation over all models, 0 for one model.
type Spread struct {
	Mean float64 `json:"mean"`
	Std  float64 `json:"std"`
	// With several splits, BetweenModels is the standard deviation between models of the same split
	// (the variance is the mean over splits), and BetweenSplits the standard deviation of the
	// splits' means.
	BetweenModels float64 `json:"std_between_models,omitempty"`
	BetweenSplits float64 `json:"std_between_splits,omitempty"`
}

// SpreadOf returns the spread of a figure of models that are ordered by split, as many of each split; 0 without models.
func SpreadOf(x []float64, splits int) *Spread {
	s := &Spread{}
	s.Mean, s.Std = meanStd(x)
	if splits == 1 {
		return s
	}
	var means []float64
	variance := 0.0
	for of := range slices.Chunk(x, len(x)/splits) {
		mean, std := meanStd(of)
		means = append(means, mean)
		variance += float64(std * std)
	}
	s.BetweenModels = math.Sqrt(variance / float64(splits))
	_, s.BetweenSplits = meanStd(means)
	return s
}

func meanStd(x []float64) (mean, std float64) {
	switch len(x) {
	case 0:
		return 0, 0
	case 1:
		return x[0], 0
	}
	return stat.MeanStdDev(x, nil)
}

// Spreads returns the spread of a figure over models, by part; nil if a model lacks it.
func Spreads(models []OfSplits[*float64], splits int) SplitAccuracy {
	of := func(part func(OfSplits[*float64]) *float64) *Spread {
		var x []float64
		for _, m := range models {
			figure := part(m)
			if figure == nil {
				return nil
			}
			x = append(x, *figure)
		}
		return SpreadOf(x, splits)
	}
	return SplitAccuracy{
		Train: of(func(x OfSplits[*float64]) *float64 { return x.Train }),
		Valid: of(func(x OfSplits[*float64]) *float64 { return x.Valid }),
		Test:  of(func(x OfSplits[*float64]) *float64 { return x.Test }),
	}
}

// MemoryReport compares the budget with the measured memory of the process.
type MemoryReport struct {
	BudgetBytes  int64 `json:"budget_bytes"`
	PeakRSSBytes int64 `json:"peak_rss_bytes"`
}

// Figures holds the planned cost of a stage.
type Figures struct {
	Stage Stage `json:"name"`
	// PeakBytes is the memory that the stage uses, LeastBytes the smallest budget with which it
	// runs.
	PeakBytes  int64 `json:"peak_bytes"`
	LeastBytes int64 `json:"least_bytes"`
	// DiskBytes is the final growth of the run directory. ScratchBytes is the size of temporary
	// files beside that. PeakDiskBytes is the largest size of run directory and scratch, earlier
	// stages included.
	DiskBytes     int64 `json:"disk_bytes"`
	ScratchBytes  int64 `json:"scratch_bytes"`
	PeakDiskBytes int64 `json:"peak_disk_bytes"`
	// BytesRead and BytesWritten count the run directory and scratch.
	BytesRead    int64 `json:"bytes_read"`
	BytesWritten int64 `json:"bytes_written"`
	// NetworkBytes counts the bytes that all workers that share rows send each other.
	NetworkBytes int64 `json:"network_bytes,omitempty"`
	Passes       int   `json:"passes"`
	// BytesPerPass is the number of bytes of packed edges that a pass reads, 0 if they stay in
	// memory.
	BytesPerPass   int64   `json:"bytes_per_pass"`
	ColumnsPerPass int     `json:"columns_per_pass"`
	Seconds        float64 `json:"seconds"`
	// Lean says that the stage leaves out temporary files that only save time. Spare is the number
	// of bytes that copies of edges may use all the same.
	Lean  bool  `json:"lean,omitempty"`
	Spare int64 `json:"spare,omitempty"`
	// GroupSize is the number of workers that share the rows of a block of columns, 0 if each has
	// all rows.
	GroupSize int `json:"group_size,omitempty"`
}

// Loss describes work that has to be done again: the work of a lost or failed worker since the
// task's last checkpoint.
type Loss struct {
	Task   string `json:"task"`
	Worker string `json:"worker"`
	Reason string `json:"reason"`
	// SecondsLost is the time from the last commit, or the beginning, to the last sign of life.
	// UnitsLost counts the same in Unit, as the task's progress does.
	SecondsLost float64 `json:"seconds_lost"`
	UnitsLost   int64   `json:"units_lost,omitempty"`
	Unit        string  `json:"unit,omitempty"`
}

// InputFile describes a file of the dataset at the time when the partition read it.
type InputFile struct {
	// Path is the path that the command named.
	Path     string    `json:"path"`
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified,omitzero"`
	// Device, Inode and Changed are the same later if and only if the file has the same bytes. They
	// are missing if the file system does not guarantee that; the bytes are then compared.
	Device  uint64    `json:"device,omitempty"`
	Inode   uint64    `json:"inode,omitempty"`
	Changed time.Time `json:"changed,omitzero"`
	// Version is the version of a file in an object store, which has no digest here.
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"`
}
