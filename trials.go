package ndls

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/control/member"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/stage"
)

// ErrDiverged reports a model whose training ended in numbers that are not finite.
var ErrDiverged = stage.ErrDiverged

// Trials tries options of training and of label smoothing over the same smoothed rows. It commits
// nothing to the run directory: what a trial writes is removed after it. Labels of test nodes are not
// looked at.
type Trials struct {
	smoothed  bool
	plan      Options
	cat       *catalog.Catalog
	summary   Graph
	budget    *mem.Budget
	resources control.Resources // of a trial
	share     int64             // memory of a trial
	side      int
	held      *stage.HeldRows
	tried     atomic.Int64
	undo      []func()
}

// mostSideBySide is how many trials there are at the same time, at most: each of them has objects on the
// Go heap, which is as large for all of them.
const mostSideBySide = 8

// OpenTrials imports the dataset of c and smooths its features in c.Run, unless that is done, as the options
// of the trials say. In these they must agree: the trials differ in options of training and of label
// smoothing alone. smoothed says that trials smooth labels, too. What c.Run has smoothed in another
// way is discarded. Where the rows that trials read fit the memory, they are read once. c.Options is not
// used. The caller closes what is returned.
func OpenTrials(ctx context.Context, c Config, smoothed bool, trials ...Options) (_ *Trials, err error) {
	defer func() { err = interruption(ctx, err) }()
	if err := smooth(ctx, c, smoothed, trials[0]); err != nil {
		return nil, err
	}
	t := &Trials{smoothed: smoothed}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	unlock, err := lockExisting(ctx, c.Run)
	if err != nil {
		return nil, err
	}
	t.undo = append(t.undo, unlock)
	d, err := Open(ctx, c.Run)
	if err != nil {
		return nil, err
	}
	t.cat, t.plan = d.cat, d.record.Plan
	if t.summary, err = d.Graph(ctx); err != nil {
		return nil, err
	}
	if t.summary.Splits["valid"] == 0 {
		return nil, failure.Of(ErrOption, "no node is in the split valid, by which trials are compared: give splits, or --split random:20,30 or share:0.6,0.2")
	}
	if t.resources, err = c.Resources.control(c.Run); err != nil {
		return nil, err
	}
	if t.resources.Scratch, err = t.temporary(t.resources.Scratch); err != nil {
		return nil, err
	}
	if t.budget, err = mem.NewBudget(t.resources.Memory); err != nil {
		return nil, err
	}
	t.undo = append(t.undo, t.budget.Close)
	for i, o := range trials {
		if trials[i], err = t.options(o); err != nil {
			return nil, err
		}
	}
	return t, t.divide(ctx, trials)
}

// smooth commits the smoothed rows of options o.
func smooth(ctx context.Context, c Config, smoothed bool, o Options) error {
	c.Options = func(base *Options) {
		o.Partition.Dataset = base.Partition.Dataset
		*base = o
	}
	list := stage.Trial(o, smoothed)
	stages := Needed(o, list[len(list)-1])
	stages = slices.DeleteFunc(stages, func(s Stage) bool { return stage.Index(s) > stage.Index(control.Smooth) })
	j, err := newJob(c, stages)
	if err != nil {
		return err
	}
	if !rundir.Missing(c.Run) {
		stale, err := j.stale(ctx)
		if err != nil {
			return err
		}
		if len(stale) > 0 {
			c.Discard, stages = true, stale
		}
	}
	_, err = Run(ctx, c, stages...)
	return err
}

// stale lists those of the job's stages that the run directory has begun with other options, and those
// after them. Another partition is not among them: the run refuses that.
func (j job) stale(ctx context.Context) ([]Stage, error) {
	_, rec, err := openStore(ctx, j.Run, true)
	if err != nil || rec == nil || !rec.Done(control.Partition) {
		return nil, err
	}
	base := j
	base.Dataset = ""
	plan, err := base.options(ctx, rec, "")
	if err != nil {
		return nil, err
	}
	for i, s := range j.stages {
		if s != control.Partition && rec.Stage(s) != nil && len(stage.Diff(plan, rec.Plan, s)) > 0 {
			return j.stages[i:], nil
		}
	}
	return nil, nil
}

// temporary makes a folder for the files of trials.
func (t *Trials) temporary(scratch string) (string, error) {
	base, remove, err := rundir.Temporary(scratch)
	if err != nil {
		return "", err
	}
	t.undo = append(t.undo, remove)
	dir, drop, err := ownScratch(filepath.Join(base, "trials"), member.NewName())
	if err != nil {
		return "", err
	}
	t.undo = append(t.undo, drop)
	return dir, nil
}

// options are those of a trial, o, with what the run directory says of the dataset and of files.
func (t *Trials) options(o Options) (Options, error) {
	plan := t.plan
	plan.Train, plan.Labels = o.Train, o.Labels
	o.Partition = plan.Partition
	o.Smooth.Targets, o.Smooth.Direction, o.Smooth.KeepHops = plan.Smooth.Targets, plan.Smooth.Direction, plan.Smooth.KeepHops
	if d := stage.Diff(o, plan, Needed(o, control.Smooth)...); len(d) > 0 {
		return plan, failure.Of(ErrPlanMismatch, "trials over the same smoothed rows differ in %v", d)
	}
	return plan, stage.Validate(plan)
}

// divide says how many trials there are at the same time, and holds rows in memory where they fit beside
// the least that this many trials take, or one.
func (t *Trials) divide(ctx context.Context, trials []Options) error {
	threads, free := max(t.resources.Threads, 1), t.budget.Free()
	most := threads
	rows, width := stage.StoredRows(t.cat, t.plan, t.summary)
	models := map[control.TrainOptions]bool{} // that trials do not share
	for _, o := range trials {
		most = min(most, stage.ModelsAtATime(o, t.summary.Splits["train"], width, threads))
		models[o.Train] = true
	}
	most = min(most, len(models), mostSideBySide)
	heldRows := rows
	if !t.smoothed {
		heldRows = min(rows, (t.summary.Splits["train"]+t.summary.Splits["valid"])*int64(t.plan.NumSplits()))
	}
	held, holding := stage.HeldBytes(t.plan, heldRows, width), stage.HoldingBytes(t.plan, rows, width)
	var failed error
	for _, hold := range []bool{true, false} {
		if hold && held+holding > free {
			continue
		}
		for side := most; side > 0; side-- {
			share := free
			if hold {
				share -= held
			}
			share = share / int64(side) &^ 4095
			if failed = t.fits(trials, share, threads/side); failed != nil {
				continue
			}
			if hold {
				env := t.env(t.plan, t.budget)
				var err error
				if t.held, err = stage.Hold(ctx, env, t.smoothed); err != nil {
					return err
				}
				share = min(share, t.budget.Free()/int64(side)&^4095) // other splits may be larger than the first
			}
			t.side, t.share, t.resources.Threads = side, share, max(threads/side, 1)
			return nil
		}
	}
	return failed
}

// fits says why trials do not fit so much memory, with so many threads, nil if they do.
func (t *Trials) fits(trials []Options, share int64, threads int) error {
	r := t.resources
	r.Memory, r.Threads = mem.Total(share), max(threads, 1)
	counts := stage.CountsOf(t.cat, t.summary)
	counts.Hops = counts.ExpectedHops(t.plan.LSI.Kmax)
	for _, o := range trials {
		if _, err := estimate.Run(counts, o, r, 0, stage.Costs(stage.Trial(o, t.smoothed)...)...); err != nil {
			return err
		}
	}
	return nil
}

// env is what a task of a trial works with.
func (t *Trials) env(plan Options, budget *mem.Budget) *stage.Env {
	return &stage.Env{
		Session: &stage.Session{Budget: budget}, Summary: t.summary, Plan: plan, Resources: t.resources, Catalog: t.cat,
		Held: t.held, Blind: true,
	}
}

// SideBySide is how many trials may be made at the same time.
func (t *Trials) SideBySide() int { return t.side }

// InMemory says whether the rows that trials read are in memory.
func (t *Trials) InMemory() bool { return t.held != nil }

// Measure trains the models of trials that differ in options of label smoothing alone and, if trials smooth
// labels, smooths those of each. It gives found, trial by trial, what the models are right about on the
// validation nodes: what a run with the same options finds. At most SideBySide calls may be under way. An
// error wraps [ErrDiverged] if it is about the options of training alone.
func (t *Trials) Measure(ctx context.Context, trials []Options, found func(i int, a *Accuracy) error) (err error) {
	defer func() { err = interruption(ctx, stage.Explain(err, t.cat)) }()
	var plans []Options
	for _, o := range trials {
		plan, err := t.options(o)
		if err != nil {
			return err
		}
		if plan.Train != trials[0].Train {
			return failure.Of(ErrPlanMismatch, "trials that share models differ in options of training")
		}
		plans = append(plans, plan)
	}
	budget, err := t.budget.Part(t.share, "a trial")
	if err != nil {
		return err
	}
	defer budget.Close()
	env := t.env(plans[0], budget)
	env.Resources.Memory = mem.Total(t.share)
	env.Resources.Scratch = filepath.Join(t.resources.Scratch, strconv.FormatInt(t.tried.Add(1), 10))
	defer func() { _ = vfs.RemoveAll(env.Resources.Scratch) }()
	files, err := storage.NewTemporary(filepath.Join(env.Resources.Scratch, "files"))
	if err != nil {
		return fmt.Errorf("--scratch: %w", err)
	}
	return stage.Try(ctx, *env, files, t.smoothed, plans, found)
}

// Close gives memory back and removes temporary files. It may be called on nil.
func (t *Trials) Close() {
	if t == nil {
		return
	}
	t.held.Free()
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.undo = nil
}
