package worker

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
	"ndls/tiles"
)

const smoothedPrefix = "smoothed/tiles"

// smooth commits the smoothed features as Arrow, by way of tiles: hops give
// columns, a reader wants rows.
func (j *job) smooth(ctx context.Context) error {
	s, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	if s.Features == 0 {
		return fmt.Errorf("worker: smooth: %w", errNoFeatures)
	}
	targets, err := j.targets(ctx, s)
	if err != nil {
		return err
	}
	out := j.smoothedTiles(s, targets)
	err = j.inParts(ctx, s, out,
		func(ctx context.Context, first, last int) error { return j.smoothFeatures(ctx, s, first, last) },
		func(ctx context.Context, first, last int) error { return j.featureRows(ctx, s, first, last) })
	if err != nil || !isWhole(j.task.Part) || j.plan.LSI.Active != "settled" {
		return err
	}
	return j.checkSettled(ctx, s)
}

// smoothFeatures commits the tiles of granules [first, last).
func (j *job) smoothFeatures(ctx context.Context, s shards.Summary, first, last int) error {
	targets, err := j.targets(ctx, s)
	if err != nil {
		return err
	}
	out := j.smoothedTiles(s, targets)
	if first, err = j.firstMissing(ctx, out, first, last); err != nil || first == last {
		return err
	}
	lo, hi := j.span(s.Nodes)
	mine, err := targets.Part(j.budget, lo, hi)
	if err != nil {
		return err
	}
	defer mine.Free()
	g, o, k, err := j.featureSmoothing(ctx, s, mine)
	if err != nil {
		return err
	}
	return j.smoothColumns(ctx, g, o, k, j.featureTiles(s), out, first, last)
}

// featureSmoothing is what smoothing of feature columns needs: the graph, the
// rule, and the hops of each node where the rule takes them from the K table.
func (j *job) featureSmoothing(ctx context.Context, s shards.Summary, targets *smooth.Targets) (g *graph, o smooth.Options, k []uint16, err error) {
	p := j.plan.Smooth
	o.Targets = targets
	if o.Rule, err = smooth.NewRule(p.Rule, p.Alpha, p.Hops); err != nil {
		return nil, o, nil, err
	}
	if g, err = j.graph(ctx); err != nil {
		return nil, o, nil, err
	}
	if o.Rule.NodeDependent {
		k, err = j.table(0, func() (*mem.Array[uint16], error) { return j.kTable(ctx, s.Nodes, j.plan.LSI.Kmax) })
	}
	return g, o, k, err
}

// featureRows commits the rows of intervals [first, last), and removes their
// tiles.
func (j *job) featureRows(ctx context.Context, s shards.Summary, first, last int) error {
	targets, err := j.targets(ctx, s)
	if err != nil {
		return err
	}
	ids, err := j.targetIDs(ctx, s, targets)
	if err != nil {
		return err
	}
	if err := j.dropCheckpoints(ctx); err != nil {
		return err
	}
	m := j.smoothedTiles(s, targets)
	a := assembly{
		tiles: m, kind: catalog.KindSmoothed, folder: "smoothed", ids: ids.S,
		schema: shards.RowSchema{Column: "feature", Width: s.Features, Half: j.precision() == spmv.Float16},
		after: func(interval int) error {
			j.disk.look()
			return m.Drop(ctx, interval)
		},
	}
	return j.assemble(ctx, a, first, last)
}

// intervalsOf are the intervals that have a file of a kind.
func (j *job) intervalsOf(kind string) map[int]bool {
	have := map[int]bool{}
	for _, e := range j.cat.Entries(kind) {
		have[int(e.Interval)] = true
	}
	return have
}

// smoothedTiles are the tiles of smoothed features: of intervals that have rows none is
// needed.
func (j *job) smoothedTiles(s shards.Summary, targets *smooth.Targets) *tiles.Matrix {
	l := tiles.Layout{
		Kind: catalog.KindSmoothedTile, PartKind: catalog.KindSmoothedPart, Prefix: smoothedPrefix,
		Width: s.Features, Half: j.precision() == spmv.Float16, Starts: []int64{0},
	}
	for i := range intervals(s) {
		l.Starts = append(l.Starts, targets.Before(min(int64(i+1)*s.IntervalRows, s.Nodes)))
	}
	lo, hi := j.span(s.Nodes)
	return tiles.Open(j.cat, j.budget, l).Share(targets.Before(lo), targets.Before(hi)).Needless(j.intervalsOf(catalog.KindSmoothed))
}

// intervals is the number of intervals of a graph.
func intervals(s shards.Summary) int { return int((s.Nodes + s.IntervalRows - 1) / s.IntervalRows) }

// smoothColumns smooths the columns of granules [first, last) of in by o.Rule,
// block by block, and commits each block's tiles. k is nil for rules that need no
// LSI.
func (j *job) smoothColumns(ctx context.Context, g *graph, o smooth.Options, k []uint16, in lsi.Columns, out *tiles.Matrix, first, last int) error {
	if first == last {
		return nil
	}
	state, err := g.state(ctx, j)
	if err != nil {
		return err
	}
	defer state.Free()
	o.K = func(i int64) int { return int(k[i]) }
	o.Settled = j.plan.LSI.Active == "settled" && o.Rule.NodeDependent
	o.Slack = j.plan.LSI.Slack
	if o, err = j.smoothLayout(ctx, g, o, (last-first)*packed.PanelColumns); err != nil {
		return err
	}
	s, err := smooth.New(ctx, g.hops(j, state), o)
	if err != nil {
		return err
	}
	defer s.Free()
	for ; first < last; first += o.Layout.Columns / packed.PanelColumns {
		end := min(first+o.Layout.Columns/packed.PanelColumns, last)
		if err := j.smoothBlock(ctx, g, s, o.Layout, in, out, first, end); err != nil {
			return err
		}
	}
	return nil
}

// smoothBlock smooths granules [first, last), which are one block, and commits
// their tiles.
func (j *job) smoothBlock(ctx context.Context, g *graph, s *smooth.Smoother, l spmv.Layout, in lsi.Columns, out *tiles.Matrix, first, last int) error {
	x := func(put func([]float32) error) error { return in.Rows(ctx, first*packed.PanelColumns, l.Columns, put) }
	states, c, err := j.saveTo(ctx, g, first, last, inputKinds...)
	if err != nil {
		return err
	}
	stats, err := s.Continue(ctx, x, first, last, c)
	states.close()
	j.passed(stats, l)
	if err != nil {
		return err
	}
	for at := first; at < last; at += tiles.Together {
		to := min(at+tiles.Together, last)
		if err := out.Store(ctx, at, to, func(put func([]float32) error) error {
			return s.Output((at-first)*packed.PanelColumns, (to-at)*packed.PanelColumns, x, put)
		}); err != nil {
			return err
		}
	}
	return states.done(ctx)
}

// inputKinds are the files whose columns are smoothed.
var inputKinds = []string{catalog.KindFeatures, catalog.KindSoftTile, catalog.KindGivenSoftTile}

// smoothLayout plans the column blocks of some columns.
func (j *job) smoothLayout(ctx context.Context, g *graph, o smooth.Options, columns int) (smooth.Options, error) {
	fits, err := j.agree(ctx, j.capacity(g, columns).Useful(), func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return o, err
	}
	o, need, err := o.Plan(fits)
	if err != nil {
		return o, j.refused("smoothing", need, err)
	}
	return o, nil
}

// assembly says how tiles become Arrow row files, one for each interval.
type assembly struct {
	tiles  *tiles.Matrix
	first  int // granule
	kind   string
	folder string
	ids    []uint32 // input id of each stored row
	schema shards.RowSchema
	// labels, unless nil, may alter the values of a batch and returns its labels.
	labels func(values []float32) []int32
	// after, unless nil, is called for each interval whose rows are committed.
	after func(interval int) error
}

// assemble commits the rows of intervals [first, last), those that are not yet.
func (j *job) assemble(ctx context.Context, a assembly, first, last int) error {
	done := j.intervalsOf(a.kind)
	for i := first; i < last; i++ {
		lo, hi := a.tiles.Bounds(i)
		j.report.Rows += hi - lo
		if !done[i] {
			if err := j.assembleInterval(ctx, a, i); err != nil {
				return err
			}
		}
		if a.after == nil {
			continue
		}
		if err := a.after(i); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) assembleInterval(ctx context.Context, a assembly, i int) error {
	f, err := j.cat.Create(ctx, catalog.Describe(a.kind, fmt.Sprintf("%s/part-%05d.arrow", a.folder, i)).In(i))
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := shards.NewRowWriter(f, a.schema)
	if err != nil {
		return err
	}
	ids := make([]int64, shards.BatchRows(a.schema.Width))
	err = a.tiles.Read(ctx, i, a.first, a.schema.Width, len(ids), func(row int64, values []float32) error {
		n := len(values) / a.schema.Width
		for r := range n {
			ids[r] = int64(a.ids[row+int64(r)])
		}
		var labels []int32
		if a.labels != nil {
			labels = a.labels(values)
		}
		return w.Write(ids[:n], labels, values)
	})
	if err != nil {
		return err
	}
	if f.Rows, err = w.Close(); err != nil {
		return err
	}
	return j.cat.Commit(ctx, f)
}
