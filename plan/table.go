package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"ndls/smooth"
)

// Group is the part of a run that an option belongs to. The help lists options by group.
type Group int

// The groups, in the order of a run.
const (
	Run Group = iota
	Partition
	LSI
	Smooth
	Train
	Labels
)

// Option is a row of the table of options. Flags, environment, help, completion, checks, canonical form, warnings and the space of a search
// are read from it. What else there is of an option is its field in [Options] and the code that uses it.
type Option struct {
	// Name is the name of the flag without dashes. It is the name of the field in JSON, with "label-" before it in the section labels.
	Name  string
	Group Group
	// Help is a sentence for the user, without the default unless Open has it.
	Help string
	// Default is the value of a plan that does not give the option, in the form of [Options.Get].
	Default string
	// Open is the value in force if the option has its zero value; a user cannot give a number of zero then. OpenAs names another option
	// whose value is in force then.
	Open, OpenAs string
	// Words lists the words that the option accepts. Other values are accepted too with Free.
	Words []string
	Free  bool
	// Range bounds a number; nil for an option that check looks at, or that takes every number.
	Range *Range
	// Idle returns why the option decides nothing beside the others, "" if it decides something. It is nil for an option that always does.
	Idle func(Options) (because string)
	// Refuse says what happens to an option that is idle.
	Refuse Refusal
	// Of names the option whose value makes this one idle, if it is refused.
	Of string
	// Tries says that a search may try values of the option. Read, if not nil, reports whether a run reads what it decides. smoothed says
	// that the run smooths labels.
	Tries bool
	Read  func(o Options, smoothed bool) bool
}

// Refusal says what happens to an option that is given and decides nothing.
type Refusal int

const (
	// Told is an option of which the user is told: scripts may give it for all rules and modes alike.
	Told Refusal = iota
	// RefusedGiven is an option that is refused where a command gives it.
	RefusedGiven
	// Refused is an option that is refused with any value but its default, wherever that comes from.
	Refused
)

// Range is a range of numbers.
type Range struct {
	Lo, Hi         float64
	OpenLo, OpenHi bool
}

func within(lo, hi float64) *Range { return &Range{Lo: lo, Hi: hi} }
func below(lo, hi float64) *Range  { return &Range{Lo: lo, Hi: hi, OpenHi: true} }
func atLeast(lo float64) *Range    { return below(lo, math.Inf(1)) }
func above(lo float64) *Range      { return &Range{Lo: lo, Hi: math.Inf(1), OpenLo: true, OpenHi: true} }

// Table lists all options, in the order of the help.
var Table = []Option{
	{Name: "seed", Group: Run, Default: "1", Help: "seed of everything random"},

	{
		Name: "features", Group: Partition, Words: []string{"none"},
		Help: `"none" leaves the features out`,
	},
	{
		Name: "task", Group: Partition, Open: Classification, Words: []string{Classification, SeveralLabels, Regression},
		Help: "what the labels of nodes are: classification, one class each; labels, columns of 0 and 1, any number of which a node may have (sigmoid outputs, binary cross-entropy; ROC AUC and average precision); or regression, columns of numbers (squared error; R² and mean absolute error). The last two take several columns, of which values may be missing, from table: and ogb:, and smooth predictions column by column",
	},
	{
		Name: "normalize", Group: Partition, Default: "auto", Words: []string{"auto", "l1", "none", "log", "quantile"},
		Help: "feature rows: l1 divides them by the sum of their absolute values, none leaves them as they are, auto takes l1 if rows are bags of a few words, unless neighbours share the lengths of their rows. Columns of numbers, but for those of plain=: log takes sign(x)·ln(1+|x|), quantile the quantile of the normal distribution at the rank of a number",
	},
	{
		Name: "fill", Group: Partition, Words: []string{"mean", "neighbours"},
		Help: "what a missing feature (null, NaN, an empty field, a word such as NA) becomes: mean, the mean of its column; neighbours, the mean of the node's neighbours that have one, by the weights of edges, and of the column where none has. Each column with missing numbers has a column of masks behind the features (default they are refused)",
	},
	{
		Name: "split", Group: Partition,
		Help: "random:TRAIN,VALID nodes of each class, or share:TRAIN,VALID of all labelled nodes, such as share:0.6,0.2; the rest is for testing (default the published split)",
	},
	{
		Name: "splits", Group: Partition, Open: "1",
		Help: "number of splits, each with --runs models: published ones, or drawn with --seed, the next seed, and so on. The predictions are those of the first",
	},
	{
		Name: "labels-per-class", Group: Partition,
		Help: "training nodes of each class to draw in place of the published ones, among the labelled nodes that neither validate nor test",
	},
	{
		Name: "only", Group: Partition, Words: []string{"train", "train,valid"},
		Help: "import a part of the graph: train, the training nodes and the edges between them, or train,valid, with the validation nodes too (default all nodes)",
	},
	{
		Name: "drop-edges", Group: Partition, Range: below(0, 1),
		Help: "share of the edges to leave out at random, both directions of an edge together; nodes stay",
	},
	{
		Name: "blank-features", Group: Partition, Range: within(0, 1),
		Help: "share of the nodes whose features are replaced by zeros at random, of all nodes but the training nodes that have a label",
	},
	{
		Name: "interval-blocks", Group: Partition, Default: "16", Range: within(1, 4096),
		Help: "size of an edge shard in blocks of 1,048,576 nodes",
	},
	{
		Name: "shards", Group: Partition, Words: []string{"none"},
		Help: `"none" writes no edge shards, the edges as Parquet files for other programs, which saves two thirds of the disk that edges take; all verbs read the packed form`,
	},

	{
		Name: "lsi", Group: LSI, Default: "influence-sketch", Tries: true, Read: readsK,
		Words: []string{"influence-sketch", "influence-exact", "feature", "feature-sketch"},
		Help:  "the distance that decides K: influence-sketch (random probes; the choice for large graphs), influence-exact (the paper's definition; small graphs only), feature (on the features, as the authors' code does) or feature-sketch (on random mixtures of the features)",
	},
	{
		Name: "probes", Group: LSI, Range: within(0, 1<<20), Tries: true, Read: readsK,
		Idle: func(o Options) string {
			if o.LSI.Mode != "influence-exact" && o.LSI.Mode != "feature" {
				return ""
			}
			return "--lsi " + o.LSI.Mode + " measures distances without random columns"
		},
		Help: "number of random columns of the sketch modes: more columns are more exact and take longer. 0 chooses by the size of the graph: 64 to 128 for one of up to a million edges, beside as many --directions, 32 for one of 4 million edges and more, and 64 to 1,024 otherwise",
	},
	{
		Name: "directions", Group: LSI, Range: within(0, 1<<12), Tries: true, Read: readsK,
		Idle: unless(func(o Options) bool { return o.LSI.Mode == "influence-sketch" }, "only --lsi influence-sketch has directions beside random columns"),
		Help: "with --lsi influence-sketch: number of columns, a multiple of 16, that hold the directions in which rows come near the stationary ones late, beside the random columns: K of small graphs is then nearly exact. 0 is none if --probes is given, and else as --probes 0 says",
	},
	{
		Name: "epsilon", Group: LSI, Default: "0.03", Range: above(0), Tries: true, Read: readsK,
		Help: "a node has settled, and K is known, when its distance from the stationary state falls below this",
	},
	{
		Name: "r", Group: LSI, Default: "0.5", Range: within(0, 1), Tries: true,
		Help: "weight of a neighbour by degrees: 0.5 symmetric, 0 by the degree of the receiving node, 1 by the degree of the sending node",
	},
	{
		Name: "kmax", Group: LSI, Default: "200", Range: within(1, maxHops), Tries: true, Read: readsK,
		Help: "largest K: the hops of a node whose distance never falls below --epsilon",
	},
	{
		Name: "stationary", Group: LSI, Default: "component", Words: []string{"component", "global"}, Tries: true, Read: readsLimit,
		Help: "the state that hops tend to: of each connected component, or one global state for the whole graph (the paper's equation 2)",
	},

	{
		Name: "precision", Group: Smooth, Default: "float32", Words: []string{"float32", "float16"},
		Help: "precision of rows between hops, and of smoothed rows unless --smoothed-precision says otherwise: float32 or float16",
	},
	{
		Name: "rule", Group: Smooth, Default: "ndls", Words: smooth.Names(), Tries: true,
		Help: "the rule of smoothed features: ndls (the paper: the average over hops 0 to K), ndls-reference (what the authors' released code computes), sgc (the last of --hops hops), s2gc or gbp (weighted sums over --hops hops), appnp (personalised PageRank of the features in --hops steps), sign (hops 0 to --hops themselves, side by side), nafs (hops 0 to --hops, each weighed by its distance from the stationary state), or fastrp (features made of the edges alone, for graphs that have none)",
	},
	{
		Name: "alpha", Group: Smooth, Default: "0.15", Range: within(0, 1), Tries: true, Refuse: RefusedGiven,
		Idle: func(o Options) string {
			all := smooth.NamesThat(func(t smooth.Takes) bool { return t.Alpha })
			if ruleIn(o, all...) {
				return ""
			}
			because := "--rule " + o.Smooth.Rule + " has no weight of that kind, only " + enumerated(all) + " have one"
			if o.Smooth.Rule == "ndls" {
				because += "; with --rule ndls the weight of the node's own features is --residual"
			}
			return because
		},
		Help: "weight of the node's own features in ndls-reference, s2gc and each step of appnp; in gbp, the share by which the weight falls with each hop. Other rules refuse it",
	},
	{
		Name: "residual", Group: Smooth, Range: within(0, 1), Tries: true, Refuse: Refused, Of: "rule",
		Idle: ofRule("ndls"),
		Help: "with --rule ndls: weight of the node's own features in each hop, in [0, 1]",
	},
	{
		Name: "hops", Group: Smooth, Default: "10", Range: within(0, maxHops), Tries: true, Idle: noHops, Refuse: RefusedGiven,
		Help: "hops of sgc, s2gc, gbp, appnp, sign and nafs; other rules refuse it",
	},
	{
		Name: "depth", Group: Smooth, Words: []string{NodeDepth}, Tries: true, Idle: noHops, Refuse: Refused, Of: "rule",
		Help: "node: rules with --hops make K hops of each node, at most --hops (default --hops for all nodes)",
	},
	{
		Name: "direction", Group: Smooth, Words: []string{In, Out, Both}, Tries: true,
		Help: "source of a node's rows in a dataset with directed=true: in (the default), the nodes whose edges lead to it; out, the nodes to which its own edges lead; both, the rows of in and of out side by side",
	},
	{
		Name: "keep-hops", Group: Smooth,
		Help: "hops of the features to write in addition to the result of --rule: a range such as 0..3, or hops such as 0,1,3",
	},
	{
		Name: "label-columns", Group: Smooth, Tries: true,
		Help: "labels of the training nodes as further columns, smoothed as features are: the training nodes are divided into this many parts, and each gets the labels of the other parts, never its own; 0 for none, 2 as a rule. With --splits each split has columns of its own, and its models read zeros in place of those of the others",
	},
	{
		Name: "dimensions", Group: Smooth, Open: fmt.Sprint(DefaultDimensions), Range: within(0, 1<<20), Tries: true, Idle: ofRule(FastRP), Refuse: Refused, Of: "rule",
		Help: "with --rule fastrp: number of features to make",
	},
	{
		Name: "hop-weights", Group: Smooth, Open: DefaultHopWeights, Tries: true, Idle: ofRule(FastRP), Refuse: Refused, Of: "rule",
		Help: "with --rule fastrp: the weight of each hop, separated by commas, hop 0 (the node's own random row) first; the length of the list decides the number of hops",
	},
	{
		Name: "degree-power", Group: Smooth, Range: within(-1, 1), Tries: true, Idle: ofRule(FastRP), Refuse: Refused, Of: "rule",
		Help: "with --rule fastrp: power of its degree that multiplies the random row of a node: below 0, nodes with many neighbours count less (default 0)",
	},
	{
		Name: "sparsity", Group: Smooth, Open: fmt.Sprint(DefaultSparsity), Range: within(0, 1<<32), Tries: true, Idle: ofRule(FastRP), Refuse: Refused, Of: "rule",
		Help: "with --rule fastrp: number of entries of a random row for each entry that is not zero; the square root of the number of nodes is possible too",
	},
	{
		Name: "smoothed-precision", Group: Smooth, OpenAs: "precision", Words: []string{"float32", "float16"},
		Help: "precision of written smoothed rows and kept hops: float32, or float16, which rounds each value once and needs half the disk",
	},
	{
		Name: "keep-features", Group: Smooth, Default: "true",
		Help: "keep the tiles of input features; false removes them after smoothing, which saves disk. ndls partition makes them again",
	},
	{
		Name: "tolerance", Group: Smooth, Default: fmt.Sprint(DefaultTolerance), Range: below(0, 1),
		Help: "largest share of the weights of a node's hops that its smoothed row leaves out, so that few passes take the place of many hops: 39 of 200. K is found in this way, too, in 54 passes. Rows that stand after 8 to 24 hops are left out, and then may change a distance that decides K by a twentieth of --epsilon at most. Nodes with few hops have their rows up to rounding; 0 makes every hop of every row. Hops that are written, datasets with directed=true and cs with a given scale take every hop in any case",
	},
	{
		Name: "targets", Group: Smooth, Default: AllTargets, Words: []string{AllTargets, LabelledTargets}, Free: true,
		Help: "nodes whose smoothed features are written: all, labelled, or a file of input ids, one a line",
	},

	{
		Name: "model", Group: Train, Open: Perceptron, Words: []string{Perceptron, Ridge},
		Help: "the model: mlp, a perceptron that is trained, or ridge, a ridge regression on one-hot labels, which is solved at once; validation nodes choose its penalty among 8. Its probabilities are the softmax of its scores times a power of two, which validation nodes choose",
	},
	{
		Name: "input-norm", Group: Train, Open: NoNorm, Words: []string{NoNorm, Standard}, Tries: true,
		Help: "normalisation of the smoothed rows that models read: none, or standard, which gives each column mean 0 and deviation 1 on the training nodes; a column whose deviation is 0 becomes 0. The model keeps means and deviations, and files of rows stay as they are. It suits measured numbers; bags of words with few training nodes lose",
	},
	{
		Name: "hidden", Group: Train, Default: "64", Range: within(1, 1<<20), Tries: true, Idle: linear,
		Help: "width of the hidden layers",
	},
	{
		Name: "layers", Group: Train, Default: "2", Range: within(1, 64), Tries: true, Idle: solved,
		Help: "linear layers; 1 is logistic regression",
	},
	{
		Name: "hidden-norm", Group: Train, Open: NoNorm, Words: []string{NoNorm, LayerNorm}, Tries: true, Idle: linear,
		Help: "normalisation of the values of each hidden layer before its rectifier: none, or layer, which gives each row mean 0 and deviation 1, and then trained gains and shifts (LayerNorm)",
	},
	{
		Name: "dropout", Group: Train, Default: "0.4", Range: below(0, 1), Tries: true, Idle: linear,
		Help: "share of hidden values dropped in training",
	},
	{
		Name: "input-dropout", Group: Train, Default: "0.4", Range: below(0, 1), Tries: true, Idle: solved,
		Help: "share of input values dropped in training",
	},
	{Name: "lr", Group: Train, Default: "0.01", Range: &Range{Hi: math.MaxFloat32, OpenLo: true}, Tries: true, Idle: solved, Help: "learning rate"},
	{
		Name: "weight-decay", Group: Train, Default: "0.0005", Range: within(0, math.MaxFloat32), Tries: true, Idle: solved,
		Help: "share of the weights added to their gradients",
	},
	{
		Name: "schedule", Group: Train, Default: "constant", Words: []string{"constant", "cosine"}, Tries: true, Idle: solved,
		Help: "learning rate over time: constant or cosine",
	},
	{Name: "epochs", Group: Train, Default: "500", Range: within(1, 1<<24), Tries: true, Idle: solved, Help: "largest number of epochs"},
	{
		Name: "patience", Group: Train, Default: "200", Range: within(0, 1<<24), Tries: true, Idle: solved,
		Help: "epochs without improvement before stopping; 0 never stops early",
	},
	{
		Name: "choose", Group: Train, Open: ByMeasure, Words: []string{ByMeasure, ByLoss}, Tries: true,
		Help: "choice of the epoch whose weights a model keeps, on the validation nodes: measure, the best by the first of --metrics, then by the loss; or loss, the one with the lowest mean negative log-likelihood. With --model ridge, choice of the penalty",
	},
	{Name: "batch-size", Group: Train, Default: "4096", Range: within(0, 1<<24), Tries: true, Idle: solved, Help: "rows of a step; 0 takes all"},
	{Name: "runs", Group: Train, Default: "10", Range: within(1, 10_000), Idle: oneModel, Help: "models, each with its own seed"},

	{
		Name: "label-rule", Group: Labels, Default: "ndls", Words: append(smooth.DependentNames(), CorrectSmooth, CorrectSmoothByNode), Tries: true,
		Help: "the rule of smoothed labels: ndls (the paper: smoothed as features are), ndls-reference (the authors' code), cs (Correct & Smooth, by the labels of training nodes) or cs-nd (the same, with K hops of each node at most)",
	},
	{
		Name: "label-alpha", Group: Labels, Default: "0.15", Range: within(0, 1), Tries: true, Refuse: RefusedGiven,
		Idle: func(o Options) string {
			if o.Labels.Rule == "ndls-reference" {
				return ""
			}
			return "--label-rule " + o.Labels.Rule + " has no weight of that kind, only ndls-reference has one"
		},
		Help: "weight of the node's own soft labels in --label-rule ndls-reference; other rules refuse it",
	},
	{
		Name: "label-epsilon", Group: Labels, OpenAs: "epsilon", Range: atLeast(0), Tries: true, Refuse: Refused, Of: "label-rule",
		Idle: unless(func(o Options) bool { return o.Labels.Rule != CorrectSmooth }, "--label-rule cs takes the same number of hops of all nodes, and cs-nd has it"),
		Help: "distance below which a node has settled for label smoothing",
	},
	{
		Name: "label-depth", Group: Labels, Default: AutoDepth, Words: []string{AutoDepth}, Free: true, Tries: true,
		Help: "largest number of hops of label smoothing, and of the second step of cs: a number, 0 for none, or auto, which chooses the number from 0 to --label-kmax that is best on the validation nodes",
	},
	{
		Name: "label-kmax", Group: Labels, Default: "40", Range: within(1, maxHops), Tries: true,
		Idle: func(o Options) string {
			if o.Labels.Depth == AutoDepth || o.Labels.Depth == "" {
				return ""
			}
			return "--label-depth " + o.Labels.Depth + " is the number of hops"
		},
		Help: "largest number of hops that --label-depth auto may choose",
	},
	{
		Name: "keep-smoothed", Group: Labels, Default: "true",
		Help: "keep smoothed rows; false removes the rows that models read after labels are smoothed. ndls smooth makes them again",
	},
	{
		Name: "cs-scale", Group: Labels, Open: AutoScale, Words: []string{AutoScale}, Free: true, Tries: true, Idle: corrects, Refuse: Refused, Of: "label-rule",
		Help: "with --label-rule cs: factor of propagated errors before they are added: auto, which makes the errors of each node as large as the mean error of training nodes, or a number, with which the errors of training nodes are also set again after each hop",
	},
	{
		Name: "cs-correct-alpha", Group: Labels, Open: fmt.Sprint(DefaultCorrectAlpha), Range: within(0, 1), Tries: true, Idle: corrects, Refuse: Refused, Of: "label-rule",
		Help: "with --label-rule cs: weight of neighbours when errors are propagated",
	},
	{
		Name: "cs-correct-hops", Group: Labels, Open: fmt.Sprint(DefaultCorrectHops), Range: within(0, maxHops), Tries: true, Idle: corrects, Refuse: Refused, Of: "label-rule",
		Help: "with --label-rule cs: hops over which errors are propagated",
	},
	{
		Name: "cs-smooth-alpha", Group: Labels, Open: fmt.Sprint(DefaultSmoothAlpha), Range: within(0, 1), Tries: true, Idle: corrects, Refuse: Refused, Of: "label-rule",
		Help: "with --label-rule cs: weight of neighbours when corrected labels are propagated",
	},
	{
		Name: "probabilities", Group: Labels, Default: AllProbabilities, Words: []string{AllProbabilities, BestProbability},
		Help: "content of soft labels and predictions for each node: all, the probabilities of all classes, or best, only the predicted class and its probability, which needs far less disk if there are many classes",
	},
	{
		Name: "predictions", Group: Labels, Default: AutoPredictions, Words: []string{AutoPredictions, OfModel, MeanOfModels},
		Help: "which predictions are written, after label smoothing: model, those of the model that is best on the validation nodes; mean, the mean of the soft labels of all models of the first split; or auto, the better of the two on the validation nodes. With --probabilities best there is no mean",
	},
	{
		Name: "metrics", Group: Labels, Words: Options{}.Measures(), Free: true,
		Help: "measures of predictions, separated by commas: accuracy and f1 are always computed; the first one named chooses the weights of each model, unless --choose says otherwise, and the predictions on the validation nodes (default accuracy; with --task labels auc, beside which there is ap, the average precision; with --task regression r2); auc adds the area under the ROC curve, for which the probabilities of all validation and test nodes are stored, 8 bytes each",
	},
}

// unless gives the reason where is does not hold.
func unless(is func(Options) bool, because string) func(Options) string {
	return func(o Options) string {
		if is(o) {
			return ""
		}
		return because
	}
}

func ruleIn(o Options, names ...string) bool { return slices.Contains(names, o.Smooth.Rule) }

func ofRule(name string) func(Options) string {
	return unless(func(o Options) bool { return ruleIn(o, name) }, "only --rule "+name+" has it")
}

// noHops says why --hops decides nothing.
func noHops(o Options) string {
	all := smooth.NamesThat(func(t smooth.Takes) bool { return t.Depth })
	switch {
	case ruleIn(o, all...):
		return ""
	case o.Embeds():
		return "the hops of --rule " + o.Smooth.Rule + " are those of --hop-weights"
	}
	return "--rule " + o.Smooth.Rule + " takes K hops of each node, and only " + enumerated(all) + " take a given number"
}

var (
	solved   = unless(func(o Options) bool { return !o.Ridge() }, "--model ridge is solved at once, without layers and epochs")
	oneModel = unless(func(o Options) bool { return !o.Ridge() }, "--model ridge has no seed, and is one model for each split")
	corrects = unless(func(o Options) bool { return o.Labels.Corrects() },
		"only --label-rule "+CorrectSmooth+" and "+CorrectSmoothByNode+" have it")
)

// linear says why options of hidden layers decide nothing.
func linear(o Options) string {
	if because := solved(o); because != "" || o.Train.Layers != 1 {
		return because
	}
	return "a model with --layers 1 has no hidden values"
}

// readsK reports whether a run reads K of its nodes.
func readsK(o Options, smoothed bool) bool {
	return ruleIn(o, "ndls", "ndls-reference") || o.Smooth.Depth == NodeDepth || smoothed && o.Labels.Rule != CorrectSmooth
}

// readsLimit reports whether a run reads the rows to which hops tend.
func readsLimit(o Options, smoothed bool) bool { return readsK(o, smoothed) || ruleIn(o, "nafs") }

// enumerated joins words to a list for a sentence.
func enumerated(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}
