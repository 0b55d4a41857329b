package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ndls"
)

// planFlags are the flags of a verb that are part of the plan. The ones given
// are laid over the plan that the run directory has, or the defaults.
type planFlags struct {
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
}

// add registers a flag for a field; bind is one of pflag's Var methods.
func add[T any](f *planFlags, bind func(p *T, name string, value T, usage string), name string, field func(*ndls.Options) *T, usage string) {
	p := field(&f.given)
	bind(p, name, *p, usage)
	f.lay[name] = func(dst *ndls.Options) { *field(dst) = *field(&f.given) }
}

func (f *planFlags) seed() *planFlags {
	add(f, f.set.Uint64Var, "seed", func(p *ndls.Options) *uint64 { return &p.Seed }, "seed of everything random")
	return f
}

func (f *planFlags) precision() *planFlags {
	add(f, f.set.StringVar, "precision", func(p *ndls.Options) *string { return &p.Precision }, "rows between hops and smoothed rows: float32 or float16")
	return f
}

func (f *planFlags) partition() *planFlags {
	add(f, f.set.StringVar, "features", func(p *ndls.Options) *string { return &p.Partition.Features }, `"none" leaves the features out`)
	add(f, f.set.StringVar, "normalize", func(p *ndls.Options) *string { return &p.Partition.Normalize }, "feature rows: auto (l1 if sparse), l1 or none")
	add(f, f.set.StringVar, "split", func(p *ndls.Options) *string { return &p.Partition.Split }, "random:TRAIN,VALID nodes of each class, the rest for testing (default the published split)")
	add(f, f.set.IntVar, "interval-blocks", func(p *ndls.Options) *int { return &p.Partition.IntervalBlocks }, "2^20-row blocks of an edge shard")
	return f
}

func (f *planFlags) lsi() *planFlags {
	add(f, f.set.StringVar, "lsi", func(p *ndls.Options) *string { return &p.LSI.Mode }, "influence-sketch, influence-exact, feature or feature-sketch")
	add(f, f.set.IntVar, "probes", func(p *ndls.Options) *int { return &p.LSI.Probes }, "random columns of the sketch modes")
	add(f, f.set.Float64Var, "epsilon", func(p *ndls.Options) *float64 { return &p.LSI.Epsilon }, "distance from the stationary state below which a node has settled")
	add(f, f.set.Float64Var, "r", func(p *ndls.Options) *float64 { return &p.LSI.R }, "convolution coefficient in [0, 1]")
	add(f, f.set.IntVar, "kmax", func(p *ndls.Options) *int { return &p.LSI.Kmax }, "hops of a node that never settles")
	add(f, f.set.StringVar, "stationary", func(p *ndls.Options) *string { return &p.LSI.Stationary }, "stationary state per component or global")
	add(f, f.set.StringVar, "active", func(p *ndls.Options) *string { return &p.LSI.Active }, "rows that are recomputed: exact, or settled: not --slack hops after their last own one")
	add(f, f.set.IntVar, "slack", func(p *ndls.Options) *int { return &p.LSI.Slack }, "hops for which a settled row is recomputed still")
	return f
}

func (f *planFlags) smooth() *planFlags {
	add(f, f.set.StringVar, "rule", func(p *ndls.Options) *string { return &p.Smooth.Rule }, "ndls, ndls-reference, sgc, s2gc or gbp")
	add(f, f.set.Float64Var, "alpha", func(p *ndls.Options) *float64 { return &p.Smooth.Alpha }, "residual share of ndls-reference and s2gc, decay of gbp")
	add(f, f.set.IntVar, "hops", func(p *ndls.Options) *int { return &p.Smooth.Hops }, "hops of sgc, s2gc and gbp")
	add(f, f.set.StringVar, "targets", func(p *ndls.Options) *string { return &p.Smooth.Targets }, "rows that are written: all, labelled, or a file of input ids")
	return f
}

func (f *planFlags) train() *planFlags {
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

func (f *planFlags) labels() *planFlags {
	add(f, f.set.StringVar, "label-rule", func(p *ndls.Options) *string { return &p.Labels.Rule }, "rule of label smoothing: ndls or ndls-reference")
	add(f, f.set.Float64Var, "label-alpha", func(p *ndls.Options) *float64 { return &p.Labels.Alpha }, "residual share of --label-rule ndls-reference")
	add(f, f.set.Float64Var, "label-epsilon", func(p *ndls.Options) *float64 { return &p.Labels.Epsilon }, "--epsilon of label smoothing (default --epsilon)")
	add(f, f.set.IntVar, "label-kmax", func(p *ndls.Options) *int { return &p.Labels.Kmax }, "--kmax of label smoothing")
	return f
}
