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
	"ndls/dataset/npy"
	"ndls/dataset/source"
	"ndls/dataset/torch"
)

// EdgeChunks are the edges of several files, one after the other.
type EdgeChunks []graph.EdgeSource

// Open implements [graph.EdgeSource].
func (c EdgeChunks) Open(ctx context.Context) (graph.EdgeReader, error) {
	return &edgeChunks{ctx: ctx, left: c}, nil
}

// CanCut says that the list can be read from the middle: files are not cut.
func (c EdgeChunks) CanCut() bool { return true }

// OpenShare opens some of the files.
func (c EdgeChunks) OpenShare(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	lo, hi := s.Bounds(int64(len(c)))
	return c[lo:hi].Open(ctx)
}

type edgeChunks struct {
	ctx  context.Context
	left EdgeChunks
	now  graph.EdgeReader
}

func (r *edgeChunks) Read(batch []graph.Edge) (int, error) {
	return r.read(func(now graph.EdgeReader) (int, error) { return now.Read(batch) })
}

// ReadWeighted implements [graph.WeightedReader] where the edges of all files have weights.
func (r *edgeChunks) ReadWeighted(batch []graph.Edge, weights []float32) (int, error) {
	return r.read(func(now graph.EdgeReader) (int, error) {
		return now.(graph.WeightedReader).ReadWeighted(batch, weights)
	})
}

// read reads a batch from the file that comes next.
func (r *edgeChunks) read(batch func(now graph.EdgeReader) (int, error)) (int, error) {
	for len(r.left) > 0 {
		if r.now == nil {
			now, err := r.left[0].Open(r.ctx)
			if err != nil {
				return 0, err
			}
			r.now = now
		}
		n, err := batch(r.now)
		if err != io.EOF {
			return n, err
		}
		if err := r.now.Close(); err != nil {
			return 0, err
		}
		r.now, r.left = nil, r.left[1:]
	}
	return 0, io.EOF
}

func (r *edgeChunks) Close() error {
	if r.now == nil {
		return nil
	}
	return r.now.Close()
}

// FeatureChunks are the rows of several matrices of the same width, one after the other.
type FeatureChunks []*array.Dense

// Open implements [graph.FeatureSource].
func (c FeatureChunks) Open(ctx context.Context) (graph.FeatureReader, error) {
	return &featureChunks{ctx: ctx, left: c}, nil
}

type featureChunks struct {
	ctx   context.Context
	left  FeatureChunks
	now   graph.FeatureReader
	first int64 // node of the first row of the chunk
}

func (r *featureChunks) Next() (graph.FeatureRow, error) {
	for len(r.left) > 0 {
		if r.now == nil {
			now, err := r.left[0].Open(r.ctx)
			if err != nil {
				return graph.FeatureRow{}, err
			}
			r.now = now
		}
		row, err := r.now.Next()
		if err != io.EOF {
			row.ID += uint32(r.first)
			return row, err
		}
		if err := r.now.Close(); err != nil {
			return graph.FeatureRow{}, err
		}
		r.first += r.left[0].Rows()
		r.now, r.left = nil, r.left[1:]
	}
	return graph.FeatureRow{}, io.EOF
}

func (r *featureChunks) Close() error {
	if r.now == nil {
		return nil
	}
	return r.now.Close()
}

// Numbered are the rows of a matrix, and the nodes to which they belong.
type Numbered struct {
	Nodes array.Vector
	Rows  *array.Dense
}

// NumberedChunks are features in several such matrices of the same width.
type NumberedChunks struct {
	Parts []Numbered
	Limit graph.IDLimit
}

// Open implements [graph.FeatureSource].
func (c *NumberedChunks) Open(ctx context.Context) (graph.FeatureReader, error) {
	return &numberedReader{ctx: ctx, left: c.Parts, limit: &c.Limit}, nil
}

type numberedReader struct {
	ctx   context.Context
	left  []Numbered
	limit *graph.IDLimit
	rows  graph.FeatureReader // nil between two matrices
	nodes func() (int64, error)
	close func() error
	row   int64
}

func (r *numberedReader) Next() (graph.FeatureRow, error) {
	for len(r.left) > 0 {
		if r.rows == nil {
			if err := r.open(r.left[0]); err != nil {
				return graph.FeatureRow{}, err
			}
		}
		row, end := r.rows.Next()
		if end != nil && end != io.EOF {
			return row, end
		}
		node, err := r.nodes() // at the end, too: it checks the checksum
		switch {
		case end == io.EOF && err == io.EOF:
			if err := r.Close(); err != nil {
				return graph.FeatureRow{}, err
			}
			r.left = r.left[1:]
			continue
		case err != nil:
			return graph.FeatureRow{}, err
		}
		if problem := r.limit.Check(node, r.left[0].Nodes.Type == npy.Uint64); problem != "" {
			return graph.FeatureRow{}, graph.BadData(graph.RowOf(r.left[0].Nodes.Name, r.row), "%s", problem)
		}
		r.row++
		row.ID = uint32(node)
		return row, nil
	}
	return graph.FeatureRow{}, io.EOF
}

func (r *numberedReader) open(n Numbered) error {
	rows, err := n.Rows.Open(r.ctx)
	if err != nil {
		return err
	}
	nodes, err := n.Nodes.Integers(r.ctx, 0)
	if err != nil {
		return errors.Join(err, rows.Close())
	}
	r.rows, r.nodes, r.row = rows, nodes.Next, 0
	r.close = func() error { return errors.Join(rows.Close(), nodes.Close()) }
	return nil
}

func (r *numberedReader) Close() error {
	if r.rows == nil {
		return nil
	}
	r.rows = nil
	return r.close()
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
		if len(chunks) > 0 && width != chunks[0].Width {
			return graph.BadData(p.Name, "has %d columns, and %s has %d: the parts of an array are of equal width", width, parts[0].Name, chunks[0].Width)
		}
		rows += n
		chunks = append(chunks, &array.Dense{Vector: p.Vector, Width: width})
	}
	if len(chunks) == 0 {
		return nil
	}
	g.FeatureRows, g.Known.NumFeatures = chunks, chunks[0].Width
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
		rows += p.N
		chunks = append(chunks, column.Vector{Values: p.Vector})
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
