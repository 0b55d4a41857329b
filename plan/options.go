package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Format is the version of the fields of [Options] and of their meaning.
const Format = 3

// Options decide the bytes of a run directory.
type Options struct {
	Format int    `json:"format"`
	Seed   uint64 `json:"seed"`
	// Precision is "float32" or "float16": the precision of rows between hops, and of written
	// smoothed rows unless Smooth.SmoothedPrecision names another. Sums are float32.
	Precision string `json:"precision"`
	// Probabilities says which probabilities are written for each node: "all", those of all
	// classes, or "best", that of the predicted class alone. "" stands for "all".
	Probabilities string `json:"probabilities,omitempty"`
	// Predictions says which predictions are written: "model", of the model that is best on the
	// validation nodes; "mean", of the mean of the soft labels of all models of the first split; or
	// "auto", the better of the two there. "" stands for "auto".
	Predictions string `json:"predictions,omitempty"`
	// Tolerance is the share of the weights of a node's hops that sums of hops may leave out, so that few of Chebyshev's polynomials
	// take the place of many hops. 0 makes every hop of every row.
	Tolerance float64 `json:"tolerance"`
	// Metrics lists, separated by commas, measures of predictions among [Options.Measures]. Accuracy and
	// f1 are always computed. The first one named chooses weights, unless Train.Choose says
	// otherwise, and predictions on the validation nodes.
	Metrics string `json:"metrics,omitempty"`
	// DropFeatures removes the tiles of input features after they are smoothed. It does not change
	// smoothed rows or later output.
	DropFeatures bool `json:"drop_features,omitempty"`
	// DropSmoothed removes the smoothed rows that models read after labels are smoothed.
	DropSmoothed bool             `json:"drop_smoothed,omitempty"`
	Partition    PartitionOptions `json:"partition"`
	LSI          LSIOptions       `json:"lsi"`
	Smooth       SmoothOptions    `json:"smooth"`
	Train        TrainOptions     `json:"train"`
	Labels       LabelOptions     `json:"labels"`
}

// PartitionOptions decides the import and the cut into shards.
type PartitionOptions struct {
	// Dataset is the dataset's identity: its URI with base names for paths.
	Dataset string `json:"dataset"`
	// Features is "" to import features, "none" to leave them out.
	Features string `json:"features"`
	// Task is Classification, SeveralLabels or Regression: what the labels of the dataset are. "" stands
	// for Classification.
	Task string `json:"task,omitempty"`
	// Normalize is "auto" (L1 for rows that are bags of a few words whose lengths neighbours do not share), "l1", "none", "log" or "quantile".
	Normalize string `json:"normalize"`
	// Fill is "mean" or "neighbours" to fill missing features, "" to refuse them.
	Fill string `json:"fill,omitempty"`
	// Columns is the checksum of what says how columns become features if another run has found that, "" if the run finds it.
	Columns string `json:"columns,omitempty"`
	// Split is "" for the published split, "random:TRAIN,VALID" nodes of each class, or
	// "share:TRAIN,VALID" shares of all labelled nodes.
	Split string `json:"split"`
	// Splits is the number of splits, 0 for one. Each has models of its own.
	Splits int `json:"splits,omitempty"`
	// LabelsPerClass, if not 0, is the number of training nodes of each class that are drawn in
	// place of the published training nodes. The nodes for validation and test stay.
	LabelsPerClass int `json:"labels_per_class,omitempty"`
	// Only is "" for the whole graph, "train" for the graph of the training nodes, or "train,valid"
	// for the graph of the training and validation nodes.
	Only string `json:"only,omitempty"`
	// DropEdges is the share of edges that are left out. BlankFeatures is the share of nodes whose
	// features become zeros; training nodes with a label keep theirs. The seed draws both.
	DropEdges     float64 `json:"drop_edges,omitempty"`
	BlankFeatures float64 `json:"blank_features,omitempty"`
	// IntervalBlocks is the number of 2^20-row blocks of an interval.
	IntervalBlocks int `json:"interval_blocks"`
	// Shards is "" to write edge shards, the Parquet form of the edges, or "none" to write hop
	// streams alone.
	Shards string `json:"shards,omitempty"`
}

// NoShards reports whether no edge shards are written.
func (o PartitionOptions) NoShards() bool { return o.Shards == "none" }

// LSIOptions decides the K table.
type LSIOptions struct {
	// Mode is influence-sketch, influence-exact, feature or feature-sketch.
	Mode string `json:"mode"`
	// Probes is the number of random columns of the sketch modes, 0 for a number that fits the size
	// of the graph.
	Probes int `json:"probes"`
	// Directions is the number of columns that hold slow directions of the graph beside the random ones of mode influence-sketch, a
	// multiple of 16. With 0 there are none, or as many as fit the size of the graph if Probes is 0, too.
	Directions int `json:"directions,omitempty"`
	// Epsilon is the distance below which a node has settled, R the convolution coefficient.
	Epsilon float64 `json:"epsilon"`
	R       float64 `json:"r"`
	// Kmax is the K of a node that never settles.
	Kmax int `json:"kmax"`
	// Stationary is "component" (appendix A.1) or "global" (equation 2).
	Stationary string `json:"stationary"`
}

// SmoothOptions decides the smoothed features.
type SmoothOptions struct {
	// Rule is ndls, ndls-reference, sgc, s2gc, gbp, appnp, sign, nafs or fastrp.
	Rule string `json:"rule"`
	// Alpha is the residual share of ndls-reference and s2gc, the decay of gbp and the restart
	// of appnp.
	Alpha float64 `json:"alpha"`
	// Residual is the residual share of ndls.
	Residual float64 `json:"residual,omitempty"`
	// Hops is the number of hops of the other rules, or the largest number if Depth is NodeDepth.
	Hops int `json:"hops"`
	// Depth says how these rules choose the number of hops of a node: "" for Hops, or NodeDepth.
	Depth string `json:"depth,omitempty"`
	// Dimensions, HopWeights, DegreePower and Sparsity are the options of fastrp: the width of its
	// rows; the weights of hops 0, 1, … separated by commas; the power of degrees that multiplies
	// its random rows; and the number of their entries for each entry that is not zero. The zero
	// value of each stands for the default.
	Dimensions  int     `json:"dimensions,omitempty"`
	HopWeights  string  `json:"hop_weights,omitempty"`
	DegreePower float64 `json:"degree_power,omitempty"`
	Sparsity    float64 `json:"sparsity,omitempty"`
	// Direction says, in a graph with directions, from where a node gets rows: In, Out or Both. ""
	// stands for In, and is the only value for other graphs.
	Direction string `json:"direction,omitempty"`
	// Targets names the rows that are written: "all", "labelled", or the rows whose input ids a
	// file lists, by its base name and SHA-256.
	Targets string `json:"targets"`
	// KeepHops lists the hops of the targets that are written beside the result of the rule, in the
	// form of [ParseHops]; "" for none.
	KeepHops string `json:"keep_hops,omitempty"`
	// SmoothedPrecision is "float32" or "float16": the precision of written smoothed rows and kept
	// hops. "" stands for Plan.Precision.
	SmoothedPrecision string `json:"smoothed_precision,omitempty"`
	// LabelColumns, if not 0, is the number of parts of the training nodes whose labels are
	// propagated as further columns. A training node gets the labels of the other parts.
	LabelColumns int `json:"label_columns,omitempty"`
}

// TrainOptions decides the model.
type TrainOptions struct {
	// Model is Perceptron or Ridge. "" stands for Perceptron.
	Model string `json:"model,omitempty"`
	// InputNorm is NoNorm, or Standard for columns of mean 0 and deviation 1. "" stands for NoNorm.
	InputNorm string `json:"input_norm,omitempty"`
	Hidden    int    `json:"hidden"`
	// HiddenNorm is the normalisation of hidden values: NoNorm or LayerNorm. "" stands for NoNorm.
	HiddenNorm   string  `json:"hidden_norm,omitempty"`
	Layers       int     `json:"layers"`
	Dropout      float64 `json:"dropout"`
	InputDropout float64 `json:"input_dropout"`
	LR           float64 `json:"lr"`
	WeightDecay  float64 `json:"weight_decay"`
	// Schedule is the schedule of the learning rate: "constant" or "cosine".
	Schedule string `json:"schedule"`
	Epochs   int    `json:"epochs"`
	// Patience is the number of epochs without a better validation result
	// after which training stops; 0 never stops early.
	Patience int `json:"patience"`
	// Choose says what chooses the epoch whose weights are kept: ByMeasure or ByLoss. "" stands for ByMeasure.
	Choose string `json:"choose,omitempty"`
	// BatchSize is the number of rows of a step; 0 takes all of them.
	BatchSize int `json:"batch_size"`
	// Runs is the number of models, each with its own seed.
	Runs int `json:"runs"`
	// On names the rows on which models are trained: the hash of rows of other run directories, ""
	// for the run's own rows.
	On string `json:"on,omitempty"`
}

// These name the models.
const (
	Perceptron = "mlp"
	Ridge      = "ridge"
)

// These name the normalisations of inputs and of hidden values.
const (
	NoNorm    = "none"
	Standard  = "standard"
	LayerNorm = "layer"
)

// These name what chooses the weights of a model.
const (
	ByMeasure = "measure"
	ByLoss    = "loss"
)

// LabelOptions decides label smoothing.
type LabelOptions struct {
	// Rule is ndls, ndls-reference, CorrectSmooth or CorrectSmoothByNode; Alpha is the residual
	// share of ndls-reference.
	Rule  string  `json:"rule"`
	Alpha float64 `json:"alpha"`
	// Epsilon is the distance below which a node has settled for label smoothing, 0 for the
	// distance of the K table. Kmax bounds its hops.
	Epsilon float64 `json:"epsilon"`
	Kmax    int     `json:"kmax"`
	// Depth is the largest number of hops of a node in label smoothing: a number, or AutoDepth. "",
	// which plans of earlier versions have, stands for Kmax.
	Depth string `json:"depth,omitempty"`
	// SoftLabels identifies soft labels of another model, by base name and
	// SHA-256; "" smooths the run's own.
	SoftLabels string `json:"soft_labels"`
	// CorrectScale, CorrectAlpha, CorrectHops and SmoothAlpha are the options of Correct & Smooth:
	// the factor of errors, or AutoScale; the weight of neighbours when errors are propagated, and
	// the number of hops; and the weight of neighbours when labels are propagated. The zero value
	// of each stands for the default.
	CorrectScale string  `json:"cs_scale,omitempty"`
	CorrectAlpha float64 `json:"cs_correct_alpha,omitempty"`
	CorrectHops  int     `json:"cs_correct_hops,omitempty"`
	SmoothAlpha  float64 `json:"cs_smooth_alpha,omitempty"`
}

// Ridge reports whether the models are ridge regressions.
func (o Options) Ridge() bool { return o.Train.Model == Ridge }

// NumRuns is the number of models of each split. A ridge regression, which has no seed, is one.
func (o Options) NumRuns() int {
	if o.Ridge() {
		return 1
	}
	return o.Train.Runs
}

// NumSplits is the number of splits, each of which has models of its own.
func (o Options) NumSplits() int { return max(o.Partition.Splits, 1) }

// These name the tasks: one class for each node, several labels that a node has or has not, or numbers.
const (
	Classification = "classification"
	SeveralLabels  = "labels"
	Regression     = "regression"
)

// Answers reports whether nodes have labels or numbers, each a column, in place of a class.
func (o Options) Answers() bool { return o.Partition.Task != "" && o.Partition.Task != Classification }

// These are the measures. AUC costs more than counting. Precision is the average precision, the area under the curve of precision and
// recall; Determination is R².
const (
	Accuracy      = "accuracy"
	MacroF1       = "f1"
	AUC           = "auc"
	Precision     = "ap"
	Determination = "r2"
)

// MeasureNames lists the measures of all tasks.
var MeasureNames = []string{Accuracy, MacroF1, AUC, Precision, Determination}

// Measures lists the measures of the task. The first one chooses if none is named.
func (o Options) Measures() []string {
	switch o.Partition.Task {
	case SeveralLabels:
		return []string{AUC, Precision, MacroF1, Accuracy}
	case Regression:
		return []string{Determination}
	}
	return []string{Accuracy, MacroF1, AUC}
}

// WantsAUC reports whether areas under the ROC curve are computed, and for several labels average precisions: of classes if the user asks
// for them, of labels always.
func (o Options) WantsAUC() bool {
	return o.Partition.Task == SeveralLabels || slices.Contains(strings.Split(o.Metrics, ","), AUC)
}

// Measure returns the measure that chooses weights and predictions on the validation nodes: the
// first one named.
func (o Options) Measure() string {
	first, _, _ := strings.Cut(o.Metrics, ",")
	return cmp.Or(first, o.Measures()[0])
}

// SomeTargets reports whether the run's own soft labels cover some nodes only, so that they cannot
// be smoothed.
func (o Options) SomeTargets() bool {
	return o.Labels.SoftLabels == "" && o.Smooth.Targets != AllTargets
}

// These are the two forms of Correct & Smooth as a rule of labels: with the same hops for all
// nodes, or with at most K of them for each node.
const (
	CorrectSmooth       = "cs"
	CorrectSmoothByNode = "cs-nd"
)

// These are the defaults of Correct & Smooth for options that a plan leaves open.
const (
	DefaultCorrectHops  = 50
	DefaultCorrectAlpha = 0.8
	DefaultSmoothAlpha  = 0.8
)

// AutoScale scales the error of each node to the size of the errors of training nodes.
const AutoScale = "auto"

// Corrects reports whether labels are corrected and smoothed.
func (o LabelOptions) Corrects() bool {
	return o.Rule == CorrectSmooth || o.Rule == CorrectSmoothByNode
}

// TakesK reports whether a K table bounds the hops of a node.
func (o LabelOptions) TakesK() bool { return o.Rule == "ndls" || o.Rule == CorrectSmoothByNode }

// Correction returns the options of the correction, with defaults: the factor of errors, 0 for
// AutoScale, the weight of neighbours, and the number of hops.
func (o LabelOptions) Correction() (scale, alpha float64, hops int) {
	if o.CorrectScale != AutoScale {
		scale, _ = strconv.ParseFloat(o.CorrectScale, 64)
	}
	return scale, cmp.Or(o.CorrectAlpha, DefaultCorrectAlpha), cmp.Or(o.CorrectHops, DefaultCorrectHops)
}

// These name the probabilities that are written for each node.
const (
	AllProbabilities = "all"
	BestProbability  = "best"
)

// These name the predictions that are written.
const (
	AutoPredictions = "auto"
	OfModel         = "model"
	MeanOfModels    = "mean"
)

// AutoDepth chooses the depth of label smoothing, from 0 to Kmax, that is best on the validation
// nodes.
const AutoDepth = "auto"

// Hops returns the largest number of hops that label smoothing may make.
func (o LabelOptions) Hops() int {
	if n, err := strconv.Atoi(o.Depth); err == nil {
		return n
	}
	return o.Kmax
}

// These are the defaults of fastrp for options that a plan leaves open.
const (
	DefaultDimensions = 128
	DefaultHopWeights = "0,0,1,1,1,1"
	DefaultSparsity   = 3
)

// FastRP is the rule that makes rows from the edges alone.
const FastRP = "fastrp"

// Embeds reports whether smoothed features are made from the edges alone.
func (o Options) Embeds() bool { return o.Smooth.Rule == FastRP }

// NodeDepth uses K hops for each node, and at most Hops.
const NodeDepth = "node"

// These are the directions in which hops read rows if edges have directions.
const (
	// In reads rows along the edges: a node gets the rows of the nodes whose edges lead to it.
	In = "in"
	// Out reads rows against the edges: a node gets the rows of the nodes to which its own edges
	// lead.
	Out = "out"
	// Both makes the hops of In and then those of Out.
	Both = "both"
)

// Directions returns the directions of hops: one, which is "" if edges have no directions, or two.
func (o Options) Directions() []string {
	if o.Smooth.Direction == Both {
		return []string{In, Out}
	}
	return []string{o.Smooth.Direction}
}

// HalfSmoothed reports whether smoothed rows and kept hops are written as float16.
func (o Options) HalfSmoothed() bool {
	return cmp.Or(o.Smooth.SmoothedPrecision, o.Precision) == "float16"
}

// These name the targets that are no file.
const (
	AllTargets      = "all"
	LabelledTargets = "labelled"
)

// DefaultTolerance is the Tolerance of a plan that names none.
const DefaultTolerance = 0.001

// Hash identifies the plan: "sha256:" and the digest of its JSON.
func (o Options) Hash() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(fmt.Sprintf("plan: options hold only numbers and strings: %v", err))
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
