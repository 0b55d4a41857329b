package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/stage"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/control/member"
	"ndls/internal/direct"
	"ndls/internal/storage"
	"ndls/worker"
)

// runFlag adds --run.
func (a *app) runFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.runDir, "run", "", "run directory (required)")
	_ = cmd.MarkFlagRequired("run")
}

// remote says whether the run directory is in an object store.
func (a *app) remote() bool { return strings.Contains(a.runDir, "://") }

// openStore opens the run directory, which must be one of ours; create allows
// it to be missing or empty, too. The record is nil if there is none yet.
func (a *app) openStore(ctx context.Context, create bool) (storage.Store, *coordinator.Record, error) {
	if !a.remote() {
		if err := a.checkFolder(create); err != nil {
			return nil, nil, err
		}
	} else if !strings.HasPrefix(a.runDir, "s3://") {
		return nil, nil, asUsage(fmt.Errorf("--run %s: give a local folder or s3://bucket/prefix", a.runDir))
	}
	store, err := storage.OpenURI(ctx, a.runDir)
	if err != nil {
		return nil, nil, fmt.Errorf("--run %s: %w", a.runDir, err)
	}
	rec, err := coordinator.ReadRecord(ctx, store)
	if err != nil && !(create && errors.Is(err, coordinator.ErrNoRecord)) {
		return nil, nil, err
	}
	if rec == nil && !create {
		return nil, nil, fmt.Errorf("--run %s holds no run; ndls partition or ndls run starts one", a.runDir)
	}
	return store, rec, nil
}

// checkFolder sees that the run directory is a folder, or may be made.
func (a *app) checkFolder(create bool) error {
	switch st, err := os.Stat(a.runDir); {
	case errors.Is(err, fs.ErrNotExist) && create:
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--run %s does not exist; ndls partition or ndls run makes it", a.runDir)
	case err != nil:
		return fmt.Errorf("--run: %w", err)
	case !st.IsDir():
		return fmt.Errorf("--run %s is a file; give a folder", a.runDir)
	}
	return nil
}

// openCatalog opens a run directory for reading.
func (a *app) openCatalog(ctx context.Context) (*catalog.Catalog, *coordinator.Record, error) {
	store, rec, err := a.openStore(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	cat, err := catalog.Open(ctx, store)
	if err == nil {
		cat.Bind(stage.Binding(rec.Plan))
	}
	return cat, rec, err
}

// lock keeps other processes of ndls from writing to the run directory; it is
// gone with the process, however that ends. In an object store the journal alone
// tells coordinators apart.
func (a *app) lock() (unlock func(), err error) {
	if a.remote() {
		return func() {}, nil
	}
	dir, err := os.Open(a.runDir)
	if err != nil {
		return nil, fmt.Errorf("--run: %w", err)
	}
	err = unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		_ = dir.Close()
		return nil, fmt.Errorf("--run %s: another ndls is working on it; wait for it or choose another folder", a.runDir)
	}
	// File systems without locks are used without.
	return func() { _ = dir.Close() }, nil
}

var errNoDataset = asUsage(errors.New("--dataset is needed to start; ndls run --help lists the forms of a dataset URI"))

// stageVerb is what a verb that executes stages was given.
type stageVerb struct {
	*app
	plan *planFlags
	// dataset and softLabels are the values of the flags, "" where the verb
	// has none.
	dataset, softLabels string
	blockColumns        int
	// do is what the verb does, execute unless set.
	do func(ctx context.Context) error
	// whole and creates tell run and partition from the rest.
	whole, creates bool
	stages         []control.Stage
}

// command makes the verb; v.plan starts empty.
func (v *stageVerb) command(use, short, long string) *cobra.Command {
	cmd := v.app.command(use, short, long, func(ctx context.Context, _ *cobra.Command) error { return v.do(ctx) })
	if v.do == nil {
		v.do = v.execute
	}
	v.runFlag(cmd)
	v.cacheFlags(cmd)
	cmd.Flags().BoolVar(&v.resume, "resume", true, "continue what is there; --resume=false discards the output of these stages and of those that read it")
	v.plan = newPlanFlags(cmd)
	v.plan.seed()
	return cmd
}

func (v *stageVerb) columnsFlag(cmd *cobra.Command) {
	cmd.Flags().IntVar(&v.blockColumns, "block-columns", 0, "columns of a column block (default as many as --memory holds)")
}

func (v *stageVerb) datasetFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.dataset, "dataset", "", "dataset URI, such as planetoid:DIR/cora (required to start)")
}

func (v *stageVerb) softLabelsFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&v.softLabels, "soft-labels", "", "soft labels of another model: an Arrow file of id and probability")
}

// execute runs the stages and prints what came of them.
func (v *stageVerb) execute(ctx context.Context) error {
	r, err := v.begin(ctx, coordinator.Options{Workers: 1, Alone: true})
	if err != nil {
		return err
	}
	defer r.close()
	rec, err := r.alone(ctx)
	if err != nil {
		return err
	}
	return v.print(ctx, rec, r.job.Catalog)
}

// session is a run directory that is being worked on.
type session struct {
	verb      *stageVerb
	store     *storage.Counting
	scheduler *coordinator.Scheduler
	job       coordinator.Job
	undo      []func()
}

// close gives back what begin has taken, in reverse order.
func (r *session) close() {
	for _, f := range slices.Backward(r.undo) {
		f()
	}
}

// begin opens the run directory for the verb's stages, with the coordinator's
// options.
func (v *stageVerb) begin(ctx context.Context, o coordinator.Options) (_ *session, err error) {
	// What can be wrong about the plan is found before anything is made.
	resources, err := v.resources()
	if err != nil {
		return nil, err
	}
	if err := v.plan.over(control.DefaultPlan()).Validate(); err != nil {
		return nil, err
	}
	identity, counts, err := v.identity(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(v.runDir); errors.Is(err, fs.ErrNotExist) && v.creates && v.dataset == "" && !v.remote() {
		return nil, errNoDataset
	}
	r := &session{verb: v}
	defer func() {
		if err != nil {
			r.close()
		}
	}()
	store, rec, err := v.openStore(ctx, v.creates)
	if err != nil {
		return nil, err
	}
	unlock, err := v.lock()
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, unlock)
	plan, err := v.makePlan(ctx, rec, identity)
	if err != nil {
		return nil, err
	}
	if o.Alone {
		if store, err = r.near(store, &resources); err != nil {
			return nil, err
		}
	} else {
		resources = control.Resources{Scratch: resources.Scratch} // each worker has its own
	}
	r.store = storage.NewCounting(store)
	journal, err := coordinator.OpenJournal(ctx, r.store)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(ctx, r.store)
	if err != nil {
		return nil, err
	}
	o.Version = version
	if r.scheduler, err = coordinator.NewScheduler(ctx, journal, cat, plan, o); err != nil {
		return nil, err
	}
	r.job = coordinator.Job{
		Store: r.store, Catalog: cat, Tasks: r.scheduler,
		Plan: plan, Resources: resources, Inputs: v.inputs(), Restart: !v.resume, Whole: v.whole, Counts: counts,
		Versions: versions(), Log: v.log,
	}
	return r, nil
}

// near makes scratch and, for a run directory in an object store, a cache of it,
// on this machine.
func (r *session) near(store storage.Store, resources *control.Resources) (storage.Store, error) {
	dir, remove, err := r.verb.place(resources.Scratch)
	if err != nil {
		return nil, err
	}
	r.undo = append(r.undo, remove)
	resources.Scratch = dir
	store, closeCache, err := r.verb.cached(store, dir)
	if err == nil {
		r.undo = append(r.undo, closeCache)
	}
	return store, err
}

// alone runs the stages with a worker in this process.
func (r *session) alone(ctx context.Context) (*coordinator.Record, error) {
	working, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	served := make(chan error, 1)
	go func() {
		err := worker.Serve(working, r.scheduler, r.store, worker.Options{
			Hello: control.Hello{Worker: member.NewName(), Version: version}, Resources: r.job.Resources, Alone: true, Log: r.verb.inner(slog.LevelWarn),
		})
		served <- err
		cancel(err) // no other worker will come
	}()
	rec, err := r.job.Run(working, r.verb.stages...)
	r.scheduler.End(working)
	// What the worker found says more than that its task failed.
	if cause := <-served; cause != nil {
		return rec, cause
	}
	return rec, err
}

func (v *stageVerb) resources() (control.Resources, error) {
	memory, err := v.memoryBytes()
	if err != nil {
		return control.Resources{}, err
	}
	if v.blockColumns < 0 {
		return control.Resources{}, asUsage(fmt.Errorf("--block-columns %d is negative", v.blockColumns))
	}
	return control.Resources{
		Memory: memory, Threads: v.threads, Scratch: v.scratchDir(), Kernel: v.kernel,
		BlockColumns: v.blockColumns,
	}, nil
}

func (v *stageVerb) inputs() control.Inputs {
	return control.Inputs{Dataset: v.dataset, SoftLabels: v.softLabels, Targets: v.targetsFile()}
}

// identity opens the dataset to see that it is there, and returns what the plan
// calls it and what it states of the graph, no nodes if that is not enough to plan
// with.
func (v *stageVerb) identity(ctx context.Context) (_ string, c estimate.Counts, err error) {
	if v.dataset == "" {
		return "", c, nil
	}
	noFeatures := v.plan.over(control.DefaultPlan()).Partition.Features == "none"
	ds, err := dataset.Open(ctx, v.dataset, dataset.Options{NoFeatures: noFeatures})
	if err != nil {
		return "", c, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if info := ds.Info(); info.NumNodes > 0 && info.EdgeHint > 0 {
		c, err = statedCounts(ctx, ds)
	}
	return ds.Info().Identity, c, err
}

// makePlan lays what was given over the plan of the run directory, if there is
// one, or over the defaults.
func (v *stageVerb) makePlan(ctx context.Context, rec *coordinator.Record, identity string) (control.Plan, error) {
	base := control.DefaultPlan()
	if rec != nil {
		base = rec.Plan
	}
	plan := v.plan.over(base)
	if identity != "" {
		plan.Partition.Dataset = identity
	} else if v.creates && (rec == nil || !rec.Done(control.Partition) || !v.resume) {
		return plan, errNoDataset
	}
	if v.softLabels != "" {
		sum, err := fileSum(ctx, v.softLabels)
		if err != nil {
			return plan, fmt.Errorf("--soft-labels: %w", err)
		}
		plan.Labels.SoftLabels = filepath.Base(v.softLabels) + "@sha256:" + sum
	} else if plan.Labels.SoftLabels != "" && rec != nil && !rec.Done(control.SmoothLabels) && slices.Contains(v.stages, control.SmoothLabels) {
		return plan, asUsage(fmt.Errorf("the run smooths soft labels of another model; give --soft-labels %s again", plan.Labels.SoftLabels))
	}
	if t := v.targetsFile(); t != "" {
		sum, err := fileSum(ctx, t)
		if err != nil {
			return plan, fmt.Errorf("--targets %s is neither all nor labelled nor a file: %w", t, err)
		}
		plan.Smooth.Targets = filepath.Base(t) + "@sha256:" + sum
	}
	return plan, nil
}

// targetsFile is the file that --targets names, "" if it names none.
func (v *stageVerb) targetsFile() string {
	t := v.plan.given.Smooth.Targets
	if !v.plan.set.Changed("targets") || t == control.AllTargets || t == control.LabelledTargets {
		return ""
	}
	return t
}

// fileSum is the SHA-256 of a file in hexadecimal.
func fileSum(ctx context.Context, path string) (string, error) {
	f, err := direct.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r := direct.NewReader(f, 0, f.Size())
	defer r.Close()
	sum := sha256.New()
	for ctx.Err() == nil {
		if _, err := io.CopyN(sum, r, direct.BufferSize); err == io.EOF {
			return hex.EncodeToString(sum.Sum(nil)), nil
		} else if err != nil {
			return "", err
		}
	}
	return "", ctx.Err()
}
