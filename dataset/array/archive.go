package array

import (
	"archive/zip"
	"context"
	"fmt"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

// Archive is an opened .npz file.
type Archive struct {
	files   *source.Files
	file    source.File
	Name    string
	members []*zip.File
	used    []string // members that were asked for
}

// OpenArchive opens a file of the dataset.
func OpenArchive(fs *source.Files, path string) (*Archive, error) {
	f, err := fs.OpenFile(path)
	if err != nil {
		return nil, err
	}
	a := &Archive{files: fs, file: f, Name: path}
	if a.members, err = source.ZipMembers(f, path); err != nil {
		return nil, err
	}
	names := a.Names()
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return nil, graph.BadData(path, "has array %s twice: write the archive again", name)
		}
	}
	return a, nil
}

// Others are the arrays that were not asked for.
func (a *Archive) Others() (others []string) {
	for _, name := range a.Names() {
		if !slices.Contains(a.used, name) {
			others = append(others, name)
		}
	}
	return others
}

func (a *Archive) Names() []string {
	var names []string
	for _, m := range a.members {
		names = append(names, strings.TrimSuffix(m.Name, ".npy"))
	}
	return names
}

// Member returns the source of an array, nil if there is none.
func (a *Archive) Member(name string) (*source.Source, error) {
	a.used = append(a.used, name)
	i := slices.Index(a.Names(), name)
	if i < 0 {
		return nil, nil
	}
	src, err := source.ZipSource(a.file, a.Name, a.members[i])
	if err != nil {
		return nil, err
	}
	return src.In(a.files), nil
}

// First returns the source of the first array that is there under one of the names, nil if there is none.
func (a *Archive) First(names ...string) (*source.Source, error) {
	for _, name := range names {
		if src, err := a.Member(name); src != nil || err != nil {
			return src, err
		}
	}
	return nil, nil
}

// Vector opens an array, nil if there is none of this name.
func (a *Archive) Vector(ctx context.Context, name string) (*Vector, []int64, error) {
	src, err := a.Member(name)
	if src == nil || err != nil {
		return nil, nil, err
	}
	v, shape, err := Open(ctx, src)
	return &v, shape, err
}

// Matrix finds a matrix under one of the names: as four arrays whose names start
// with it, or as one array. Without one, both results are nil.
func (a *Archive) Matrix(ctx context.Context, names []string, allowDense bool) (*Sparse, *Dense, error) {
	for _, name := range names {
		if data, err := a.Member(name + "data"); err != nil {
			return nil, nil, err
		} else if data != nil {
			m, err := a.plainMatrix(ctx, name)
			return m, nil, err
		}
		src, err := a.Member(name)
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
			m, err := objectMatrix(ctx, src, h.Size)
			return m, nil, err
		}
		if !allowDense {
			return nil, nil, graph.BadData(src.Name, "dtype %s, shape %v: a SciPy CSR matrix is needed, save scipy.sparse.csr_matrix(a)", h.Descr, h.Shape)
		}
		v, shape, err := Open(ctx, src)
		if err != nil {
			return nil, nil, err
		}
		_, width, err := graph.CheckMatrix(src.Name, shape)
		return nil, &Dense{Vector: v, Width: width}, err
	}
	return nil, nil, nil
}

// objectMatrix reads an array of one Python object: a pickled matrix, or None for
// no matrix.
func objectMatrix(ctx context.Context, src *source.Source, base int64) (*Sparse, error) {
	value, err := Unpickle(ctx, src, base)
	if err != nil {
		return nil, err
	}
	a, ok := value.(*pickle.Array)
	if !ok || a.Objects == nil || a.Objects.Len() != 1 || len(a.Objects.Items) != 1 {
		return nil, graph.BadData(src.Name, "is not one Python object: save the matrix with numpy.savez and scipy.sparse.csr_matrix")
	}
	if a.Objects.Items[0] == nil {
		return nil, nil
	}
	return PickledMatrix(src, base, a.Objects.Items[0])
}

// Unpickle reads the pickle at byte base of src, and the rest of src, so that its
// checksum is checked.
func Unpickle(ctx context.Context, src *source.Source, base int64) (any, error) {
	st, err := src.Open(ctx, 0)
	if err != nil {
		return nil, err
	}
	defer st.Close()
	if err := source.Skip(st, base); err != nil {
		return nil, graph.Damaged(src.Name, err)
	}
	value, err := pickle.Read(st)
	if err != nil {
		return nil, graph.Damaged(src.Name, fmt.Errorf("%w; save it with the plain arrays data, indices, indptr and shape", err))
	}
	return value, source.Skip(st, -1)
}

// Array opens an array that must be there.
func (a *Archive) Array(ctx context.Context, name string) (Vector, []int64, error) {
	src, err := a.Need(name)
	if err != nil {
		return Vector{}, nil, err
	}
	return Open(ctx, src)
}

// Need returns the source of an array that must be there.
func (a *Archive) Need(name string) (*source.Source, error) {
	src, err := a.Member(name)
	if err == nil && src == nil {
		err = graph.BadData(a.Name, "has no array %s (it has %s): fetch the file again", name, strings.Join(a.Names(), ", "))
	}
	return src, err
}

// Single reads an array of one integer.
func (a *Archive) Single(ctx context.Context, name string) (int64, error) {
	v, _, err := a.Array(ctx, name)
	if err != nil {
		return 0, err
	}
	if v.N != 1 || !v.Type.IsInteger() {
		return 0, graph.BadData(v.Name, "holds %d numbers, dtype %s: datasets of one graph are read, one integer", v.N, v.Type)
	}
	c, err := v.Integers(ctx, 0)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	return c.Next()
}

// Shape is the shape of the first array that is there under one of the names, nil if there is none.
func (a *Archive) Shape(ctx context.Context, names ...string) ([]int64, error) {
	src, err := a.First(names...)
	if err != nil || src == nil {
		return nil, err
	}
	h, err := readHeader(ctx, src)
	return h.Shape, err
}

// Text is an array of one text, "" if there is none of this name.
func (a *Archive) Text(ctx context.Context, name string) (string, error) {
	src, err := a.Member(name)
	if err != nil || src == nil {
		return "", err
	}
	v, shape, err := OpenNamed(ctx, src)
	if err != nil {
		return "", err
	}
	if v.N != 1 || !v.Type.IsText() {
		return "", graph.BadData(src.Name, "dtype %s, shape %v: one text is needed, write the file again", v.Type, shape)
	}
	text, err := v.Texts(ctx)
	if err != nil {
		return "", err
	}
	defer text.Close()
	return text.Next()
}

// Has counts the names under which the archive has an array.
func (a *Archive) Has(names []string) (n int) {
	for _, name := range a.Names() {
		if slices.Contains(names, name) {
			n++
		}
	}
	return n
}
