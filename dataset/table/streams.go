package table

import (
	"context"
	"io"

	"ndls/dataset/column"
	"ndls/dataset/graph"
)

// Edges implements graph.Dataset.
func (g *Graph) Edges(ctx context.Context) (graph.EdgeReader, error) {
	return g.EdgeRange(ctx, 0, 1, 1)
}

// EdgeRange reads parts of the edge list, as dataset.RangeReader says.
func (g *Graph) EdgeRange(ctx context.Context, first, last, of int) (graph.EdgeReader, error) {
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(int64(g.edges.units()))
	return &edgeReader{g: g, rows: g.edges.rows(ctx, int(lo), int(hi), g.edgeNames(), nil)}, nil
}

type edgeReader struct {
	g    *Graph
	rows *rows
	b    *batch
	at   int
	key  []byte
}

func (r *edgeReader) Close() error { return r.rows.close() }

// Read implements graph.EdgeReader.
func (r *edgeReader) Read(edges []graph.Edge) (n int, err error) { return r.ReadWeighted(edges, nil) }

// ReadWeighted implements graph.WeightedReader; weights may be nil.
func (r *edgeReader) ReadWeighted(edges []graph.Edge, weights []float32) (n int, err error) {
	for n < len(edges) {
		if r.b == nil || r.at == r.b.n {
			if r.b, err = r.rows.next(); err == io.EOF && n > 0 {
				r.b = nil
				return n, nil
			}
			if err != nil {
				r.b = nil
				return 0, err
			}
			r.at = 0
		}
		for ; r.at < r.b.n && n < len(edges); r.at, n = r.at+1, n+1 {
			if edges[n].U, r.key, err = r.g.number(r.b, r.at, 0, r.g.ends[0], r.key); err != nil {
				return 0, err
			}
			if edges[n].V, r.key, err = r.g.number(r.b, r.at, 1, r.g.ends[1], r.key); err != nil {
				return 0, err
			}
			if weights != nil {
				var problem string
				if weights[n], problem = r.b.cols[2].weight(r.at); problem != "" {
					return 0, graph.BadData(r.b.where(r.at), "column %q: %s", r.g.spec.weight, problem)
				}
			}
		}
	}
	return n, nil
}

// nodeRows goes over the rows of a table with a column of ids, which is the first of those
// that are read.
type nodeRows struct {
	g    *Graph
	rows *rows
	b    *batch
	at   int // the row that next moved to
	key  []byte
}

func (r *nodeRows) Close() error { return r.rows.close() }

// next moves to the next row, or returns io.EOF.
func (r *nodeRows) next() (id uint32, err error) {
	if r.at++; r.b == nil || r.at >= r.b.n {
		if r.b, err = r.rows.next(); err != nil {
			r.b = nil
			return 0, err
		}
		r.at = 0
	}
	if r.g.find == nil { // classes are looked for, before ids have numbers
		return 0, nil
	}
	id, r.key, err = r.g.number(r.b, r.at, 0, r.rows.names[0], r.key)
	return id, err
}

// Position names the row.
func (r *nodeRows) Position() string { return r.b.where(r.at) }

// NodeName is the id of the row's node.
func (r *nodeRows) NodeName() string { return r.g.keyType.Quote(r.key) }

// ReadsFrom names the table.
func (r *nodeRows) ReadsFrom() string { return r.rows.t.place.String() }

// Features implements graph.Dataset.
func (g *Graph) Features(ctx context.Context) (graph.FeatureReader, error) {
	return g.FeatureRange(ctx, 0, 1, 1)
}

// CutsFeatures reports whether feature rows can be read from the middle, as
// dataset.FeatureRangeReader says.
func (g *Graph) CutsFeatures() bool { return g.nodes != nil && g.nodes.units() > 1 }

// FeatureRange reads parts of the feature rows.
func (g *Graph) FeatureRange(ctx context.Context, first, last, of int) (graph.FeatureReader, error) {
	if g.info.NumFeatures == 0 {
		return nil, graph.NoStream("features", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	lo, hi := graph.Share{First: first, Last: last, Of: of}.Bounds(int64(g.nodes.units()))
	names, widths := append([]string{g.id}, g.spec.features...), append([]int{0}, g.widths...)
	rows := g.nodes.rows(ctx, int(lo), int(hi), names, widths)
	if g.spec.nulls != "" {
		rows.nulls = zeros
	}
	return &featureReader{nodeRows: nodeRows{g: g, rows: rows}, features: newFeatures(rows, 1, g.info.NumFeatures)}, nil
}

type featureReader struct {
	nodeRows
	features *features
}

// Next implements graph.FeatureReader.
func (r *featureReader) Next() (graph.FeatureRow, error) {
	id, err := r.next()
	if err != nil {
		return graph.FeatureRow{}, err
	}
	return r.features.of(id, r.b, r.at)
}

// features holds the features of a row, from columns first, first+1, … of those that are read.
type features struct {
	rows  *rows
	first int
	width int
	row   graph.FeatureRow
	dense []float32
}

// newFeatures reads rows of a width.
func newFeatures(r *rows, first, width int) *features {
	return &features{rows: r, first: first, width: width}
}

// of is the features of a row of a batch. They are sparse where one of the columns has vectors.
func (f *features) of(id uint32, b *batch, row int) (graph.FeatureRow, error) {
	isSparse := false
	for i := f.first; i < len(f.rows.names); i++ {
		isSparse = isSparse || b.cols[i].kind == vectorKind
	}
	f.row = graph.FeatureRow{ID: id, Indices: f.row.Indices[:0], Values: f.row.Values[:0]}
	at := 0
	for i := f.first; i < len(f.rows.names); i++ {
		n := max(f.rows.widths[i], 1)
		var problem string
		if b.cols[i].kind == vectorKind {
			problem = b.cols[i].sparse(&f.row, row, at, n, f.rows.nulls == zeros)
		} else {
			if len(f.dense) < f.width && !isSparse {
				f.dense = make([]float32, f.width)
			}
			to := f.dense
			if isSparse {
				if len(f.dense) < n {
					f.dense = make([]float32, n)
				}
				to = f.dense[:n]
			} else {
				to = to[at : at+n]
			}
			if problem = b.cols[i].features(to, row, f.rows.nulls); problem == "" && isSparse {
				for k, x := range to {
					if x != 0 {
						f.row.Indices, f.row.Values = append(f.row.Indices, uint32(at+k)), append(f.row.Values, x)
					}
				}
			}
		}
		if problem != "" {
			return graph.FeatureRow{}, graph.BadData(b.where(row), "column %q %s", f.rows.names[i], problem)
		}
		at += n
	}
	if isSparse {
		return f.row, nil
	}
	return graph.FeatureRow{ID: id, Dense: f.dense[:f.width]}, nil
}

// Labels implements graph.Dataset.
func (g *Graph) Labels(ctx context.Context) (graph.LabelReader, error) {
	if g.info.Answers != graph.Classes {
		answers, err := g.Answers(ctx)
		if err != nil {
			return nil, err
		}
		return graph.LabelsOfAnswers(answers), nil
	}
	if g.classes == nil {
		return nil, graph.NoStream("labels", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return g.classes.Open(ctx)
}

// Answers implements graph.Answered.
func (g *Graph) Answers(ctx context.Context) (graph.FeatureReader, error) {
	if g.info.Answers == graph.Classes {
		return nil, graph.NoStream("answers", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	v := g.labels
	rows := v.t.all(ctx, append([]string{v.id}, v.names...), append([]int{0}, v.widths...))
	rows.nulls = unknown
	return &answerReader{featureReader{nodeRows: nodeRows{g: g, rows: rows}, features: newFeatures(rows, 1, len(g.info.Classes))}}, nil
}

type answerReader struct{ featureReader }

// Next implements graph.FeatureReader.
func (r *answerReader) Next() (graph.FeatureRow, error) {
	row, err := r.featureReader.Next()
	if err == nil {
		if row.Indices != nil {
			return row, graph.BadData(r.Position(), "has a vector: labels and numbers are columns of numbers, or lists of them")
		}
		err = r.g.info.Answers.Check(row.Dense, r.Position(), func(i int) string { return r.g.info.Classes[i] })
	}
	return row, err
}

// Splits implements graph.Dataset.
func (g *Graph) Splits(ctx context.Context) (graph.SplitReader, error) {
	if g.splits.t == nil {
		return nil, graph.NoStream("splits", g.info.Name)
	}
	if err := g.ready(ctx); err != nil {
		return nil, err
	}
	return column.SplitColumn{Column: &valueColumn{g, g.splits}}.Open(ctx)
}

// valueColumn is a column of labels or splits.
type valueColumn struct {
	g *Graph
	values
}

// Where implements column.Column.
func (c *valueColumn) Where() string { return c.t.place.String() }

// Open implements column.Column.
func (c *valueColumn) Open(ctx context.Context) (column.Reader, error) {
	return &valueReader{nodeRows{g: c.g, rows: c.t.all(ctx, []string{c.id, c.names[0]}, nil)}}, nil
}

type valueReader struct{ nodeRows }

// NextValue implements column.Reader.
func (r *valueReader) NextValue() (uint32, string, error) {
	id, err := r.next()
	if err != nil {
		return 0, "", err
	}
	return id, r.b.cols[1].value(r.at), nil
}
