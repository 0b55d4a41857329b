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
	"ndls/internal/storage"
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
// run directory has them: lsi/, smoothed/ and, if the run has a model, predictions/. After an
// error o.Out is empty again.
func (d *Directory) Infer(ctx context.Context, o InferOptions) (_ *InferReport, err error) {
	defer func() { err = interruption(ctx, stage.Explain(err, d.cat)) }()
	if !(o.Epsilon >= 0) {
		return nil, failure.Of(ErrOption, "--epsilon %g is negative", o.Epsilon)
	}
	pipes, err := o.copyPipes(ctx, o.Dataset)
	if err != nil {
		return nil, err
	}
	defer pipes.remove()
	ds, err := dataset.Open(ctx, pipes.uri, dataset.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if err := emptyOut(o.Out); err != nil {
		return nil, err
	}
	store, err := rundir.Open(ctx, o.Out, true)
	if err != nil {
		return nil, err
	}
	if err := emptyPrefix(ctx, store, o.Out); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, emptied(context.WithoutCancel(ctx), store, o.Out))
		}
	}()
	out, err := catalog.Open(ctx, store)
	if err != nil {
		return nil, err
	}
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

// emptyPrefix refuses a prefix of a bucket that holds something.
func emptyPrefix(ctx context.Context, store storage.Store, out string) error {
	if !rundir.Remote(out) {
		return nil
	}
	if left, err := store.List(ctx, ""); err == nil && len(left) > 0 {
		return fmt.Errorf("--out %s holds %s; nothing was changed, give an empty or new prefix", out, left[0].Name)
	} else if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// emptied removes what was written to a folder or prefix that was empty before.
func emptied(ctx context.Context, store storage.Store, out string) error {
	if !rundir.Remote(out) {
		if err := vfs.RemoveAll(out); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		if _, err := vfs.MkdirAll(out, 0o777); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
		return nil
	}
	files, err := store.List(ctx, "")
	for _, f := range files {
		err = errors.Join(err, store.Remove(ctx, f.Name))
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
