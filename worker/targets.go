package worker

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/dataset"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/smooth"
)

// findTargets makes the rows of smoothed features that the plan asks for.
func (j *job) findTargets(ctx context.Context, s shards.Summary) (t *smooth.Targets, err error) {
	if j.plan.Smooth.Targets == control.AllTargets {
		return smooth.AllTargets(s.Nodes), nil
	}
	if t, err = smooth.NewTargets(j.budget, s.Nodes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			t.Free()
		}
	}()
	if j.plan.Smooth.Targets == control.LabelledTargets {
		err = j.labelledTargets(ctx, t)
	} else {
		err = j.listedTargets(ctx, s.Nodes, t)
	}
	t.Finish()
	if err == nil && t.Len() == 0 {
		err = fmt.Errorf("worker: --targets %s names no row: use all, or a file of input ids", j.plan.Smooth.Targets)
	}
	return t, err
}

// labelledTargets adds the nodes with a label.
func (j *job) labelledTargets(ctx context.Context, t *smooth.Targets) error {
	return j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		for i, label := range b.Label {
			if label >= 0 {
				t.Add(first + int64(i))
			}
		}
	})
}

// listedTargets adds the nodes whose ids the user's file lists.
func (j *job) listedTargets(ctx context.Context, n int64, t *smooth.Targets) (err error) {
	if j.inputs.Targets == "" {
		return fmt.Errorf("worker: the run's target rows come from a file: give --targets with %s again", j.plan.Smooth.Targets)
	}
	ids, err := dataset.OpenIDs(ctx, j.inputs.Targets)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ids.Close()) }()
	nodes, err := j.nodesByID(ctx, n)
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
			return fmt.Errorf("worker: %s: id %d in row %d is no node of the graph: remove it", j.inputs.Targets, id, row)
		}
		t.Add(at)
	}
}

// readTargetIDs finds the input id of each target, in order of node.
func (j *job) readTargetIDs(ctx context.Context, s shards.Summary, t *smooth.Targets) (*mem.Array[uint32], error) {
	if t.All() {
		return j.ids(ctx, s.Nodes)
	}
	ids, err := mem.Alloc[uint32](j.budget, t.Len(), "ids of target rows")
	if err != nil {
		return nil, err
	}
	at := 0
	err = j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
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
