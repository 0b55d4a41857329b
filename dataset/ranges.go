package dataset

import (
	"bytes"
	"context"
	"errors"
	"io"
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
		return noEdges{}, nil
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

// noEdges is a part that holds nothing.
type noEdges struct{}

func (noEdges) Read([]Edge) (int, error) { return 0, io.EOF }
func (noEdges) Close() error             { return nil }

// share is [first, last) of so many equal parts.
type share struct{ first, last, of int }

// bounds are those of the share of n things.
func (s share) bounds(n int64) (lo, hi int64) {
	part := func(i int) int64 { return n/int64(s.of)*int64(i) + n%int64(s.of)*int64(i)/int64(s.of) }
	return part(s.first), part(s.last)
}

// cuttable is an edge list that can be read from the middle, if canCut says so.
type cuttable interface {
	canCut() bool
	openShare(ctx context.Context, s share) (EdgeReader, error)
}

// openShare opens a part of an edge list.
func openShare(ctx context.Context, e edgeSource, s share) (EdgeReader, error) {
	switch c, ok := e.(cuttable); {
	case s.first == 0 && s.last == s.of:
		return e.open(ctx)
	case ok && c.canCut():
		return c.openShare(ctx, s)
	case s.first > 0:
		return noEdges{}, nil
	}
	return e.open(ctx)
}

// EdgeRange implements RangeReader.
func (d *edgeFiles) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	return openShare(ctx, d.edges, share{first, last, of})
}

// EdgeRange implements RangeReader.
func (g *ogbGraph) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	return openShare(ctx, g.edges, share{first, last, of})
}

// EdgeRange implements RangeReader.
func (c *counted) EdgeRange(ctx context.Context, first, last, of int) (EdgeReader, error) {
	lo, hi := share{first, last, of}.bounds(c.rows)
	return &countedEdges{c: c, ctx: ctx, next: lo, end: hi}, nil
}

// CutsFeatures implements FeatureRangeReader.
func (c *counted) CutsFeatures() bool { return true }

// FeatureRange implements FeatureRangeReader.
func (c *counted) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	if c.feature == nil {
		return nil, noStream("features", c.info.Name)
	}
	lo, hi := share{first, last, of}.bounds(c.nodes)
	return &countedFeatures{countedNodes{c, ctx, lo, hi}, 0, make([]float32, c.info.NumFeatures)}, nil
}

// cutsFeatures says whether features are a matrix that is stored as it is.
func cutsFeatures(f featureSource) bool {
	m, ok := f.(*denseFile)
	return ok && m.v.src.unpack == nil && !m.v.latin1
}

// CutsFeatures implements FeatureRangeReader.
func (d *edgeFiles) CutsFeatures() bool { return cutsFeatures(d.features) }

// FeatureRange implements FeatureRangeReader.
func (d *edgeFiles) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	return d.features.(*denseFile).openShare(ctx, share{first, last, of})
}

// CutsFeatures implements FeatureRangeReader.
func (g *ogbGraph) CutsFeatures() bool { return cutsFeatures(g.features) }

// FeatureRange implements FeatureRangeReader.
func (g *ogbGraph) FeatureRange(ctx context.Context, first, last, of int) (FeatureReader, error) {
	return g.features.(*denseFile).openShare(ctx, share{first, last, of})
}

// canCut implements cuttable.
func (e *arrayEdges) canCut() bool { return e.v.src.unpack == nil && !e.v.latin1 }

// openShare implements cuttable.
func (e *arrayEdges) openShare(ctx context.Context, s share) (EdgeReader, error) {
	lo, hi := s.bounds(e.m)
	return e.openRows(ctx, lo, hi)
}

// canCut implements cuttable.
func (e *parquetEdges) canCut() bool { return true }

// openShare implements cuttable. Row groups are not cut.
func (e *parquetEdges) openShare(ctx context.Context, s share) (EdgeReader, error) {
	lo, hi := s.bounds(int64(e.file.reader.NumRowGroups()))
	return e.openGroups(ctx, int(lo), int(hi))
}

// canCut implements cuttable.
func (e *textEdges) canCut() bool { return e.src.unpack == nil && e.src.checksum == nil }

// openShare implements cuttable: a line is in the part in which it begins.
func (e *textEdges) openShare(ctx context.Context, s share) (EdgeReader, error) {
	lo, hi := s.bounds(e.src.size - e.begin)
	lo, hi = lo+e.begin, hi+e.begin
	// A line that begins at lo ends the one before at lo-1.
	before := min(lo-e.begin, 1)
	l, err := openLinesAt(ctx, e.src, lo-before)
	if err != nil {
		return nil, err
	}
	if before > 0 {
		if _, err := l.next(); err != nil && !errors.Is(err, io.EOF) {
			return nil, errors.Join(err, l.Close())
		}
	}
	l.stop = hi
	return &textEdgeReader{textEdges: e, lines: l}, nil
}

// countLines counts the lines that end before byte end.
func (s *source) countLines(ctx context.Context, end int64) (n int64) {
	if end == 0 {
		return 0
	}
	st, err := s.open(ctx, 0)
	if err != nil {
		return 0
	}
	defer st.Close()
	buf := make([]byte, bufferSize)
	for end > 0 {
		got, err := st.Read(buf[:min(int64(len(buf)), end)])
		n += int64(bytes.Count(buf[:got], []byte{'\n'}))
		end -= int64(got)
		if err != nil {
			break
		}
	}
	return n
}
