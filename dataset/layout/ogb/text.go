package ogb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/dataset/table"
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
	text, err := g.table(ctx, src)
	if err != nil {
		return err
	}
	list, err := text.Edges(ctx, [2]string{}, "")
	if err != nil {
		return err
	}
	g.EdgeList = &statedEdges{list, src.Name, edges}
	if path := filepath.Join(raw, "node-feat.csv.gz"); !o.NoFeatures && source.Exists(path) {
		f, err := g.openMatrix(ctx, path, false)
		if err != nil {
			return err
		}
		g.FeatureRows, g.Known.NumFeatures = f, f.Width
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

func (e *statedEdges) Open(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	if s = s.Uncut(); s != graph.Whole {
		return e.EdgeSource.Open(ctx, s)
	}
	r, err := e.EdgeSource.Open(ctx, s)
	return &statedEdgeReader{EdgeReader: r, e: e}, err
}

type statedEdgeReader struct {
	graph.EdgeReader
	e    *statedEdges
	read int64
}

func (r *statedEdgeReader) Read(edges []graph.Edge, weights []float32) (int, error) {
	n, err := r.EdgeReader.Read(edges, weights)
	r.read += int64(n)
	if r.read > r.e.rows || err == io.EOF && r.read < r.e.rows {
		return 0, graph.BadData(r.e.name, "does not have the %d rows that num-edge-list.csv.gz states (row %d): the files do not belong together, fetch them again", r.e.rows, r.read)
	}
	return n, err
}

// table opens a table without header.
func (g *folder) table(ctx context.Context, src *source.Source) (*table.Numbered, error) {
	return table.OpenNumbered(ctx, ".csv", table.Text{List: true, Bare: true, Advice: "fetch the file again"}, g.Limit(), src)
}

// openMatrix opens a matrix of features, or of answers, whose row i belongs to node i.
func (g *folder) openMatrix(ctx context.Context, path string, holes bool) (*table.Features, error) {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return nil, err
	}
	t, err := g.table(ctx, src)
	if err != nil {
		return nil, err
	}
	return t.Matrix(ctx, holes)
}

func (g *folder) openTextLabels(ctx context.Context, path string, o graph.Options) error {
	if !source.Exists(path) {
		return nil
	}
	if o.Answers != graph.Classes {
		f, err := g.openMatrix(ctx, path, true)
		if err != nil {
			return err
		}
		return g.takeAnswers(o.Answers, f, path, f.Width, g.Known.NumNodes)
	}
	src, _, err := g.Files.Open(path)
	if err != nil {
		return err
	}
	t, err := g.table(ctx, src)
	if err != nil {
		return err
	}
	c, err := t.Single()
	if err != nil {
		return fmt.Errorf("%w; --task labels and --task regression read several columns", err)
	}
	return g.openLabels(ctx, wholeColumn{c})
}

// wholeColumn undoes what pandas does to integers in a column with gaps: 3.0 is
// 3, and nan is nothing.
type wholeColumn struct{ column.Column }

func (c wholeColumn) Open(ctx context.Context) (column.Reader, error) {
	r, err := c.Column.Open(ctx)
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
