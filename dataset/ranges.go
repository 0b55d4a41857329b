package dataset

import (
	"context"
	"errors"
	"io"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// RangeReader is a Dataset whose edge list can be read from the middle.
type RangeReader interface {
	// EdgeRange is Edges for the parts [first, last) of the list cut into of parts
	// of about the same length. Each row is in one part, whatever of is. A list
	// that can only be read from its beginning is all in part 0.
	EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error)
}

// EdgeRange reads parts of the edge list of any dataset; see [RangeReader].
func EdgeRange(ctx context.Context, ds Dataset, first, last, of int) (EdgeReader, error) {
	switch r, ok := ds.(RangeReader); {
	case ok:
		return r.EdgeRange(ctx, first, last, of)
	case first > 0:
		return graph.NoEdges{}, nil
	}
	return ds.Edges(ctx)
}

// FeatureRangeReader is a Dataset whose feature rows can be read from the middle.
type FeatureRangeReader interface {
	// CutsFeatures says whether they can: it depends on the file.
	CutsFeatures() bool
	// FeatureRange is Features for the parts [first, last) of the rows cut into of parts
	// of about the same length. Each row is in one part, whatever of is.
	FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error)
}

// CutsFeatures says whether the feature rows of a dataset can be read from the middle.
func CutsFeatures(ds Dataset) bool {
	r, ok := ds.(FeatureRangeReader)
	return ok && r.CutsFeatures()
}

// EdgeRange implements RangeReader.
func (d *edgeFiles) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	return graph.OpenShare(ctx, d.edges, graph.Share{First: first, Last: last, Of: of})
}

// EdgeRange implements RangeReader.
func (g *ogbGraph) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	return graph.OpenShare(ctx, g.edges, graph.Share{First: first, Last: last, Of: of})
}

// EdgeRange implements RangeReader.
func (c *counted) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(c.rows)
	return &countedEdges{c: c, ctx: ctx, next: lo, end: hi}, nil
}

// CutsFeatures implements FeatureRangeReader.
func (c *counted) CutsFeatures() bool { return true }

// FeatureRange implements FeatureRangeReader.
func (c *counted) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	if c.feature == nil {
		return nil, graph.NoStream("features", c.info.Name)
	}
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(c.nodes)
	return &countedFeatures{countedNodes{c, ctx, lo, hi}, 0, make([]float32, c.info.NumFeatures)}, nil
}

// CutsFeatures implements FeatureRangeReader.
func (d *edgeFiles) CutsFeatures() bool { return array.CutsFeatures(d.features) }

// FeatureRange implements FeatureRangeReader.
func (d *edgeFiles) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	return d.features.(*array.Dense).OpenShare(ctx, graph.Share{First: first, Last: last, Of: of})
}

// CutsFeatures implements FeatureRangeReader.
func (g *ogbGraph) CutsFeatures() bool { return array.CutsFeatures(g.features) }

// FeatureRange implements FeatureRangeReader.
func (g *ogbGraph) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	return g.features.(*array.Dense).OpenShare(ctx, graph.Share{First: first, Last: last, Of: of})
}

// CanCut implements cuttable.
func (e *parquetEdges) CanCut() bool { return true }

// openShare implements cuttable. Row groups are not cut.
func (e *parquetEdges) OpenShare(ctx context.Context, s graph.Share) (EdgeReader, error) {
	lo, hi := s.Bounds(int64(e.file.Reader.NumRowGroups()))
	return e.openGroups(ctx, int(lo), int(hi))
}

// CanCut implements cuttable.
func (e *textEdges) CanCut() bool { return e.src.Unpack == nil && e.src.Checksum == nil }

// openShare implements cuttable: a line is in the part in which it begins.
func (e *textEdges) OpenShare(ctx context.Context, s graph.Share) (EdgeReader, error) {
	lo, hi := s.Bounds(e.src.Size - e.begin)
	lo, hi = lo+e.begin, hi+e.begin
	// A line that begins at lo ends the one before at lo-1.
	before := min(lo-e.begin, 1)
	l, err := source.OpenLinesAt(ctx, e.src, lo-before)
	if err != nil {
		return nil, err
	}
	if before > 0 {
		if _, err := l.Next(); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, l.Close())
		}
	}
	l.Stop = hi
	return &textEdgeReader{textEdges: e, lines: l}, nil
}
