package worker

import (
	"context"
	"fmt"

	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
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
	defer targets.Free()
	j.report.Rows = targets.Len()
	if len(j.cat.Entries(shards.KindSmoothed)) == intervals(s) {
		return j.dropTiles(ctx, shards.KindSmoothedTile, shards.NotApplicable)
	}
	if err := j.smoothTiles(ctx, targets, j.smoothedTiles(s, targets)); err != nil {
		return err
	}
	ids, err := j.targetIDs(ctx, s, targets)
	if err != nil {
		return err
	}
	defer ids.Free()
	// The catalogue has grown since.
	return j.assemble(ctx, j.smoothedTiles(s, targets), shards.KindSmoothed, "smoothed", 0, ids.S,
		shards.RowSchema{Column: "feature", Width: s.Features, Half: j.precision() == spmv.Float16}, nil)
}

// smoothedTiles are the tiles of smoothed features as the catalogue has them.
func (j *job) smoothedTiles(s shards.Summary, targets *smooth.Targets) *tiles {
	starts := []int64{0}
	for i := range intervals(s) {
		starts = append(starts, targets.Before(min(int64(i+1)*s.IntervalRows, s.Nodes)))
	}
	return j.tilesOf(shards.KindSmoothedTile, smoothedPrefix, s.Features, starts, j.precision() == spmv.Float16)
}

// intervals is the number of intervals of a graph.
func intervals(s shards.Summary) int { return int((s.Nodes + s.IntervalRows - 1) / s.IntervalRows) }

// dropTiles removes the tiles of a kind, of one interval or of all.
func (j *job) dropTiles(ctx context.Context, kind string, interval int32) error {
	j.disk.look()
	return j.cat.Remove(ctx, func(e shards.Entry) bool {
		return e.Kind == kind && (interval == shards.NotApplicable || e.Interval == interval)
	})
}

// smoothTiles smooths the feature columns that are not committed yet.
func (j *job) smoothTiles(ctx context.Context, targets *smooth.Targets, out *tiles) error {
	first := out.firstMissing()
	settled := j.plan.LSI.Active == "settled"
	if first == out.granules() && !settled {
		return nil
	}
	g, err := j.openGraph(ctx)
	if err != nil {
		return err
	}
	defer g.close()
	p := j.plan.Smooth
	rule, err := smooth.NewRule(p.Rule, p.Alpha, p.Hops)
	if err != nil {
		return err
	}
	in := j.tiles(shards.KindFeatures, featurePrefix, g.summary.Features, g.summary)
	var k []uint16
	if rule.NodeDependent {
		table, err := j.kTable(ctx, g.summary.Nodes, j.plan.LSI.Kmax)
		if err != nil {
			return err
		}
		defer table.Free()
		k = table.S
	}
	o := smooth.Options{Rule: rule, Targets: targets}
	if err := j.smoothColumns(ctx, g, o, k, in, out, first, in.granules()); err != nil || !settled {
		return err
	}
	return j.checkSettled(ctx, g, o, k, in, targets)
}

// smoothColumns smooths the columns of granules [first, last) of in by o.Rule,
// block by block, and commits each block's tiles. k is nil for rules that need no
// LSI.
func (j *job) smoothColumns(ctx context.Context, g *graph, o smooth.Options, k []uint16, in lsi.Columns, out *tiles, first, last int) error {
	if first == last {
		return nil
	}
	state, err := g.state(j)
	if err != nil {
		return err
	}
	defer state.Free()
	o.K = func(i int64) int { return int(k[i]) }
	o.Settled = j.plan.LSI.Active == "settled" && o.Rule.NodeDependent
	o.Slack = j.plan.LSI.Slack
	if o, err = j.smoothLayout(g, o, (last-first)*spmv.Granule); err != nil {
		return err
	}
	s, err := smooth.New(g.hops(j, state), o)
	if err != nil {
		return err
	}
	defer s.Free()
	for ; first < last; first += o.Layout.Columns / spmv.Granule {
		x := func(put func([]float32) error) error {
			return in.Rows(ctx, first*spmv.Granule, o.Layout.Columns, put)
		}
		stats, err := s.Run(ctx, x)
		j.passed(stats, o.Layout)
		if err != nil {
			return err
		}
		end := min(first+o.Layout.Columns/spmv.Granule, last)
		for at := first; at < end; at += openTiles {
			to := min(at+openTiles, end)
			if err := out.store(ctx, at, to, func(put func([]float32) error) error {
				return s.Output((at-first)*spmv.Granule, (to-at)*spmv.Granule, x, put)
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// smoothLayout plans the column blocks of some columns.
func (j *job) smoothLayout(g *graph, o smooth.Options, columns int) (smooth.Options, error) {
	o, need, err := o.Plan(j.room(g, columns))
	if err != nil {
		return o, j.refused("smoothing", need, err)
	}
	return o, nil
}

// assemble turns tiles, from granule first on, into Arrow row files, one for
// each interval that is not committed. ids has the input id of each stored row.
// change, unless nil, may alter the values of a batch and returns its labels. The
// smoothed tiles of an interval are removed once its rows are committed.
func (j *job) assemble(ctx context.Context, t *tiles, kind, folder string, first int, ids []uint32, schema shards.RowSchema,
	change func(values []float32) []int32,
) error {
	done := map[int32]bool{}
	for _, e := range j.cat.Entries(kind) {
		done[e.Interval] = true
	}
	batchIDs := make([]int64, shards.BatchRows(schema.Width))
	for i := range t.intervals() {
		if done[int32(i)] {
			continue
		}
		f, err := j.cat.Create(ctx, kind, fmt.Sprintf("%s/part-%05d.arrow", folder, i), int32(i), shards.NotApplicable)
		if err != nil {
			return err
		}
		defer f.Abort()
		w, err := shards.NewRowWriter(f, schema)
		if err != nil {
			return err
		}
		err = t.visitRows(ctx, i, first, schema.Width, len(batchIDs), func(row int64, values []float32) error {
			n := len(values) / schema.Width
			for r := range n {
				batchIDs[r] = int64(ids[row+int64(r)])
			}
			var labels []int32
			if change != nil {
				labels = change(values)
			}
			return w.Write(batchIDs[:n], labels, values)
		})
		if err != nil {
			return err
		}
		if f.Rows, err = w.Close(); err != nil {
			return err
		}
		if err := j.cat.Commit(ctx, f); err != nil {
			return err
		}
		if kind == shards.KindSmoothed {
			if err := j.dropTiles(ctx, shards.KindSmoothedTile, int32(i)); err != nil {
				return err
			}
		}
	}
	return nil
}
