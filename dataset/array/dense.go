package array

import (
	"context"
	"io"

	"ndls/dataset/graph"
)

// denseRows streams a matrix whose row i belongs to node i.
type denseRows struct {
	e         *Elements
	row       []float32
	next, end int64
	last      bool // the rows of the matrix end at end
	holes     bool
}

func (d *denseRows) Next() (graph.FeatureRow, error) {
	if d.next == d.end && !d.last {
		return graph.FeatureRow{}, io.EOF
	}
	if err := d.e.Fill(d.row); err != nil {
		return graph.FeatureRow{}, err
	}
	id := d.next
	d.next++
	if !graph.AllFinite(d.row) {
		for c, v := range d.row {
			if !graph.Finite(v) && !(d.holes && v != v) {
				return graph.FeatureRow{}, graph.NotFinite(d.e.V.Name, id, int64(c), v)
			}
		}
	}
	return graph.FeatureRow{ID: uint32(id), Dense: d.row}, nil
}

func (d *denseRows) Close() error { return d.e.Close() }

// Dense is a matrix whose row i belongs to node i.
type Dense struct {
	Vector Vector
	Width  int
	// Holes says that NaN may stand for a value that is not known.
	Holes bool
}

// AllowMissing makes NaN stand for a value that is missing.
func (f *Dense) AllowMissing() { f.Holes = true }

// Open implements [graph.FeatureSource].
func (f *Dense) Open(ctx context.Context, s graph.Share) (graph.FeatureReader, error) {
	rows := f.Rows()
	lo, hi := s.Bounds(rows)
	e, err := f.Vector.Open(ctx, lo*int64(f.Width))
	if err != nil {
		return nil, err
	}
	return &denseRows{e: e, row: make([]float32, f.Width), next: lo, end: hi, last: hi == rows, holes: f.Holes}, nil
}

// CutsFeatures reports whether features are a matrix that is stored as it is.
func CutsFeatures(f graph.FeatureSource) bool {
	m, ok := f.(*Dense)
	return ok && m.Vector.canCut()
}

// Rows is the number of rows.
func (f *Dense) Rows() int64 { return f.Vector.N / int64(f.Width) }
