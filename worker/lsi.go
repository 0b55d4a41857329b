package worker

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
)

// lsi computes and commits the K table.
func (j *job) lsi(ctx context.Context) error {
	summary, err := shards.ReadSummary(ctx, j.cat)
	if err != nil {
		return err
	}
	complete := len(j.cat.Entries(catalog.KindLSI)) == intervals(summary)
	shares, shared := j.lsiShares(summary.Nodes)
	switch {
	case j.isShare(summary):
		if complete || shared {
			return nil
		}
		return j.inGang(ctx, summary.Nodes, func(ctx context.Context) error { return j.computeLSI(ctx, j.commitShare) })
	case !isWhole(j.task.Part):
		return j.noPart()
	case complete:
	case shared:
		err = j.joinLSI(ctx, summary, shares)
	default:
		err = j.computeLSI(ctx, j.commitLSI)
	}
	if err != nil {
		return err
	}
	j.report.Rows = summary.Nodes
	if err := j.cat.Remove(ctx, func(e catalog.Entry) bool { return e.Kind == catalog.KindLSIPart }); err != nil {
		return err
	}
	// Also those of an attempt that was lost between its commit and this.
	if err := j.dropCheckpoints(ctx); err != nil {
		return err
	}
	return j.reportLSI(ctx, summary)
}

// computeLSI finds K of the task's rows, which commit commits.
func (j *job) computeLSI(ctx context.Context, commit func(context.Context, *graph, []uint32, *lsi.Table) error) error {
	defer j.release()
	g, err := j.graph(ctx)
	if err != nil {
		return err
	}
	ids, err := j.ids(ctx, g.summary.Nodes)
	if err != nil {
		return err
	}
	defer ids.Free()
	probe, free, err := j.probe(ctx, g.summary, ids.S)
	if err != nil {
		return err
	}
	defer free()
	states, c, err := j.saveTo(ctx, g, 0, 1, catalog.KindFeatures)
	if err != nil {
		return err
	}
	table, err := j.findLSI(ctx, g, probe, j.plan.LSI.Epsilon, j.plan.LSI.Kmax, c)
	states.close()
	if err != nil {
		return err
	}
	defer table.Free()
	if err := commit(ctx, g, ids.S, table); err != nil {
		return err
	}
	return states.done(ctx)
}

// findLSI runs the LSI engine with what memory is free.
func (j *job) findLSI(ctx context.Context, g *graph, probe lsi.Probe, epsilon float64, kmax int, c hops.Checkpoints) (*lsi.Table, error) {
	state, err := g.state(ctx, j)
	if err != nil {
		return nil, err
	}
	defer state.Free()
	o := lsi.Options{Epsilon: epsilon, Kmax: kmax, Settled: j.plan.LSI.Active == "settled", Slack: j.plan.LSI.Slack, Checkpoints: c}
	fits, err := j.agree(ctx, j.capacity(g, probe.Columns()), func(c hops.Capacity) (spmv.Layout, error) {
		o, _, err := o.Plan(c)
		return o.Layout, err
	})
	if err != nil {
		return nil, err
	}
	o, need, err := o.Plan(fits)
	if err != nil {
		return nil, j.refused("lsi", need, err)
	}
	table, stats, err := lsi.Run(ctx, g.hops(j, state), probe, o)
	j.passed(stats.Stats, o.Layout)
	return table, err
}

// passed adds passes to the report.
func (j *job) passed(s hops.Stats, l spmv.Layout) {
	j.report.Passes += s.Passes
	j.report.ColumnsPerPass = l.Columns
	j.report.EdgesStreamed += s.EdgesStreamed
	j.report.KernelSeconds += s.Seconds
}

// probe builds the probe of the plan's mode; free returns its memory.
func (j *job) probe(ctx context.Context, s shards.Summary, ids []uint32) (p lsi.Probe, free func(), err error) {
	o := j.plan.LSI
	lo, hi := j.span(s.Nodes)
	free = func() {}
	switch o.Mode {
	case "influence-exact":
		return lsi.IdentityPart(s.Nodes, lo, hi), free, nil
	case "influence-sketch":
		return lsi.Signs(j.plan.Seed, ids, o.Probes), free, nil
	}
	if s.Features == 0 {
		return nil, nil, fmt.Errorf("worker: --lsi %s measures distances in feature space: %w", o.Mode, errNoFeatures)
	}
	columns := j.featureTiles(s)
	var norm *mem.Array[float64]
	var norms []float64
	if !s.Normalized {
		if norm, err = lsi.L1Norms(ctx, columns, hi-lo, j.budget); err != nil {
			return nil, nil, err
		}
		free, norms = norm.Free, norm.S
	}
	if o.Mode == "feature-sketch" {
		return lsi.FeatureSketch(columns, norms, j.plan.Seed, o.Probes), free, nil
	}
	return lsi.Features(columns, norms), free, nil
}

func (j *job) createLSI(ctx context.Context, interval int) (*catalog.File, error) {
	return j.cat.Create(ctx, catalog.Describe(catalog.KindLSI, fmt.Sprintf("lsi/part-%05d.parquet", interval)).In(interval))
}

// commitLSI writes the table, one file an interval, and commits them together.
func (j *job) commitLSI(ctx context.Context, g *graph, ids []uint32, table *lsi.Table) (err error) {
	s := g.summary
	var files []*catalog.File
	defer func() {
		if err != nil {
			for _, f := range files {
				f.Abort()
			}
		}
	}()
	for lo, i := int64(0), 0; lo < s.Nodes; lo, i = lo+s.IntervalRows, i+1 {
		f, err := j.createLSI(ctx, i)
		if err != nil {
			return err
		}
		files = append(files, f)
		f.Rows = min(s.IntervalRows, s.Nodes-lo)
		if err := writeLSI(f, ids[lo:lo+f.Rows], func(i int64) (int, bool) { return table.K(lo + i) }); err != nil {
			return err
		}
	}
	return j.cat.Commit(ctx, files...)
}

// writeLSI writes the table of nodes with these ids.
func writeLSI(f *catalog.File, ids []uint32, k func(i int64) (int, bool)) error {
	return shards.WriteLSI(f, int64(len(ids)), func(first int64, b shards.LSIBatch) error {
		for r := range b.ID {
			i := first + int64(r)
			k, capped := k(i)
			b.ID[r], b.K[r], b.Capped[r] = int64(ids[i]), int32(k), capped
		}
		return nil
	})
}

// readLSI visits the K table in order of node.
func (j *job) readLSI(ctx context.Context, visit func(node int64, k int32, capped bool)) error {
	lo := int64(0)
	for _, e := range j.cat.Entries(catalog.KindLSI) {
		r, err := j.cat.OpenVerified(ctx, e)
		if err != nil {
			return err
		}
		err = shards.ReadLSI(r, e.Path, func(first int64, b shards.LSIBatch) error {
			for i := range b.ID {
				visit(lo+first+int64(i), b.K[i], b.Capped[i])
			}
			return nil
		})
		if err == nil {
			err = r.Finish()
		}
		_ = r.Close()
		if err != nil {
			return err
		}
		lo += e.Rows
	}
	return nil
}

func (j *job) reportLSI(ctx context.Context, s shards.Summary) error {
	labelled, err := smooth.NewTargets(j.budget, s.Nodes)
	if err != nil {
		return err
	}
	defer labelled.Free()
	if s.Labelled > 0 {
		if err := j.labelledTargets(ctx, labelled); err != nil {
			return err
		}
	}
	o := j.plan.LSI
	r := &control.LSIReport{
		Mode: o.Mode, Probes: o.Probes, R: o.R, Epsilon: o.Epsilon, Kmax: o.Kmax, Stationary: o.Stationary,
	}
	counts := make([]int64, o.Kmax+1)
	var nodes, capped int64
	bad := false
	err = j.readLSI(ctx, func(node int64, k int32, isCapped bool) {
		if k < 0 || int(k) >= len(counts) {
			bad = true
			return
		}
		counts[k]++
		nodes++
		if node < s.Nodes && labelled.Has(node) {
			r.LabelledMax = max(r.LabelledMax, int(k))
		}
		if isCapped {
			capped++
		}
	})
	if err != nil {
		return err
	}
	if bad {
		return fmt.Errorf("worker: the K table holds values above --kmax %d: %w", o.Kmax, seal.ErrCorrupt)
	}
	sum := 0.0
	for k, c := range counts {
		if c > 0 {
			r.Histogram = append(r.Histogram, [2]int64{int64(k), c})
			r.Max = k
			sum += float64(k) * float64(c)
		}
	}
	r.Mean = sum / float64(nodes)
	r.CappedShare = float64(capped) / float64(nodes)
	j.report.LSI = r
	return nil
}

// kTable loads K by node, of the task's rows of n; values above most become most, as they would be with
// that Kmax.
func (j *job) kTable(ctx context.Context, n int64, most int) (*mem.Array[uint16], error) {
	lo, hi := j.span(n)
	a, err := mem.Alloc[uint16](j.budget, hi-lo, "K table")
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = j.readLSI(ctx, func(node int64, k int32, _ bool) {
		if lo <= node && node < hi {
			a.S[node-lo] = uint16(min(int(k), most))
		}
		rows++
	})
	if err == nil && rows != n {
		err = fmt.Errorf("worker: the K table has %d rows for %d nodes: run `ndls lsi` again: %w", rows, n, seal.ErrCorrupt)
	}
	if err != nil {
		a.Free()
		return nil, err
	}
	return a, nil
}
