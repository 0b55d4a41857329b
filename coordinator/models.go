package coordinator

import (
	"cmp"
	"slices"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
)

// models shares the models to train evenly among gangs. A single gang takes all of them.
func (g *sharing) models(n int) []control.Task {
	var each []control.Task
	for i := range g.groups {
		each = append(each, control.Task{First: n * i / g.groups, Last: n * (i + 1) / g.groups})
	}
	return g.cells(each)
}

// chooseModels returns the groups in which workers train models together, or nil if each worker
// should train models alone. A worker of a group needs about as much memory as one that trains
// alone, so that time decides. Groups are used only if there are fewer models than workers. Their
// size is --group-size, or the fastest one by the measured rates if it saves enough.
func (p placing) chooseModels(models int) (best *sharing) {
	if models >= len(p.workers) {
		return nil
	}
	slices.SortFunc(p.workers, func(a, b control.Hello) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Worker, b.Worker))
	})
	most := min(len(p.workers), packed.Strips(p.sum.Nodes))
	size := 1
	if p.Parallel == Grid && p.Groups.Size > 0 {
		size = min(p.Groups.Size, most)
	} else if rates := slowest(p.workers); rates.Network > 0 {
		size = estimate.BestGroup(p.counts, p.Plan, resourcesOf(p.workers[len(p.workers)-1]), p.stage, len(p.workers), most, models, rates,
			func(size int) bool { return p.modelGroups(size, models) != nil })
	}
	best = p.modelGroups(size, models)
	if best != nil {
		p.Log.Info("workers train models together", "workers", len(p.workers), "groups", best.groups, "of", len(best.strips))
	}
	return best
}

// modelGroups returns groups of so many workers that have the memory to train together, or nil if
// there are none. All workers of a group take the same number of rows of a step.
func (p placing) modelGroups(size, models int) *sharing {
	if size < 2 {
		return nil
	}
	g := &sharing{groups: min(len(p.workers)/size, models)}
	strips := packed.Strips(p.sum.Nodes)
	for i := range size {
		t := control.Task{Stage: p.stage.Name(), Part: control.Strips, First: strips * i / size, Last: strips * (i + 1) / size}
		rows := min(int64(t.Last)*packed.StripRows, p.sum.Nodes) - int64(t.First)*packed.StripRows
		t.Needs, _ = estimate.Share(p.counts, p.Plan, resourcesOf(p.workers[g.groups*size-1]), p.stage, rows, size, g.groups)
		if t.Needs > p.workers[g.groups*size-1].Memory {
			return nil
		}
		g.strips = append(g.strips, t)
	}
	return g
}
