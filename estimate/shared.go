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

// RunShared is [Run] for workers with r each, which share the rows of the graph in
// stages that allow that. Memory is that of a worker, as are temporary files; other
// figures are of all workers together.
func RunShared(c Counts, p control.Plan, r control.Resources, workers int, held int64, stages ...Stage) ([]control.Figures, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	return run(c, p, r, held, stages, func(s Stage, r control.Resources) control.Figures {
		x := share(c, p, r, s, Part(c.Nodes, workers))
		x.Workers = max(workers, 1)
		return x.figures(s)
	})
}

// share is a stage with so many rows of the graph, if the stage allows that.
func share(c Counts, p control.Plan, r control.Resources, s Stage, rows int64) *Sheet {
	x := newSheet(c, p, r)
	if s.Shares(p) && rows < c.Nodes {
		x.Part, x.sharing = rows, (c.Nodes+rows-1)/rows
	}
	return x
}

// Share says how a worker with r takes part in a stage with so many rows of the graph:
// the least memory with which it can, and whether r keeps its rows in memory.
func Share(c Counts, p control.Plan, r control.Resources, s Stage, rows int64) (least int64, resident bool) {
	x := share(c, p, r, s, rows)
	least = x.figures(s).LeastBytes
	return least, least <= r.Memory && !x.spilled
}
