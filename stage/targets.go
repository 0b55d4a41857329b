package stage

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/dataset"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
)

// targetRows finds the rows of smoothed features that the plan asks for.
type targetRows struct{ *Env }

func (env *Env) targetRows() targetRows { return targetRows{env} }

// findTargets returns the rows of smoothed features that the plan asks for.
func (env targetRows) findTargets(ctx context.Context, s shards.Summary) (t *smooth.Targets, err error) {
	if env.Plan.Smooth.Targets == plan.AllTargets {
		return smooth.AllTargets(s.Nodes), nil
	}
	if t, err = smooth.NewTargets(env.Budget, s.Nodes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Free()
		}
	}()
	if env.Plan.Smooth.Targets == plan.LabelledTargets {
		err = env.labelledTargets(ctx, t, nil)
	} else {
		err = env.listedTargets(ctx, s.Nodes, t)
	}
	t.Finish()
	if err == nil && t.Len() == 0 {
		err = fmt.Errorf("--targets %s names no row: use all, or a file of input ids", env.Plan.Smooth.Targets)
	}
	return t, err
}

// labelledTargets adds the nodes with a label to t, and the validation nodes among them to valid, unless it is nil.
func (env targetRows) labelledTargets(ctx context.Context, t, valid *smooth.Targets) error {
	return env.nodeTable().readNodes(ctx, shards.NodeLabel|shards.NodeSplit, func(first int64, b shards.NodeBatch) {
		for i, label := range b.Label {
			if label < 0 {
				continue
			}
			t.Add(first + int64(i))
			if valid != nil && isValidation(b.Split[i], label) {
				valid.Add(first + int64(i))
			}
		}
	})
}

// listedTargets adds the nodes whose ids the user's file lists.
func (env targetRows) listedTargets(ctx context.Context, n int64, t *smooth.Targets) (err error) {
	if env.Inputs.Targets == "" {
		return fmt.Errorf("the run's target rows come from a file: give --targets with %s again", env.Plan.Smooth.Targets)
	}
	if env.Summary.IDs != "" {
		return env.keyedTargets(ctx, n, t)
	}
	ids, err := dataset.OpenIDs(ctx, env.Inputs.Targets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	nodes, err := env.nodeTable().nodesByID(ctx, n)
	if err != nil {
		return err
	}
	defer nodes.free()
	for row := int64(1); ; row++ {
		id, err := ids.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		at, ok := nodes.of(id)
		if !ok {
			return fmt.Errorf("%s: id %d in row %d is not a node of the graph: remove it", env.Inputs.Targets, id, row)
		}
		t.Add(at)
	}
}

// keyedTargets adds the nodes whose ids the user's file lists, if ids are numbered.
func (env targetRows) keyedTargets(ctx context.Context, n int64, t *smooth.Targets) (err error) {
	nodes, err := env.nodeTable().nodesByKey(ctx, n)
	if err != nil {
		return err
	}
	defer nodes.Free()
	ids, err := dataset.OpenKeyedIDs(ctx, env.Inputs.Targets, nodes.Type())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	for {
		key, where, err := ids.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		node, ok := nodes.Find(key)
		if !ok {
			return failure.Of(failure.ErrData, "%s: id %s is not a node of the graph: remove it", where, nodes.Type().Quote(key))
		}
		t.Add(int64(node))
	}
}

// readTargetIDs returns the input id of each target, in order of node.
func (env targetRows) readTargetIDs(ctx context.Context, s shards.Summary, t *smooth.Targets) (*mem.Array[uint32], error) {
	if t.All() {
		return env.nodeTable().ids(ctx, s.Nodes)
	}
	ids, err := mem.Alloc[uint32](env.Budget, t.Len(), "ids of target rows")
	if err != nil {
		return nil, err
	}
	at := 0
	err = env.nodeTable().readNodes(ctx, shards.NodeID, func(first int64, b shards.NodeBatch) {
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
