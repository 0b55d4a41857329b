package stage

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/share"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/train"
)

const (
	// sampleRows is the largest number of rows on which settled smoothing is checked.
	sampleRows = 1 << 16
	// choicePath is the path of the last hops of rows. Workers that share the rows commit one file each, with its rows in the name.
	choicePath = "smoothed/last-hops"
)

// choice returns the last hop to which each of the task's rows is computed, or nil if the plan sets it. A run makes the choice once and
// commits it, so that all tasks of the stage read the same. Workers that share the rows make it together.
func (env smoothRun) choice(ctx context.Context, sum shards.Summary) (*smooth.Choice, error) {
	if !env.Plan.Chooses() {
		return nil, nil
	}
	members := env.Group
	if !env.Task.Shares() {
		members = group.Solo(sum.Nodes)
	}
	parts, whole := Cover(env.Catalog.Entries(catalog.KindLastHops), sum.Nodes)
	found := 0
	if whole || env.chosen != nil {
		found = 1
	}
	found, err := group.Min(ctx, members, found)
	switch {
	case err != nil:
		return nil, err
	case found == 0:
		env.chosen.Free()
		env.chosen, err = env.makeChoice(ctx, sum)
	case env.chosen == nil:
		env.chosen, err = env.readChoice(ctx, sum, parts)
	}
	return env.chosen, err
}

// choose makes the choice, alone or with the workers that share the rows.
func (env smoothRun) choose(ctx context.Context, sum shards.Summary) error {
	choose := func(ctx context.Context) error {
		_, err := env.choice(ctx, sum)
		return err
	}
	if !env.isShare() {
		return choose(ctx)
	}
	if _, whole := Cover(env.Catalog.Entries(catalog.KindLastHops), sum.Nodes); whole {
		return nil
	}
	return env.Peers.Work(ctx, sum.Nodes, choose)
}

// joinChoice joins the parts of a choice that several workers committed into the one file that a single worker would commit.
func (env smoothRun) joinChoice(ctx context.Context, sum shards.Summary) error {
	parts, whole := Cover(env.Catalog.Entries(catalog.KindLastHops), sum.Nodes)
	if !whole || len(parts) == 1 {
		return nil
	}
	all, has := &smooth.Choice{}, false
	for _, part := range parts {
		c, err := env.readPart(ctx, sum.Nodes, part, func(int64, []uint16) error { has = true; return nil })
		if err != nil {
			return err
		}
		c.Exact = append(all.Exact, c.Exact...)
		all = c
	}
	lasts := func(put func([]uint16) error) error {
		for _, part := range parts {
			if _, err := env.readPart(ctx, sum.Nodes, part, func(_ int64, last []uint16) error { return put(last) }); err != nil {
				return err
			}
		}
		return nil
	}
	if !has {
		lasts = nil
	}
	f, err := env.Catalog.Create(ctx, catalog.Describe(catalog.KindLastHops, choicePath).Holding(0, sum.Nodes))
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := all.WriteWith(f, sum.Nodes, lasts); err != nil {
		return err
	}
	if err := env.Catalog.Commit(ctx, f); err != nil {
		return err
	}
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindLastHops && e.Path != choicePath })
}

// Part is an entry with the rows [Lo, Hi) that are read from it.
type Part struct {
	catalog.Entry
	Lo, Hi int64
}

// holds returns the rows in the file of an entry: [0, n) if the entry names none.
func holds(e catalog.Entry, n int64) (lo, hi int64) {
	if e.Hi == 0 {
		return 0, n
	}
	return e.Lo, e.Hi
}

// Cover takes each of n rows from one of the entries that hold it, in ascending order, and reports whether the entries cover all rows.
func Cover(entries []catalog.Entry, n int64) (parts []Part, whole bool) {
	for at := int64(0); at < n; at = parts[len(parts)-1].Hi {
		next := Part{Lo: at, Hi: at}
		for _, e := range entries {
			if lo, hi := holds(e, n); lo <= at && hi > next.Hi && hi <= n {
				next.Entry, next.Hi = e, hi
			}
		}
		if next.Hi == at {
			return parts, false
		}
		parts = append(parts, next)
	}
	return parts, true
}

// readChoice reads the choice for the task's rows.
func (env smoothRun) readChoice(ctx context.Context, sum shards.Summary, parts []Part) (all *smooth.Choice, err error) {
	lo, hi := env.Span(sum.Nodes)
	all = &smooth.Choice{}
	defer func() {
		if err != nil {
			all.Free()
		}
	}()
	for _, part := range parts {
		if part.Hi <= lo || part.Lo >= hi {
			continue
		}
		c, err := env.readPart(ctx, sum.Nodes, part, func(first int64, last []uint16) (err error) {
			if all.Last == nil {
				if all.Last, err = mem.Alloc[uint16](env.Budget, hi-lo, "last hops of rows"); err != nil {
					return err
				}
			}
			clip(all.Last.S, lo, last, first)
			return nil
		})
		if err != nil {
			return nil, err
		}
		all.Settles = c.Settles
	}
	return all, nil
}

// readPart reads a part of a choice and calls lasts with the last hops of its rows.
func (env smoothRun) readPart(ctx context.Context, n int64, part Part,
	lasts func(first int64, last []uint16) error,
) (*smooth.Choice, error) {
	lo, hi := holds(part.Entry, n)
	r, err := env.Catalog.Stream(ctx, part.Entry)
	if err != nil {
		return nil, err
	}
	c, err := smooth.ReadChoice(r, hi-lo, func(first int64, last []uint16) error { return lasts(lo+first, last) })
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("%s: %w", part.Path, err)
	}
	return c, nil
}

// checkedChoice returns the choice with the exact rows of a sample, without last hops.
func (env smoothRun) checkedChoice(ctx context.Context, sum shards.Summary, sample *smooth.Targets) (*smooth.Choice, error) {
	parts, whole := Cover(env.Catalog.Entries(catalog.KindLastHops), sum.Nodes)
	if !whole {
		return nil, fmt.Errorf("%s is missing: run `ndls smooth` again", choicePath)
	}
	all := &smooth.Choice{}
	for _, part := range parts {
		c, err := env.readPart(ctx, sum.Nodes, part, func(int64, []uint16) error { return nil })
		if err != nil {
			return nil, err
		}
		lo, _ := holds(part.Entry, sum.Nodes)
		from, to := sample.Before(part.Lo)-sample.Before(lo), sample.Before(part.Hi)-sample.Before(lo)
		if all.Settles = c.Settles; c.Settles {
			if int64(len(c.Exact)) < to*packed.PanelColumns {
				return nil, fmt.Errorf("%s has %d values of a sample: remove the folder smoothed, and run `ndls smooth` again", part.Path, len(c.Exact))
			}
			all.Exact = append(all.Exact, c.Exact[from*packed.PanelColumns:to*packed.PanelColumns]...)
		}
	}
	return all, nil
}

// makeChoice chooses the last hops of the task's rows, and commits them.
func (env smoothRun) makeChoice(ctx context.Context, sum shards.Summary) (c *smooth.Choice, err error) {
	all, err := env.targets(ctx, sum)
	if err != nil {
		return nil, err
	}
	whole, _, err := env.sampleOf(all, sum.Nodes)
	if err != nil {
		return nil, err
	}
	defer whole.Free()
	lo, hi := env.Span(sum.Nodes)
	targets, err := all.Part(env.Budget, lo, hi)
	if err != nil {
		return nil, err
	}
	defer targets.Free()
	sample, err := whole.Part(env.Budget, lo, hi)
	if err != nil {
		return nil, err
	}
	defer sample.Free()
	panels := packed.Panels(sum.Features)
	// The panel has a number of its own, after those of the features.
	var done State
	if err := env.onePanel(ctx, sum, sample, func(g hops.Graph, o smooth.Options) error {
		states, checkpoints, err := env.States.Open(ctx, lo, hi, panels, panels+1, catalog.KindFeatures, catalog.KindLSI)
		if err != nil {
			return err
		}
		defer states.Close()
		done = states
		x := combinations{env.featureTiles(), env.Plan.Seed, env.Resources.Threads}.rows(ctx)
		c, err = smooth.Choose(ctx, g, o, targets, env.Plan.Deviation, panels, x, checkpoints)
		return err
	}); err != nil {
		return nil, err
	}
	env.Report.EdgesStreamed += c.EdgesStreamed
	env.Report.KernelSeconds += c.Seconds
	if err := env.commitChoice(ctx, c, lo, hi, sum.Nodes); err != nil {
		c.Free()
		return nil, err
	}
	return c, done.Done(ctx)
}

// commitChoice commits the choice for rows [lo, hi) of n.
func (env smoothRun) commitChoice(ctx context.Context, c *smooth.Choice, lo, hi, n int64) error {
	path := choicePath
	if hi-lo < n {
		path = fmt.Sprintf("%s-%d-%d", choicePath, lo, hi)
	}
	f, err := env.Catalog.Create(ctx, catalog.Describe(catalog.KindLastHops, path).Holding(lo, hi))
	if err != nil {
		return err
	}
	defer f.Abort()
	if err := c.Write(f, hi-lo); err != nil {
		return err
	}
	return env.Catalog.Commit(ctx, f)
}

// onePanel calls use for smoothing one panel of a sample of the task's rows, with the memory that the choice of last hops needs if the plan
// makes one.
func (env smoothRun) onePanel(ctx context.Context, sum shards.Summary, sample *smooth.Targets,
	use func(g hops.Graph, o smooth.Options) error,
) error {
	g, o, k, err := env.featureSmoothing(ctx, sum, sample, env.Plan.Directions()[0])
	if err != nil {
		return err
	}
	state, err := g.state(ctx)
	if err != nil {
		return err
	}
	defer state.Free()
	o.K = func(i int64) int { return int(k[i]) }
	o.Chooses, o.Settled = env.Plan.Chooses(), env.Plan.Chooses()
	if o, err = g.smoothLayout(ctx, o, packed.PanelColumns); err != nil {
		return err
	}
	return use(g.hops(state), o)
}

// sampleOf returns an evenly spaced sample of the target rows: every step-th.
func (env smoothRun) sampleOf(targets *smooth.Targets, n int64) (sample *smooth.Targets, step int64, err error) {
	step = max((targets.Len()+sampleRows-1)/sampleRows, 1)
	if sample, err = smooth.NewTargets(env.Budget, n); err != nil {
		return nil, 0, err
	}
	row := int64(0)
	for i := range n {
		if !targets.Has(i) {
			continue
		}
		if row%step == 0 {
			sample.Add(i)
		}
		row++
	}
	sample.Finish()
	return sample, step, nil
}

// checkSettled measures, on a sample of the target rows, how far smoothed rows whose neighbours settled deviate from exact ones. Smoothing
// is linear, so it compares random combinations of the feature columns: smoothed with every row recomputed, and taken from the smoothed
// rows. They represent whole rows within the error of such sketches.
func (env smoothRun) checkSettled(ctx context.Context, sum shards.Summary) (err error) {
	targets, err := env.targets(ctx, sum)
	if err != nil {
		return err
	}
	sample, step, err := env.sampleOf(targets, sum.Nodes)
	if err != nil {
		return err
	}
	defer sample.Free()
	var c *smooth.Choice
	if env.Plan.Chooses() {
		c, err = env.checkedChoice(ctx, sum, sample)
	} else {
		c, err = env.exactSample(ctx, sum, sample)
	}
	if err != nil {
		return err
	}
	if env.Plan.Chooses() && !c.Settles {
		// No row has settled.
		env.Report.Deviation = &control.DeviationReport{Bound: env.Plan.Deviation, Rows: targets.Len()}
		return nil
	}
	rows, err := train.OpenSmoothed(ctx, env.Catalog)
	if err != nil {
		return err
	}
	settled, err := panelRows(combinations{sampledRows{rows, step}, env.Plan.Seed, env.Resources.Threads}.rows(ctx))
	if err = errors.Join(err, rows.Close()); err != nil {
		return err
	}
	if len(settled) != len(c.Exact) {
		return fmt.Errorf("%s has %d values of a sample of %d: remove the folder smoothed, and run `ndls smooth` again", choicePath, len(c.Exact), len(settled))
	}
	env.Report.Deviation = deviation(smooth.Deviations(settled, c.Exact), c.EdgesStreamed)
	env.Report.Deviation.Bound = env.Plan.Deviation
	return nil
}

// exactSample computes the exact rows of a sample.
func (env smoothRun) exactSample(ctx context.Context, sum shards.Summary, sample *smooth.Targets) (*smooth.Choice, error) {
	c := &smooth.Choice{}
	err := env.onePanel(ctx, sum, sample, func(g hops.Graph, o smooth.Options) error {
		s, err := smooth.New(ctx, g, o)
		if err != nil {
			return err
		}
		defer s.Free()
		x := combinations{env.featureTiles(), env.Plan.Seed, env.Resources.Threads}.rows(ctx)
		if c.Stats, err = s.Run(ctx, x); err != nil {
			return err
		}
		c.Exact, err = s.Panel(x)
		return err
	})
	return c, err
}

// combinations yields random combinations of columns: each column is added, with a random sign, to one of smooth.Combinations columns. The
// last column of the panel is zero.
type combinations struct {
	of      lsi.Columns
	seed    uint64
	threads int
}

// combinedRows is the number of rows that a thread combines at a time.
const combinedRows = 1 << 7

func (c combinations) rows(ctx context.Context) hops.Rows {
	width := packed.Panels(c.of.Width()) * packed.PanelColumns
	signs := make([]float32, width)
	for i := range signs {
		signs[i] = float32(1 - 2*int64(rng.Hash(c.seed, uint64(i))&1))
	}
	var out []float32
	return func(put func(rows []float32) error) error {
		return c.of.Rows(ctx, 0, width, func(rows []float32) error {
			n := len(rows) / width
			if len(out) < n*packed.PanelColumns {
				out = make([]float32, n*packed.PanelColumns)
			}
			_ = share.Ranges(c.threads, n, combinedRows, func(lo, hi int) error {
				for i := lo; i < hi; i++ {
					combine((*[packed.PanelColumns]float32)(out[i*packed.PanelColumns:]), rows[i*width:(i+1)*width], signs)
				}
				return nil
			})
			return put(out[:n*packed.PanelColumns])
		})
	}
}

// combine adds the columns of a row, each with its sign, to the columns of to.
func combine(to *[packed.PanelColumns]float32, row, signs []float32) {
	*to = [packed.PanelColumns]float32{}
	for len(row) > 0 {
		part := row[:min(smooth.Combinations, len(row))]
		for k, x := range part {
			to[k&(packed.PanelColumns-1)] += float32(x * signs[k])
		}
		row, signs = row[len(part):], signs[len(part):]
	}
}

// sampledRows yields every step-th smoothed row, with all columns at once.
type sampledRows struct {
	rows storedRows
	step int64
}

// storedRows holds consecutive rows in chunks, as [train.Smoothed] does.
type storedRows interface {
	Width() int
	NumChunks() int
	Chunk(i int) (first, rows int64)
	ReadRows(i int, at, rows int64, space []float32) ([]float32, error)
}

// Width implements lsi.Columns.
func (r sampledRows) Width() int { return r.rows.Width() }

// skippedBytes is the distance between two sampled rows from which reading each row alone is faster than reading all.
const skippedBytes = 256 << 10

// Rows implements lsi.Columns.
func (r sampledRows) Rows(ctx context.Context, _, columns int, put func(rows []float32) error) error {
	width := r.Width()
	batch := int64(max(hops.BatchValues/columns, 1))
	space := make([]float32, batch*int64(width))
	wide := make([]float32, batch*int64(columns))
	held := int64(0)
	flush := func() error {
		if held == 0 {
			return nil
		}
		n := held
		held = 0
		return put(wide[:n*int64(columns)])
	}
	read := batch // rows at a time
	if r.step*int64(width)*4 >= skippedBytes {
		read = 1
	}
	for c := range r.rows.NumChunks() {
		first, rows := r.rows.Chunk(c)
		next := (r.step - first%r.step) % r.step // the next row of the sample
		for at := next; at < rows; at = next {
			n := min(read, rows-at)
			values, err := r.rows.ReadRows(c, at, n, space)
			if err != nil {
				return err
			}
			for ; next < at+n; next += r.step {
				copy(wide[held*int64(columns):], values[(next-at)*int64(width):][:width])
				if held++; held == batch {
					if err := flush(); err != nil {
						return err
					}
				}
			}
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return flush()
}

// panelRows reads all rows of a panel.
func panelRows(x hops.Rows) (values []float32, err error) {
	err = x(func(rows []float32) error {
		values = append(values, rows...)
		return nil
	})
	return values, err
}

func deviation(errs []float64, edges int64) *control.DeviationReport {
	r := &control.DeviationReport{Rows: int64(len(errs)), Edges: edges}
	if len(errs) == 0 {
		return r
	}
	slices.Sort(errs)
	for _, e := range errs {
		r.Mean += e / float64(len(errs))
	}
	r.P99, r.Max = errs[len(errs)*99/100], errs[len(errs)-1]
	return r
}
