package ndls

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"ndls/coordinator"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/failure"
	"ndls/internal/mem"
)

// errNoDataset is the error of a run that would start without a dataset.
var errNoDataset = failure.Of(ErrOption, "--dataset is needed to start; ndls run --help lists the forms of a dataset URI")

// over returns base with the caller's options laid over it.
func (c Config) over(base Options) Options {
	if c.Options != nil {
		c.Options(&base)
	}
	return base
}

// options lays what was given over the options of the run directory, if it has
// some, or over the defaults. identity is what the options call the dataset.
func (j job) options(ctx context.Context, rec *coordinator.Record, identity string) (Options, error) {
	base := control.DefaultPlan()
	if rec != nil {
		base = rec.Plan
	}
	plan := j.over(base)
	if identity != "" {
		plan.Partition.Dataset = identity
	} else if j.creates && (rec == nil || !rec.Done(control.Partition) || j.Discard) {
		return plan, errNoDataset
	}
	if j.SoftLabels != "" {
		sum, err := fileSum(ctx, j.SoftLabels)
		if err != nil {
			return plan, fmt.Errorf("--soft-labels: %w", err)
		}
		plan.Labels.SoftLabels = filepath.Base(j.SoftLabels) + "@sha256:" + sum
	} else if plan.Labels.SoftLabels != "" && rec != nil && !rec.Done(control.SmoothLabels) && slices.Contains(j.stages, control.SmoothLabels) {
		return plan, failure.Of(ErrOption, "the run smooths soft labels of another model; give --soft-labels %s again", plan.Labels.SoftLabels)
	}
	if t := j.targetsFile(); t != "" {
		sum, err := fileSum(ctx, t)
		if err != nil {
			return plan, fmt.Errorf("--targets %s is neither all nor labelled nor a file: %w", t, err)
		}
		plan.Smooth.Targets = filepath.Base(t) + "@sha256:" + sum
	}
	return plan, nil
}

// targetsFile is the file of target rows that the caller's options name, "" if they
// name none.
func (c Config) targetsFile() string {
	t := c.over(control.DefaultPlan()).Smooth.Targets
	if t == control.AllTargets || t == control.LabelledTargets {
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

// PlanConfig is what a plan is made from: a dataset, or counts.
type PlanConfig struct {
	// Dataset is the URI of a dataset. What it does not state is counted, which reads
	// it once. "" takes Counts.
	Dataset string
	// Counts are those of the graph. Of a dataset only Hops is taken from here.
	Counts Counts
	// Options, unless nil, changes the default options.
	Options func(*Options)
	// Resources are those of each worker.
	Resources Resources
	// Workers is how many there are, 0 for one; Parallel says how they share stages.
	Workers  int
	Parallel string
}

// Plan works out what each stage of a run takes. Where a stage does not fit it
// returns the figures all the same, with an error that wraps [ErrBudget] and says
// what would fit.
func Plan(ctx context.Context, c PlanConfig) ([]Figures, error) {
	plan := Config{Options: c.Options}.over(control.DefaultPlan())
	if err := plan.Validate(); err != nil {
		return nil, err
	}
	memory, err := c.Resources.memory()
	if err != nil {
		return nil, err
	}
	if (c.Dataset == "") == (c.Counts.Nodes == 0) {
		return nil, failure.Of(ErrOption, "give either --dataset, or --nodes and --edges")
	}
	counts := c.Counts
	if c.Dataset != "" {
		if counts, err = countDataset(ctx, c.Dataset, plan); err != nil {
			return nil, interruption(ctx, err)
		}
		counts.Hops = c.Counts.Hops
	}
	if counts.Hops == 0 {
		counts.Hops = estimate.DefaultHops
	}
	counts.StatedNodes = counts.StatedNodes || c.Dataset == ""
	counts.Labelled = max(counts.Labelled, counts.Training)
	parallel, err := parseParallel(c.Parallel)
	if err != nil {
		return nil, err
	}
	r := control.Resources{Memory: memory, Threads: threads(c.Resources.Threads), BlockColumns: c.Resources.BlockColumns}
	workers := max(c.Workers, 1)
	stages := estimate.Stages(counts, plan)
	list, err := estimate.RunCut(counts, plan, r, workers, 0, stages...)
	if workers > 1 && (parallel == coordinator.Intervals || parallel == coordinator.Auto && errors.Is(err, mem.ErrBudget)) {
		if wrong := coordinator.CheckParallel(parallel, plan); wrong != nil {
			return nil, failure.As(ErrOption, wrong)
		}
		list, err = estimate.RunShared(counts, plan, r, workers, 0, stages...)
	}
	return list, err
}
