package estimate

import (
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/plan"
)

// Part returns the largest number of rows of a worker if so many workers share the rows of a graph
// evenly, in whole strips.
func Part(nodes int64, workers int) int64 {
	strips := int64(packed.Strips(nodes))
	w := int64(max(workers, 1))
	return min((strips+w-1)/w*packed.StripRows, nodes)
}

// RunShared is [Run] for so many workers with r each, in groups. In stages that allow it, the
// workers of a group share the rows of the graph, and groups share the columns. Each stage takes
// the size of groups with the fewest seconds, without the time of the network, among the sizes
// whose memory fits. Memory and temporary files count one worker; other figures count all workers
// together.
func RunShared(c Counts, p plan.Options, r control.Resources, workers int, sizes []int, held int64,
	stages ...Stage,
) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(r, held, stages, func(s Stage, r control.Resources) (best control.Figures) {
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

// worthwhileShare is the share of the seconds, and worthwhileLeft the number of seconds, that
// groups must save if the memory of a worker suffices without groups.
const (
	worthwhileShare = 0.2
	worthwhileLeft  = 10
)

// Worthwhile reports whether groups save enough seconds in a stage that can run without them.
func Worthwhile(without, with float64) bool {
	return with <= (1-worthwhileShare)*without && without-with >= worthwhileLeft
}

// better reports whether a stage should use x instead of y, with so much memory.
func better(x, y control.Figures, memory int64) bool {
	switch fits := x.LeastBytes <= memory; {
	case fits != (y.LeastBytes <= memory):
		return fits
	case fits:
		return x.Seconds < y.Seconds
	}
	return x.LeastBytes < y.LeastBytes
}

// share returns the sheet of a stage with so many rows of the graph, in one of several groups of so
// many members, if the stage allows that.
func share(c Counts, p plan.Options, r control.Resources, s Stage, rows int64, members, groups int) *Sheet {
	x := newSheet(c, p, r)
	x.groups = groups
	if s.Shares(p) && rows < c.Nodes {
		x.Part, x.sharing, x.members = rows, (c.Nodes+rows-1)/rows, members
	}
	return x
}

// Share plans the part of a worker with r in a stage with so many rows of the graph, in one of
// several groups of so many members. least is the least memory with which it can take part.
// resident reports whether r keeps its rows in memory.
func Share(c Counts, p plan.Options, r control.Resources, s Stage, rows int64, members, groups int) (least int64, resident bool) {
	x := share(c, p, r, s, rows, members, groups)
	least = x.figures(s).LeastBytes
	return least, least <= r.Memory && !x.spilled
}
