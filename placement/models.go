package placement

import (
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/packed"
)

// chooseModels returns the groups, of at most `most` workers, that train models together, or nil if each worker should train models alone. A
// worker of a group needs about as much memory as one that trains alone, so that time decides. Groups are used only if there are fewer
// models than workers. Their size is --group-size, or the fastest one by the measured rates if it saves enough.
func (p placing) chooseModels(most int) *Sharing {
	models := p.Models()
	if models >= len(p.workers) {
		return nil
	}
	size := 1
	if p.Parallel == Grid && p.Groups.Size > 0 {
		size = min(p.Groups.Size, most)
	} else if p.rates.Network > 0 {
		size = estimate.BestGroup(p.Counts, p.Plan, p.smallest().Resources(), p.Stage, len(p.workers), most, models, p.rates,
			func(size int) bool { return p.modelGroups(size) != nil })
	}
	return p.modelGroups(size)
}

// modelGroups returns groups of so many workers that have the memory to train together, or nil if there are none. All workers of a group
// take the same number of rows of a step.
func (p placing) modelGroups(size int) *Sharing {
	if size < 2 {
		return nil
	}
	g := &Sharing{Groups: min(len(p.workers)/size, p.Models())}
	least := p.workers[g.Groups*size-1] // of those that take part
	strips := packed.Strips(p.Counts.Nodes)
	for i := range size {
		t := control.Task{Stage: p.Stage.Name(), Part: control.Strips, First: strips * i / size, Last: strips * (i + 1) / size}
		t.Needs, _ = estimate.Share(p.Counts, p.Plan, least.Resources(), p.Stage, rowsOf(p.Counts.Nodes, t.First, t.Last), size, g.Groups)
		if t.Needs > least.Memory {
			return nil
		}
		g.Strips = append(g.Strips, t)
	}
	return g
}
