package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
)

// planFlags are the flags of a verb that are part of the plan. The ones given
// are laid over the plan that the run directory has, or the defaults.
type planFlags struct {
	// group is the stage whose options are added, for the help.
	group string
	set   *pflag.FlagSet
	given ndls.Options
	lay   map[string]func(*ndls.Options)
}

func newPlanFlags(cmd *cobra.Command) *planFlags {
	return &planFlags{set: cmd.Flags(), given: ndls.DefaultOptions(), lay: map[string]func(*ndls.Options){}}
}

// over lays the given flags over options.
func (f *planFlags) over(o *ndls.Options) {
	for name, lay := range f.lay {
		if f.set.Changed(name) {
			lay(o)
		}
	}
	f.deviates(o)
}

// deviates sets --deviation where it was not given: to its default where rows are to settle
// and --slack does not say when, and to none where no row settles or --slack says when.
func (f *planFlags) deviates(o *ndls.Options) {
	switch {
	case f.lay["deviation"] == nil || f.set.Changed("deviation"):
	case o.LSI.Active != "settled" || f.set.Changed("slack"):
		o.Deviation = 0
	case f.set.Changed("active") && o.Deviation == 0:
		o.Deviation = ndls.DefaultDeviation
	}
}

// add registers a flag for a field; bind is one of pflag's Var methods.
func add[T any](f *planFlags, bind func(p *T, name string, value T, usage string), name string, field func(*ndls.Options) *T, usage string) {
	p := field(&f.given)
	bind(p, name, *p, usage)
	inGroup(f.set, f.group, name)
	f.lay[name] = func(dst *ndls.Options) { *field(dst) = *field(&f.given) }
}

func (f *planFlags) seed() *planFlags {
	f.group = groupRun
	add(f, f.set.Uint64Var, "seed", func(p *ndls.Options) *uint64 { return &p.Seed }, "seed of everything random")
	return f
}

func (f *planFlags) precision() *planFlags {
	f.group = groupSmooth
	add(f, f.set.StringVar, "precision", func(p *ndls.Options) *string { return &p.Precision }, "rows between hops and smoothed rows: float32 or float16")
	return f
}

func (f *planFlags) partition() *planFlags {
	f.group = groupPartition
	add(f, f.set.StringVar, "features", func(p *ndls.Options) *string { return &p.Partition.Features }, `"none" leaves the features out`)
	add(f, f.set.StringVar, "normalize", func(p *ndls.Options) *string { return &p.Partition.Normalize }, "feature rows: auto (l1 if sparse), l1 or none")
	add(f, f.set.StringVar, "split", func(p *ndls.Options) *string { return &p.Partition.Split }, "random:TRAIN,VALID nodes of each class, the rest for testing (default the published split)")
	add(f, f.set.IntVar, "interval-blocks", func(p *ndls.Options) *int { return &p.Partition.IntervalBlocks }, "size of an edge shard in blocks of 1,048,576 nodes")
	return f
}

func (f *planFlags) lsi() *planFlags {
	f.group = groupLSI
	add(f, f.set.StringVar, "lsi", func(p *ndls.Options) *string { return &p.LSI.Mode }, "how distances are measured: influence-sketch (random probes; the choice for large graphs), influence-exact (the paper's definition; small graphs only), feature (on the features, as the authors' code does) or feature-sketch (on random mixtures of the features)")
	add(f, f.set.IntVar, "probes", func(p *ndls.Options) *int { return &p.LSI.Probes }, "random columns with which the sketch modes estimate distances: more are more exact and take longer. 0 chooses by the size of the graph: 64, up to 1,024 for a small graph and 32 for one of 4 million edges and more")
	add(f, f.set.Float64Var, "epsilon", func(p *ndls.Options) *float64 { return &p.LSI.Epsilon }, "a node has settled, and K is known, when its distance from the stationary state falls below this")
	add(f, f.set.Float64Var, "r", func(p *ndls.Options) *float64 { return &p.LSI.R }, "how a neighbour is weighed by degrees: 0.5 symmetrically, 0 by the receiving node's degree, 1 by the sending node's")
	add(f, f.set.IntVar, "kmax", func(p *ndls.Options) *int { return &p.LSI.Kmax }, "largest K: the hops of a node whose distance never falls below --epsilon")
	add(f, f.set.StringVar, "stationary", func(p *ndls.Options) *string { return &p.LSI.Stationary }, "the state that hops tend to: of each connected component, or one global state for the whole graph (the paper's equation 2)")
	add(f, f.set.StringVar, "active", func(p *ndls.Options) *string { return &p.LSI.Active }, "exact computes every row at every hop; settled stops computing rows that hardly count any more, which saves time and changes smoothed rows by at most --deviation")
	add(f, f.set.Float64Var, "deviation", func(p *ndls.Options) *float64 { return &p.Deviation }, "with --active settled: the largest mean relative deviation of smoothed rows from exact ones (default 0.005); the program chooses when rows settle, measures the deviation on a sample, and reports it")
	add(f, f.set.IntVar, "slack", func(p *ndls.Options) *int { return &p.LSI.Slack }, "with --active settled, in place of --deviation: hops for which a row is still computed, for its neighbours, after its own K; rows then settle in the lsi stage and in label smoothing too")
	return f
}

func (f *planFlags) smooth() *planFlags {
	f.group = groupSmooth
	add(f, f.set.StringVar, "rule", func(p *ndls.Options) *string { return &p.Smooth.Rule }, "what smoothed features are: ndls (the paper: the average over hops 0 to K), ndls-reference (what the authors' released code computes), sgc (the last of --hops hops), s2gc or gbp (weighted sums over --hops hops)")
	add(f, f.set.Float64Var, "alpha", func(p *ndls.Options) *float64 { return &p.Smooth.Alpha }, "weight of the node's own features in ndls-reference and s2gc; in gbp, by how much later hops count less")
	add(f, f.set.IntVar, "hops", func(p *ndls.Options) *int { return &p.Smooth.Hops }, "hops of sgc, s2gc and gbp")
	add(f, f.set.StringVar, "targets", func(p *ndls.Options) *string { return &p.Smooth.Targets }, "nodes whose smoothed features are written: all, labelled, or a file of input ids, one a line")
	return f
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
	add(f, f.set.StringVar, "probabilities", func(p *ndls.Options) *string { return &p.Probabilities }, "what soft labels and predictions hold for each node: all, the probabilities of all classes, or best, the predicted class and its probability alone, which takes far less disk where classes are many")
	return f
}

func (f *planFlags) labels() *planFlags {
	f.group = groupLabels
	add(f, f.set.StringVar, "label-rule", func(p *ndls.Options) *string { return &p.Labels.Rule }, "rule of label smoothing: ndls (the paper) or ndls-reference (the authors' code)")
	add(f, f.set.Float64Var, "label-alpha", func(p *ndls.Options) *float64 { return &p.Labels.Alpha }, "weight of the node's own soft labels in --label-rule ndls-reference")
	add(f, f.set.Float64Var, "label-epsilon", func(p *ndls.Options) *float64 { return &p.Labels.Epsilon }, "distance below which a node has settled for label smoothing (default that of --epsilon)")
	add(f, f.set.StringVar, "label-depth", func(p *ndls.Options) *string { return &p.Labels.Depth }, "largest number of hops of label smoothing: a number, 0 for none, or auto, which chooses the one from 0 to --label-kmax that is best on the validation nodes")
	add(f, f.set.IntVar, "label-kmax", func(p *ndls.Options) *int { return &p.Labels.Kmax }, "largest number of hops that --label-depth auto may choose")
	return f
}
