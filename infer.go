package ndls

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/infer"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/vfs"
	"ndls/stage"
)

// InferOptions say which new nodes to compute, and where to write.
type InferOptions struct {
	// Dataset is a table: URI with the edges of the new nodes and a table of the new nodes
	// alone, with their features. Ids of other nodes are those of the run.
	Dataset string
	// Out is an empty or new folder, or s3://bucket/prefix.
	Out string
	// Epsilon is the distance in feature space below which a new node has settled, 0 for the
	// one that fits the run.
	Epsilon float64
	Resources
}

// InferReport says what was found about new nodes. It is infer.json.
type InferReport = infer.Report

// Infer computes K, smoothed rows and predictions of nodes that the run does not have, from
// the hops that the run has kept of its own nodes, which are held fixed. It writes them as a
// run directory has them: lsi/, smoothed/ and, if the run has a model, predictions/.
func (d *Directory) Infer(ctx context.Context, o InferOptions) (_ *InferReport, err error) {
	defer func() { err = interruption(ctx, stage.Explain(err, d.cat)) }()
	if !(o.Epsilon >= 0) {
		return nil, failure.Of(ErrOption, "--epsilon %g is negative", o.Epsilon)
	}
	if err := emptyOut(o.Out); err != nil {
		return nil, err
	}
	store, err := rundir.Open(ctx, o.Out, true)
	if err != nil {
		return nil, err
	}
	out, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	ds, err := dataset.Open(ctx, o.Dataset, dataset.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	scratch, remove, err := rundir.Temporary(o.Scratch)
	if err != nil {
		return nil, err
	}
	defer remove()
	budget, err := o.Budget()
	if err != nil {
		return nil, err
	}
	defer budget.Close()
	return infer.Run(ctx, d.cat, d.record.Plan, ds, out, infer.Options{
		Epsilon: o.Epsilon, Budget: budget, Threads: threads(o.Threads), Kernel: o.Kernel, Scratch: scratch,
	})
}

// emptyOut refuses a folder that holds something.
func emptyOut(dir string) error {
	if rundir.Remote(dir) {
		return nil
	}
	if run, inside := rundir.Around(dir); inside {
		return failure.Of(ErrOption, "--out %s is inside the run directory %s, whose files only stages write; give a folder elsewhere", dir, run)
	}
	if left, err := vfs.ReadDir(dir); err == nil && len(left) > 0 {
		return fmt.Errorf("--out %s holds %s; nothing was changed, give an empty or new folder", dir, left[0].Name())
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
