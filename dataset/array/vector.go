package array

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset/graph"
	"ndls/dataset/npy"
	"ndls/dataset/pickle"
	"ndls/dataset/source"
)

// Vector is an array somewhere in a file, taken as one run of n numbers.
type Vector struct {
	src    *source.Source
	off    int64
	N      int64
	Type   npy.Type
	latin1 bool // stored as the UTF-8 text of its bytes
	Name   string
}

// Open reads the header of a NumPy file; shape is checked by the caller.
func Open(ctx context.Context, src *source.Source) (Vector, []int64, error) {
	v, h, err := openAnyOrder(ctx, src)
	if err == nil {
		if _, err = h.Plain(); err != nil {
			err = graph.BadData(src.Name, "%v", err)
		}
	}
	return v, h.Shape, err
}

// openAnyOrder is openArray for arrays in C or Fortran order.
func openAnyOrder(ctx context.Context, src *source.Source) (Vector, npy.Header, error) {
	h, err := readHeader(ctx, src)
	if err != nil {
		return Vector{}, h, err
	}
	t, err := npy.ParseType(h.Descr)
	if err != nil {
		return Vector{}, h, graph.BadData(src.Name, "%v", err)
	}
	v := Vector{src: src, off: h.Size, N: h.Items(), Type: t, Name: src.Name}
	if want := v.off + v.N*t.Size(); src.Size >= 0 && src.Size != want {
		return Vector{}, h, graph.BadData(src.Name, "has %d bytes, its header (%s, shape %v) promises %d: it is truncated or damaged, write it again",
			src.Size, h.Descr, h.Shape, want)
	}
	return v, h, nil
}

func readHeader(ctx context.Context, src *source.Source) (npy.Header, error) {
	st, err := src.Open(ctx, 0)
	if err != nil {
		return npy.Header{}, err
	}
	defer st.Close()
	h, err := npy.Read(st)
	if err != nil {
		if errors.Is(err, npy.ErrFormat) {
			err = fmt.Errorf("%w: write it with numpy.save", err)
		}
		return h, graph.Damaged(src.Name, err)
	}
	return h, nil
}

// PickledVector is an array inside a pickle that starts at byte base of src.
func PickledVector(src *source.Source, base int64, value any, name string) (Vector, []int64, error) {
	name = src.Name + " " + name
	a, ok := value.(*pickle.Array)
	if !ok || a.Objects != nil {
		return Vector{}, nil, graph.BadData(name, "is no array of numbers: save it again with SciPy or NumPy")
	}
	h := npy.Header{Descr: a.Descr, Fortran: a.Fortran, Shape: a.Shape}
	t, err := h.Plain()
	if err != nil {
		return Vector{}, nil, graph.BadData(name, "%v", err)
	}
	n := int64(1)
	for _, d := range a.Shape {
		if d > 0 && n > math.MaxInt64>>6/d {
			return Vector{}, nil, graph.BadData(name, "its shape %v is too large", a.Shape)
		}
		n *= d
	}
	stored := a.Data.Len
	if want := n * t.Size(); !a.Data.Latin1 && stored != want || stored < want {
		return Vector{}, nil, graph.BadData(name, "has %d bytes, its shape %v promises %d: it is damaged, write it again", stored, a.Shape, want)
	}
	return Vector{src: src, off: base + a.Data.Off, N: n, Type: t, latin1: a.Data.Latin1, Name: name}, a.Shape, nil
}

// Elements reads a vector front to back.
type Elements struct {
	V    Vector
	st   *source.Stream
	r    io.Reader
	left int64
	buf  []byte
}

// Open reads from element first on.
func (v Vector) Open(ctx context.Context, first int64) (*Elements, error) {
	off, skip := v.off+first*v.Type.Size(), int64(0)
	if v.latin1 {
		off, skip = v.off, first*v.Type.Size()
	}
	st, err := v.src.Open(ctx, off)
	if err != nil {
		return nil, err
	}
	e := &Elements{V: v, st: st, left: v.N - first, buf: make([]byte, 64<<10)}
	e.r = bufio.NewReaderSize(st, 64<<10)
	if v.latin1 {
		e.r = pickle.Latin1Reader(e.r)
		if _, err := io.CopyN(io.Discard, e.r, skip); err != nil {
			return nil, graph.Damaged(v.Name, err)
		}
	}
	return e, nil
}

func (e *Elements) Close() error { return e.st.Close() }

// raw returns the bytes of up to n elements, or io.EOF.
func (e *Elements) raw(n int) ([]byte, int, error) {
	size := e.V.Type.Size()
	n = int(min(int64(n), e.left, int64(len(e.buf))/size))
	if n == 0 {
		return nil, 0, e.finish()
	}
	b := e.buf[:int64(n)*size]
	if _, err := io.ReadFull(e.r, b); err != nil {
		return nil, 0, graph.Damaged(e.V.Name, err)
	}
	e.left -= int64(n)
	return b, n, nil
}

// finish reads up to the end of an archive member, where its checksum is checked.
func (e *Elements) finish() error {
	if !e.st.Check {
		return io.EOF
	}
	if _, err := io.Copy(io.Discard, e.st); err != nil {
		return err
	}
	return io.EOF
}

// ints fills dst from the front and returns how many elements it holds, or io.EOF.
func (e *Elements) ints(dst []int64) (int, error) {
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.V.Type.Ints(dst[:n], b)
	}
	return n, err
}

// floats is ints for float32.
func (e *Elements) floats(dst []float32) (int, error) {
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.V.Type.Floats(dst[:n], b)
	}
	return n, err
}

// Fill reads exactly len(dst) elements.
func (e *Elements) Fill(dst []float32) error {
	for len(dst) > 0 {
		n, err := e.floats(dst)
		if err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// cursor gives the elements of a vector one at a time.
type cursor[T any] struct {
	*Elements
	read func([]T) (int, error)
	buf  []T
	pos  int
}

const cursorSize = 4096

func (v Vector) Integers(ctx context.Context, first int64) (*cursor[int64], error) {
	e, err := v.Open(ctx, first)
	if err != nil {
		return nil, err
	}
	return &cursor[int64]{Elements: e, read: e.ints, buf: make([]int64, 0, cursorSize)}, nil
}

// Numbers reads all elements.
func (v Vector) Numbers(ctx context.Context) (*cursor[float32], error) { return v.numbersFrom(ctx, 0) }

// canCut says whether elements can be read from the middle.
func (v Vector) canCut() bool { return v.src.Unpack == nil && !v.latin1 }

func (v Vector) numbersFrom(ctx context.Context, first int64) (*cursor[float32], error) {
	e, err := v.Open(ctx, first)
	if err != nil {
		return nil, err
	}
	return &cursor[float32]{Elements: e, read: e.floats, buf: make([]float32, 0, cursorSize)}, nil
}

func (c *cursor[T]) Next() (v T, err error) {
	if c.pos == len(c.buf) {
		n, err := c.read(c.buf[:cap(c.buf)])
		if err != nil {
			return v, err
		}
		c.buf, c.pos = c.buf[:n], 0
	}
	c.pos++
	return c.buf[c.pos-1], nil
}

// Part is n numbers from number first on.
func (v Vector) Part(first, n int64) Vector {
	if v.latin1 {
		panic("array: a part of a vector that is stored as text")
	}
	v.off, v.N = v.off+first*v.Type.Size(), n
	return v
}

// OpenRaw opens a file of nothing but numbers of a type, whose count its size tells. A
// header of NumPy in front of them is skipped; shape is then what the header says, and nil
// otherwise.
func OpenRaw(ctx context.Context, src *source.Source, t npy.Type) (Vector, []int64, error) {
	magic := make([]byte, len(npy.Magic))
	if src.Size >= int64(len(magic)) || src.Size < 0 {
		st, err := src.Open(ctx, 0)
		if err != nil {
			return Vector{}, nil, err
		}
		_, err = io.ReadFull(st, magic)
		if err = errors.Join(err, st.Close()); err != nil {
			return Vector{}, nil, graph.Damaged(src.Name, err)
		}
	}
	if string(magic) == npy.Magic {
		return Open(ctx, src)
	}
	if src.Size < 0 {
		return Vector{}, nil, graph.BadData(src.Name, "is compressed, and has no header that says how many numbers it holds: unpack it first")
	}
	if src.Size%t.Size() != 0 {
		return Vector{}, nil, graph.BadData(src.Name, "has %d bytes, no whole number of %s numbers: it is truncated, fetch it again", src.Size, t)
	}
	return Vector{src: src, N: src.Size / t.Size(), Type: t, Name: src.Name}, nil, nil
}

// NewVector is n numbers of src from number first on.
func NewVector(src *source.Source, typ npy.Type, first, n int64, name string) (Vector, error) {
	size := typ.Size()
	if first < 0 || n < 0 || first > math.MaxInt64>>6 || n > math.MaxInt64>>6 || src.Size >= 0 && (first+n)*size > src.Size {
		return Vector{}, graph.BadData(name, "numbers %d to %d of %s lie outside of the %d bytes that are stored: it is damaged, write it again", first, first+n, typ, src.Size)
	}
	return Vector{src: src, off: first * size, N: n, Type: typ, Name: name}, nil
}
