package estimate

import (
	"ndls/internal/control"
	"ndls/internal/packed"
)

// Part is the largest share of the rows of a graph if so many workers have as many
// each: whole strips.
func Part(nodes int64, workers int) int64 {
	strips := int64(packed.Strips(nodes))
	w := int64(max(workers, 1))
	return min((strips+w-1)/w*packed.StripRows, nodes)
}

// RunShared is [Run] for so many workers with r each, in groups: the workers of a group share the rows of
// the graph in stages that allow that, and groups share the columns. Of the sizes of groups a stage has
// the one with which it takes the fewest seconds, what the network takes not counted, of those for which
// the memory suffices. Memory is that of a worker, as are temporary files; other figures are of all
// workers together.
func RunShared(c Counts, p control.Plan, r control.Resources, workers int, sizes []int, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage, r control.Resources) (best control.Figures) {
		for i, size := range sizes {
			x := share(c, p, r, s, Part(c.Nodes, size), size, max(workers/size, 1))
			x.Workers = max(workers, 1)
			if x.sharing > 1 {
				x.GroupSize = size
			}
			if f := x.figures(s); i == 0 || better(f, best, r.Memory) {
				best = f
			}
		}
		if best.GroupSize > 1 && best.Passes == 0 { // only time can be saved
			x := newSheet(c, p, r)
			x.Workers = max(workers, 1)
			if alone := x.figures(s); !Worthwhile(alone.Seconds, best.Seconds) {
				return alone
			}
		}
		return best
	})
}

// worthwhileShare is which share of the seconds without it, and worthwhileLeft how many of them, groups must
// save where the memory of a worker suffices without them.
const (
	worthwhileShare = 0.2
	worthwhileLeft  = 10
)

// Worthwhile says whether groups save enough seconds of a stage that workers could do without them.
func Worthwhile(without, with float64) bool {
	return with <= (1-worthwhileShare)*without && without-with >= worthwhileLeft
}

// better says whether a stage had better take x than y, with so much memory.
func better(x, y control.Figures, memory int64) bool {
	switch fits := x.LeastBytes <= memory; {
	case fits != (y.LeastBytes <= memory):
		return fits
	case fits:
		return x.Seconds < y.Seconds
	}
	return x.LeastBytes < y.LeastBytes
}

// share is a stage with so many rows of the graph, in one of some groups of so many members, if the stage allows that.
func share(c Counts, p control.Plan, r control.Resources, s Stage, rows int64, members, groups int) *Sheet {
	x := newSheet(c, p, r)
	x.groups = groups
	if s.Shares(p) && rows < c.Nodes {
		x.Part, x.sharing, x.members = rows, (c.Nodes+rows-1)/rows, members
	}
	return x
}

// Share says how a worker with r takes part in a stage with so many rows of the graph, in one of some groups of
// so many members: the least memory with which it can, and whether r keeps its rows in memory.
func Share(c Counts, p control.Plan, r control.Resources, s Stage, rows int64, members, groups int) (least int64, resident bool) {
	x := share(c, p, r, s, rows, members, groups)
	least = x.figures(s).LeastBytes
	return least, least <= r.Memory && !x.spilled
}
