package dataset

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/layout/npz"
	"ndls/dataset/source"
)

// openArchive opens an .npz archive that the URI names.
func (d *edgeFiles) openArchive(src *source.Source) (*array.Archive, error) {
	if src.Unpack != nil || src.Checksum != nil {
		return nil, graph.BadData(src.Name, "is an .npz archive that is packed once more: unpack it, archives are compressed inside")
	}
	return array.OpenArchive(&d.Files, src.Name)
}

// statesNodes reports whether the edge file is a matrix with a row for each node, which is opened
// before other files.
func (d *edgeFiles) statesNodes(u *edgesURI) bool {
	if u.form() != "" {
		return true
	}
	if strings.ToLower(filepath.Ext(u.edges)) != ".npz" {
		return false
	}
	a, err := array.OpenArchive(&d.Files, u.edges)
	return err == nil && a.IsMatrix() // the error comes again when the edges are opened
}

// openEdgeArchive takes the edges from a matrix of SciPy, or from an array edge_index or edges.
func (d *edgeFiles) openEdgeArchive(ctx context.Context, src *source.Source) error {
	a, err := d.openArchive(src)
	if err != nil {
		return err
	}
	if a.IsMatrix() {
		if err := d.openEdgeMatrix(ctx, a); err != nil {
			return err
		}
	} else {
		edges, err := a.First(npz.EdgeNames...)
		if err != nil {
			return err
		}
		if edges == nil || a.Has(npz.AdjacencyNames) > 0 || a.Has([]string{"adj_data", "adj_matrix.data"}) > 0 {
			return graph.BadData(src.Name, "has no array edge_index or edges, and is no matrix of scipy.sparse.save_npz (it has %s): archives of a whole dataset are read by npz:FILE", strings.Join(a.Names(), ", "))
		}
		if err := d.SetList(ctx, a, edges); err != nil {
			return err
		}
	}
	d.Note(graph.Unread(src.Name, a.Others()))
	return nil
}

// openEdgeMatrix takes the edges from a square matrix, whose rows are the nodes.
func (d *edgeFiles) openEdgeMatrix(ctx context.Context, a *array.Archive) error {
	m, _, err := a.Matrix(ctx, []string{""}, false)
	if err != nil {
		return err
	}
	if d.Known.NumNodes >= 0 && d.Known.NumNodes != m.Rows {
		return graph.BadData(a.Name, "is a matrix of %d nodes, and %s: correct one of the two", m.Rows, d.Stated)
	}
	d.Stated = fmt.Sprintf("the matrix %s has %d rows", filepath.Base(a.Name), m.Rows)
	return d.SetAdjacency(ctx, m)
}

// openFeatureArchive takes the features from a matrix of SciPy, from a matrix under one of the
// names that archives of datasets use, or from the only array there is.
func (d *edgeFiles) openFeatureArchive(ctx context.Context, src *source.Source) error {
	a, err := d.openArchive(src)
	if err != nil {
		return err
	}
	names := npz.AttributeNames
	if a.IsMatrix() {
		names = []string{""}
	} else if all := a.Names(); len(all) == 1 {
		names = all
	}
	if err := d.SetMatrix(ctx, a, names); err != nil {
		return err
	}
	d.Note(graph.Unread(src.Name, a.Others()))
	if d.FeatureRows != nil {
		return nil
	}
	return graph.BadData(src.Name, "has no features: a matrix of scipy.sparse.save_npz, one array, or one named %s is needed; it has %s", strings.Join(npz.AttributeNames, ", "), strings.Join(a.Names(), ", "))
}

// openLabelArchive takes the labels from the array that the URI names behind a #, from one under a
// name that archives of datasets use, or from the only one there is.
func (d *edgeFiles) openLabelArchive(ctx context.Context, u *edgesURI, src *source.Source) (column.Column, error) {
	a, err := d.openArchive(src)
	if err != nil {
		return nil, err
	}
	all := a.Names()
	names := npz.LabelNames
	if u.label != "" {
		names = []string{u.label}
	} else if len(all) == 1 {
		names = all
	}
	labels, err := a.First(names...)
	if err != nil {
		return nil, err
	}
	if labels == nil {
		return nil, graph.BadData(src.Name, "which array has the labels? Say so behind a #: labels=%s#ARRAY; it has %s", graph.EscapePath(filepath.Base(src.Name)), strings.Join(all, ", "))
	}
	v, shape, err := array.OpenNamed(ctx, labels)
	if err != nil {
		return nil, err
	}
	d.Note(graph.Unread(src.Name, a.Others()))
	return d.labelArray(v, shape)
}

// labelArray takes the labels from an array.
func (d *edgeFiles) labelArray(v array.Vector, shape []int64) (column.Column, error) {
	c, rows, note, err := column.OfLabels(v, shape)
	if err != nil {
		return nil, err
	}
	d.Note(note)
	return c, d.RowsAreNodes(v.Name, rows)
}
