package control

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/failure"
)

const (
	// PlanFormat is the version of the plan's fields and of their meaning.
	PlanFormat = 2
	// maxHops is the largest number of hops, what a K table can hold.
	maxHops = 1<<15 - 1
)

var (
	// ErrPlanMismatch reports a run directory that was made with another plan.
	ErrPlanMismatch = failure.Kind("the run directory has another plan")
	// ErrOption reports an option whose value makes no sense.
	ErrOption = failure.ErrOption
)

// Stage names one step of a run.
type Stage string

// Names of stages; package stage has all of them, in order.
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

// SomeTargets says whether the run's own soft labels are those of some nodes
// only, so that they cannot be smoothed.
func (p Plan) SomeTargets() bool { return p.Labels.SoftLabels == "" && p.Smooth.Targets != AllTargets }

// Plan is what decides the bytes of a run directory.
type Plan struct {
	Format int    `json:"format"`
	Seed   uint64 `json:"seed"`
	// Precision is "float32" or "float16": how rows are stored between hops, and
	// written when they are smoothed. Sums are float32.
	Precision string `json:"precision"`
	// Probabilities says which are written for each node: "all", those of all classes, or
	// "best", that of the predicted class alone. "" stands for "all".
	Probabilities string `json:"probabilities,omitempty"`
	// Deviation is the largest mean relative deviation of smoothed rows from exact ones that
	// settled rows may lead to, where LSI.Active is "settled". At 0, Slack says when rows
	// settle, in the LSI stage and in label smoothing too.
	Deviation float64          `json:"deviation,omitempty"`
	Partition PartitionOptions `json:"partition"`
	LSI       LSIOptions       `json:"lsi"`
	Smooth    SmoothOptions    `json:"smooth"`
	Train     TrainOptions     `json:"train"`
	Labels    LabelOptions     `json:"labels"`
}

// PartitionOptions decide the import and the cut into shards.
type PartitionOptions struct {
	// Dataset is the dataset's identity: its URI with base names for paths.
	Dataset string `json:"dataset"`
	// Features is "" to import features, "none" to leave them out.
	Features string `json:"features"`
	// Normalize is "auto" (L1 for sparse features), "l1" or "none".
	Normalize string `json:"normalize"`
	// Split is "" for the published split, or "random:TRAIN,VALID" nodes of each class.
	Split string `json:"split"`
	// IntervalBlocks is the number of 2^20-row blocks of an interval.
	IntervalBlocks int `json:"interval_blocks"`
}

// LSIOptions decide the K table.
type LSIOptions struct {
	// Mode is influence-sketch, influence-exact, feature or feature-sketch.
	Mode string `json:"mode"`
	// Probes is the number of random columns of the sketch modes, 0 for one that fits the
	// size of the graph.
	Probes int `json:"probes"`
	// Epsilon is the distance below which a node has settled, R the convolution coefficient.
	Epsilon float64 `json:"epsilon"`
	R       float64 `json:"r"`
	// Kmax is the K of a node that never settles.
	Kmax int `json:"kmax"`
	// Stationary is "component" (appendix A.1) or "global" (equation 2).
	Stationary string `json:"stationary"`
	// Active is "exact", which recomputes every row as long as hops are made, or
	// "settled", which stops as Plan.Deviation says, or Slack hops after a row's last own
	// one. It holds for smoothing too.
	Active string `json:"active"`
	Slack  int    `json:"slack"`
}

// SmoothOptions decide the smoothed features.
type SmoothOptions struct {
	// Rule is ndls, ndls-reference, sgc, s2gc or gbp.
	Rule string `json:"rule"`
	// Alpha is the residual share of ndls-reference and s2gc, and the decay of gbp.
	Alpha float64 `json:"alpha"`
	// Hops is the number of hops of the rules that do not take it from the K table.
	Hops int `json:"hops"`
	// Targets are the rows that are written: "all", "labelled", or those whose
	// input ids a file lists, by its base name and SHA-256.
	Targets string `json:"targets"`
}

// TrainOptions decide the model.
type TrainOptions struct {
	Hidden       int     `json:"hidden"`
	Layers       int     `json:"layers"`
	Dropout      float64 `json:"dropout"`
	InputDropout float64 `json:"input_dropout"`
	LR           float64 `json:"lr"`
	WeightDecay  float64 `json:"weight_decay"`
	// Schedule is how the learning rate moves: "constant" or "cosine".
	Schedule string `json:"schedule"`
	Epochs   int    `json:"epochs"`
	// Patience is the number of epochs without a better validation result
	// after which training stops; 0 never stops early.
	Patience int `json:"patience"`
	// BatchSize is the number of rows of a step; 0 takes all of them.
	BatchSize int `json:"batch_size"`
	// Runs is the number of models, each with its own seed.
	Runs int `json:"runs"`
}

// LabelOptions decide label smoothing.
type LabelOptions struct {
	// Rule is ndls or ndls-reference; Alpha is the residual share of the latter.
	Rule  string  `json:"rule"`
	Alpha float64 `json:"alpha"`
	// Epsilon is the distance below which a node has settled for label
	// smoothing, 0 for that of the K table; Kmax bounds its hops.
	Epsilon float64 `json:"epsilon"`
	Kmax    int     `json:"kmax"`
	// Depth is the number of hops that no node's label smoothing exceeds: a number, or
	// AutoDepth. "", which plans of earlier versions have, stands for Kmax.
	Depth string `json:"depth,omitempty"`
	// SoftLabels identifies soft labels of another model, by base name and
	// SHA-256; "" smooths the run's own.
	SoftLabels string `json:"soft_labels"`
}

// The probabilities that are written for each node.
const (
	AllProbabilities = "all"
	BestProbability  = "best"
)

// AutoDepth is the depth of label smoothing from 0 to Kmax that is best on the validation
// nodes.
const AutoDepth = "auto"

// Hops is the largest number of hops that label smoothing may make.
func (o LabelOptions) Hops() int {
	if n, err := strconv.Atoi(o.Depth); err == nil {
		return n
	}
	return o.Kmax
}

// The targets that are no file.
const (
	AllTargets      = "all"
	LabelledTargets = "labelled"
)

// DefaultPlan holds the default of every option that does not depend on the input.
func DefaultPlan() Plan {
	return Plan{
		Format:    PlanFormat,
		Seed:      1,
		Precision: "float32", Probabilities: AllProbabilities,
		Partition: PartitionOptions{Normalize: "auto", IntervalBlocks: 16},
		LSI: LSIOptions{
			Mode: "influence-sketch", Epsilon: 0.03, R: 0.5, Kmax: 200,
			Stationary: "component", Active: "exact", Slack: 10,
		},
		Smooth: SmoothOptions{Rule: "ndls", Alpha: 0.15, Hops: 10, Targets: AllTargets},
		Train: TrainOptions{
			Hidden: 64, Layers: 2, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: "constant",
			Epochs: 500, Patience: 200, BatchSize: 4096, Runs: 10,
		},
		Labels: LabelOptions{Rule: "ndls", Alpha: 0.15, Kmax: 40, Depth: AutoDepth},
	}
}

// OneOf refuses the value of a field that is none of those allowed.
func OneOf(field, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return failure.Of(ErrOption, "--%s %q is none of %s", field, value, strings.TrimPrefix(strings.Join(allowed, ", "), ", "))
}

// Validate checks ranges, and names but those of rules, which package stage checks. Its
// error wraps [ErrOption] and names the
// field and the values that are allowed.
func (p Plan) Validate() error {
	for _, c := range []struct {
		field   string
		value   string
		allowed []string
	}{
		{"features", p.Partition.Features, []string{"", "none"}},
		{"normalize", p.Partition.Normalize, []string{"auto", "l1", "none"}},
		{"lsi", p.LSI.Mode, []string{"influence-sketch", "influence-exact", "feature", "feature-sketch"}},
		{"stationary", p.LSI.Stationary, []string{"component", "global"}},
		{"active", p.LSI.Active, []string{"exact", "settled"}},
		{"precision", p.Precision, []string{"float32", "float16"}},
		{"probabilities", p.Probabilities, []string{"", AllProbabilities, BestProbability}},
		{"schedule", p.Train.Schedule, []string{"constant", "cosine"}},
	} {
		if err := OneOf(c.field, c.value, c.allowed...); err != nil {
			return err
		}
	}
	if err := validateSplit(p.Partition.Split); err != nil {
		return err
	}
	if d := p.Labels.Depth; d != "" && d != AutoDepth {
		if n, err := strconv.Atoi(d); err != nil || n < 0 || n > maxHops || strconv.Itoa(n) != d {
			return failure.Of(ErrOption, "--label-depth %q is neither auto nor a number of hops from 0 to %d", d, maxHops)
		}
	}
	if p.Deviation != 0 && !p.Settles() {
		return failure.Of(ErrOption, "--deviation %s with --active exact, which computes every row: use --active settled", plain(p.Deviation))
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
		{"probes", float64(p.LSI.Probes), 0, 1 << 20, false, false},
		{"epsilon", p.LSI.Epsilon, 0, math.Inf(1), true, true},
		{"label-epsilon", p.Labels.Epsilon, 0, math.Inf(1), false, true},
		{"r", p.LSI.R, 0, 1, false, false},
		{"kmax", float64(p.LSI.Kmax), 1, maxHops, false, false},
		{"label-kmax", float64(p.Labels.Kmax), 1, maxHops, false, false},
		{"alpha", p.Smooth.Alpha, 0, 1, false, false},
		{"label-alpha", p.Labels.Alpha, 0, 1, false, false},
		{"hops", float64(p.Smooth.Hops), 0, maxHops, false, false},
		{"deviation", p.Deviation, 0, 1, false, true},
		{"slack", float64(p.LSI.Slack), 0, maxHops, false, false},
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

// outside says in words which values a field can have.
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

func validateSplit(s string) error {
	if s == "" {
		return nil
	}
	var train, valid uint32
	if _, err := fmt.Sscanf(s, "random:%d,%d", &train, &valid); err != nil || train == 0 ||
		s != fmt.Sprintf("random:%d,%d", train, valid) {
		return failure.Of(ErrOption, "--split %q is not random:TRAIN,VALID with numbers of nodes per class, such as random:20,30", s)
	}
	return nil
}

// DefaultDeviation is what Deviation should be where rows are to settle.
const DefaultDeviation = 0.005

// Settles says whether rows settle when features are smoothed, SlackSettles whether they do so
// some hops after their last own one, and in all stages, Chooses whether the program chooses
// when.
func (p Plan) Settles() bool { return p.LSI.Active == "settled" }

// SlackSettles is described at Settles.
func (p Plan) SlackSettles() bool { return p.Settles() && p.Deviation == 0 }

// Chooses is described at Settles.
func (p Plan) Chooses() bool { return p.Settles() && p.Deviation > 0 }

// Hash identifies the plan: "sha256:" and the digest of its JSON.
func (p Plan) Hash() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("control: a plan holds only numbers and strings: %v", err))
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}
