package ogb

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// openText opens the layout of compressed text: tables without header, whose row
// i belongs to node or edge i.
func (g *folder) openText(ctx context.Context, raw string, o graph.Options) error {
	nodes, err := g.singleLine(ctx, filepath.Join(raw, "num-node-list.csv.gz"))
	if err != nil {
		return err
	}
	edges, err := g.singleLine(ctx, filepath.Join(raw, "num-edge-list.csv.gz"))
	if err != nil {
		return err
	}
	if err := g.states(raw, nodes, edges); err != nil {
		return err
	}
	src, _, err := g.Files.Open(filepath.Join(raw, "edge.csv.gz"))
	if err != nil {
		return err
	}
	text, err := g.text(ctx, src, g.limit())
	if err != nil {
		return err
	}
	g.EdgeList = &statedEdges{text, src.Name, edges}
	if path := filepath.Join(raw, "node-feat.csv.gz"); !o.NoFeatures && source.Exists(path) {
		if err := g.openTextFeatures(ctx, path); err != nil {
			return err
		}
	}
	return g.openTextLabels(ctx, filepath.Join(raw, "node-label.csv.gz"), o)
}

// singleLine reads a file of one number.
func (g *folder) singleLine(ctx context.Context, path string) (int64, error) {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return 0, err
	}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	line, err := l.Data()
	if err == io.EOF {
		err = graph.BadData(path, "holds no number: fetch it again")
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(line)), 10, 64)
	if err != nil {
		return 0, graph.BadData(l.Where(), "%s is no whole number: fetch the file again", graph.Shorten(line))
	}
	if _, err := l.Data(); err != io.EOF {
		if err == nil {
			err = graph.BadData(l.Where(), "states a second graph: datasets of one graph are read")
		}
		return 0, err
	}
	return n, nil
}

// statedEdges is an edge list whose number of rows is stated elsewhere.
type statedEdges struct {
	graph.EdgeSource
	name string
	rows int64
}

func (e *statedEdges) Open(ctx context.Context) (graph.EdgeReader, error) {
	r, err := e.EdgeSource.Open(ctx)
	return &statedEdgeReader{EdgeReader: r, e: e}, err
}

type statedEdgeReader struct {
	graph.EdgeReader
	e    *statedEdges
	read int64
}

func (r *statedEdgeReader) Read(batch []graph.Edge) (int, error) {
	n, err := r.EdgeReader.Read(batch)
	r.read += int64(n)
	if r.read > r.e.rows || err == io.EOF && r.read < r.e.rows {
		return 0, graph.BadData(r.e.name, "does not have the %d rows that num-edge-list.csv.gz states (row %d): the files do not belong together, fetch them again", r.e.rows, r.read)
	}
	return n, err
}

// features is a matrix of features, or of answers, as text whose row i belongs to node i.
type features struct {
	src   *source.Source
	width int
	of    *folder
	holes bool // values may be missing
}

func (g *folder) openTextFeatures(ctx context.Context, path string) error {
	f, err := g.openMatrix(ctx, path)
	if err != nil {
		return err
	}
	g.FeatureRows, g.Known.NumFeatures = f, f.width
	return graph.CheckSize(path, 0, int64(f.width))
}

// openMatrix opens a matrix, whose first line tells its width.
func (g *folder) openMatrix(ctx context.Context, path string) (*features, error) {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return nil, err
	}
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	line, err := l.Data()
	if err == io.EOF {
		err = g.rowsDiffer(path, 0)
	}
	if err != nil {
		return nil, err
	}
	return &features{src: src, width: len(source.Separator(',').Fields(line)), of: g}, nil
}

func (f *features) Open(ctx context.Context) (graph.FeatureReader, error) {
	l, err := source.OpenLines(ctx, f.src)
	return &featureReader{features: f, lines: l, row: make([]float32, f.width)}, err
}

type featureReader struct {
	*features
	lines *source.Lines
	row   []float32
	next  int64
}

func (r *featureReader) Close() error { return r.lines.Close() }

func (r *featureReader) Next() (graph.FeatureRow, error) {
	line, err := r.lines.Data()
	if err == io.EOF && r.next < r.of.Known.NumNodes {
		err = r.of.rowsDiffer(r.src.Name, r.next)
	}
	if err != nil {
		return graph.FeatureRow{}, err
	}
	if r.next == r.of.Known.NumNodes {
		return graph.FeatureRow{}, graph.BadData(r.lines.Where(), "is one more than there are nodes (%d): fetch the file again", r.next)
	}
	column := 0
	for more := true; more; column++ {
		var field []byte
		field, line, more = source.Separator(',').Cut(line)
		if column >= r.width {
			continue
		}
		if text := bytes.TrimSpace(field); r.holes && (len(text) == 0 || graph.IsMissing(string(text))) {
			r.row[column] = float32(math.NaN())
			continue
		}
		v, ok := graph.Number(field, 32)
		if !ok || !graph.Finite(float32(v)) {
			return graph.FeatureRow{}, graph.BadData(r.lines.Where(), "column %d is %s: finite float32 numbers are read, replace it before the import", column+1, graph.Shorten(field))
		}
		r.row[column] = float32(v)
	}
	if column != r.width {
		return graph.FeatureRow{}, graph.BadData(r.lines.Where(), "has %d values, the first line has %d: fetch the file again", column, r.width)
	}
	r.next++
	return graph.FeatureRow{ID: uint32(r.next - 1), Dense: r.row}, nil
}

func (g *folder) openTextLabels(ctx context.Context, path string, o graph.Options) error {
	if !source.Exists(path) {
		return nil
	}
	if o.Answers != graph.Classes {
		f, err := g.openMatrix(ctx, path)
		if err != nil {
			return err
		}
		f.holes = true
		return g.takeAnswers(o.Answers, f, path, f.width, g.Known.NumNodes)
	}
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	c, err := column.OpenText(ctx, src, source.Form{}, column.Wanted{}, g.limit())
	if err == nil && c.ID >= 0 {
		err = graph.BadData(path, "has several columns: one class for each node is read; --task labels and --task regression read all of them")
	}
	if err != nil {
		return err
	}
	return g.openLabels(ctx, wholeColumn{c})
}

// wholeColumn undoes what pandas does to integers in a column with gaps: 3.0 is
// 3, and nan is nothing.
type wholeColumn struct{ *column.Text }

func (c wholeColumn) Open(ctx context.Context) (column.Reader, error) {
	r, err := c.Text.Open(ctx)
	return wholeReader{r}, err
}

type wholeReader struct{ column.Reader }

func (r wholeReader) NextValue() (uint32, string, error) {
	id, value, err := r.Reader.NextValue()
	if strings.EqualFold(value, "nan") {
		value = ""
	}
	return id, strings.TrimSuffix(value, ".0"), err
}
