package layout

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/dataset/table"
	"ndls/dataset/torch"
)

// EdgeChunks are the edges of several files, one after the other.
type EdgeChunks []graph.EdgeSource

// Open implements [graph.EdgeSource]: files are not cut.
func (c EdgeChunks) Open(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	lo, hi := s.Bounds(int64(len(c)))
	some := c[lo:hi]
	return &edgeChunks{graph.NewChain(len(some), func(i int) (graph.EdgeReader, error) { return some[i].Open(ctx, graph.Whole) })}, nil
}

type edgeChunks struct {
	graph.Chain[graph.EdgeReader]
}

// Read implements [graph.EdgeReader].
func (r *edgeChunks) Read(edges []graph.Edge, weights []float32) (n int, err error) {
	err = r.Step(func(now graph.EdgeReader) (err error) {
		n, err = now.Read(edges, weights)
		return err
	})
	return n, err
}

// FeatureChunk has the rows of some nodes.
type FeatureChunk struct {
	Rows graph.FeatureSource
	column.Nodes
}

// FeatureChunks are rows of the same width from several sources, one after the other.
type FeatureChunks []FeatureChunk

// Open implements [graph.FeatureSource].
func (c FeatureChunks) Open(ctx context.Context, _ graph.Share) (graph.FeatureReader, error) {
	return &featureChunks{graph.NewChain(len(c), func(i int) (*openRows, error) { return c[i].open(ctx) })}, nil
}

type featureChunks struct {
	graph.Chain[*openRows]
}

// Next implements [graph.FeatureReader].
func (r *featureChunks) Next() (row graph.FeatureRow, err error) {
	err = r.Step(func(now *openRows) (err error) {
		row, err = now.Next()
		row.ID, err = now.nodes.Of(row.ID, err)
		return err
	})
	return row, err
}

// openRows reads a chunk.
type openRows struct {
	graph.FeatureReader
	nodes *column.NodeReader
}

func (c *FeatureChunk) open(ctx context.Context) (*openRows, error) {
	rows, err := c.Rows.Open(ctx, graph.Whole)
	if err != nil {
		return nil, err
	}
	nodes, err := c.Nodes.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return &openRows{rows, nodes}, nil
}

// Close closes the files.
func (r *openRows) Close() error { return errors.Join(r.FeatureReader.Close(), r.nodes.Close()) }

// OpenEdges opens edges in a file of the format csv, as text says, parquet or numpy; where states the format.
func (g *Graph) OpenEdges(ctx context.Context, where, path, format string, text table.Text) (graph.EdgeSource, error) {
	src, _, err := g.Files.Open(path)
	if err != nil {
		return nil, err
	}
	switch format {
	case "csv", "parquet":
		t, err := table.OpenNumbered(ctx, "."+format, text, g.Limit(), src)
		if err != nil {
			return nil, err
		}
		return t.Edges(ctx, [2]string{}, "")
	case "numpy":
		list, err := array.OpenEdges(ctx, src, g.Limit())
		if err == nil {
			g.Known.EdgeHint += list.M
		}
		return list, err
	}
	return nil, graph.BadData(where, "edges are in format %s: csv, numpy and parquet are read", graph.Shorten([]byte(format)))
}

// Tensor is an array in a file, and its shape.
type Tensor struct {
	array.Vector
	Shape []int64
}

// OpenTensor opens an array that is a file of NumPy, or the one tensor in a file of torch.
func OpenTensor(ctx context.Context, fs *source.Files, format, path string) (t Tensor, err error) {
	switch format {
	case "numpy":
		src, _, err := fs.Open(path)
		if err != nil {
			return t, err
		}
		t.Vector, t.Shape, err = array.Open(ctx, src)
		return t, err
	case "torch":
		f, err := torch.Open(ctx, fs, path)
		if err != nil {
			return t, err
		}
		t.Vector, t.Shape, err = f.Array(f.Value, "tensor")
		return t, err
	}
	return t, graph.BadData(path, "its format is %s: numpy is read here, and torch in metadata.yaml; save numpy.save(file, array), and name it in the metadata", graph.Shorten([]byte(format)))
}

// SetFeatures takes the features from matrices whose rows follow each other.
func (g *Graph) SetFeatures(parts []Tensor) error {
	if len(parts) == 1 {
		return g.SetDense(parts[0].Vector, parts[0].Shape)
	}
	var chunks FeatureChunks
	rows := int64(0)
	for _, p := range parts {
		n, width, err := graph.CheckMatrix(p.Name, p.Shape)
		if err != nil {
			return err
		}
		if rows > 0 && width != g.Known.NumFeatures {
			return graph.BadData(p.Name, "has %d columns, and %s has %d: the parts of an array are of equal width", width, parts[0].Name, g.Known.NumFeatures)
		}
		g.Known.NumFeatures = width
		chunks = append(chunks, FeatureChunk{&array.Dense{Vector: p.Vector, Width: width}, column.Nodes{First: rows}})
		rows += n
	}
	if len(parts) == 0 {
		return nil
	}
	g.FeatureRows = chunks
	return g.RowsAreNodes(parts[0].Name+" and the parts behind it", rows)
}

// SetLabels takes the labels from vectors whose entries follow each other.
func (g *Graph) SetLabels(ctx context.Context, parts []Tensor) (err error) {
	var chunks column.Chunks
	rows := int64(0)
	for _, p := range parts {
		if len(p.Shape) == 0 || p.N != p.Shape[0] {
			return graph.BadData(p.Name, "has shape %v: one class for each node is read", p.Shape)
		}
		chunks = append(chunks, column.Chunk{Column: column.Vector{Values: p.Vector}, Nodes: column.Nodes{First: rows}})
		rows += p.N
	}
	if len(chunks) == 0 {
		return nil
	}
	if err := g.RowsAreNodes(parts[0].Name, rows); err != nil {
		return err
	}
	g.Classes, err = column.OpenLabels(ctx, chunks)
	return err
}

// maxMetadata is the largest description of a dataset.
const maxMetadata = 8 << 20

// ReadMetadata reads a small file that describes a dataset.
func ReadMetadata(ctx context.Context, fs *source.Files, dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	src, _, err := fs.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, graph.BadData(dir, "has no %s: give the folder that has it", name)
	}
	if err != nil {
		return nil, err
	}
	if src.Size > maxMetadata {
		return nil, graph.BadData(path, "has %d bytes: is this a description of a dataset?", src.Size)
	}
	st, err := src.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(st)
	return data, errors.Join(err, st.Close())
}

// DecodeJSON decodes such a file.
func DecodeJSON(path string, data []byte, to any) error {
	err := json.Unmarshal(data, to)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return graph.BadData(path, "byte %d: %v: it is no JSON, or damaged; write it again", syntax.Offset, err)
	case errors.As(err, &kind):
		return graph.BadData(path, "byte %d: %s is a %s: another form is needed there, see `ndls help datasets`", kind.Offset, kind.Field, kind.Value)
	case err != nil:
		return graph.BadData(path, "%v", err)
	}
	return nil
}
