package ndls

import (
	"context"
	"errors"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/estimate"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/plan"
	"ndls/stage/registry"
)

// complete is the error about a run directory that cannot be written to, where all that was asked
// for is complete: nothing has to be written then.
type complete struct {
	error
	directory *Directory
}

func (c *complete) Unwrap() error { return c.error }

// orComplete returns d and err, or the directory of a [complete].
func orComplete(d *Directory, err error) (*Directory, error) {
	if c := (*complete)(nil); errors.As(err, &c) {
		return c.directory, nil
	}
	return d, err
}

// refused returns err, with which a run directory was prepared: a [complete] where that does not matter.
func (j job) refused(ctx context.Context, err error, store storage.Store, rec *coordinator.Record, opts plan.Options,
	counts estimate.Counts, files []coordinator.InputFile,
) error {
	if !errors.Is(err, rundir.ErrReadOnly) || rec == nil || j.Discard {
		return err
	}
	cat, openErr := catalog.Open(ctx, store)
	if openErr != nil {
		return errors.Join(err, openErr)
	}
	cat.Bind(registry.Binding(opts))
	work := coordinator.Job{
		Store: store, Catalog: cat, Plan: opts, Whole: j.whole, Counts: counts, Files: files,
		Digest: digestInputs, Log: j.Log,
	}
	switch done, other := work.Finished(ctx, rec, j.stages); {
	case other != nil:
		return other
	case !done:
		return err
	}
	j.Log.Info("already complete; the run directory cannot be written to", "run", j.Run)
	return &complete{err, &Directory{uri: j.Run, record: rec, cat: cat}}
}
