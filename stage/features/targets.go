package features

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/depth"
)

// smoothRun is the stage while it runs.
type smoothRun struct{ *stage.Env }

// table returns K of each node.
func (env smoothRun) table(ctx context.Context) ([]uint16, error) {
	return depth.KeptHops(env.Session, 0, func() (*mem.Array[uint16], error) {
		return depth.TablesOf(env.Env).K(ctx, env.Plan.LSI.Kmax)
	})
}

// targets returns the rows of smoothed features that the plan asks for.
func (env smoothRun) targets(ctx context.Context) (*smooth.Targets, error) {
	return stage.Keep(env.Session, "targets", nil, func() (*smooth.Targets, error) { return env.findTargets(ctx) })
}

// targetIDs returns the input id of each target, in order of node.
func (env smoothRun) targetIDs(ctx context.Context, t *smooth.Targets) (*mem.Array[uint32], error) {
	if t.All() {
		return env.Nodes().KeptIDs(ctx)
	}
	return stage.Keep(env.Session, "ids of targets", nil, func() (*mem.Array[uint32], error) { return env.readTargetIDs(ctx, t) })
}

// findTargets returns the rows of smoothed features that the plan asks for.
func (env smoothRun) findTargets(ctx context.Context) (t *smooth.Targets, err error) {
	if env.Plan.Smooth.Targets == plan.AllTargets {
		return smooth.AllTargets(env.Summary.Nodes), nil
	}
	if t, err = smooth.NewTargets(env.Budget, env.Summary.Nodes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Free()
		}
	}()
	if env.Plan.Smooth.Targets == plan.LabelledTargets {
		err = env.Nodes().Labelled(ctx, t, nil)
	} else {
		err = env.listedTargets(ctx, t)
	}
	t.Finish()
	if err == nil && t.Len() == 0 {
		err = fmt.Errorf("--targets %s names no row: use all, or a file of input ids", env.Plan.Smooth.Targets)
	}
	return t, err
}

// listedTargets adds the nodes whose ids the user's file lists.
func (env smoothRun) listedTargets(ctx context.Context, t *smooth.Targets) (err error) {
	if env.Inputs.Targets == "" {
		return fmt.Errorf("the run's target rows come from a file: give --targets with %s again", env.Plan.Smooth.Targets)
	}
	ids, nodeOf, free, err := env.openTargets(ctx)
	defer free()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	for row := int64(1); ; row++ {
		id, err := ids.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		at, ok := nodeOf(id)
		if !ok {
			return fmt.Errorf("%s: id %d in row %d is not a node of the graph: remove it", env.Inputs.Targets, id, row)
		}
		t.Add(at)
	}
}

// openTargets opens the ids that the user's file lists. nodeOf finds the node of each; the caller calls free, after an error, too.
func (env smoothRun) openTargets(ctx context.Context) (ids dataset.IDs, nodeOf func(id int64) (int64, bool), free func(), err error) {
	if env.Summary.IDs != "" {
		table, err := env.Nodes().ByKey(ctx)
		if err != nil {
			return nil, nil, func() {}, err
		}
		ids, err = dataset.OpenKeyedIDs(ctx, env.Inputs.Targets, table.Type(), table.Find)
		return ids, func(id int64) (int64, bool) { return id, true }, table.Free, err
	}
	nodes, err := env.Nodes().ByID(ctx)
	if err != nil {
		return nil, nil, func() {}, err
	}
	ids, err = dataset.OpenIDs(ctx, env.Inputs.Targets)
	return ids, nodes.Of, nodes.Free, err
}

// readTargetIDs reads the input id of each target, some nodes, in order of node.
func (env smoothRun) readTargetIDs(ctx context.Context, t *smooth.Targets) (*mem.Array[uint32], error) {
	ids, err := mem.Alloc[uint32](env.Budget, t.Len(), "ids of target rows")
	if err != nil {
		return nil, err
	}
	at := 0
	err = env.Nodes().Read(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if t.Has(first + int64(i)) {
				ids.S[at] = uint32(id)
				at++
			}
		}
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}
