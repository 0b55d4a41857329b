package worker

import (
	"context"
	"fmt"

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
	j.report.Rows = s.Nodes
	intervals := int((s.Nodes + s.IntervalRows - 1) / s.IntervalRows)
	if len(j.cat.Entries(shards.KindSmoothed)) == intervals {
		return j.dropTiles(ctx, shards.KindSmoothedTile)
	}
	out := j.tiles(shards.KindSmoothedTile, smoothedPrefix, s.Features, s)
	if err := j.smoothTiles(ctx, out); err != nil {
		return err
	}
	// The catalogue has grown since.
	out = j.tiles(shards.KindSmoothedTile, smoothedPrefix, s.Features, s)
	if err := j.assemble(ctx, out, shards.KindSmoothed, "smoothed", 0, shards.RowSchema{Column: "feature", Width: s.Features}, nil); err != nil {
		return err
	}
	return j.dropTiles(ctx, shards.KindSmoothedTile)
}

func (j *job) dropTiles(ctx context.Context, kind string) error {
	return j.cat.Remove(ctx, func(e shards.Entry) bool { return e.Kind == kind })
}

// smoothTiles smooths the feature columns that are not committed yet.
func (j *job) smoothTiles(ctx context.Context, out *tiles) error {
	first := out.firstMissing()
	if first == out.granules() {
		return nil
	}
	g, err := j.openGraph(ctx)
	if err != nil {
		return err
	}
	defer g.close()
	o := j.plan.Smooth
	rule, err := smooth.NewRule(o.Rule, o.Alpha, o.Hops)
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
	return j.smoothColumns(ctx, g, rule, k, in.Load, out, first, in.granules())
}

// smoothColumns smooths the columns of granules [first, last), block by block,
// and commits each block's tiles. k is nil for rules that need no LSI.
func (j *job) smoothColumns(ctx context.Context, g *graph, rule smooth.Rule, k []uint16,
	load func(ctx context.Context, granule int, rows spmv.Rows, at int) error, out *tiles, first, last int,
) error {
	state, err := g.state(j)
	if err != nil {
		return err
	}
	defer state.Free()
	n := g.summary.Nodes
	sg := smooth.Graph{Pass: g.pass, State: state, Budget: j.budget}
	s, err := smooth.New(sg, rule, func(i int64) int { return int(k[i]) }, j.res.Threads)
	if err != nil {
		return err
	}
	defer s.Free()
	want := g.usefulColumns((last-first)*spmv.Granule, j.res.Threads)
	columns, err := j.columnsThatFit(want, 64<<10, 3*4*n, "smoothing")
	if err != nil {
		return err
	}
	j.report.ColumnsPerPass = columns
	block, err := smooth.NewBlock(j.budget, n, columns)
	if err != nil {
		return err
	}
	defer block.Free()
	for ; first < last; first += columns / spmv.Granule {
		stats, err := s.Run(ctx, block,
			func(rows spmv.Rows) error {
				for at := 0; at < columns && first+at/spmv.Granule < last; at += spmv.Granule {
					if err := load(ctx, first+at/spmv.Granule, rows, at); err != nil {
						return err
					}
				}
				return nil
			},
			func(rows spmv.Rows) error { return out.store(ctx, first, last, rows) })
		j.report.Passes += stats.Passes
		j.report.EdgesStreamed += stats.EdgesStreamed
		j.report.KernelSeconds += stats.Seconds
		if err != nil {
			return err
		}
	}
	return nil
}

// assemble turns tiles, from granule first on, into Arrow row files, one for
// each interval that is not committed. change, unless nil, may alter the values
// of a batch and returns its labels.
func (j *job) assemble(ctx context.Context, t *tiles, kind, folder string, first int, schema shards.RowSchema,
	change func(values []float32) []int32,
) error {
	done := map[int32]bool{}
	for _, e := range j.cat.Entries(kind) {
		done[e.Interval] = true
	}
	ids, err := j.ids(ctx, t.rows)
	if err != nil {
		return err
	}
	defer ids.Free()
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
		err = t.visitRows(ctx, j.budget, i, first, schema.Width, len(batchIDs), func(row int64, values []float32) error {
			n := len(values) / schema.Width
			for r := range n {
				batchIDs[r] = int64(ids.S[row+int64(r)])
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
	}
	return nil
}
