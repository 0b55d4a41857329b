package stage

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/shards"
	"ndls/train"
)

// labelled holds label and split of some rows.
type labelled struct {
	label *mem.Array[int32]
	split *mem.Array[uint8]
}

func newLabelled(budget *mem.Budget, rows int64) (*labelled, error) {
	label, err := mem.Alloc[int32](budget, rows, "labels")
	if err != nil {
		return nil, err
	}
	split, err := mem.Alloc[uint8](budget, rows, "splits")
	if err != nil {
		label.Free()
		return nil, err
	}
	return &labelled{label, split}, nil
}

// readLabelled reads label and split of every node.
func readLabelled(ctx context.Context, cat *catalog.Catalog, budget *mem.Budget, n int64) (*labelled, error) {
	l, err := newLabelled(budget, n)
	if err != nil {
		return nil, err
	}
	err = readNodes(ctx, cat, func(first int64, b shards.NodeBatch) {
		copy(l.label.S[first:], b.Label)
		copy(l.split.S[first:], b.Split)
	})
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// labelledRows finds label and split of every smoothed row by its input id: rows
// and node table are both in order of the nodes. Every node of a split must be
// among the rows, but for test nodes without a label.
func (env *Env) labelledRows(ctx context.Context, src *train.Smoothed, nodes int64) (_ *labelled, err error) {
	if !env.Plan.SomeTargets() && src.NumRows() != nodes {
		return nil, fmt.Errorf("%d smoothed rows for %d nodes: run ndls smooth again: %w", src.NumRows(), nodes, seal.ErrCorrupt)
	}
	l, err := newLabelled(env.Budget, src.NumRows())
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	next, stop := iter.Pull2(src.IDs())
	defer stop()
	var (
		ids     []int64 // of a piece, from the first row without a node on
		row     int64   // the first row without a node
		readErr error
		missing error
	)
	err = readNodes(ctx, env.Catalog, func(_ int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if len(ids) == 0 && row < src.NumRows() && readErr == nil {
				ids, readErr, _ = next()
			}
			switch {
			case len(ids) > 0 && ids[0] == id:
				l.label.S[row], l.split.S[row] = b.Label[i], b.Split[i]
				row, ids = row+1, ids[1:]
			case missing == nil && needed(dataset.Split(b.Split[i]), b.Label[i]):
				missing = fmt.Errorf("node %d is in a split and not among the %d smoothed rows: run ndls smooth with --targets all or labelled",
					id, src.NumRows())
			}
		}
	})
	switch {
	case err != nil || readErr != nil:
		return nil, errors.Join(err, readErr)
	case row < src.NumRows():
		return nil, fmt.Errorf("smoothed row %d has an input id that the node table lacks, or has elsewhere: run ndls smooth again: %w", row, seal.ErrCorrupt)
	}
	return l, missing
}

// needed says whether a node is trained on or counts in an accuracy.
func needed(split dataset.Split, label int32) bool {
	return split == dataset.Train || split == dataset.Valid || split == dataset.Test && label >= 0
}

func (l *labelled) free() {
	l.label.Free()
	l.split.Free()
}
