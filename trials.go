package ndls

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/control/member"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/rundir"
	"ndls/internal/storage"
	"ndls/internal/vfs"
	"ndls/stage"
	"ndls/stage/depth"
	"ndls/stage/features"
	"ndls/stage/imports"
	"ndls/stage/models"
	"ndls/stage/registry"
	"ndls/stage/trial"
)

// ErrDiverged reports a model whose training ended in numbers that are not finite.
var ErrDiverged = trial.ErrDiverged

// Trials tries options of smoothing, of training and of label smoothing over one import. It commits
// to the run directory what smoothing takes, and nothing of a trial: what that writes is removed after it. Labels of test nodes are not
// looked at.
type Trials struct {
	config   Config
	smoothed bool
	all      []Options // of the search
	*opened
}

// opened holds what trials share.
type opened struct {
	plan      Options // of the run directory
	cat       *catalog.Catalog
	summary   Graph
	budget    *mem.Budget
	resources control.Resources // of a trial
	threads   int               // of all trials together
	share     int64             // memory of a trial
	side      int
	// kinds are the rows in memory by the options of smoothing ([rowsOf]) where they were smoothed there. Otherwise the
	// run directory has rows of one kind, and held are those in memory, nil where they are read for each trial.
	kinds map[Options]*trial.Held
	held  *trial.Held
	tried atomic.Int64
	undo  []func()
}

const (
	// mostSideBySide is the largest number of trials at the same time: each of them has objects on
	// the Go heap, whose size is bounded for all of them together.
	mostSideBySide = 8
	// mostHopWork is the number of added values of hops that may be lost if the process ends: about
	// a minute's. With more, stage smooth makes the rows, which continues after an interruption.
	mostHopWork = 1 << 37
)

// OpenTrials prepares trials with some options over the dataset of c in c.Run. They agree in those of the import.
// smoothed says that trials smooth labels, too. c.Options is not used. [Trials.Prepare] comes next. The
// caller closes what is returned.
func OpenTrials(c Config, smoothed bool, all ...Options) *Trials {
	return &Trials{config: c, smoothed: smoothed, all: all, opened: &opened{}}
}

// Prepare imports the dataset and smooths features, unless that is done, for the first of some trials that
// are to be made, and says how many those are. Trials that make the same hops, but for ε and the rule, are
// prepared together if smoothing takes a minute at most: K is found for all their ε in the same passes, their rows are
// added up from the same hops, and stay in memory, as many kinds as fit. Otherwise they are trials over the same
// smoothed rows, which are in c.Run; what it has smoothed in another way is discarded. Trials that were prepared
// before are over; their rows are used again if those of all trials are among them.
func (t *Trials) Prepare(ctx context.Context, trials ...Options) (n int, err error) {
	defer func() { err = interruption(ctx, err) }()
	if t.holds(trials) && t.divide(trials, features.TrainedWidth(trials[0], t.summary)) == nil {
		return len(trials), nil
	}
	t.Close()
	if n, err = t.together(ctx, trials); n == 0 && err == nil {
		t.Close()
		n, err = t.alone(ctx, trials)
	}
	if err != nil {
		t.Close()
	}
	return n, err
}

// Check refuses a dataset with which no trial can be made, and writes nothing: one that lacks what the model of a trial
// is trained on, or that has no validation nodes.
func (t *Trials) Check(ctx context.Context) error {
	if len(t.all) == 0 {
		return nil
	}
	plan := t.all[0]
	ds, err := dataset.Open(ctx, t.config.Dataset, imports.DatasetOptions(plan))
	if err != nil {
		return err
	}
	defer func() { _ = ds.Close() }()
	if keyed, ok := ds.(dataset.Keyed); ok { // of which only whether there are rows counts here
		keyed.Number(1, func([]byte) (uint32, bool) { return 0, true })
	}
	info := ds.Info()
	c := estimate.Counts{
		Nodes: info.NumNodes, Directed: info.Directed, Features: info.NumFeatures + len(info.Categories), Classes: len(info.Classes),
	}
	if c.Nodes < 0 {
		c.Nodes = mostNodes // the ids that occur, which nobody has counted
	}
	if info.HasSplits && plan.Partition.Split == "" {
		if err := countSplits(ctx, ds, &c); err != nil {
			return err
		}
	}
	if err := drawnSplits(info, plan, &c); err != nil {
		return err
	}
	for _, o := range t.all {
		facts := c.Facts(o)
		facts.Splits = info.HasSplits || o.Partition.Split != ""
		for _, s := range registry.Of(trial.Stages(o, t.smoothed)...) {
			if lack := s.Lacks(o, facts); lack != "" {
				return failure.Of(ErrOption, "no trial can be made: %s", lack)
			}
		}
	}
	if c.Validation == 0 {
		return errNoValidation
	}
	return nil
}

// errNoValidation is the error of a search that could compare no trials.
var errNoValidation = failure.Of(ErrOption, "no node is in the split valid, by which trials are compared: give splits, or --split random:20,30 or share:0.6,0.2")

// holds reports whether all trials are over rows that are in memory now.
func (t *Trials) holds(trials []Options) bool {
	return t.kinds != nil && !slices.ContainsFunc(trials, func(o Options) bool { return t.kinds[rowsOf(o)] == nil })
}

// rowsOf are the options that decide smoothed rows.
func rowsOf(o Options) Options {
	o.Train, o.Labels = Options{}.Train, Options{}.Labels
	return o
}

// together prepares the first of the trials that make the same hops, none where that is not to be done.
func (t *Trials) together(ctx context.Context, trials []Options) (n int, err error) {
	same := func(o Options) bool {
		return trial.SameHops(o, trials[0]) && (!t.smoothed || o.LSI.Epsilon == trials[0].LSI.Epsilon)
	}
	c, first, takesK := t.config, trials[0], false
	for _, o := range t.all {
		if !same(o) || !trial.TakesK(o) {
			continue
		}
		if !takesK {
			first.LSI.Epsilon, takesK = o.LSI.Epsilon, true
		}
		first.LSI.Epsilon = min(first.LSI.Epsilon, o.LSI.Epsilon)
		if !slices.Contains(c.LabelEpsilons, o.LSI.Epsilon) {
			c.LabelEpsilons = append(slices.Clip(c.LabelEpsilons), o.LSI.Epsilon)
		}
	}
	if err := t.imports(ctx, first); err != nil {
		return 0, err
	}
	hops, expected := 0, t.counts(first).Hops
	for _, o := range trials {
		if same(o) {
			hops = max(hops, trial.PassesOf(o, expected))
		}
	}
	tables := int64(len(c.LabelEpsilons)) * (2*t.summary.Nodes + 4096)
	if !trial.FromHops(first, t.summary) || trial.HopWork(t.summary, hops) > mostHopWork || tables > t.budget.Free()/8 {
		return 0, nil
	}
	if list := trial.Stages(first, t.smoothed); takesK || t.smoothed && slices.Contains(Needed(first, list[len(list)-1]), control.LSI) {
		if err := t.findK(ctx, c, first); err != nil {
			return 0, err
		}
	}
	var kinds []Options
	ends := []int{} // of the trials of each kind
	for i, o := range trials {
		if !same(o) || !trial.FromHops(o, t.summary) {
			break
		}
		if rows := rowsOf(o); len(kinds) == 0 || kinds[len(kinds)-1] != rows {
			if slices.Contains(kinds, rows) {
				break
			}
			kinds, ends = append(kinds, rows), append(ends, 0)
		}
		ends[len(ends)-1] = i + 1
	}
	width := features.TrainedWidth(first, t.summary)
	rows := t.heldRows(t.summary.Nodes)
	// One half for rows that are held, the other for smoothing them and for trials.
	m := int(min(max(t.budget.Free()/2/trial.KindBytes(first, t.summary, rows, width), 1), int64(len(kinds))))
	for ; m > 0; m /= 2 {
		err := t.hold(ctx, kinds[:m])
		if err == nil {
			err = t.divide(trials[:ends[m-1]], width)
		}
		if err == nil {
			return ends[m-1], nil
		}
		t.free()
		if !errors.Is(err, ErrBudget) {
			return 0, err
		}
	}
	return 0, nil
}

// hold smooths some kinds of rows into memory.
func (t *Trials) hold(ctx context.Context, kinds []Options) error {
	env := t.env(t.plan, t.budget)
	held, err := trial.HoldSmoothed(ctx, env, kinds, t.smoothed)
	if err != nil {
		return err
	}
	t.kinds = map[Options]*trial.Held{}
	for i, o := range kinds {
		t.kinds[o] = held[i]
	}
	return nil
}

// free gives back the memory of rows.
func (t *Trials) free() {
	for _, h := range t.kinds {
		h.Free()
	}
	t.held.Free()
	t.kinds, t.held = nil, nil
}

// imports commits the import, with options o where it has not begun, and opens the run directory.
func (t *Trials) imports(ctx context.Context, o Options) error {
	c := t.config
	begun := false
	if !rundir.Missing(c.Run) {
		_, rec, err := openStore(ctx, c.Run, true)
		if err != nil {
			return err
		}
		begun = rec != nil
	}
	c.Options = nil // those of the run directory
	if !begun {
		c.Options = func(base *Options) { laidOver(base, o) }
	}
	if _, err := Run(ctx, c, control.Partition); err != nil {
		return err
	}
	return t.open(ctx, c)
}

// RowLength imports the dataset, unless that is done, and returns the root mean square of the lengths of the features of training
// nodes: 0 without features. No trial may be under way.
func (t *Trials) RowLength(ctx context.Context, o Options) (length float64, err error) {
	defer func() { err = interruption(ctx, err) }()
	t.Close()
	defer t.Close()
	if err := t.imports(ctx, o); err != nil {
		return 0, err
	}
	return trial.RowLength(ctx, t.env(t.plan, t.budget))
}

// laidOver makes base the options o, but for what it says of the dataset.
func laidOver(base *Options, o Options) {
	o.Partition.Dataset = base.Partition.Dataset
	*base = o
}

// findK commits the K tables for the ε of o and for those that c names.
func (t *Trials) findK(ctx context.Context, c Config, o Options) error {
	plan, stages := t.plan, []Stage{control.Partition, control.LSI}
	plan.LSI = o.LSI
	for range 2 {
		t.Close()
		if err := execute(ctx, c, plan, stages); err != nil {
			return err
		}
		if err := t.open(ctx, c); err != nil {
			return err
		}
		if !slices.ContainsFunc(c.LabelEpsilons, func(epsilon float64) bool {
			return epsilon > o.LSI.Epsilon && !depth.HasK(t.cat, t.plan, t.summary, epsilon)
		}) {
			return nil
		}
		c.Discard, stages = true, []Stage{control.LSI} // it was found for others
	}
	return fmt.Errorf("the LSI stage did not commit a K table for each ε of %v", c.LabelEpsilons)
}

// open opens the run directory, whose lock it takes.
func (t *Trials) open(ctx context.Context, c Config) error {
	unlock, err := lockExisting(ctx, c.Run)
	if err != nil {
		return err
	}
	t.undo = append(t.undo, unlock)
	d, err := Open(ctx, c.Run)
	if err != nil {
		return err
	}
	t.cat, t.plan = d.cat, d.record.Plan
	if t.summary, err = d.Graph(ctx); err != nil {
		return err
	}
	if t.summary.Splits["valid"] == 0 {
		return errNoValidation
	}
	if t.resources, err = c.Resources.control(c.Run); err != nil {
		return err
	}
	t.threads = max(t.resources.Threads, 1)
	if t.resources.Scratch, err = t.temporary(t.resources.Scratch); err != nil {
		return err
	}
	if t.budget, err = mem.NewBudget(t.resources.Memory); err != nil {
		return err
	}
	t.undo = append(t.undo, t.budget.Close)
	return nil
}

// alone prepares the first of the trials that are over the same smoothed rows, which are in files.
func (t *Trials) alone(ctx context.Context, trials []Options) (n int, err error) {
	for n < len(trials) && rowsOf(trials[n]) == rowsOf(trials[0]) {
		n++
	}
	trials = trials[:n]
	o := trials[0]
	list := trial.Stages(o, t.smoothed)
	stages := slices.DeleteFunc(Needed(o, list[len(list)-1]), func(s Stage) bool { return registry.Index(s) > registry.Index(control.Smooth) })
	if err := execute(ctx, t.config, o, stages); err != nil {
		return 0, err
	}
	if err := t.open(ctx, t.config); err != nil {
		return 0, err
	}
	stored, width := features.StoredRows(t.cat, t.plan), features.TrainedWidth(t.plan, t.summary)
	rows := t.heldRows(stored)
	if held := trial.HeldBytes(t.plan, t.summary, rows, width); held+trial.HoldingBytes(t.plan, t.summary, stored, width) <= t.budget.Free() {
		if _, err := t.fits(trials, t.budget.Free()-held, 1); err == nil {
			if t.held, err = trial.Hold(ctx, t.env(t.plan, t.budget), t.smoothed); err != nil {
				return 0, err
			}
			if err := t.divide(trials, width); err == nil {
				return n, nil
			}
			t.free() // other splits may be larger than the first
		}
	}
	return n, t.divide(trials, width)
}

// execute commits the output of stages with options o in the run directory of c. What it has made with other options
// is discarded, but the import.
func execute(ctx context.Context, c Config, o Options, stages []Stage) error {
	c.Options = func(base *Options) { laidOver(base, o) }
	j, err := newJob(c, stages)
	if err != nil {
		return err
	}
	if !c.Discard && !rundir.Missing(c.Run) {
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

// stale lists the job's stages from the first one that the run directory has not begun, or has begun with other options.
// It is empty where none was begun with other options. Partition is never listed: a run refuses to replace it.
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
	first := -1 // of the stages that must be done
	for i, s := range j.stages {
		if s == control.Partition {
			continue
		}
		begun := rec.Stage(s) != nil
		other := begun && len(registry.Diff(plan, rec.Plan, s)) > 0
		if first < 0 && (other || !begun) {
			first = i
		}
		if other {
			return j.stages[first:], nil
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

// options returns the options of a trial, o, with the run directory's values about the dataset and
// files.
func (t *Trials) options(o Options) (Options, error) {
	plan := t.plan
	plan.Train, plan.Labels = o.Train, o.Labels
	if t.kinds != nil {
		if t.kinds[rowsOf(o)] == nil {
			return plan, failure.Of(ErrPlanMismatch, "the trial's rows are not those that were prepared")
		}
		plan.LSI, plan.Smooth = o.LSI, o.Smooth
		return plan, registry.Validate(plan)
	}
	o.Partition = plan.Partition
	o.Smooth.Targets, o.Smooth.Direction, o.Smooth.KeepHops = plan.Smooth.Targets, plan.Smooth.Direction, plan.Smooth.KeepHops
	if d := registry.Diff(o, plan, Needed(o, control.Smooth)...); len(d) > 0 {
		return plan, failure.Of(ErrPlanMismatch, "trials over the same smoothed rows differ in %v", d)
	}
	return plan, registry.Validate(plan)
}

// heldRows returns the number of rows, of so many, that trials read.
func (t *Trials) heldRows(rows int64) int64 {
	if t.smoothed {
		return rows
	}
	return min(rows, (t.summary.Splits["train"]+t.summary.Splits["valid"])*int64(t.plan.NumSplits()))
}

// divide says how many trials there are at the same time, in equal parts of the memory that rows leave, and with equal
// parts of the threads: as many as their training leaves threads for, or fewer, so that each fits.
func (t *Trials) divide(trials []Options, width int) error {
	threads, free := t.threads, t.budget.Free()
	most := threads
	trained := map[Options]bool{} // that trials do not share
	for _, o := range trials {
		most = min(most, models.ModelsAtATime(o, t.summary.Splits["train"], width, threads))
		o.Labels = Options{}.Labels
		trained[o] = true
	}
	most = min(most, len(trained), mostSideBySide)
	for side := most; ; side-- {
		share := free / int64(side) &^ 4095
		lean, err := t.fits(trials, share, side)
		if err == nil {
			t.side, t.share, t.resources.Threads, t.resources.Lean = side, share, max(threads/side, 1), lean
			return nil
		}
		if side == 1 {
			return err
		}
	}
}

// fits says why trials do not fit so much memory each and, so many at the same time, the threads and the disk; nil if they do.
// lean says that they fit without temporary files that only save time.
func (t *Trials) fits(trials []Options, share int64, side int) (lean bool, err error) {
	r := t.resources
	r.Memory, r.Threads = mem.Total(share), max(t.threads/side, 1)
	if r.Disk > 0 {
		for _, e := range t.cat.Entries("") {
			r.Disk -= e.Bytes
		}
		r.Disk = max(r.Disk/int64(side), 1)
	}
	counts := t.counts(t.plan)
	for _, o := range trials {
		plan, err := t.options(o)
		if err != nil {
			return false, err
		}
		costs := registry.Costs(trial.Stages(plan, t.smoothed)...)
		list, err := estimate.Run(counts, plan, r, 0, costs...)
		if err == nil && r.Disk > 0 {
			err = estimate.CheckDisk(counts, plan, r, 1, 0, 0, estimate.Space{Run: r.Disk, Same: true, Bounded: true}, costs...)
		}
		if err != nil {
			return false, err
		}
		lean = lean || slices.ContainsFunc(list, func(f control.Figures) bool { return f.Lean })
	}
	return lean, nil
}

// counts returns the counts of the graph.
func (t *Trials) counts(plan Options) estimate.Counts {
	counts := stage.CountsOf(t.cat, t.summary)
	counts.Hops = plan.LSI.Kmax
	return counts
}

// env returns the environment of a task of a trial.
func (t *Trials) env(plan Options, budget *mem.Budget) *stage.Env {
	return &stage.Env{
		Session: &stage.Session{Budget: budget}, Summary: t.summary, Plan: plan, Resources: t.resources, Catalog: t.cat, Blind: true,
	}
}

// SideBySide returns the number of trials that may be made at the same time.
func (t *Trials) SideBySide() int { return t.side }

// Measure trains the models of trials that differ in options of label smoothing alone and, if trials smooth
// labels, smooths those of each. It gives found, trial by trial, what the models are right about on the
// validation nodes: what a run with the same options finds. At most SideBySide calls may be under way. An
// error wraps [ErrDiverged] if it is about the options of training alone.
func (t *Trials) Measure(ctx context.Context, trials []Options, found func(i int, a *Accuracy) error) (err error) {
	defer func() { err = interruption(ctx, registry.Explain(err, t.cat)) }()
	var plans []Options
	for _, o := range trials {
		plan, err := t.options(o)
		if err != nil {
			return err
		}
		if plan.Train != trials[0].Train || rowsOf(o) != rowsOf(trials[0]) {
			return failure.Of(ErrPlanMismatch, "trials that share models differ in options of smoothing or training")
		}
		plans = append(plans, plan)
	}
	budget, err := t.budget.Part(t.share, "a trial")
	if err != nil {
		return err
	}
	defer budget.Close()
	held := t.held
	if t.kinds != nil {
		held = t.kinds[rowsOf(trials[0])]
	}
	env := t.env(plans[0], budget)
	env.Resources.Memory = mem.Total(t.share)
	env.Resources.Scratch = filepath.Join(t.resources.Scratch, strconv.FormatInt(t.tried.Add(1), 10))
	defer func() { _ = vfs.RemoveAll(env.Resources.Scratch) }()
	files, err := storage.NewTemporary(filepath.Join(env.Resources.Scratch, "files"))
	if err != nil {
		return fmt.Errorf("--scratch: %w", err)
	}
	return trial.Try(ctx, *env, held, files, t.smoothed, plans, found)
}

// Close gives memory back and removes temporary files.
func (t *Trials) Close() {
	t.free()
	for _, f := range slices.Backward(t.undo) {
		f()
	}
	t.opened = &opened{}
}
