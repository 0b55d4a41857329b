package dataset

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"ndls/dataset/pickle"
	"ndls/internal/direct"
)

// The names of the parts in the three layouts: gnn-benchmark's plain arrays,
// SparseGraph's plain arrays, and objects that hold a pickled matrix.
var (
	adjacencyNames = []string{"adj_", "adj_matrix.", "adj_matrix"}
	attributeNames = []string{"attr_", "attr_matrix.", "attr_matrix", "node_attr"}
	npzLabelNames  = []string{"labels", "node_label"}
)

// npzGraph is a graph in one .npz archive.
type npzGraph struct {
	files
	info       Info
	adjacency  *csr
	attributes *csr
	dense      *denseFile
	labels     *classLabels
}

func openNPZ(ctx context.Context, rest string, o Options) (Dataset, error) {
	name, err := pathOf(rest)
	if err != nil {
		return nil, err
	}
	if name == "" {
		return nil, badURI("npz: needs a file: npz:FILE")
	}
	g := &npzGraph{info: Info{Name: stem(name), Identity: "npz:" + escapePath(filepath.Base(name)), SparseFeatures: true}}
	if err := g.open(ctx, name, o); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.info.SizeHint = g.bytes()
	return g, nil
}

func (g *npzGraph) open(ctx context.Context, name string, o Options) error {
	f, err := g.files.open(name)
	if err != nil {
		return err
	}
	members, err := zipMembers(f, name)
	if err != nil {
		return err
	}
	a := &archive{file: f, name: name, members: members}
	if g.adjacency, _, err = a.matrix(ctx, adjacencyNames, false); err != nil {
		return err
	}
	if g.adjacency == nil {
		return badData(name, "has no adjacency matrix: adj_data … adj_shape, adj_matrix.data … adj_matrix.shape or adj_matrix is needed; it has %s", strings.Join(a.names(), ", "))
	}
	n := g.adjacency.rows
	if g.adjacency.cols != n {
		return badData(g.adjacency.name, "shape (%d, %d): an adjacency matrix is square", n, g.adjacency.cols)
	}
	g.info.NumNodes, g.info.EdgeHint = n, g.adjacency.indices.n
	weighted, err := g.adjacency.weighted(ctx)
	if err != nil {
		return err
	}
	if weighted {
		g.note(warningOf(g.adjacency.name, "its values are ignored, and not all of them are 1: every stored entry is an edge, without weight"))
	}
	if !o.NoFeatures {
		if err := g.openAttributes(ctx, a); err != nil {
			return err
		}
	}
	if err := g.openLabels(ctx, a); err != nil {
		return err
	}
	if !o.NoFeatures {
		g.note(unread(name, a.others()))
	}
	return nil
}

func (g *npzGraph) openAttributes(ctx context.Context, a *archive) (err error) {
	if g.attributes, g.dense, err = a.matrix(ctx, attributeNames, true); err != nil {
		return err
	}
	var name string
	var rows, cols int64
	switch {
	case g.attributes != nil:
		name, rows, cols = g.attributes.name, g.attributes.rows, g.attributes.cols
	case g.dense != nil:
		name, rows, cols = g.dense.v.name, g.dense.v.n/int64(g.dense.width), int64(g.dense.width)
		g.info.SparseFeatures = false
	default:
		g.info.SparseFeatures = false
		return nil
	}
	if rows != g.info.NumNodes {
		return badData(name, "has %d rows, the graph has %d nodes: the matrices do not belong together", rows, g.info.NumNodes)
	}
	g.info.NumFeatures = int(cols)
	return checkSize(name, rows, cols)
}

func (g *npzGraph) openLabels(ctx context.Context, a *archive) error {
	for _, name := range npzLabelNames {
		src, err := a.member(name)
		if err != nil {
			return err
		}
		if src == nil {
			continue
		}
		v, shape, err := openArray(ctx, src)
		if err != nil {
			return err
		}
		if len(shape) != 1 || v.n != g.info.NumNodes {
			return badData(src.name, "has shape %v: a vector with one label for each of the %d nodes is needed", shape, g.info.NumNodes)
		}
		g.labels, err = openLabels(ctx, vectorColumn{v})
		if err != nil {
			return err
		}
		g.info.Classes, g.info.HasLabels = g.labels.classes, true
		return nil
	}
	return nil
}

func (g *npzGraph) Info() Info { return g.info }

func (g *npzGraph) Edges(ctx context.Context) (EdgeReader, error) { return g.adjacency.edges(ctx) }

func (g *npzGraph) Features(ctx context.Context) (FeatureReader, error) {
	switch {
	case g.attributes != nil:
		return g.attributes.features(ctx)
	case g.dense != nil:
		return g.dense.open(ctx)
	}
	return nil, noStream("features", g.info.Name)
}

func (g *npzGraph) Labels(ctx context.Context) (LabelReader, error) {
	if g.labels == nil {
		return nil, noStream("labels", g.info.Name)
	}
	return g.labels.open(ctx)
}

func (g *npzGraph) Splits(context.Context) (SplitReader, error) {
	return nil, noStream("published split", g.info.Name)
}

// archive is an opened .npz file.
type archive struct {
	file    *direct.File
	name    string
	members []*zip.File
	used    []string // members that were asked for
}

// others are the arrays that were not asked for.
func (a *archive) others() (others []string) {
	for _, name := range a.names() {
		if !slices.Contains(a.used, name) {
			others = append(others, name)
		}
	}
	return others
}

func (a *archive) names() []string {
	var names []string
	for _, m := range a.members {
		names = append(names, strings.TrimSuffix(m.Name, ".npy"))
	}
	return names
}

// member returns the source of an array, nil if there is none.
func (a *archive) member(name string) (*source, error) {
	a.used = append(a.used, name)
	i := slices.IndexFunc(a.members, func(m *zip.File) bool { return m.Name == name+".npy" })
	if i < 0 {
		return nil, nil
	}
	return zipSource(a.file, a.name, a.members[i])
}

// matrix finds a matrix under one of the names: as four arrays whose names start
// with it, or as one array. Without one, both results are nil.
func (a *archive) matrix(ctx context.Context, names []string, allowDense bool) (*csr, *denseFile, error) {
	for _, name := range names {
		if data, err := a.member(name + "data"); err != nil {
			return nil, nil, err
		} else if data != nil {
			m, err := a.plainCSR(ctx, name)
			return m, nil, err
		}
		src, err := a.member(name)
		if err != nil {
			return nil, nil, err
		}
		if src == nil {
			continue
		}
		h, err := readHeader(ctx, src)
		if err != nil {
			return nil, nil, err
		}
		if len(h.Shape) == 0 {
			m, err := objectCSR(ctx, src, h.Size)
			return m, nil, err
		}
		if !allowDense {
			return nil, nil, badData(src.name, "dtype %s, shape %v: a SciPy CSR matrix is needed, save scipy.sparse.csr_matrix(a)", h.Descr, h.Shape)
		}
		v, shape, err := openArray(ctx, src)
		if err != nil {
			return nil, nil, err
		}
		_, width, err := checkMatrix(src.name, shape)
		return nil, &denseFile{v, width}, err
	}
	return nil, nil, nil
}

// plainCSR reads the arrays data, indices, indptr and shape behind a prefix.
func (a *archive) plainCSR(ctx context.Context, prefix string) (*csr, error) {
	m := &csr{name: a.name + " matrix " + strings.TrimRight(prefix, "._")}
	var shape vector
	for _, part := range []struct {
		key string
		v   *vector
	}{{"data", &m.data}, {"indices", &m.indices}, {"indptr", &m.indptr}, {"shape", &shape}} {
		src, err := a.member(prefix + part.key)
		if err != nil {
			return nil, err
		}
		if src == nil {
			return nil, badData(a.name, "has no array %s%s: the matrix needs data, indices, indptr and shape", prefix, part.key)
		}
		v, dims, err := openArray(ctx, src)
		if err != nil {
			return nil, err
		}
		if len(dims) != 1 {
			return nil, badData(src.name, "has shape %v, a vector is needed: write the matrix again", dims)
		}
		*part.v = v
	}
	if shape.n != 2 || !shape.typ.IsInteger() {
		return nil, badData(shape.name, "dtype %s, %d numbers: a shape is two integers", shape.typ, shape.n)
	}
	dims, err := shape.integers(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer dims.Close()
	for _, d := range []*int64{&m.rows, &m.cols} {
		if *d, err = dims.next(); err != nil {
			return nil, err
		}
	}
	return m, m.check()
}

// objectCSR reads an array of one Python object: a pickled matrix, or None for
// no matrix.
func objectCSR(ctx context.Context, src *source, base int64) (*csr, error) {
	value, err := unpickle(ctx, src, base)
	if err != nil {
		return nil, err
	}
	a, ok := value.(*pickle.Array)
	if !ok || a.Objects == nil || a.Objects.Len() != 1 || len(a.Objects.Items) != 1 {
		return nil, badData(src.name, "is not one Python object: save the matrix with numpy.savez and scipy.sparse.csr_matrix")
	}
	if a.Objects.Items[0] == nil {
		return nil, nil
	}
	return pickledCSR(src, base, a.Objects.Items[0])
}

// unpickle reads the pickle at byte base of src, and the rest of src, so that its
// checksum is checked.
func unpickle(ctx context.Context, src *source, base int64) (any, error) {
	st, err := src.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if err := skip(st, base); err != nil {
		return nil, damaged(src.name, err)
	}
	value, err := pickle.Read(st)
	if err != nil {
		return nil, damaged(src.name, fmt.Errorf("%w; save it with the plain arrays data, indices, indptr and shape", err))
	}
	return value, skip(st, -1)
}
