package layout

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/source"
)

// SetAdjacency takes the edges from a matrix with a row and a column for each node, and their
// weights from its values where the URI asks for weights.
func (g *Graph) SetAdjacency(ctx context.Context, m *array.Sparse) error {
	if m.Cols != m.Rows {
		return graph.BadData(m.Name, "shape (%d, %d): an adjacency matrix is square", m.Rows, m.Cols)
	}
	name := g.Weights.Name
	if name != "" && name != MatrixWeights {
		return graph.BadURI("weight=%s: the weights of %s are the values of its matrix; write weight=%s", name, m.Name, MatrixWeights)
	}
	g.EdgeList, g.Known.NumNodes, g.Known.EdgeHint = m.Edges(name != ""), m.Rows, m.Entries
	if name != "" {
		return nil
	}
	weighted, zeros, err := m.Weighted(ctx)
	if weighted {
		also := ""
		if zeros {
			also = ", those with the value 0 too (eliminate_zeros() removes them)"
		}
		g.Note(graph.WarningOf(m.Name, "its values are ignored, and not all of them are 1: every stored entry is an edge, without weight%s; weight=%s in the URI reads weights", also, MatrixWeights))
	}
	return err
}

// SetSparse takes the features from a sparse matrix whose row i belongs to node i.
func (g *Graph) SetSparse(m *array.Sparse) error {
	g.Known.SparseFeatures, g.Known.NumFeatures = true, int(m.Cols)
	g.FeatureRows = graph.FeatureFunc(m.Features)
	if err := g.RowsAreNodes(m.Name, m.Rows); err != nil {
		return err
	}
	return m.CheckFeatures()
}

// AddPart adds nodes of a split.
func (g *Graph) AddPart(list column.List) {
	lists, _ := g.Membership.(*column.Lists)
	if lists == nil {
		lists = &column.Lists{Limit: g.Limit()}
		g.Membership = lists
	}
	lists.Parts = append(lists.Parts, list)
}

// The names of the parts of a split in an archive: masks of several splits or of one, and
// lists of nodes. A part may be missing.
var (
	MaskNames = [][3]string{
		{"train_masks", "val_masks", "test_masks"},
		{"train_mask", "val_mask", "test_mask"},
		{"train_mask", "valid_mask", "test_mask"},
	}
	ListNames = [][3]string{
		{"train_idx", "valid_idx", "test_idx"},
		{"train_idx", "val_idx", "test_idx"},
		{"train", "valid", "test"},
		{"train", "val", "test"},
	}
)

// SplitNames returns the names of the parts of a split that an archive has.
func SplitNames(a *array.Archive) (best [3]string) {
	for _, names := range append(append([][3]string{}, MaskNames...), ListNames...) {
		if a.Has(names[:]) > a.Has(best[:]) {
			best = names
		}
	}
	return best
}

// Arrays opens an array by its name; nil where there is none.
type Arrays func(ctx context.Context, name string) (v *array.Vector, shape []int64, err error)

// SetSplits takes one of the splits in a file, whose parts are lists of nodes or masks in the arrays of some names, and the others
// where the URI picks none. A file without these arrays has no split.
func (g *Graph) SetSplits(ctx context.Context, where string, names [3]string, which Pick, open Arrays) error {
	lists, note, err := g.openSplit(ctx, where, names, which, open)
	switch {
	case err != nil:
		return err
	case lists == nil && which.Given:
		return graph.BadData(where, "holds no split: leave %s out, and draw a split with --split", which.Option())
	case lists == nil:
		return nil
	}
	g.Note(note)
	g.Membership = lists
	if !which.Given {
		g.Another = func(ctx context.Context, number int64) (SplitSource, error) {
			lists, _, err := g.openSplit(ctx, where, names, Pick{Number: number, Given: true}, open)
			return lists, err
		}
	}
	return nil
}

func (g *Graph) openSplit(ctx context.Context, where string, names [3]string, which Pick,
	open Arrays,
) (found *column.Lists, note graph.Note, err error) {
	found = &column.Lists{}
	several := int64(0)
	for i, split := range []graph.Split{graph.Train, graph.Valid, graph.Test} {
		v, shape, err := open(ctx, names[i])
		if err != nil {
			return nil, note, err
		}
		if v == nil {
			continue
		}
		list, splits, err := which.list(split, *v, shape, g.Known.NumNodes, strings.Contains(names[i], "mask"))
		if err != nil {
			return nil, note, err
		}
		if several = max(several, splits); splits > 0 && splits != several {
			return nil, note, graph.BadData(v.Name, "has %d splits, another mask has %d: the masks do not belong together", splits, several)
		}
		found.Parts = append(found.Parts, list)
	}
	if found.Parts == nil {
		return nil, note, nil
	}
	found.Limit = g.Limit()
	note, err = which.Note(where, several)
	return found, note, err
}

// list opens a part of a split. Booleans are a mask, whatever their name.
func (p Pick) list(split graph.Split, v array.Vector, shape []int64, nodes int64, mask bool) (column.List, int64, error) {
	if !mask && v.Type != npy.Bool {
		list, err := column.VectorList(split, v, shape)
		return list, 0, err
	}
	if nodes < 0 && len(shape) > 0 {
		nodes = slices.Max(shape)
	}
	return column.MaskOf(split, v, shape, nodes, 0, p.Number)
}

// Pick says which split of several is read.
type Pick struct {
	Number int64
	Given  bool
}

// ParsePick reads the option split=N of a URI; without it, number 0 is picked.
func ParsePick(params []graph.Param) (p Pick, err error) {
	for _, param := range params {
		if param.Key == "split" {
			p.Given = true
			p.Number, err = graph.ParseCount(param.Key, param.Value, 0, 1<<20)
		}
	}
	return p, err
}

// Option spells the option.
func (p Pick) Option() string { return fmt.Sprintf("split=%d", p.Number) }

// Note tells which split of several is read, where the URI does not say it. It refuses a
// number that a file with one split does not have.
func (p Pick) Note(where string, splits int64) (graph.Note, error) {
	switch {
	case splits == 0 && p.Number > 0:
		return graph.Note{}, graph.BadData(where, "holds one split: leave split=%d out", p.Number)
	case splits < 2 || p.Given:
		return graph.Note{}, nil
	}
	return graph.NoteOf(where, "holds %d splits, and number %d is read: to take another one, write split=N, from 0 to %d", splits, p.Number, splits-1), nil
}

// OpenDense takes the features from a file whose row i belongs to node i. The number of
// nodes is known, or else that of its rows.
func (g *Graph) OpenDense(ctx context.Context, path string) error {
	t, err := OpenTensor(ctx, &g.Files, "numpy", path)
	if err != nil {
		return err
	}
	return g.SetDense(t.Vector, t.Shape)
}

// SetDense takes the features from a matrix whose row i belongs to node i.
func (g *Graph) SetDense(v array.Vector, shape []int64) error {
	rows, width, err := graph.CheckMatrix(v.Name, shape)
	if err != nil {
		return err
	}
	if err := g.RowsAreNodes(v.Name, rows); err != nil {
		return err
	}
	g.FeatureRows, g.Known.NumFeatures = &array.Dense{Vector: v, Width: width}, width
	return nil
}

// RowsAreNodes compares the rows of a part with the number of nodes, where that is known;
// otherwise the part states it.
func (g *Graph) RowsAreNodes(name string, rows int64) error {
	switch {
	case g.Known.NumNodes < 0:
		g.Known.NumNodes, g.Stated = rows, fmt.Sprintf("%s has %d rows, one for each node", filepath.Base(name), rows)
	case rows != g.Known.NumNodes && g.Stated == "":
		return graph.BadData(name, "has %d rows, the graph has %d nodes: they do not belong together", rows, g.Known.NumNodes)
	case rows != g.Known.NumNodes:
		return graph.BadData(name, "has %d rows, one for each node, but there are %d nodes (%s): correct one of the two", rows, g.Known.NumNodes, g.Stated)
	}
	return nil
}

// OpenLabels takes the labels from an array whose entry or row i belongs to node i.
func (g *Graph) OpenLabels(ctx context.Context, src *source.Source) error {
	v, shape, err := array.OpenNamed(ctx, src)
	if err != nil {
		return err
	}
	return g.SetVectorLabels(ctx, v, shape)
}

// SetVectorLabels takes the labels from a vector whose entry i belongs to node i.
func (g *Graph) SetVectorLabels(ctx context.Context, v array.Vector, shape []int64) (err error) {
	c, rows, note, err := column.OfLabels(v, shape)
	if err != nil {
		return err
	}
	g.Note(note)
	if err := g.RowsAreNodes(v.Name, rows); err != nil {
		return err
	}
	g.Classes, err = column.OpenLabels(ctx, c)
	return err
}
