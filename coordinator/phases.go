package coordinator

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/placement"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
)

// phase runs the tasks of one phase.
func (j *Job) phase(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	for i := range tasks {
		tasks[i].Plan, tasks[i].Inputs, tasks[i].Lean, tasks[i].Spare = j.Plan, j.Inputs, j.lean, j.spare
	}
	reports, err := j.Tasks.Run(ctx, tasks)
	j.listed = max(j.listed, j.forecast().bytes(func(control.Stage) bool { return true }))
	return reports, err
}

// underWay returns the tasks on which workers work if they belong to this stage. The tasks may have begun before a restart.
func (j *Job) underWay(s control.Stage) []control.Task {
	if tasks := j.Tasks.UnderWay(); len(tasks) > 0 && tasks[0].Stage == s {
		return tasks
	}
	return nil
}

// phases divides the remaining work of a stage. The phases are nil for a stage that runs step by step; a sharing is returned if groups
// share its columns. Workers that work on a phase from before a restart continue it as it was divided then.
func (j *Job) phases(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary) ([][]control.Task, *placement.Sharing, error) {
	shape, under := s.Shape(j.Plan, sum), j.underWay(s.Name())
	steps, stepwise := shape.(stage.Steps)
	var g *placement.Sharing
	var err error
	switch {
	case len(under) > 0 && under[0].Shares():
		g = placement.Continued(under)
	case len(under) == 0 || stepwise && under[0].Part == control.Rows:
		g, err = j.share(ctx, rec, s, shape)
	}
	if err != nil || stepwise && (g == nil || steps.Panels > 0) {
		return nil, g, err
	}
	return placement.Phases(s.Name(), shape, j.Catalog.Entries, j.Tasks.Workers(), g), nil, nil
}

// share returns how the present workers share the rows of a stage's graph, or nil if they share its columns. If no worker has the memory
// for all rows, it waits for missing workers: one that is being started again may be the missing one.
func (j *Job) share(ctx context.Context, rec *Record, s stage.Stage, shape stage.Shape) (*placement.Sharing, error) {
	w := placement.Work{Stage: s, Shape: shape, Plan: j.Plan, Parallel: j.Parallel, GroupSize: j.GroupSize}
	if !w.MayShare() {
		return nil, nil
	}
	w.Tried = func(size int, seconds float64) {
		j.Log.Debug("groups that could share rows", "stage", s.Name(), "size", size, "seconds", seconds)
	}
	g, err := j.shareAmong(ctx, rec, w, j.Parallel != placement.Auto)
	if errors.Is(err, mem.ErrBudget) && j.Parallel == placement.Auto {
		g, err = j.shareAmong(ctx, rec, w, true)
	}
	return g, err
}

// shareAmong returns how the present workers share rows, if they can and should. With all it waits for the missing workers too, and is the
// last attempt. Workers that are lost again and again take part only if the others cannot do without them.
func (j *Job) shareAmong(ctx context.Context, rec *Record, w placement.Work, all bool) (*placement.Sharing, error) {
	list, err := j.Tasks.Sharers(ctx, all)
	if err != nil || len(list.Fit)+len(list.Held) == 0 {
		return nil, err
	}
	if w.Counts, err = j.forecast().counts(ctx, rec); err != nil {
		return nil, err
	}
	if w.Models() == 0 {
		w.Edges = stripEdges(ctx, j.Catalog, j.Plan, w.Counts.Nodes)
	}
	if len(list.Held) == 0 {
		return j.place(w, list.Fit, all)
	}
	g, err := j.place(w, list.Fit, false)
	if len(list.Fit) == 0 || errors.Is(err, mem.ErrBudget) {
		return j.place(w, slices.Concat(list.Fit, list.Held), all)
	}
	if err == nil {
		var names []string
		for _, h := range list.Held {
			names = append(names, h.Worker)
		}
		slices.Sort(names)
		j.Log.Warn("workers that were lost again and again are left out for a while", "stage", w.Stage.Name(), "workers", names)
	}
	return g, err
}

// place returns how these workers share rows, and logs it. In the last attempt with Auto, workers whose memory does not suffice share
// columns.
func (j *Job) place(w placement.Work, workers []control.Hello, last bool) (*placement.Sharing, error) {
	g, err := w.Share(workers)
	if _, misfit := errors.AsType[placement.Misfit](err); misfit && last && j.Parallel == placement.Auto {
		j.Log.Warn("the rows of the graph fit neither one worker nor all of them", "stage", w.Stage.Name(), "because", err)
		return nil, nil
	}
	if g == nil {
		return nil, err
	}
	if w.Models() > 0 {
		j.Log.Info("workers train models together", "workers", len(workers), "groups", g.Groups, "of", len(g.Strips))
	} else {
		j.Log.Info("workers share the rows of the graph", "stage", w.Stage.Name(), "workers", len(workers), "groups", g.Groups, "of",
			len(g.Strips), "strips", g.Borders())
	}
	return g, nil
}

// runSteps runs a stage step by step, or as one task if there is one worker and no others have begun. Unless g is nil, the workers of a
// group share the rows of columns.
func (j *Job) runSteps(ctx context.Context, s control.Stage, steps stage.Steps, g *placement.Sharing) ([]control.StageReport, error) {
	var reports []control.StageReport
	from := 0.0
	left, err := steps.Advance(ctx, j.Catalog)
	once := steps.Once || g.AtOnce(left)
	for err == nil {
		tasks := placement.Step(s, left, j.Tasks.Workers(), g)
		ended := tasks[0].Part == control.Whole
		leave := func() {}
		if once { // else the number of steps is unknown
			to := stage.ColumnShare
			if ended {
				to = 1
			}
			leave = progress.EnterRange(ctx, from, to)
			from = to
		}
		reports, err = j.phase(ctx, tasks)
		if leave(); err != nil {
			return reports, err
		}
		before := left
		left, err = steps.Advance(ctx, j.Catalog)
		switch {
		case err == nil && ended && s == control.Partition:
			return reports, j.warn(ctx)
		case ended:
			return reports, err
		case err == nil && left.Repeats(before):
			err = fmt.Errorf("step %s of %s ended without files; start all workers from the same version", left.Step, s)
		}
	}
	return reports, err
}

// warn logs what a user should know about the graph.
func (j *Job) warn(ctx context.Context) error {
	sum, err := shards.ReadSummary(ctx, j.Catalog)
	if sum.Normalization != "" {
		j.Log.Info("--normalize " + sum.Normalization)
	}
	for _, w := range sum.Warnings {
		j.Log.Warn(w)
	}
	return err
}

// stripEdges counts the edges into each strip of rows that the hops of the plan read. It spreads them evenly where no hop stream can be
// read.
func stripEdges(ctx context.Context, cat *catalog.Catalog, p plan.Options, nodes int64) []float64 {
	all := make([]float64, packed.Strips(nodes))
	for _, direction := range p.Directions() {
		for i, n := range stripEdgesOf(ctx, cat, direction, len(all)) {
			all[i] += n
		}
	}
	return all
}

func stripEdgesOf(ctx context.Context, cat *catalog.Catalog, direction string, strips int) []float64 {
	_, hopKind := stage.EdgeKinds(direction)
	edges := make([]float64, strips)
	left, unknown := 0.0, strips // edges and strips of streams that cannot be read
	for _, e := range cat.Entries(stage.EdgesOf(cat, direction)) {
		left += float64(e.Rows)
	}
	known := make([]bool, strips)
	for _, e := range cat.Entries(hopKind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			continue // it will be made again
		}
		if h, err := shards.OpenHops(r, e.Path); err == nil {
			for i, n := range h.StripEdges() {
				at := h.Meta().Lo/packed.StripRows + int64(i)
				edges[at], known[at] = float64(n), true
				left -= float64(n)
				unknown--
			}
		}
		_ = r.Close()
	}
	for i := range edges {
		if !known[i] {
			edges[i] = max(left, 0) / float64(unknown)
		}
	}
	return edges
}
