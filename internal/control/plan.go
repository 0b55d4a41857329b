package control

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/failure"
	"ndls/internal/meant"
	"ndls/internal/packed"
)

const (
	// PlanFormat is the version of the plan's fields and of their meaning.
	PlanFormat = 3
	// maxHops is the largest number of hops that a K table can hold.
	maxHops = 1<<15 - 1
	// mostParts is the largest number of parts of training nodes.
	mostParts = 64
)

var (
	// ErrPlanMismatch reports a run directory that was made with another plan.
	ErrPlanMismatch = failure.Kind("the run directory has another plan")
	// ErrOption reports an option with an invalid value.
	ErrOption = failure.ErrOption
)

// Stage names one step of a run.
type Stage string

// These are the names of stages; package stage lists all of them, in order.
const (
	Partition    Stage = "partition"
	LSI          Stage = "lsi"
	Smooth       Stage = "smooth"
	Train        Stage = "train"
	Predict      Stage = "predict"
	LabelDepth   Stage = "label-depth"
	SmoothLabels Stage = "smooth-labels"
	Evaluate     Stage = "evaluate"
)

// NumSplits is the number of splits, each of which has models of its own.
func (p Plan) NumSplits() int { return max(p.Partition.Splits, 1) }

// These are the measures beside accuracy. AUC costs more than counting.
const (
	MacroF1 = "f1"
	AUC     = "auc"
)

// metrics lists all measures.
var metrics = []string{Accuracy, MacroF1, AUC}

// WantsAUC reports whether the user asked for the area under the ROC curve.
func (p Plan) WantsAUC() bool { return slices.Contains(strings.Split(p.Metrics, ","), AUC) }

// Accuracy is the measure that chooses if none is named.
const Accuracy = "accuracy"

// Measure returns the measure that chooses weights and predictions on the validation nodes: the
// first one named.
func (p Plan) Measure() string {
	first, _, _ := strings.Cut(p.Metrics, ",")
	return cmp.Or(first, Accuracy)
}

// SomeTargets reports whether the run's own soft labels cover some nodes only, so that they cannot
// be smoothed.
func (p Plan) SomeTargets() bool { return p.Labels.SoftLabels == "" && p.Smooth.Targets != AllTargets }

// Plan holds what decides the bytes of a run directory.
type Plan struct {
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
	// Metrics lists, separated by commas, measures of predictions: accuracy, f1 and auc. The first
	// two are always computed. The first one named chooses weights and predictions on the
	// validation nodes.
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
	// Normalize is "auto" (L1 for rows that are bags of a few words whose lengths neighbours do not share), "l1" or "none".
	Normalize string `json:"normalize"`
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
	Hidden       int     `json:"hidden"`
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
	// BatchSize is the number of rows of a step; 0 takes all of them.
	BatchSize int `json:"batch_size"`
	// Runs is the number of models, each with its own seed.
	Runs int `json:"runs"`
	// On names the rows on which models are trained: the hash of rows of other run directories, ""
	// for the run's own rows.
	On string `json:"on,omitempty"`
}

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

// validateCorrection checks the options of Correct & Smooth, which no other rule has.
func (o LabelOptions) validateCorrection() error {
	for _, given := range []struct {
		name string
		is   bool
	}{
		{"cs-scale", o.CorrectScale != ""},
		{"cs-correct-alpha", o.CorrectAlpha != 0},
		{"cs-correct-hops", o.CorrectHops != 0},
		{"cs-smooth-alpha", o.SmoothAlpha != 0},
	} {
		if given.is && !o.Corrects() {
			return failure.Of(ErrOption, "--%s with --label-rule %s: only --label-rule %s and %s have it", given.name, o.Rule, CorrectSmooth, CorrectSmoothByNode)
		}
	}
	if o.Rule == CorrectSmooth && o.Epsilon != 0 {
		return failure.Of(ErrOption, "--label-epsilon with --label-rule %s, which takes the same number of hops of all nodes: leave --label-epsilon out, or give --label-rule %s", CorrectSmooth, CorrectSmoothByNode)
	}
	if o.CorrectScale == "" || o.CorrectScale == AutoScale {
		return nil
	}
	if x, err := strconv.ParseFloat(o.CorrectScale, 64); err != nil || !(x > 0 && x <= math.MaxFloat32) {
		return failure.Of(ErrOption, "--cs-scale %q is neither %s nor a number above 0", o.CorrectScale, AutoScale)
	}
	return nil
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
func (p Plan) Embeds() bool { return p.Smooth.Rule == FastRP }

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
func (p Plan) Directions() []string {
	if p.Smooth.Direction == Both {
		return []string{In, Out}
	}
	return []string{p.Smooth.Direction}
}

// HalfSmoothed reports whether smoothed rows and kept hops are written as float16.
func (p Plan) HalfSmoothed() bool {
	return cmp.Or(p.Smooth.SmoothedPrecision, p.Precision) == "float16"
}

// These name the targets that are no file.
const (
	AllTargets      = "all"
	LabelledTargets = "labelled"
)

// DefaultPlan holds the default of every option that does not depend on the input.
func DefaultPlan() Plan {
	return Plan{
		Format:    PlanFormat,
		Seed:      1,
		Precision: "float32", Probabilities: AllProbabilities, Predictions: AutoPredictions, Tolerance: DefaultTolerance,
		Partition: PartitionOptions{Normalize: "auto", IntervalBlocks: 16},
		LSI: LSIOptions{
			Mode: "influence-sketch", Epsilon: 0.03, R: 0.5, Kmax: 200,
			Stationary: "component",
		},
		Smooth: SmoothOptions{Rule: "ndls", Alpha: 0.15, Hops: 10, Targets: AllTargets},
		Train: TrainOptions{
			Hidden: 64, Layers: 2, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: "constant",
			Epochs: 500, Patience: 200, BatchSize: 4096, Runs: 10,
		},
		Labels: LabelOptions{Rule: "ndls", Alpha: 0.15, Kmax: 40, Depth: AutoDepth},
	}
}

// OneOf refuses a value of a field that is not among the allowed ones.
func OneOf(field, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return failure.Of(ErrOption, "--%s %q is none of %s%s", field, value, strings.TrimPrefix(strings.Join(allowed, ", "), ", "), meant.Hint(value, allowed))
}

// Canonical writes options with the same meaning in the same form, so that a run directory begun
// with one form continues with another. An option that states its default is left open if a plan
// can leave it open. Options that Validate refuses stay as they are.
func (p Plan) Canonical() Plan {
	if p.Partition.Splits == 1 {
		p.Partition.Splits = 0
	}
	s, l := &p.Smooth, &p.Labels
	leaveOpen(&s.SmoothedPrecision, p.Precision)
	if hops, err := ParseHops(s.KeepHops); err == nil {
		s.KeepHops = HopList(hops)
	}
	if p.validateMetrics() == nil {
		auc := p.WantsAUC()
		if p.Metrics = ""; auc {
			p.Metrics = AUC
		}
	}
	if p.Embeds() { // otherwise they are refused
		leaveOpen(&s.Dimensions, DefaultDimensions)
		leaveOpen(&s.HopWeights, DefaultHopWeights)
		leaveOpen(&s.Sparsity, DefaultSparsity)
	}
	if l.Corrects() {
		leaveOpen(&l.CorrectScale, AutoScale)
		leaveOpen(&l.CorrectAlpha, DefaultCorrectAlpha)
		leaveOpen(&l.CorrectHops, DefaultCorrectHops)
		leaveOpen(&l.SmoothAlpha, DefaultSmoothAlpha)
	}
	return p
}

// leaveOpen leaves an option open if it has its default.
func leaveOpen[T comparable](option *T, standard T) {
	if *option == standard {
		*option = *new(T)
	}
}

// words lists the options whose values are words, except rules.
var words = []struct {
	option  string
	allowed []string
}{
	{"features", []string{"", "none"}},
	{"shards", []string{"", "none"}},
	{"normalize", []string{"auto", "l1", "none"}},
	{"only", []string{"", "train", "train,valid"}},
	{"lsi", []string{"influence-sketch", "influence-exact", "feature", "feature-sketch"}},
	{"stationary", []string{"component", "global"}},
	{"direction", []string{"", In, Out, Both}},
	{"depth", []string{"", NodeDepth}},
	{"precision", []string{"float32", "float16"}},
	{"smoothed-precision", []string{"", "float32", "float16"}},
	{"probabilities", []string{"", AllProbabilities, BestProbability}},
	{"predictions", []string{"", AutoPredictions, OfModel, MeanOfModels}},
	{"schedule", []string{"constant", "cosine"}},
}

// OptionValues lists the words that an option accepts, also if it accepts other values too. It is
// empty for other options and for rules, whose words package stage has.
func OptionValues(name string) []string {
	switch name {
	case "metrics":
		return slices.Clone(metrics)
	case "label-depth":
		return []string{AutoDepth}
	case "cs-scale":
		return []string{AutoScale}
	case "targets":
		return []string{AllTargets, LabelledTargets}
	}
	for _, w := range words {
		if w.option == name {
			return slices.DeleteFunc(slices.Clone(w.allowed), func(word string) bool { return word == "" })
		}
	}
	return nil
}

// Validate checks ranges, and all names except those of rules, which package stage checks. Its
// error wraps [ErrOption] and names the field and the allowed values.
func (p Plan) Validate() error {
	for _, w := range words {
		if err := OneOf(w.option, p.Get(w.option), w.allowed...); err != nil {
			return err
		}
	}
	if err := p.validateSplits(); err != nil {
		return err
	}
	if err := p.validateMetrics(); err != nil {
		return err
	}
	if p.Predictions == MeanOfModels && p.Probabilities == BestProbability {
		return failure.Of(ErrOption, "--predictions mean with --probabilities best: the mean needs the probabilities of all classes of each model; use --probabilities all, or --predictions model")
	}
	if p.Predictions == MeanOfModels && p.SomeTargets() {
		return failure.Of(ErrOption, "--predictions mean with --targets %s: predictions are made of smoothed soft labels, and those of some nodes alone are not smoothed; use --targets all, or leave --predictions out", p.Smooth.Targets)
	}
	if d := p.Labels.Depth; d != "" && d != AutoDepth {
		if n, err := strconv.Atoi(d); err != nil || n < 0 || n > maxHops || strconv.Itoa(n) != d {
			return failure.Of(ErrOption, "--label-depth %q is neither auto nor a number of hops from 0 to %d", d, maxHops)
		}
	}
	if err := p.Labels.validateCorrection(); err != nil {
		return err
	}
	if _, err := ParseHops(p.Smooth.KeepHops); err != nil {
		return failure.Of(ErrOption, "--keep-hops %w", err)
	}
	if n := p.Smooth.LabelColumns; n != 0 && (n < 2 || n > mostParts) {
		return failure.Of(ErrOption, "--label-columns %d is neither 0, for none, nor a number of parts from 2 to %d", n, mostParts)
	}
	if n := p.LSI.Directions; n%packed.PanelColumns != 0 {
		return failure.Of(ErrOption, "--directions %d is no multiple of %d", n, packed.PanelColumns)
	}
	if p.Smooth.Targets == "" {
		return failure.Of(ErrOption, "--targets is empty: write all, labelled or the name of a file of input ids")
	}
	for _, c := range []struct {
		field          string
		value, lo, hi  float64
		openLo, openHi bool
	}{
		{"interval-blocks", float64(p.Partition.IntervalBlocks), 1, 4096, false, false},
		{"drop-edges", p.Partition.DropEdges, 0, 1, false, true},
		{"blank-features", p.Partition.BlankFeatures, 0, 1, false, false},
		{"probes", float64(p.LSI.Probes), 0, 1 << 20, false, false},
		{"directions", float64(p.LSI.Directions), 0, 1 << 12, false, false},
		{"epsilon", p.LSI.Epsilon, 0, math.Inf(1), true, true},
		{"label-epsilon", p.Labels.Epsilon, 0, math.Inf(1), false, true},
		{"r", p.LSI.R, 0, 1, false, false},
		{"kmax", float64(p.LSI.Kmax), 1, maxHops, false, false},
		{"label-kmax", float64(p.Labels.Kmax), 1, maxHops, false, false},
		{"alpha", p.Smooth.Alpha, 0, 1, false, false},
		{"residual", p.Smooth.Residual, 0, 1, false, false},
		{"label-alpha", p.Labels.Alpha, 0, 1, false, false},
		{"cs-correct-alpha", p.Labels.CorrectAlpha, 0, 1, false, false},
		{"cs-correct-hops", float64(p.Labels.CorrectHops), 0, maxHops, false, false},
		{"cs-smooth-alpha", p.Labels.SmoothAlpha, 0, 1, false, false},
		{"hops", float64(p.Smooth.Hops), 0, maxHops, false, false},
		{"dimensions", float64(p.Smooth.Dimensions), 0, 1 << 20, false, false},
		{"degree-power", p.Smooth.DegreePower, -1, 1, false, false},
		{"sparsity", p.Smooth.Sparsity, 0, 1 << 32, false, false},
		{"tolerance", p.Tolerance, 0, 1, false, true},
		{"hidden", float64(p.Train.Hidden), 1, 1 << 20, false, false},
		{"layers", float64(p.Train.Layers), 1, 64, false, false},
		{"dropout", p.Train.Dropout, 0, 1, false, true},
		{"input-dropout", p.Train.InputDropout, 0, 1, false, true},
		{"lr", p.Train.LR, 0, math.Inf(1), true, true},
		{"weight-decay", p.Train.WeightDecay, 0, math.Inf(1), false, true},
		{"epochs", float64(p.Train.Epochs), 1, 1 << 24, false, false},
		{"patience", float64(p.Train.Patience), 0, 1 << 24, false, false},
		{"batch-size", float64(p.Train.BatchSize), 0, 1 << 24, false, false},
		{"runs", float64(p.Train.Runs), 1, 10_000, false, false},
	} {
		// The comparisons are written so that NaN fails them.
		aboveLo := c.value > c.lo || !c.openLo && c.value == c.lo
		belowHi := c.value < c.hi || !c.openHi && c.value == c.hi
		if !aboveLo || !belowHi {
			return failure.Of(ErrOption, "--%s %s %s", c.field, plain(c.value), outside(c.lo, c.hi, c.openLo, c.openHi))
		}
	}
	return nil
}

// outside describes in words which values a field can have.
func outside(lo, hi float64, openLo, openHi bool) string {
	switch {
	case math.IsInf(hi, 1) && openLo:
		return "is not a finite number above " + plain(lo)
	case math.IsInf(hi, 1):
		return "is not a finite number of at least " + plain(lo)
	}
	left, right := "[", "]"
	if openLo {
		left = "("
	}
	if openHi {
		right = ")"
	}
	return fmt.Sprintf("is outside %s%s, %s%s", left, plain(lo), plain(hi), right)
}

// plain prints whole numbers with all their digits.
func plain(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// maxSplits bounds the number of splits.
const maxSplits = 1000

// validateSplits checks how nodes are divided for training, validation and test.
func (p Plan) validateSplits() error {
	o := p.Partition
	if err := validateSplit(o.Split); err != nil {
		return err
	}
	switch {
	case o.Splits < 0 || o.Splits > maxSplits:
		return failure.Of(ErrOption, "--splits %d is outside [1, %d]", o.Splits, maxSplits)
	case o.LabelsPerClass < 0 || o.LabelsPerClass > math.MaxInt32:
		return failure.Of(ErrOption, "--labels-per-class %d is no number of nodes", o.LabelsPerClass)
	case o.LabelsPerClass > 0 && o.Split != "":
		return failure.Of(ErrOption, "--labels-per-class %d with --split %s: it draws training nodes beside the published validation and test nodes; leave one of the two out", o.LabelsPerClass, o.Split)
	case o.Only != "" && o.LabelsPerClass > 0:
		return failure.Of(ErrOption, "--only %s, as with --inductive, with --labels-per-class: the part of the graph is that of a split which is published or drawn with --split; leave --labels-per-class out", o.Only)
	}
	if o.Splits < 2 {
		return nil
	}
	for _, c := range []struct {
		given        bool
		options, why string
	}{
		{o.Only != "", "--only " + o.Only + ", as with --inductive", "the part of the graph is that of one split"},
		{o.BlankFeatures > 0, "--blank-features", "the features of one split's training nodes stay"},
		{p.Train.On != "", "--train-on", "other run directories have the rows of one split"},
		{p.Labels.SoftLabels != "", "--soft-labels", "another model's soft labels come from the training nodes of one split"},
		{p.Smooth.LabelColumns > 0, "--label-columns", "the columns are made of the labels of one split's training nodes, and smoothed before all models are trained"},
	} {
		if c.given {
			return failure.Of(ErrOption, "--splits %d with %s: %s; leave --splits out and make a run for each split: with split=N in the URI of the dataset if splits are published, with a --seed of its own if they are drawn",
				o.Splits, c.options, c.why)
		}
	}
	return nil
}

// validateMetrics checks the measures of predictions.
func (p Plan) validateMetrics() error {
	if p.Metrics == "" {
		return nil
	}
	for _, name := range strings.Split(p.Metrics, ",") {
		if err := OneOf("metrics", name, metrics...); err != nil {
			return err
		}
	}
	if p.WantsAUC() && p.Probabilities == BestProbability {
		return failure.Of(ErrOption, "--metrics auc with --probabilities best: the area under the ROC curve needs the probabilities of all classes; use --probabilities all")
	}
	if models := p.NumSplits() * p.Train.Runs; p.WantsAUC() && models > maxScored {
		return failure.Of(ErrOption, "--metrics auc with %d models: there are at most %d; use fewer --runs or --splits", models, maxScored)
	}
	return nil
}

// maxScored is the largest number of models for which the area under the ROC curve is computed.
const maxScored = 1<<15 - 1 // their mean is one more

func validateSplit(s string) error {
	if s == "" {
		return nil
	}
	var t, v uint32
	if _, err := fmt.Sscanf(s, "random:%d,%d", &t, &v); err == nil && t > 0 && s == fmt.Sprintf("random:%d,%d", t, v) {
		return nil
	}
	if strings.HasPrefix(s, "share:") {
		return nil // package stage checks the shares
	}
	return failure.Of(ErrOption, "--split %q is neither random:TRAIN,VALID with numbers of nodes per class, such as random:20,30, nor share:TRAIN,VALID with shares of the labelled nodes, such as share:0.6,0.2", s)
}

// DefaultTolerance is the Tolerance of a plan that names none.
const DefaultTolerance = 0.001

// Hash identifies the plan: "sha256:" and the digest of its JSON.
func (p Plan) Hash() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("control: a plan holds only numbers and strings: %v", err))
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
