package ndls

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/dataset"
	"ndls/dataset/source"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/control/member"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/machine"
	"ndls/partition"
	"ndls/placement"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/imports"
	"ndls/stage/models"
	"ndls/worker"
)

// Run executes stages of a run, or, where none is named, the whole job: it leaves out stages that
// the dataset has nothing for, and does not repeat what is complete. It returns the run directory.
//
// After any error, and after ctx was cancelled, the same call continues where this one stopped.
// Errors wrap [ErrOption], [ErrPlanMismatch], [ErrBudget], [ErrDisk], [ErrCorrupt], [ErrData],
// [ErrForeign], [ErrBusy] or [ErrInterrupted], or come from the file system.
func Run(ctx context.Context, c Config, stages ...Stage) (_ *Directory, err error) {
	defer func() { err = interruption(ctx, err) }()
	ctx, stop := reporting(ctx, c.Progress)
	defer stop()
	kept := c.logged()
	j, err := newJob(c, stages)
	if err != nil {
		return nil, err
	}
	watched, onlooker, err := c.Watching.followed(ctx, os.Getenv(TokenVariable), c.Log)
	if err != nil {
		return nil, err
	}
	onlooker.log = kept
	defer onlooker.close() // ends watched
	defer func() { err = interruption(watched, err) }()
	return j.run(watched, onlooker)
}

// run does the work of Run.
func (j job) run(ctx context.Context, onlooker onlooker) (*Directory, error) {
	c := j.Config
	switch {
	case c.Workers.Processes < 0:
		return nil, failure.Of(ErrOption, "--workers %d is negative", c.Workers.Processes)
	case c.Workers.Processes > 0:
		return orComplete(j.processes(ctx, onlooker))
	case c.GroupSize != 0:
		return nil, failure.Of(ErrOption, "--group-size says how workers share stages: give --workers, too")
	case c.Parallel != "":
		if _, err := placement.ParseParallel(c.Parallel, 0); err != nil {
			return nil, err
		}
		return nil, failure.Of(ErrOption, "--parallel %s says how workers share stages: give --workers, too", c.Parallel)
	}
	r, err := j.begin(ctx, coordinator.Options{Workers: 1, Alone: true})
	if err != nil {
		return orComplete(nil, err)
	}
	defer r.close()
	r.onlooker = onlooker
	rec, err := r.alone(ctx)
	if err != nil {
		r.dropRefused(err)
		return nil, err
	}
	return r.directory(rec), nil
}

// session is a run directory that is being worked on.
type session struct {
	job
	store     *storage.Counting
	scheduler *coordinator.Scheduler
	work      coordinator.Job
	onlooker  onlooker
	limits    atomic.Pointer[control.Limits] // of this host, nil until they are measured
	undo      []func()
	// made says that begin has made the run directory.
	made bool
}

// close gives back what begin has taken, in reverse order.
func (r *session) close() {
	for _, f := range slices.Backward(r.undo) {
		f()
	}
}

// dropRefused removes a run directory that this call has made if the dataset was refused before
// its import was complete: nothing in it is of use once the dataset is corrected. Files that
// ndls does not make stay.
func (r *session) dropRefused(err error) {
	if !r.made || !errors.Is(err, ErrData) {
		return
	}
	if _, err := vfs.Stat(filepath.Join(r.Run, filepath.FromSlash(shards.SummaryPath))); err == nil {
		return
	}
	if err := rundir.Discard(r.Run, catalog.Made); err != nil {
		r.Log.Warn("the run directory of a refused dataset is left behind", "run", r.Run, "because", err)
	}
}

// directory is the run directory after the work.
func (r *session) directory(rec *coordinator.Record) *Directory {
	return &Directory{uri: r.Run, record: rec, cat: r.work.Catalog}
}

// begin opens the run directory for the stages of a job, with the coordinator's
// options.
func (j job) begin(ctx context.Context, o coordinator.Options) (_ *session, err error) {
	// What can be wrong about the options is found before anything is made.
	resources, err := j.Resources.control(j.Run)
	if err != nil {
		return nil, err
	}
	parallel, err := placement.ParseParallel(j.Parallel, j.GroupSize)
	if err != nil {
		return nil, err
	}
	if o.Alone {
		if err := mem.CheckTotal(resources.Memory); err != nil {
			return nil, err
		}
	}
	base := recordedOptions(ctx, j.Run)
	if err := j.checkOptions(base); err != nil {
		return nil, err
	}
	if j.creates && j.Dataset == "" && rundir.Missing(j.Run) {
		return nil, errNoDataset
	}
	r := &session{}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	pipes, err := j.Resources.copyPipes(ctx, j.Dataset)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, pipes.remove)
	for _, note := range pipes.notes {
		j.Log.Info(note)
	}
	j.Dataset = pipes.uri
	r.job = j
	identity, counts, err := j.identity(ctx, base)
	if err != nil {
		return nil, err
	}
	r.made = j.creates && rundir.Missing(j.Run)
	store, _, err := openStore(ctx, j.Run, j.creates)
	if err != nil {
		return nil, err
	}
	unlock, err := rundir.Lock(j.Run)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, unlock)
	standing, err := stands(ctx, store)
	if err != nil {
		return nil, err
	}
	var rec *coordinator.Record
	if standing != nil && standing.Recorded() {
		rec = standing.Record
	}
	plan, err := j.options(ctx, rec, identity)
	if err != nil {
		return nil, err
	}
	if standing != nil {
		r.work = coordinator.Job{Plan: plan, Restart: j.Discard}
		if err := r.work.Refuse(standing, j.stages); err != nil {
			return nil, err
		}
	}
	files, err := j.inputFiles(ctx, plan)
	if err != nil {
		return nil, err
	}
	pipes.digests(files)
	if o.Alone {
		if store, err = r.near(store, &resources); err != nil {
			return nil, err
		}
	} else {
		resources = control.Resources{Scratch: resources.Scratch} // each worker has its own
	}
	if err := rundir.Prepare(j.Run, resources.Scratch, j.Log.Warn); err != nil {
		if r.made {
			_ = vfs.Remove(j.Run) // nothing is in it
		}
		return nil, j.refused(ctx, err, store, rec, plan, counts, files)
	}
	r.store = storage.NewCounting(store)
	journal, err := coordinator.OpenJournal(ctx, r.store)
	if err != nil {
		return nil, err
	}
	cat, err := standing.Reopen(ctx, r.store)
	if err != nil {
		return nil, err
	}
	o.Version = build()
	if r.scheduler, err = coordinator.NewScheduler(ctx, journal, cat, plan, o); err != nil {
		return nil, err
	}
	r.work = coordinator.Job{
		Store: r.store, Catalog: cat, Tasks: r.scheduler,
		Plan: plan, Resources: resources, Alone: o.Alone, Restart: j.Discard, Whole: j.whole, Counts: counts,
		Files: files, Digest: digestInputs,
		Inputs:   control.Inputs{Dataset: j.Dataset, SoftLabels: j.SoftLabels, Targets: j.targetsFile()},
		Versions: Versions(), Host: machine.Host(), Log: j.Log,
		Standing: standing, Lonely: o.Alone && !rundir.Remote(j.Run), Local: !rundir.Remote(j.Run),
	}
	if !o.Alone {
		r.work.Workers, r.work.Parallel, r.work.GroupSize = o.Workers, parallel, j.GroupSize
	} else {
		r.work.Measure = func(ctx context.Context) (control.Speeds, error) {
			speeds, err := measure(ctx, resources)
			if err == nil {
				r.limits.Store(control.LimitsOf(speeds, resources.Threads))
			}
			return speeds, err
		}
	}
	if r.work.Counts.TrainOn, err = models.TrainedOn(ctx, j.TrainOn, plan); err != nil {
		return nil, err
	}
	for _, epsilon := range j.LabelEpsilons {
		r.work.Inputs.LabelEpsilons += strconv.FormatFloat(epsilon, 'g', -1, 64) + ","
	}
	if dirs := j.TrainOn; len(dirs) > 0 || j.columnsOf != "" {
		if len(dirs) == 0 {
			dirs = []string{j.columnsOf}
		}
		r.work.Inputs.TrainRows, r.work.Inputs.ValidRows = dirs[0], dirs[len(dirs)-1]
	}
	return r, nil
}

// stands says how a run directory stands that may hold no run yet: nil then.
func stands(ctx context.Context, store storage.Store) (*coordinator.Standing, error) {
	s, err := coordinator.Stand(ctx, store)
	if errors.Is(err, coordinator.ErrNoRecord) {
		return coordinator.StandUnrecorded(ctx, store)
	}
	return s, err
}

// near makes a folder for temporary files and, for a run directory in an object
// store, a cache of that, on this host.
func (r *session) near(store storage.Store, resources *control.Resources) (storage.Store, error) {
	dir, remove, err := rundir.Temporary(resources.Scratch)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, remove)
	resources.Scratch = dir
	store, closeCache, err := r.Resources.cached(r.Run, store, dir)
	if err == nil {
		r.undo = append(r.undo, closeCache)
	}
	return store, err
}

// cached keeps copies of the files of a store in an object store.
func (r Resources) cached(run string, store storage.Store, scratch string) (_ storage.Store, stop func(), err error) {
	if !rundir.Remote(run) {
		return store, func() {}, nil
	}
	dir := r.Cache
	if dir == "" {
		dir = filepath.Join(scratch, "cache")
	}
	c, err := rundir.Cache(store, dir, r.CacheSize)
	if err != nil {
		return nil, nil, err
	}
	return c, func() { _ = c.Close() }, nil
}

// alone runs the stages with a worker in this process.
func (r *session) alone(ctx context.Context) (*coordinator.Record, error) {
	working, cancel := context.WithCancelCause(source.WithSums(ctx, &source.Sums{}))
	defer cancel(nil)
	defer r.watched(ctx)()
	served := make(chan error, 1)
	go func() {
		err := worker.Serve(working, r.scheduler, r.store, worker.Options{
			Hello: control.Hello{Worker: member.NewName(), Version: build()}, Resources: r.work.Resources, Alone: true,
			Log: inner(r.Log, slog.LevelWarn),
		})
		served <- err
		cancel(err) // no other worker will come
	}()
	r.work.Stopped = causeOf(ctx)
	rec, err := r.work.Run(working, r.stages...)
	r.scheduler.End(working)
	if err != nil {
		cancel(err) // a task that is still under way is of no use
	}
	// What the worker found says more than that its task failed, or that it is gone. Whatever else has failed, the worker
	// has only heard of.
	if cause := <-served; cause != nil && (errors.Is(err, coordinator.ErrTask) || errors.Is(err, context.Canceled) || errors.Is(err, cause)) {
		return rec, cause
	}
	return rec, err
}

// causeOf returns a function that reports whether the cause of an ended context within ctx comes
// from ctx.
func causeOf(ctx context.Context) func(cause error) bool {
	return func(cause error) bool { return ctx.Err() != nil && errors.Is(cause, context.Cause(ctx)) }
}

// identity opens the dataset to see that it is there, and returns what the options
// call it and what it states of the graph that the options, laid over those of base, import: no
// nodes if that is not enough to plan with.
func (j job) identity(ctx context.Context, base Options) (_ string, c estimate.Counts, err error) {
	if j.Dataset == "" {
		return "", c, nil
	}
	plan := j.Over(base)
	ds, err := dataset.Open(ctx, j.Dataset, imports.DatasetOptions(plan))
	if err != nil {
		return "", c, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if slices.Contains(j.stages, control.Partition) {
		for _, n := range dataset.Notes(ds) {
			level := slog.LevelInfo
			if n.Ignored {
				level = slog.LevelWarn
			}
			j.Log.Log(ctx, level, n.Text)
		}
	}
	if lack := stage.LacksDirection(plan, ds.Info().Directed); lack != "" && slices.Contains(j.stages, control.Smooth) {
		return "", c, failure.Of(ErrOption, "%s", lack)
	}
	// How large a part of a graph is, and how many features its columns have, the import finds out.
	if info := ds.Info(); info.NumNodes > 0 && info.EdgeHint > 0 && plan.Partition.Only == "" &&
		!partition.Fits(info.Identity, imports.PartitionOptions(plan)) {
		c, err = statedCounts(ctx, ds, nil, plan)
		dropEdges(plan, &c)
	}
	return ds.Info().Identity, c, err
}
