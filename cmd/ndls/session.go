package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/storage"
	"ndls/shards"
	"ndls/worker"
)

// runFlag adds --run.
func (a *app) runFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.runDir, "run", "", "run directory (required)")
	_ = cmd.MarkFlagRequired("run")
}

// openStore opens the run directory, which must be one of ours; create allows
// it to be missing or empty, too. The record is nil if there is none yet.
func (a *app) openStore(ctx context.Context, create bool) (*storage.Local, *coordinator.Record, error) {
	if strings.Contains(a.runDir, "://") {
		return nil, nil, asUsage(fmt.Errorf("--run %s: only local folders are supported", a.runDir))
	}
	switch st, err := os.Stat(a.runDir); {
	case errors.Is(err, fs.ErrNotExist) && create:
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("--run %s does not exist; ndls partition or ndls run makes it", a.runDir)
	case err != nil:
		return nil, nil, fmt.Errorf("--run: %w", err)
	case !st.IsDir():
		return nil, nil, fmt.Errorf("--run %s is a file; give a folder", a.runDir)
	}
	store, err := storage.NewLocal(a.runDir)
	if err != nil {
		return nil, nil, fmt.Errorf("--run %s: %w", a.runDir, err)
	}
	rec, err := coordinator.ReadRecord(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	if rec == nil && !create {
		return nil, nil, fmt.Errorf("--run %s holds no run; ndls partition or ndls run starts one", a.runDir)
	}
	return store, rec, nil
}

// openCatalog opens a run directory for reading.
func (a *app) openCatalog(ctx context.Context) (*shards.Catalog, *coordinator.Record, error) {
	store, rec, err := a.openStore(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	cat, err := shards.OpenCatalog(ctx, store)
	return cat, rec, err
}

// lock keeps other processes of ndls from writing to the run directory; it is
// gone with the process, however that ends.
func (a *app) lock() (unlock func(), err error) {
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
	// whole and creates tell run and partition from the rest.
	whole, creates bool
	stages         []control.Stage
}

// command makes the verb; v.plan starts empty.
func (v *stageVerb) command(use, short, long string) *cobra.Command {
	cmd := v.app.command(use, short, long, func(ctx context.Context, _ *cobra.Command) error { return v.execute(ctx) })
	v.runFlag(cmd)
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
	// What can be wrong about the plan is found before anything is made.
	resources, err := v.resources()
	if err != nil {
		return err
	}
	if err := v.plan.over(control.DefaultPlan()).Validate(); err != nil {
		return err
	}
	identity, counts, err := v.identity(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Stat(v.runDir); errors.Is(err, fs.ErrNotExist) && v.creates && v.dataset == "" {
		return errNoDataset
	}
	local, rec, err := v.openStore(ctx, v.creates)
	if err != nil {
		return err
	}
	unlock, err := v.lock()
	if err != nil {
		return err
	}
	defer unlock()
	plan, err := v.makePlan(ctx, rec, identity)
	if err != nil {
		return err
	}
	store := storage.NewCounting(local)
	cat, err := shards.OpenCatalog(ctx, store)
	if err != nil {
		return err
	}
	job := coordinator.Job{
		Store: store, Catalog: cat, Executor: worker.New(store, cat),
		Plan: plan, Resources: resources, Restart: !v.resume, Whole: v.whole, Counts: counts,
		Versions: versions(), Log: v.log,
	}
	done, err := job.Run(ctx, v.stages...)
	if err != nil {
		return err
	}
	return v.print(ctx, done, cat)
}

func (v *stageVerb) resources() (control.Resources, error) {
	memory, err := v.memoryBytes()
	if err != nil {
		return control.Resources{}, err
	}
	if v.blockColumns < 0 {
		return control.Resources{}, asUsage(fmt.Errorf("--block-columns %d is negative", v.blockColumns))
	}
	scratch := v.scratch
	if scratch == "" {
		scratch = filepath.Join(v.runDir, "scratch")
	}
	return control.Resources{
		Memory: memory, Threads: v.threads, Scratch: scratch, Kernel: v.kernel,
		BlockColumns: v.blockColumns, Dataset: v.dataset, SoftLabels: v.softLabels, Targets: v.targetsFile(),
	}, nil
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
