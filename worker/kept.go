package worker

import (
	"context"

	"ndls/group"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
)

// kept is what stays open from one task to the next of the same part of a stage,
// so that small tasks do not pay for opening a large graph. Everything in it was
// the same for each of them.
type kept struct {
	of     control.Task // without the bounds, but for those of rows of the graph
	budget *mem.Budget

	opened  *graph
	rows    *smooth.Targets
	inputID *mem.Array[uint32]
	k       *mem.Array[uint16]
	kOf     int
}

// keep makes what w keeps that of the part of t.
func (w *Worker) keep(t control.Task) error {
	if t.Part != control.Strips {
		t.First, t.Last = 0, 0
	}
	if w.kept != nil && w.kept.of == t {
		return nil
	}
	w.Close()
	w.cat.Bind(stage.Binding(t.Plan))
	budget, err := mem.NewBudget(t.Resources.Memory)
	if err != nil {
		return err
	}
	w.kept = &kept{of: t, budget: budget}
	return nil
}

// release gives everything back; what is asked for again is opened again.
func (k *kept) release() {
	if k.opened != nil {
		k.opened.close()
	}
	if k.rows != nil {
		k.rows.Free()
	}
	k.inputID.Free()
	k.k.Free()
	k.opened, k.rows, k.inputID, k.k = nil, nil, nil, nil
}

// graph is the stored graph, open.
func (j *job) graph(ctx context.Context) (_ *graph, err error) {
	if j.opened == nil {
		if j.opened, err = j.openGraph(ctx); err != nil {
			return nil, err
		}
	}
	if j.task.Part != control.Strips {
		j.group = group.Solo(j.opened.summary.Nodes)
	}
	return j.opened, nil
}

// targets are the rows of smoothed features that the plan asks for.
func (j *job) targets(ctx context.Context, s shards.Summary) (_ *smooth.Targets, err error) {
	if j.rows == nil {
		j.rows, err = j.findTargets(ctx, s)
	}
	return j.rows, err
}

// targetIDs gives the input id of each target, in order of node.
func (j *job) targetIDs(ctx context.Context, s shards.Summary, t *smooth.Targets) (_ *mem.Array[uint32], err error) {
	if j.inputID == nil {
		j.inputID, err = j.readTargetIDs(ctx, s, t)
	}
	return j.inputID, err
}

// table is the number of hops of each node that make finds, kept under a number
// of the part's own.
func (j *job) table(of int, make func() (*mem.Array[uint16], error)) ([]uint16, error) {
	if j.k != nil && j.kOf == of {
		return j.k.S, nil
	}
	j.k.Free()
	j.k = nil
	k, err := make()
	if err != nil {
		return nil, err
	}
	j.k, j.kOf = k, of
	return k.S, nil
}
