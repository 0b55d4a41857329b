package plan

import (
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
	// maxHops is the largest number of hops that a K table can hold.
	maxHops = 1<<15 - 1
	// mostParts is the largest number of parts of training nodes.
	mostParts = 64
	// maxSplits bounds the number of splits.
	maxSplits = 1000
	// maxScored is the largest number of models for which the area under the ROC curve is computed.
	maxScored = 1<<15 - 1 // their mean is one more
)

// OneOf refuses a value of a field that is not among the allowed ones.
func OneOf(field, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return failure.Of(failure.ErrOption, "--%s %q is none of %s%s", field, value, strings.Join(allowed, ", "), meant.Hint(value, allowed))
}

// Canonical writes options with the same meaning in the same form, so that a run directory begun
// with one form continues with another. An option that states its default is left open if options
// can leave it open. Options that Validate refuses stay as they are.
func (o Options) Canonical() Options {
	if hops, err := ParseHops(o.Smooth.KeepHops); err == nil {
		o.Smooth.KeepHops = HopList(hops)
	}
	if o.checkMetrics() == nil {
		o.Metrics = o.canonicalMetrics()
	}
	for _, x := range Table {
		if !o.open(x) && (x.Open != "" || x.OpenAs != "") && !x.Refuses(o) {
			left := o
			if left.Reset(x.Name); left.InForce(x.Name) == o.Get(x.Name) {
				o = left
			}
		}
	}
	return o
}

// canonicalMetrics names the measure that chooses, and AUC if the user asks for it. The measure that chooses if none is named is named only
// before AUC.
func (o Options) canonicalMetrics() string {
	switch first := o.Measure(); {
	case !o.Answers() && o.WantsAUC() && first != AUC:
		return first + "," + AUC
	case first != o.Measures()[0]:
		return first
	}
	return ""
}

// Validate checks all options but the shares of --split and the weights of --hop-weights: stage.Validate calls it, and then checks these,
// and what one stage alone asks for. Its error wraps [failure.ErrOption] and names the option and the allowed values.
func (o Options) Validate() error {
	for _, x := range Table {
		if err := x.check(o); err != nil {
			return err
		}
	}
	for _, check := range []func() error{o.checkTask, o.checkSplits, o.checkMetrics, o.checkPredictions, o.checkHops, o.checkScale} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// check checks the value of one option.
func (x Option) check(o Options) error {
	value := o.Get(x.Name)
	if len(x.Words) > 0 && !x.Free && (value != "" || x.Default != "") {
		if err := OneOf(x.Name, value, x.Words...); err != nil {
			return err
		}
	}
	if x.Refuses(o) && value != x.standard() {
		return failure.Of(failure.ErrOption, "--%s with --%s %s: %s; leave --%s out", x.Name, x.Of, o.Get(x.Of), x.idle(o), x.Name)
	}
	if x.Range == nil {
		return nil
	}
	number, _ := strconv.ParseFloat(value, 64)
	return x.Range.check(x.Name, number)
}

// standard returns the default in the form of [Options.Get].
func (x Option) standard() string { return Default().Get(x.Name) }

// check refuses a value outside of the range. The comparisons are written so that NaN fails them.
func (r Range) check(name string, value float64) error {
	aboveLo := value > r.Lo || !r.OpenLo && value == r.Lo
	belowHi := value < r.Hi || !r.OpenHi && value == r.Hi
	if aboveLo && belowHi {
		return nil
	}
	return failure.Of(failure.ErrOption, "--%s %s %s", name, plain(value), r.outside())
}

// outside describes in words which values an option can have.
func (r Range) outside() string {
	in := ""
	if r.Hi == math.MaxFloat32 {
		in = " in float32"
	}
	switch {
	case r.Hi >= math.MaxFloat32 && r.OpenLo:
		return "is not a finite number above " + plain(r.Lo) + in
	case r.Hi >= math.MaxFloat32:
		return "is not a finite number of at least " + plain(r.Lo) + in
	}
	left, right := "[", "]"
	if r.OpenLo {
		left = "("
	}
	if r.OpenHi {
		right = ")"
	}
	return fmt.Sprintf("is outside %s%s, %s%s", left, plain(r.Lo), plain(r.Hi), right)
}

// plain prints whole numbers with all their digits.
func plain(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// checkPredictions checks what is written, and for which nodes.
func (o Options) checkPredictions() error {
	switch {
	case o.Predictions == MeanOfModels && o.Probabilities == BestProbability:
		return failure.Of(failure.ErrOption, "--predictions mean with --probabilities best: the mean needs the probabilities of all classes of each model; use --probabilities all, or --predictions model")
	case o.Predictions == MeanOfModels && o.SomeTargets():
		return failure.Of(failure.ErrOption, "--predictions mean with --targets %s: predictions are made of smoothed soft labels, and those of some nodes alone are not smoothed; use --targets all, or leave --predictions out", o.Smooth.Targets)
	case o.Smooth.Targets == "":
		return failure.Of(failure.ErrOption, "--targets is empty: write all, labelled or the name of a file of input ids")
	}
	return nil
}

// checkHops checks numbers of hops, of parts and of directions.
func (o Options) checkHops() error {
	if d := o.Labels.Depth; d != "" && d != AutoDepth {
		if n, err := strconv.Atoi(d); err != nil || n < 0 || n > maxHops || strconv.Itoa(n) != d {
			return failure.Of(failure.ErrOption, "--label-depth %q is neither auto nor a number of hops from 0 to %d", d, maxHops)
		}
	}
	if _, err := ParseHops(o.Smooth.KeepHops); err != nil {
		return failure.Of(failure.ErrOption, "--keep-hops %w", err)
	}
	if n := o.Smooth.LabelColumns; n != 0 && (n < 2 || n > mostParts) {
		return failure.Of(failure.ErrOption, "--label-columns %d is neither 0, for none, nor a number of parts from 2 to %d", n, mostParts)
	}
	if n := o.LSI.Directions; n%packed.PanelColumns != 0 {
		return failure.Of(failure.ErrOption, "--directions %d is no multiple of %d", n, packed.PanelColumns)
	}
	return nil
}

// checkScale checks the factor of errors of Correct & Smooth.
func (o Options) checkScale() error {
	scale := o.Labels.CorrectScale
	if scale == "" || scale == AutoScale {
		return nil
	}
	if x, err := strconv.ParseFloat(scale, 64); err != nil || !(x > 0 && x <= math.MaxFloat32) {
		return failure.Of(failure.ErrOption, "--cs-scale %q is neither %s nor a number above 0", scale, AutoScale)
	}
	return nil
}

// checkSplits checks how nodes are divided for training, validation and test.
func (o Options) checkSplits() error {
	x := o.Partition
	if err := checkSplit(x.Split); err != nil {
		return err
	}
	switch {
	case x.Splits < 0 || x.Splits > maxSplits:
		return failure.Of(failure.ErrOption, "--splits %d is outside [1, %d]", x.Splits, maxSplits)
	case x.LabelsPerClass < 0 || x.LabelsPerClass > math.MaxInt32:
		return failure.Of(failure.ErrOption, "--labels-per-class %d is no number of nodes", x.LabelsPerClass)
	case x.LabelsPerClass > 0 && x.Split != "":
		return failure.Of(failure.ErrOption, "--labels-per-class %d with --split %s: it draws training nodes beside the published validation and test nodes; leave one of the two out", x.LabelsPerClass, x.Split)
	case x.Only != "" && x.LabelsPerClass > 0:
		return failure.Of(failure.ErrOption, "--only %s, as with --inductive, with --labels-per-class: the part of the graph is that of a split which is published or drawn with --split; leave --labels-per-class out", x.Only)
	}
	if x.Splits < 2 {
		return nil
	}
	for _, c := range []struct {
		given        bool
		options, why string
	}{
		{x.Only != "", "--only " + x.Only + ", as with --inductive", "the part of the graph is that of one split"},
		{x.BlankFeatures > 0, "--blank-features", "the features of one split's training nodes stay"},
		{o.Train.On != "", "--train-on", "other run directories have the rows of one split"},
		{o.Labels.SoftLabels != "", "--soft-labels", "another model's soft labels come from the training nodes of one split"},
	} {
		if c.given {
			return failure.Of(failure.ErrOption, "--splits %d with %s: %s; leave --splits out and make a run for each split: with split=N in the URI of the dataset if splits are published, with a --seed of its own if they are drawn",
				x.Splits, c.options, c.why)
		}
	}
	return nil
}

// checkTask refuses options of classes where nodes have labels or numbers.
func (o Options) checkTask() error {
	if !o.Answers() {
		return nil
	}
	for _, c := range []struct {
		given         bool
		options, help string
	}{
		{strings.HasPrefix(o.Partition.Split, "random:"), "--split random", "use --split share:TRAIN,VALID"},
		{o.Partition.LabelsPerClass > 0, "--labels-per-class", "use --split share:TRAIN,VALID"},
		{o.Ridge(), "--model ridge", "use --model mlp with --layers 1 for a linear model"},
		{o.Smooth.LabelColumns > 0, "--label-columns", "leave it out"},
		{o.Labels.Rule != "ndls", "--label-rule " + o.Labels.Rule, "use --label-rule ndls"},
		{o.Labels.SoftLabels != "", "--soft-labels", "leave it out"},
		{o.Train.On != "", "--train-on", "leave it out"},
		{o.Probabilities == BestProbability, "--probabilities best", "use --probabilities all"},
	} {
		if c.given {
			return failure.Of(failure.ErrOption, "--task %s with %s, which is for nodes with one class each: %s", o.Partition.Task, c.options, c.help)
		}
	}
	return nil
}

// checkMetrics checks the measures of predictions.
func (o Options) checkMetrics() error {
	if o.Metrics == "" {
		return nil
	}
	for _, name := range strings.Split(o.Metrics, ",") {
		if err := OneOf("metrics", name, o.Measures()...); err != nil {
			return err
		}
	}
	if o.WantsAUC() && o.Probabilities == BestProbability {
		return failure.Of(failure.ErrOption, "--metrics auc with --probabilities best: the area under the ROC curve needs the probabilities of all classes; use --probabilities all")
	}
	if models := o.NumSplits() * o.NumRuns(); o.WantsAUC() && models > maxScored {
		return failure.Of(failure.ErrOption, "--metrics auc with %d models: there are at most %d; use fewer --runs or --splits", models, maxScored)
	}
	return nil
}

func checkSplit(s string) error {
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
	return failure.Of(failure.ErrOption, "--split %q is neither random:TRAIN,VALID with numbers of nodes per class, such as random:20,30, nor share:TRAIN,VALID with shares of the labelled nodes, such as share:0.6,0.2", s)
}
