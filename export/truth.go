package export

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/seal"
)

// truth is the label and the split of every node, by node.
type truth struct {
	label *mem.Array[int32]
	split *mem.Array[uint8]
}

// readTruth reads the node table: 5·n bytes.
func readTruth(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (_ *truth, err error) {
	n := countRows(cat, catalog.KindNodes)
	t := &truth{}
	if t.label, err = mem.Alloc[int32](b, n, "labels of nodes"); err != nil {
		return nil, err
	}
	if t.split, err = mem.Alloc[uint8](b, n, "splits of nodes"); err != nil {
		t.free()
		return nil, err
	}
	nodes := nodeSource(cat, false, false, b)
	if err := nodes.scan(ctx, func(first int64, cols [][]byte) error {
		copy(t.label.S[first:], view[int32](cols[3]))
		copy(t.split.S[first:], cols[4])
		return ctx.Err()
	}); err != nil {
		t.free()
		return nil, err
	}
	return t, nil
}

func (t *truth) free() {
	t.label.Free()
	t.split.Free()
}

// addTruth adds to predictions, whose rows are in order of node, what is known of the nodes.
func (s *source) addTruth(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) error {
	if s.columns[1].name != "label" {
		return failure.Of(ErrOption, "the predictions are labels or numbers (--task), and have no class: export them as they are, without --true-labels, with --what predictions")
	}
	t, err := readTruth(ctx, cat, b)
	if err != nil {
		return err
	}
	if n := int64(len(t.label.S)); s.rows != n {
		t.free()
		return fmt.Errorf("there are predictions of %d nodes, and the node table has %d: %w", s.rows, n, seal.ErrCorrupt)
	}
	// The id and the predicted label come first.
	s.columns = append([]column{
		s.columns[0], s.columns[1],
		{"label_name", classKind, 0},
		{"true_label", int32Kind, 0},
		{"true_name", classKind, 0},
		{"split", splitKind, 0},
	}, s.columns[2:]...)
	scan, free := s.scan, s.free
	s.scan = func(ctx context.Context, visit func(int64, [][]byte) error) error {
		return scan(ctx, func(first int64, cols [][]byte) error {
			end := first + int64(len(cols[1])/4)
			label := mem.AsBytes(t.label.S[first:end])
			return visit(first, append([][]byte{cols[0], cols[1], cols[1], label, label, t.split.S[first:end]}, cols[2:]...))
		})
	}
	s.free = func() {
		t.free()
		if free != nil {
			free()
		}
	}
	return nil
}
