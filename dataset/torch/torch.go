package torch

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

// File is an opened file.
type File struct {
	// Value is the saved value: tensors are *Tensor, all else is as package pickle says.
	Value any

	name     string
	prefix   string // of the members of the archive
	pkl      *source.Source
	storages map[string]*source.Source
}

// Tensor is a view of a storage.
type Tensor struct {
	typ    npy.Type
	key    string
	first  int64
	shape  []int64
	stride []int64
}

// types are the element types by the class of a storage.
var types = map[string]npy.Type{
	"FloatStorage": npy.Float32, "DoubleStorage": npy.Float64, "HalfStorage": npy.Float16, "BFloat16Storage": npy.BFloat16,
	"LongStorage": npy.Int64, "IntStorage": npy.Int32, "ShortStorage": npy.Int16, "CharStorage": npy.Int8, "ByteStorage": npy.Uint8,
	"BoolStorage": npy.Bool,
}

// storage is the object of a persistent id.
type storage struct {
	typ npy.Type
	key string
}

// Open reads the pickle of a file, and finds its storages.
func Open(ctx context.Context, fs *source.Files, path string) (*File, error) {
	f, err := fs.OpenFile(path)
	if err != nil {
		return nil, err
	}
	head := make([]byte, 4)
	if n, err := f.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	} else if string(head[:n]) != "PK\x03\x04" {
		return nil, graph.BadData(path, "is no file that torch.save has written since version 1.6: load it with torch.load, and save it again")
	}
	members, err := source.ZipMembers(f, path)
	if err != nil {
		return nil, err
	}
	t := &File{name: path, storages: map[string]*source.Source{}}
	i := slices.IndexFunc(members, func(m *zip.File) bool { return m.Name == "data.pkl" || strings.HasSuffix(m.Name, "/data.pkl") })
	if i < 0 {
		return nil, graph.BadData(path, "is a zip archive without data.pkl: torch.save has not written it")
	}
	t.prefix = strings.TrimSuffix(members[i].Name, "data.pkl")
	for _, m := range members {
		src, err := source.ZipSource(f, path, m)
		if err != nil {
			return nil, err
		}
		switch name, inside := strings.CutPrefix(m.Name, t.prefix); {
		case !inside:
		case name == "data.pkl":
			t.pkl = src
		case name == "byteorder":
			if err := littleEndian(ctx, src); err != nil {
				return nil, err
			}
		case strings.HasPrefix(name, "data/"):
			t.storages[strings.TrimPrefix(name, "data/")] = src
		}
	}
	return t, t.read(ctx)
}

func littleEndian(ctx context.Context, src *source.Source) error {
	st, err := src.Open(ctx, 0)
	if err != nil {
		return err
	}
	order, err := io.ReadAll(io.LimitReader(st, 16))
	if err = errors.Join(err, st.Close()); err == nil && strings.TrimSpace(string(order)) != "little" {
		err = graph.BadData(src.Name, "is %s: only little-endian files are read, save it again on another machine", graph.Shorten(order))
	}
	return err
}

// read reads the pickle.
func (f *File) read(ctx context.Context) (err error) {
	st, err := f.pkl.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if f.Value, err = pickle.ReadWith(st, pickle.Extension{
		Construct: construct, Persistent: persistent,
		Known: ", tensors and PyG's Data",
	}); err != nil {
		return graph.Damaged(f.pkl.Name, fmt.Errorf("%w; save a dict of tensors instead: torch.save({'edge_index': …, 'x': …, 'y': …}, file)", err))
	}
	return source.Skip(st, -1)
}

// construct finds what makes objects of a class, of the classes of torch and of PyG.
func construct(c pickle.Class) func(pickle.Tuple) (any, error) {
	switch {
	case c.Module == "torch._utils" && (c.Name == "_rebuild_tensor_v2" || c.Name == "_rebuild_tensor"):
		return rebuild
	case c.Module == "torch" && types[c.Name] != "":
		return func(pickle.Tuple) (any, error) { return nil, errors.New("a storage is not called") }
	case c == pickle.Class{Module: "torch", Name: "Size"}:
		return func(args pickle.Tuple) (any, error) {
			if len(args) != 1 {
				return nil, errors.New("a size of several values")
			}
			return args[0], nil
		}
	case c.Module == "torch_geometric.data" || strings.HasPrefix(c.Module, "torch_geometric.data."):
		return func(pickle.Tuple) (any, error) { return &pickle.Object{}, nil }
	}
	return nil
}

// persistent reads ('storage', class, key, device, number of elements).
func persistent(id any) (any, error) {
	t, ok := id.(pickle.Tuple)
	if !ok || len(t) < 5 {
		return nil, errors.New("a persistent id that is no storage")
	}
	class, isClass := t[1].(pickle.Class)
	key, isText := t[2].(pickle.Bytes)
	if !isClass || !isText || class.Module != "torch" || types[class.Name] == "" {
		return nil, fmt.Errorf("a storage of an unknown type")
	}
	return storage{types[class.Name], key.Text}, nil
}

// maxDims bounds the dimensions of a tensor.
const maxDims = 16

// rebuild reads (storage, first element, shape, stride, …).
func rebuild(args pickle.Tuple) (any, error) {
	if len(args) < 4 {
		return nil, errors.New("a tensor of fewer than 4 parts")
	}
	s, isStorage := args[0].(storage)
	first, isNumber := args[1].(int64)
	if !isStorage || !isNumber {
		return nil, errors.New("a tensor without storage")
	}
	t := &Tensor{typ: s.typ, key: s.key, first: first}
	for i, to := range []*[]int64{&t.shape, &t.stride} {
		dims, isTuple := args[2+i].(pickle.Tuple)
		if !isTuple {
			return nil, errors.New("the shape of a tensor is no tuple")
		}
		if len(dims) > maxDims {
			return nil, fmt.Errorf("a tensor of %d dimensions", len(dims))
		}
		*to = []int64{}
		for _, d := range dims {
			n, isNumber := d.(int64)
			if !isNumber || n < 0 {
				return nil, errors.New("the shape of a tensor is not of numbers")
			}
			*to = append(*to, n)
		}
	}
	if len(t.shape) != len(t.stride) {
		return nil, errors.New("a tensor with other strides than its shape")
	}
	return t, nil
}

// Get returns an entry of a dict.
func Get(value any, key string) (any, bool) {
	d, ok := value.(*pickle.Dict)
	if !ok {
		return nil, false
	}
	return d.Get(key)
}

// order compares the strides of a tensor with those of its shape: rows first, or columns
// first.
func (t *Tensor) order() (n int64, rows, columns bool) {
	n, rows, columns = 1, true, true
	for i := range t.shape {
		back := len(t.shape) - 1 - i
		rows = rows && (t.stride[back] == n || t.shape[back] < 2)
		if d := t.shape[back]; d > 0 && n > (1<<56)/d {
			return 0, false, false
		}
		n *= t.shape[back]
	}
	step := int64(1)
	for i, d := range t.shape {
		columns = columns && (t.stride[i] == step || d < 2)
		step *= d
	}
	return n, rows, columns
}

// Matrix is a tensor or a NumPy array in either order of storage.
func (f *File) Matrix(value any, what string) (v array.Vector, shape []int64, fortran bool, err error) {
	name := f.name + " " + what
	t, isTensor := value.(*Tensor)
	if !isTensor {
		v, shape, err = array.PickledVector(f.pkl, 0, value, what)
		return v, shape, false, err
	}
	src := f.storages[t.key]
	if src == nil {
		return v, nil, false, graph.BadData(name, "its storage %s is missing: the file is damaged, save it again", graph.Shorten([]byte(t.key)))
	}
	n, rows, columns := t.order()
	if !rows && !columns {
		return v, nil, false, graph.BadData(name, "is a view of a larger tensor, with strides %v: save tensor.contiguous()", t.stride)
	}
	v, err = array.NewVector(src, t.typ, t.first, n, name)
	return v, t.shape, !rows, err
}

// Array is a tensor or a NumPy array whose last dimension runs fastest.
func (f *File) Array(value any, what string) (array.Vector, []int64, error) {
	v, shape, fortran, err := f.Matrix(value, what)
	if err == nil && fortran {
		err = graph.BadData(v.Name, "is stored column by column: save tensor.contiguous()")
	}
	return v, shape, err
}
