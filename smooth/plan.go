package smooth

import (
	"slices"

	"ndls/hops"
	"ndls/internal/packed"
	"ndls/spmv"
)

// CountedTargets stands for a number of targets among n rows if only their number is known: for
// [Options.Plan] and [Options.Work].
func CountedTargets(n, count int64) *Targets { return &Targets{n: n, size: count} }

// Plan returns o with the layout that fits c, and the part of c.Free that a smoother uses. Sums
// that do not fit beside the rows of two hops go to disk first, then rows. If nothing fits, it
// returns the smallest layout, and the error wraps mem.ErrBudget. Ahead stays set only if the same
// blocks fit beside the block that is read ahead.
//
// If blocks may run side by side, the layout serves one of them. Their number is
// [hops.Capacity.Side] if there is memory to hold all of them, and if edges on disk are not read
// more often. The returned memory counts all of them together.
func (o Options) Plan(c hops.Capacity) (Options, int64, error) {
	if o.SideBySide && c.Side() > 1 {
		alone, _, _ := o.planBlock(c, c.Columns)
		for teams := c.Side(); teams > 1; teams-- {
			one, need, err := o.planBlock(c.Team(teams), c.Columns)
			passes := hops.Blocks(c.Columns, one.Layout) <= hops.Blocks(c.Columns, alone.Layout)
			if err == nil && one.Layout.Residency == spmv.Resident && !one.SpilledSums && (c.Resident || passes) {
				one.Teams = teams
				return one, need + int64(teams-1)*(need-sharedBytes(c.Nodes, one)), nil
			}
		}
	}
	return o.planBlock(c, c.Columns)
}

// planBlock is Plan for one of the blocks of so many columns.
func (o Options) planBlock(c hops.Capacity, columns int) (Options, int64, error) {
	o.Teams = 1
	ahead := o.Ahead
	o.Ahead = false
	least, need, err := o.plan(c, columns)
	if err != nil || !ahead || !least.mayRead() {
		return least, need, err
	}
	o.Ahead = true
	if with, need, err := o.plan(c, columns); err == nil && with.Layout == least.Layout && with.SpilledSums == least.SpilledSums {
		return with, need, nil
	}
	return least, need, nil
}

// mayRead reports whether there are several blocks, and hop 0 of each is read once.
func (o Options) mayRead() bool {
	residual := o.Rule.Residual() || slices.ContainsFunc(o.Beside, func(b Beside) bool { return b.Rule.Residual() })
	return o.Blocks > 1 && !residual && len(o.Keep) == 0
}

// plan is planBlock with Ahead unchanged.
func (o Options) plan(c hops.Capacity, columns int) (Options, int64, error) {
	c = c.Useful()
	with := func(l spmv.Layout) Options { return o.with(l, columns, c.Others) }
	beside := func(l spmv.Layout) int64 {
		o := with(l)
		bytes := MemoryBytes(c.Nodes, o, c.Threads) + o.held(c.Nodes) + o.movingBytes(c, l)
		if o.Rule.Residual() || slices.ContainsFunc(o.Beside, func(b Beside) bool { return b.Rule.Residual() }) {
			bytes += min(c.Nodes, packed.StripRows) * int64(l.Columns) * 4
		}
		return bytes
	}
	l, need, err := c.Layout(beside)
	if err != nil || l.Residency != spmv.Resident {
		o.SpilledSums = true
		l, need, err = c.Layout(beside)
	}
	return with(l), need, err
}

// held returns the memory that the reading of hop 0 of n rows and the caller need while blocks are
// smoothed.
func (o Options) held(n int64) int64 {
	bytes := hops.ReadBytes + o.PanelBytes*int64(packed.Panels(o.Layout.Columns))
	if o.Ahead {
		bytes += 4*n*int64(o.Layout.Columns) + 4096
	}
	return bytes
}

// with returns o for so many columns in blocks of a layout. If other workers have rows, each block
// counts by itself.
func (o Options) with(l spmv.Layout, columns int, others int64) Options {
	o.Layout, o.Blocks = l, 1
	if others == 0 {
		o.Blocks = hops.Blocks(columns, l)
	}
	return o
}

// Copies reports whether edges may be copied for late hops.
func (o Options) Copies() bool { return o.prunes() || o.stands() }

// Work returns the work of smoothing so many columns of n rows, each block with that many passes and
// as many outputs.
func (o Options) Work(n int64, columns, last, outputs int) (w hops.Work) {
	l := o.Layout
	sums := int64(0)
	if o.SpilledSums && o.Rule.holds() {
		sums = o.Targets.size * int64(l.Columns) * sumBytes
	}
	added := int64(0)
	for hop := range last + 1 {
		if o.recurs() || o.Rule.counts(hop) {
			added++
		}
	}
	if o.Rule.Repeats() {
		outputs *= len(o.Keep) // the hops are read from the sums
	}
	if o.stands() && last > PlainHops {
		hops.MovingWork(&w, n, PlainHops, l)
	}
	for range hops.Blocks(columns, l) {
		w.External(l, n, 2, 1)                  // filled, added and summed
		w.External(l, n, int64(len(o.Keep)), 0) // shown
		w.Pass(l, n, last, o.recurs())
		if layers := int64(o.layers()); layers > 1 {
			w.Move(int64(o.Depths+1)*layers*sums, layers*sums) // each depth reads all layers
		} else {
			w.Move((added+int64(outputs))*sums, (1+added)*sums)
		}
	}
	w.Disk = l.Disk(n) + int64(o.layers())*sums
	return w
}
