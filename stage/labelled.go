package stage

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/train"
)

// splitOf returns the split of a model; models are numbered split by split.
func splitOf(p plan.Options, model int) int {
	if !ownModel(p) {
		return 0
	}
	return model / p.NumRuns()
}

// labelled holds the labels of some rows, and their place in each split.
type labelled struct {
	label  *mem.Array[int32]
	splits []*mem.Array[uint8]
	// answers has the labels or numbers of each row, width of them, if rows have these in place of classes.
	answers *mem.Array[float32]
	width   int
}

// labelledBytes returns the memory for this number of rows, beside pages that are not full, and for their answers.
func labelledBytes(p plan.Options, classes int, rows int64) int64 {
	return (4+int64(p.NumSplits()))*rows + answerBytes(p, classes, rows)
}

// labelledPages bounds the memory of these pages.
func labelledPages(p plan.Options) int64 { return int64(1+p.NumSplits()) * 4096 }

func newLabelled(budget *mem.Budget, rows int64, splits int) (l *labelled, err error) {
	l = &labelled{}
	if l.label, err = mem.Alloc[int32](budget, rows, "labels"); err != nil {
		return nil, err
	}
	for range splits {
		split, err := mem.Alloc[uint8](budget, rows, "splits")
		if err != nil {
			l.free()
			return nil, err
		}
		l.splits = append(l.splits, split)
	}
	return l, nil
}

// split returns the place of each row in split i.
func (l *labelled) split(i int) []uint8 { return l.splits[i].S }

// readLabelled reads the label of every node and its place in each split.
func (env *Env) readLabelled(ctx context.Context, n int64) (_ *labelled, err error) {
	splits := env.Plan.NumSplits()
	l, err := newLabelled(env.Budget, n, splits)
	if err != nil {
		return nil, err
	}
	err = env.readSplitNodes(ctx, shards.NodeLabel, func(first int64, b shards.NodeBatch, split [][]uint8) {
		copy(l.label.S[first:], b.Label)
		for i, x := range split {
			copy(l.splits[i].S[first:], x)
		}
	})
	if err == nil {
		err = answerTable{env}.take(ctx, l, nil)
	}
	if err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// readSplitNodes visits columns of the node table and the place of each node in each split.
func (env *Env) readSplitNodes(ctx context.Context, want shards.NodeColumns,
	visit func(first int64, b shards.NodeBatch, split [][]uint8),
) error {
	return env.visitSplitNodes(ctx, want, env.nodeTable().readers(), func(first int64, b shards.NodeBatch, split [][]uint8) error {
		visit(first, b, split)
		return nil
	})
}

// visitSplitNodes is readSplitNodes with given readers; an error of visit ends it. The first split is a column of the table; the others are
// files with a byte per node.
func (env *Env) visitSplitNodes(ctx context.Context, want shards.NodeColumns, by shards.Readers,
	visit func(first int64, b shards.NodeBatch, split [][]uint8) error,
) (err error) {
	splits := env.Plan.NumSplits()
	files := make([]splitFile, splits-1)
	defer func() {
		for _, f := range files {
			if f.close != nil {
				err = errors.Join(err, f.close())
			}
		}
	}()
	for i := range files {
		if files[i], err = openSplit(ctx, env.Catalog, i+1); err != nil {
			return err
		}
	}
	parts := make([][]uint8, splits)
	err = shards.VisitNodes(ctx, env.Catalog, want|shards.NodeSplit, by, func(first int64, b shards.NodeBatch) (err error) {
		parts[0] = b.Split
		for i := range files {
			if parts[i+1], err = files[i].next(parts[i+1], len(b.Split)); err != nil {
				return err
			}
		}
		if env.Blind {
			hideTest(b.Label, parts)
		}
		return visit(first, b, parts)
	})
	for i := range files {
		if err == nil {
			err = files[i].finish()
		}
	}
	return err
}

// hideTest removes test nodes from their splits, and the labels of nodes that are then in no split.
func hideTest(labels []int32, splits [][]uint8) {
	for i := range splits[0] {
		seen := false
		for _, split := range splits {
			if split[i] == train.Test {
				split[i] = train.NoSplit
			}
			seen = seen || split[i] != train.NoSplit
		}
		if !seen && i < len(labels) {
			labels[i] = -1
		}
	}
}

// splitFile reads a file with a byte per node: its place in a split.
type splitFile struct {
	path  string
	in    *bufio.Reader
	close func() error
}

func openSplit(ctx context.Context, cat *catalog.Catalog, split int) (f splitFile, err error) {
	f.path = partition.SplitPath(split)
	e, ok := cat.Lookup(f.path)
	if !ok {
		return f, fmt.Errorf("there is no %s: run `ndls partition` with --splits %d or more first", f.path, split+1)
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return f, err
	}
	f.in, f.close = bufio.NewReader(r), r.Close
	return f, nil
}

// next reads the places of the next n nodes into the memory of to.
func (f splitFile) next(to []uint8, n int) ([]uint8, error) {
	if cap(to) < n {
		to = make([]uint8, n)
	}
	to = to[:n]
	if _, err := io.ReadFull(f.in, to); err != nil {
		return nil, f.failed(err)
	}
	for _, x := range to {
		if x > train.Test {
			return nil, seal.Corrupt(f.path, "a node has split value %d; the largest is %d", x, train.Test)
		}
	}
	return to, nil
}

// finish checks that the file ends here.
func (f splitFile) finish() error {
	if _, err := f.in.ReadByte(); err != io.EOF {
		return f.failed(err)
	}
	return nil
}

// failed returns the error for a file that is too short or too long or cannot be read.
func (f splitFile) failed(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return seal.Corrupt(f.path, "it must have one byte for each node of the node table")
	}
	return fmt.Errorf("%s: %w", f.path, err)
}

// labelledRows finds the label of every smoothed row and its place in each split by its input id; rows and node table are both in order of
// node. Every node of a split needs a row, except test nodes without a label.
func (env *Env) labelledRows(ctx context.Context, src *train.Smoothed, nodes int64) (_ *labelled, err error) {
	if !env.Plan.SomeTargets() && src.NumRows() != nodes {
		return nil, fmt.Errorf("%d smoothed rows for %d nodes: run ndls smooth again: %w", src.NumRows(), nodes, seal.ErrCorrupt)
	}
	splits := env.Plan.NumSplits()
	l, err := newLabelled(env.Budget, src.NumRows(), splits)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			l.free()
		}
	}()
	var node *mem.Array[uint32] // of each row
	if env.Plan.Answers() {
		if node, err = mem.Alloc[uint32](env.Budget, src.NumRows(), "nodes of rows"); err != nil {
			return nil, err
		}
		defer node.Free()
	}
	rows := followIDs(src.IDs())
	defer rows.stop()
	missing := [2]int64{-1, -1} // node and id of the first that lacks a row
	err = env.readSplitNodes(ctx, shards.NodeID|shards.NodeLabel, func(first int64, b shards.NodeBatch, split [][]uint8) {
		for i, id := range b.ID {
			row, ok := rows.next(id)
			switch {
			case ok && row < src.NumRows():
				l.label.S[row] = b.Label[i]
				if node != nil {
					node.S[row] = uint32(first + int64(i))
				}
				for s, x := range split {
					l.splits[s].S[row] = x[i]
				}
			case missing[0] < 0 && needed(split, i, b.Label[i]):
				missing = [2]int64{first + int64(i), id}
			}
		}
	})
	switch {
	case err != nil || rows.err != nil:
		return nil, errors.Join(err, rows.err)
	case rows.row < src.NumRows():
		return nil, fmt.Errorf("the input id of smoothed row %d is not in the node table, or not in its order: run ndls smooth again: %w", rows.row, seal.ErrCorrupt)
	}
	if missing[0] >= 0 {
		err = fmt.Errorf("node %s is in a split and not among the %d smoothed rows: run ndls smooth with --targets all or labelled",
			env.nodeTable().quoteID(ctx, missing[0], missing[1]), src.NumRows())
	}
	if err == nil && node != nil {
		err = answerTable{env}.take(ctx, l, node.S)
	}
	return l, err
}

// needed reports whether node i of a batch is trained on or counts in an accuracy, in any split.
func needed(splits [][]uint8, i int, label int32) bool {
	for _, x := range splits {
		if s := dataset.Split(x[i]); s == dataset.Train || s == dataset.Valid || s == dataset.Test && label >= 0 {
			return true
		}
	}
	return false
}

func (l *labelled) free() {
	l.label.Free()
	l.answers.Free()
	for _, x := range l.splits {
		x.Free()
	}
}
