package ndls

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/infer"
	"ndls/internal/failure"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/stage/registry"
)

// InferOptions say which new nodes to compute, and where to write.
type InferOptions struct {
	// Dataset is a table: URI with the edges of the new nodes and a table of the new nodes alone,
	// with their features. Ids of other nodes refer to the run.
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
// error o.Out is empty again. What a process that was killed has left in o.Out is removed first.
func (d *Directory) Infer(ctx context.Context, o InferOptions) (_ *InferReport, err error) {
	defer func() { err = interruption(ctx, registry.Explain(err, d.cat)) }()
	if !(o.Epsilon >= 0) {
		return nil, failure.Of(ErrOption, "--epsilon %g is negative", o.Epsilon)
	}
	pipes, err := o.copyPipes(ctx, o.Dataset)
	if err != nil {
		return nil, err
	}
	defer pipes.remove()
	ds, err := dataset.Open(ctx, pipes.uri, dataset.Options{Missing: d.record.Plan.Partition.Fill != ""})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if err := outsideOfRuns(o.Out); err != nil {
		return nil, err
	}
	store, err := rundir.Open(ctx, o.Out, true)
	if err != nil {
		return nil, err
	}
	unlock, err := rundir.Lock(o.Out)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if err := beginOut(ctx, store, o.Out); err != nil {
		return nil, err
	}
	defer func() {
		if err == nil {
			err = store.Remove(ctx, inferring)
		}
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

// inferring is in the folder or prefix for the output of Infer from before its first file until after its last
// one. The folder held nothing before; what is there beside it and has a name that Infer gives is of a process that was killed.
const inferring = "infer.unfinished"

// inferred matches the names that Infer gives beside those of a run directory.
var inferred = regexp.MustCompile(`^(?:` + regexp.QuoteMeta(infer.ReportPath) + `|` + regexp.QuoteMeta(inferring) +
	`|ids\.parquet)(?:\.[0-9a-f]{16}\.tmp)?$`)

// ofInfer reports whether Infer gives a name in its output.
func ofInfer(name string) bool { return catalog.Made(name) || inferred.MatchString(name) }

// outsideOfRuns refuses a folder in a run directory.
func outsideOfRuns(dir string) error {
	if rundir.Remote(dir) {
		return nil
	}
	if run, inside := rundir.Around(dir); inside {
		return failure.Of(ErrOption, "--out %s is inside the run directory %s, whose files only stages write; give a folder elsewhere", dir, run)
	}
	return nil
}

// beginOut refuses a folder or a prefix that holds something, unless that is left of a process that was killed: it is removed then.
func beginOut(ctx context.Context, store storage.Store, out string) error {
	files, err := store.List(ctx, "")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	begun := slices.ContainsFunc(files, func(f storage.Info) bool { return f.Name == inferring })
	for _, f := range files {
		switch attempt := f.Attempt && inferred.MatchString(f.Name); {
		case begun && !ofInfer(f.Name):
			return fmt.Errorf("--out %s holds %s beside what a process that was killed has left; nothing was changed, move it elsewhere or give an empty folder", out, f.Name)
		case !begun && !attempt:
			return fmt.Errorf("--out %s holds %s; nothing was changed, give an empty or new folder", out, f.Name)
		}
	}
	for _, f := range files {
		if f.Name == inferring {
			continue // it goes on to say that the rest is not finished
		}
		if err := store.Remove(ctx, f.Name); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	if begun {
		return nil
	}
	if err := storage.Put(ctx, store.Create, inferring, []byte("ndls infer has begun to write here and has not ended. The same command removes what is here, and begins anew.\n")); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}

// emptied removes what Infer has written to a folder or prefix that was empty before, the mark of that last of all. What
// others have put there meanwhile stays.
func emptied(ctx context.Context, store storage.Store, out string) error {
	files, err := store.List(ctx, "")
	for _, f := range files {
		if err == nil && f.Name != inferring && ofInfer(f.Name) {
			err = store.Remove(ctx, f.Name)
		}
	}
	if err == nil {
		err = store.Remove(ctx, inferring)
	}
	if err == nil && !rundir.Remote(out) {
		err = rundir.Clear(out, func(string) bool { return false })
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return nil
}
