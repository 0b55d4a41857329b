package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
	"ndls/internal/failure"
)

// planFlags are the flags of a verb that are part of the plan. The ones given
// are laid over the plan that the run directory has, or the defaults.
type planFlags struct {
	// group is the stage whose options are added, for the help.
	group string
	set   *pflag.FlagSet
	given ndls.Options
	lay   map[string]func(*ndls.Options)
	// warned are the flags of which the user was told that they are not used.
	warned map[string]bool
	// held are the options that an earlier command has given to the run directory, and this one has not.
	held map[string]string
}

func newPlanFlags(cmd *cobra.Command) *planFlags {
	return &planFlags{set: cmd.Flags(), given: ndls.DefaultOptions(), lay: map[string]func(*ndls.Options){}, warned: map[string]bool{}}
}

// refusedUnused are the flags that are refused where they decide nothing. Scripts may give others
// for all rules and modes alike: of those the user is told.
var refusedUnused = []string{"alpha", "hops", "label-alpha"}

// used looks for flags that were given, and decide nothing under options.
func (f *planFlags) used(log *slog.Logger, o ndls.Options) error {
	f.sayHeld(log)
	if o.Embeds() && f.set.Changed("r") && !f.warned["r"] {
		f.warned["r"] = true
		log.Warn("--r does not change the rows of --rule " + ndls.FastRP + ", whose hops divide by the degree of the receiving node, as --r 0 does: it holds for K and for label smoothing")
	}
	for _, x := range ndls.UnusedOptions(o) {
		switch {
		case !f.set.Changed(x.Option):
		case slices.Contains(refusedUnused, x.Option):
			return failure.Of(ndls.ErrOption, "--%s decides nothing here: %s; leave --%s out", x.Option, x.Because, x.Option)
		case !f.warned[x.Option]:
			f.warned[x.Option] = true
			log.Warn(fmt.Sprintf("--%s decides nothing here: %s", x.Option, x.Because))
		}
	}
	return nil
}

// over lays the given flags over options.
func (f *planFlags) over(o *ndls.Options) {
	for name, lay := range f.lay {
		if f.set.Changed(name) {
			lay(o)
		}
	}
	f.embeds(o)
	f.changesRule(o)
	f.corrects(o)
	f.holds(*o)
}

// holds notes which options of this verb are not those of a new run directory, though this command does not give them: an earlier one
// has. Options that follow from others of this command are not among them.
func (f *planFlags) holds(o ndls.Options) {
	values, standard := o.Values(), ndls.DefaultOptions().Values()
	held := map[string]string{}
	for name := range f.lay {
		if !f.set.Changed(name) && values[name] != standard[name] {
			held[name] = values[name]
		}
	}
	if len(held) > 0 { // otherwise these may be the options of no run directory
		f.held = held
	}
}

// sayHeld says once which options of earlier commands hold.
func (f *planFlags) sayHeld(log *slog.Logger) {
	const said = " held"
	if len(f.held) == 0 || f.warned[said] {
		return
	}
	f.warned[said] = true
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		list = append(list, f.shown(name))
	}
	log.Info("options of earlier commands hold: " + strings.Join(list, ", "))
}

// shown is an option of an earlier command, with its value.
func (f *planFlags) shown(name string) string {
	return fmt.Sprintf("--%s %s", name, f.held[name])
}

// whence adds to an error about options where those come from that this command has not given.
func (f *planFlags) whence(err error) error {
	if !errors.Is(err, ndls.ErrOption) {
		return err
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(f.held)) {
		if regexp.MustCompile("--" + regexp.QuoteMeta(name) + "([^a-z-]|$)").MatchString(err.Error()) {
			list = append(list, f.shown(name))
		}
	}
	if len(list) == 0 {
		return err
	}
	standard := ndls.DefaultOptions().Values()
	var defaults []string
	for _, option := range list {
		name, _, _ := strings.Cut(option[2:], " ")
		defaults = append(defaults, fmt.Sprintf("--%s=%s", name, cmp.Or(standard[name], `""`)))
	}
	return fmt.Errorf("%w. This command does not give %s: an earlier one gave it to the run directory. %s takes it back", err, strings.Join(list, " and "), strings.Join(defaults, " "))
}

// corrects takes the options away that the run directory has for another label rule, and that the
// one which was given does not take.
func (f *planFlags) corrects(o *ndls.Options) {
	l := &o.Labels
	if f.set.Changed("label-rule") && l.Corrects() && !l.TakesK() && !f.set.Changed("label-epsilon") {
		l.Epsilon = 0
	}
	if !f.set.Changed("label-rule") || l.Corrects() {
		return
	}
	if !f.set.Changed("cs-scale") {
		l.CorrectScale = ""
	}
	if !f.set.Changed("cs-correct-alpha") {
		l.CorrectAlpha = 0
	}
	if !f.set.Changed("cs-correct-hops") {
		l.CorrectHops = 0
	}
	if !f.set.Changed("cs-smooth-alpha") {
		l.SmoothAlpha = 0
	}
}

// changesRule takes the options away that the run directory has for another rule, and that the
// rule which was given does not take.
func (f *planFlags) changesRule(o *ndls.Options) {
	if !f.set.Changed("rule") {
		return
	}
	if !f.set.Changed("residual") && o.Smooth.Rule != "ndls" {
		o.Smooth.Residual = 0
	}
	if !f.set.Changed("depth") && slices.Contains([]string{"ndls", "ndls-reference", ndls.FastRP}, o.Smooth.Rule) {
		o.Smooth.Depth = ""
	}
}

// embeds takes the options of fastrp away that the run directory has, where another rule was
// given.
func (f *planFlags) embeds(o *ndls.Options) {
	if !f.set.Changed("rule") || o.Smooth.Rule == ndls.FastRP {
		return
	}
	s := &o.Smooth
	if !f.set.Changed("dimensions") {
		s.Dimensions = 0
	}
	if !f.set.Changed("hop-weights") {
		s.HopWeights = ""
	}
	if !f.set.Changed("degree-power") {
		s.DegreePower = 0
	}
	if !f.set.Changed("sparsity") {
		s.Sparsity = 0
	}
}

// add registers a flag for a field; bind is one of pflag's Var methods.
func add[T any](f *planFlags, bind func(p *T, name string, value T, usage string), name string, field func(*ndls.Options) *T,
	usage string,
) {
	p := field(&f.given)
	bind(p, name, *p, usage)
	inGroup(f.set, f.group, name)
	f.lay[name] = func(dst *ndls.Options) { *field(dst) = *field(&f.given) }
}

// aboveZero registers flags of options whose zero value stands for the default, so that a user
// cannot mean it.
func aboveZero[T int | float64](set *pflag.FlagSet) func(p *T, name string, value T, usage string) {
	return func(p *T, name string, value T, usage string) {
		*p = value
		set.Var(&aboveZeroValue[T]{p}, name, usage)
	}
}

// aboveZeroValue is the value of such a flag.
type aboveZeroValue[T int | float64] struct{ p *T }

func (v *aboveZeroValue[T]) String() string {
	if v.p == nil { // pflag looks at the zero value
		return ""
	}
	return fmt.Sprint(*v.p)
}

// Type implements pflag.Value: the help shows it.
func (v *aboveZeroValue[T]) Type() string {
	if _, isInt := any(*new(T)).(int); isInt {
		return "int"
	}
	return "float"
}

// Set implements pflag.Value.
func (v *aboveZeroValue[T]) Set(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		return fmt.Errorf("%s is no number", text)
	case !(x > 0):
		return fmt.Errorf("%s is not above 0; leave the option out for its default", text)
	case float64(T(x)) != x:
		return fmt.Errorf("%s is no whole number", text)
	}
	*v.p = T(x)
	return nil
}

func (f *planFlags) seed() *planFlags {
	f.group = groupRun
	add(f, f.set.Uint64Var, "seed", func(p *ndls.Options) *uint64 { return &p.Seed }, "seed of everything random")
	return f
}

func (f *planFlags) precision() *planFlags {
	f.group = groupSmooth
	add(f, f.set.StringVar, "precision", func(p *ndls.Options) *string { return &p.Precision }, "precision of rows between hops, and of smoothed rows unless --smoothed-precision says otherwise: float32 or float16")
	return f
}

func (f *planFlags) partition() *planFlags {
	f.group = groupPartition
	add(f, f.set.StringVar, "features", func(p *ndls.Options) *string { return &p.Partition.Features }, `"none" leaves the features out`)
	add(f, f.set.StringVar, "normalize", func(p *ndls.Options) *string { return &p.Partition.Normalize }, "feature rows: l1 divides them by the sum of their absolute values, none leaves them as they are, auto takes l1 if rows are bags of a few words, unless neighbours share the lengths of their rows")
	add(f, f.set.StringVar, "split", func(p *ndls.Options) *string { return &p.Partition.Split }, "random:TRAIN,VALID nodes of each class, or share:TRAIN,VALID of all labelled nodes, such as share:0.6,0.2; the rest is for testing (default the published split)")
	add(f, f.set.IntVar, "splits", func(p *ndls.Options) *int { return &p.Partition.Splits }, "number of splits, each with --runs models: published ones, or drawn with --seed, the next seed, and so on (default 1). The predictions are those of the first")
	add(f, f.set.IntVar, "labels-per-class", func(p *ndls.Options) *int { return &p.Partition.LabelsPerClass }, "training nodes of each class to draw in place of the published ones, among the labelled nodes that neither validate nor test")
	add(f, f.set.StringVar, "only", func(p *ndls.Options) *string { return &p.Partition.Only }, "import a part of the graph: train, the training nodes and the edges between them, or train,valid, with the validation nodes too (default all nodes)")
	add(f, f.set.Float64Var, "drop-edges", func(p *ndls.Options) *float64 { return &p.Partition.DropEdges }, "share of the edges to leave out at random, both directions of an edge together; nodes stay")
	add(f, f.set.Float64Var, "blank-features", func(p *ndls.Options) *float64 { return &p.Partition.BlankFeatures }, "share of the nodes whose features are replaced by zeros at random, of all nodes but the training nodes that have a label")
	add(f, f.set.IntVar, "interval-blocks", func(p *ndls.Options) *int { return &p.Partition.IntervalBlocks }, "size of an edge shard in blocks of 1,048,576 nodes")
	add(f, f.set.StringVar, "shards", func(p *ndls.Options) *string { return &p.Partition.Shards }, `"none" writes no edge shards, the edges as Parquet files for other programs, which saves two thirds of the disk that edges take; all verbs read the packed form`)
	return f
}

// coefficient is for verbs that make hops.
func (f *planFlags) coefficient() *planFlags {
	f.group = groupLSI
	add(f, f.set.Float64Var, "r", func(p *ndls.Options) *float64 { return &p.LSI.R }, "weight of a neighbour by degrees: 0.5 symmetric, 0 by the degree of the receiving node, 1 by the degree of the sending node")
	return f
}

func (f *planFlags) lsi() *planFlags {
	f.group = groupLSI
	add(f, f.set.StringVar, "lsi", func(p *ndls.Options) *string { return &p.LSI.Mode }, "the distance that decides K: influence-sketch (random probes; the choice for large graphs), influence-exact (the paper's definition; small graphs only), feature (on the features, as the authors' code does) or feature-sketch (on random mixtures of the features)")
	add(f, f.set.IntVar, "probes", func(p *ndls.Options) *int { return &p.LSI.Probes }, "number of random columns of the sketch modes: more columns are more exact and take longer. 0 chooses by the size of the graph: 64 to 128 for one of up to a million edges, beside as many --directions, 32 for one of 4 million edges and more, and 64 to 1,024 otherwise")
	add(f, f.set.IntVar, "directions", func(p *ndls.Options) *int { return &p.LSI.Directions }, "with --lsi influence-sketch: number of columns, a multiple of 16, that hold the directions in which rows come near the stationary ones late, beside the random columns: K of small graphs is then nearly exact. 0 is none if --probes is given, and else as --probes 0 says")
	add(f, f.set.Float64Var, "epsilon", func(p *ndls.Options) *float64 { return &p.LSI.Epsilon }, "a node has settled, and K is known, when its distance from the stationary state falls below this")
	f.coefficient()
	add(f, f.set.IntVar, "kmax", func(p *ndls.Options) *int { return &p.LSI.Kmax }, "largest K: the hops of a node whose distance never falls below --epsilon")
	add(f, f.set.StringVar, "stationary", func(p *ndls.Options) *string { return &p.LSI.Stationary }, "the state that hops tend to: of each connected component, or one global state for the whole graph (the paper's equation 2)")
	return f
}

func (f *planFlags) smooth() *planFlags {
	f.group = groupSmooth
	add(f, f.set.StringVar, "rule", func(p *ndls.Options) *string { return &p.Smooth.Rule }, "the rule of smoothed features: ndls (the paper: the average over hops 0 to K), ndls-reference (what the authors' released code computes), sgc (the last of --hops hops), s2gc or gbp (weighted sums over --hops hops), appnp (personalised PageRank of the features in --hops steps), sign (hops 0 to --hops themselves, side by side), nafs (hops 0 to --hops, each weighed by its distance from the stationary state), or fastrp (features made of the edges alone, for graphs that have none)")
	add(f, f.set.Float64Var, "alpha", func(p *ndls.Options) *float64 { return &p.Smooth.Alpha }, "weight of the node's own features in ndls-reference, s2gc and each step of appnp; in gbp, the share by which the weight falls with each hop. Other rules refuse it")
	add(f, f.set.Float64Var, "residual", func(p *ndls.Options) *float64 { return &p.Smooth.Residual }, "with --rule ndls: weight of the node's own features in each hop, in [0, 1]")
	add(f, f.set.IntVar, "hops", func(p *ndls.Options) *int { return &p.Smooth.Hops }, "hops of sgc, s2gc, gbp, appnp, sign and nafs; other rules refuse it")
	add(f, f.set.StringVar, "depth", func(p *ndls.Options) *string { return &p.Smooth.Depth }, "node: rules with --hops make K hops of each node, at most --hops (default --hops for all nodes)")
	add(f, f.set.StringVar, "direction", func(p *ndls.Options) *string { return &p.Smooth.Direction }, "source of a node's rows in a dataset with directed=true: in (the default), the nodes whose edges lead to it; out, the nodes to which its own edges lead; both, the rows of in and of out side by side")
	add(f, f.set.StringVar, "keep-hops", func(p *ndls.Options) *string { return &p.Smooth.KeepHops }, "hops of the features to write in addition to the result of --rule: a range such as 0..3, or hops such as 0,1,3")
	add(f, f.set.IntVar, "label-columns", func(p *ndls.Options) *int { return &p.Smooth.LabelColumns }, "labels of the training nodes as further columns, smoothed as features are: the training nodes are divided into this many parts, and each gets the labels of the other parts, never its own; 0 for none, 2 as a rule")
	add(f, aboveZero[int](f.set), "dimensions", func(p *ndls.Options) *int { return &p.Smooth.Dimensions }, "with --rule fastrp: number of features to make (default 128)")
	add(f, f.set.StringVar, "hop-weights", func(p *ndls.Options) *string { return &p.Smooth.HopWeights }, "with --rule fastrp: the weight of each hop, separated by commas, hop 0 (the node's own random row) first; the length of the list decides the number of hops (default 0,0,1,1,1,1)")
	add(f, f.set.Float64Var, "degree-power", func(p *ndls.Options) *float64 { return &p.Smooth.DegreePower }, "with --rule fastrp: power of its degree that multiplies the random row of a node: below 0, nodes with many neighbours count less (default 0)")
	add(f, aboveZero[float64](f.set), "sparsity", func(p *ndls.Options) *float64 { return &p.Smooth.Sparsity }, "with --rule fastrp: number of entries of a random row for each entry that is not zero; the square root of the number of nodes is possible too (default 3)")
	add(f, f.set.StringVar, "smoothed-precision", func(p *ndls.Options) *string { return &p.Smooth.SmoothedPrecision }, "precision of written smoothed rows and kept hops: float32, or float16, which rounds each value once and needs half the disk (default the value of --precision)")
	f.keep("keep-features", func(o *ndls.Options) *bool { return &o.DropFeatures }, "keep the tiles of input features; false removes them after smoothing, which saves disk. ndls partition makes them again")
	f.tolerance()
	add(f, f.set.StringVar, "targets", func(p *ndls.Options) *string { return &p.Smooth.Targets }, "nodes whose smoothed features are written: all, labelled, or a file of input ids, one a line")
	return f
}

// tolerance is for verbs that add hops up, or find K.
func (f *planFlags) tolerance() *planFlags {
	f.group = groupSmooth
	add(f, f.set.Float64Var, "tolerance", func(p *ndls.Options) *float64 { return &p.Tolerance }, "largest share of the weights of a node's hops that its smoothed row leaves out, so that few passes take the place of many hops: 39 of 200. K is found in this way, too, in 54 passes. Rows that stand after 8 to 24 hops are left out, and then may change a distance that decides K by a twentieth of --epsilon at most. Nodes with few hops have their rows up to rounding; 0 makes every hop of every row. Hops that are written, datasets with directed=true and cs with a given scale take every hop in any case")
	return f
}

// keep registers a flag for a field that says the opposite.
func (f *planFlags) keep(name string, drops func(*ndls.Options) *bool, usage string) {
	keep := !*drops(&f.given)
	f.set.BoolVar(&keep, name, keep, usage)
	inGroup(f.set, f.group, name)
	f.lay[name] = func(o *ndls.Options) { *drops(o) = !keep }
}

func (f *planFlags) train() *planFlags {
	f.group = groupTrain
	add(f, f.set.IntVar, "hidden", func(p *ndls.Options) *int { return &p.Train.Hidden }, "width of the hidden layers")
	add(f, f.set.IntVar, "layers", func(p *ndls.Options) *int { return &p.Train.Layers }, "linear layers; 1 is logistic regression")
	add(f, f.set.Float64Var, "dropout", func(p *ndls.Options) *float64 { return &p.Train.Dropout }, "share of hidden values dropped in training")
	add(f, f.set.Float64Var, "input-dropout", func(p *ndls.Options) *float64 { return &p.Train.InputDropout }, "share of input values dropped in training")
	add(f, f.set.Float64Var, "lr", func(p *ndls.Options) *float64 { return &p.Train.LR }, "learning rate")
	add(f, f.set.Float64Var, "weight-decay", func(p *ndls.Options) *float64 { return &p.Train.WeightDecay }, "share of the weights added to their gradients")
	add(f, f.set.StringVar, "schedule", func(p *ndls.Options) *string { return &p.Train.Schedule }, "learning rate over time: constant or cosine")
	add(f, f.set.IntVar, "epochs", func(p *ndls.Options) *int { return &p.Train.Epochs }, "largest number of epochs")
	add(f, f.set.IntVar, "patience", func(p *ndls.Options) *int { return &p.Train.Patience }, "epochs without improvement before stopping; 0 never stops early")
	add(f, f.set.IntVar, "batch-size", func(p *ndls.Options) *int { return &p.Train.BatchSize }, "rows of a step; 0 takes all")
	add(f, f.set.IntVar, "runs", func(p *ndls.Options) *int { return &p.Train.Runs }, "models, each with its own seed")
	return f
}

func (f *planFlags) probabilities() *planFlags {
	f.group = groupLabels
	add(f, f.set.StringVar, "probabilities", func(p *ndls.Options) *string { return &p.Probabilities }, "content of soft labels and predictions for each node: all, the probabilities of all classes, or best, only the predicted class and its probability, which needs far less disk if there are many classes")
	add(f, f.set.StringVar, "predictions", func(p *ndls.Options) *string { return &p.Predictions }, "which predictions are written, after label smoothing: model, those of the model that is best on the validation nodes; mean, the mean of the soft labels of all models of the first split; or auto, the better of the two on the validation nodes. With --probabilities best there is no mean")
	f.metrics()
	return f
}

// metrics is for verbs that make or compare predictions.
func (f *planFlags) metrics() *planFlags {
	f.group = groupLabels
	add(f, f.set.StringVar, "metrics", func(p *ndls.Options) *string { return &p.Metrics }, "measures of predictions, separated by commas: accuracy and f1 are always computed; the first one named chooses the weights of each model and the predictions on the validation nodes (default accuracy); auc adds the area under the ROC curve, for which the probabilities of all validation and test nodes are stored, 8 bytes each")
	return f
}

func (f *planFlags) labels() *planFlags {
	f.group = groupLabels
	add(f, f.set.StringVar, "label-rule", func(p *ndls.Options) *string { return &p.Labels.Rule }, "the rule of smoothed labels: ndls (the paper: smoothed as features are), ndls-reference (the authors' code), cs (Correct & Smooth, by the labels of training nodes) or cs-nd (the same, with K hops of each node at most)")
	add(f, f.set.Float64Var, "label-alpha", func(p *ndls.Options) *float64 { return &p.Labels.Alpha }, "weight of the node's own soft labels in --label-rule ndls-reference; other rules refuse it")
	add(f, f.set.Float64Var, "label-epsilon", func(p *ndls.Options) *float64 { return &p.Labels.Epsilon }, "distance below which a node has settled for label smoothing (default the value of --epsilon)")
	add(f, f.set.StringVar, "label-depth", func(p *ndls.Options) *string { return &p.Labels.Depth }, "largest number of hops of label smoothing, and of the second step of cs: a number, 0 for none, or auto, which chooses the number from 0 to --label-kmax that is best on the validation nodes")
	add(f, f.set.IntVar, "label-kmax", func(p *ndls.Options) *int { return &p.Labels.Kmax }, "largest number of hops that --label-depth auto may choose")
	f.keep("keep-smoothed", func(o *ndls.Options) *bool { return &o.DropSmoothed }, "keep smoothed rows; false removes the rows that models read after labels are smoothed. ndls smooth makes them again")
	add(f, f.set.StringVar, "cs-scale", func(p *ndls.Options) *string { return &p.Labels.CorrectScale }, "with --label-rule cs: factor of propagated errors before they are added: auto, which makes the errors of each node as large as the mean error of training nodes, or a number, with which the errors of training nodes are also set again after each hop (default auto)")
	add(f, aboveZero[float64](f.set), "cs-correct-alpha", func(p *ndls.Options) *float64 { return &p.Labels.CorrectAlpha }, "with --label-rule cs: weight of neighbours when errors are propagated (default 0.8)")
	add(f, aboveZero[int](f.set), "cs-correct-hops", func(p *ndls.Options) *int { return &p.Labels.CorrectHops }, "with --label-rule cs: hops over which errors are propagated (default 50)")
	add(f, aboveZero[float64](f.set), "cs-smooth-alpha", func(p *ndls.Options) *float64 { return &p.Labels.SmoothAlpha }, "with --label-rule cs: weight of neighbours when corrected labels are propagated (default 0.8)")
	return f
}
