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
// weights from its values where w asks for weights.
func (g *Graph) SetAdjacency(ctx context.Context, m *array.Sparse, w Weights) error {
	edges, note, err := Adjacency(ctx, m, w)
	if err != nil {
		return err
	}
	g.Note(note)
	g.EdgeList, g.Known.NumNodes, g.Known.EdgeHint = edges, m.Rows, m.Entries
	if w.Name != "" {
		g.Known.Weighted, g.Known.AddRepeated = true, w.Sum
	}
	return nil
}

// Adjacency is the edges of such a matrix, and a warning where weights are ignored.
func Adjacency(ctx context.Context, m *array.Sparse, w Weights) (edges graph.EdgeSource, note graph.Note, err error) {
	if m.Cols != m.Rows {
		return nil, note, graph.BadData(m.Name, "shape (%d, %d): an adjacency matrix is square", m.Rows, m.Cols)
	}
	switch w.Name {
	case "":
	case MatrixWeights:
		return m.Edges(true), note, nil
	default:
		return nil, note, graph.BadURI("weight=%s: the weights of %s are the values of its matrix; write weight=%s", w.Name, m.Name, MatrixWeights)
	}
	weighted, zeros, err := m.Weighted(ctx)
	if weighted {
		also := ""
		if zeros {
			also = ", those with the value 0 too (eliminate_zeros() removes them)"
		}
		note = graph.WarningOf(m.Name, "its values are ignored, and not all of them are 1: every stored entry is an edge, without weight%s; weight=%s in the URI reads weights", also, MatrixWeights)
	}
	return m.Edges(false), note, err
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

// OpenSplits takes one of the splits of an archive, as lists of nodes or as masks. nodes is
// the number of nodes, -1 where it is not known; lists does not say it then. Without a
// split, found is nil.
func OpenSplits(ctx context.Context, a *array.Archive, nodes int64, which Pick) (found *column.Lists, note graph.Note, err error) {
	best := [3]string{}
	for _, names := range append(append([][3]string{}, MaskNames...), ListNames...) {
		if a.Has(names[:]) > a.Has(best[:]) {
			best = names
		}
	}
	found = &column.Lists{Limit: graph.AnyID}
	if nodes >= 0 {
		found.Limit = graph.IDLimit{N: nodes, Stated: fmt.Sprintf("there are %d nodes", nodes)}
	}
	several := int64(0)
	for i, split := range []graph.Split{graph.Train, graph.Valid, graph.Test} {
		src, err := a.Member(best[i])
		if err != nil {
			return nil, note, err
		}
		if src == nil {
			continue
		}
		v, shape, err := array.Open(ctx, src)
		if err != nil {
			return nil, note, err
		}
		list, splits, err := which.list(split, v, shape, nodes, strings.Contains(best[i], "mask"))
		if err != nil {
			return nil, note, err
		}
		if several = max(several, splits); splits > 0 && splits != several {
			return nil, note, graph.BadData(src.Name, "has %d splits, another mask has %d: the masks do not belong together", splits, several)
		}
		found.Parts = append(found.Parts, list)
	}
	if found.Parts == nil {
		return nil, note, nil
	}
	note, err = which.Note(a.Name, several)
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

// Option spells the option, "" where it is not given.
func (p Pick) Option() string {
	if !p.Given {
		return ""
	}
	return fmt.Sprintf("split=%d", p.Number)
}

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
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	v, shape, err := array.Open(ctx, src)
	if err != nil {
		return err
	}
	return g.SetDense(v, shape)
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

// OpenVectorLabels takes the labels from a file whose entry i belongs to node i.
func (g *Graph) OpenVectorLabels(ctx context.Context, path string) error {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	return g.OpenLabels(ctx, src)
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
