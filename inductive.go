package ndls

import (
	"context"
	"strings"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/partition"
	"ndls/plan"
)

// Where RunInductive smooths the rows that models are trained on: in folders beside the run
// directory, whose names are its name and these.
const (
	TrainSuffix = "-train"
	ValidSuffix = "-valid"
)

// RunInductive is [Run] of the whole job in the inductive setting: models are trained before
// anything of a test node is read. It imports and smooths three graphs one after the other: that
// of the training nodes, in a run directory named c.Run and [TrainSuffix], that of the training and
// the validation nodes, in one named c.Run and [ValidSuffix], and the whole graph, in c.Run. Models
// are fitted to the rows of training nodes in the first, choose their epoch by the rows of
// validation nodes in the second, and predict all nodes of the third. Means, quantiles and
// categories of columns come from the training nodes. After an error the
// same call goes on where this one stopped.
func RunInductive(ctx context.Context, c Config) (*Directory, error) {
	if c.SoftLabels != "" || len(c.TrainOn) > 0 {
		return nil, failure.Of(ErrOption, "--inductive trains models of its own, on rows of its own: leave out --soft-labels and --train-on")
	}
	given := c.Over(plan.Default())
	if given.Partition.Only != "" {
		return nil, failure.Of(ErrOption, "--inductive imports the parts of the graph by itself: leave out --only %s", given.Partition.Only)
	}
	if c.Dataset == "" {
		return nil, errNoDataset
	}
	if err := rundirName(c.Run); err != nil { // the names of the parts would be valid
		return nil, err
	}
	c.Run = strings.TrimRight(c.Run, "/")
	// Options that only the last run takes are checked before the first one.
	last := c
	last.TrainOn = []string{c.Run + TrainSuffix}
	last.Options = func(o *Options) {
		*o = c.Over(*o)
		o.Partition.Only = partition.OnlyTrain
	}
	if err := last.checkOptions(recordedOptions(ctx, last.TrainOn[0])); err != nil {
		return nil, err
	}
	normalize, columns := given.Partition.Normalize, ""
	var on []string
	for _, part := range []struct{ suffix, only, split string }{
		{TrainSuffix, partition.OnlyTrain, "train"}, {ValidSuffix, partition.OnlyTrainValid, "valid"},
	} {
		sub := c
		sub.Run = c.Run + part.suffix
		sub.Options = func(o *Options) {
			*o = c.Over(*o)
			o.Partition.Only, o.Partition.Normalize, o.Partition.Columns = part.only, normalize, columns
			o.Smooth.Targets, o.Smooth.KeepHops = plan.LabelledTargets, ""
		}
		logger(c.Log).Info("inductive: smoothing a part of the graph", "run", sub.Run, "nodes", part.only)
		d, err := Run(ctx, sub, Needed(sub.Over(plan.Default()), control.Smooth)...)
		if err != nil {
			return nil, err
		}
		g, err := d.Graph(ctx)
		if err != nil {
			return nil, err
		}
		// Rows are scaled as those of the training nodes ask for.
		if normalize == partition.NormalizeAuto {
			normalize = partition.NormalizeNone
			if g.Normalized {
				normalize = partition.NormalizeL1
			}
		}
		// Columns become features as those of the training nodes do.
		if e, fitted := d.cat.Lookup(partition.ColumnsPath); fitted {
			columns, c.columnsOf = e.Checksum, c.Run+TrainSuffix
		}
		if g.Splits[part.split] > 0 {
			on = append(on, sub.Run)
		}
	}
	c.TrainOn = on
	whole := c
	whole.Options = func(o *Options) {
		*o = c.Over(*o)
		o.Partition.Normalize, o.Partition.Columns = normalize, columns
	}
	return Run(ctx, whole)
}
