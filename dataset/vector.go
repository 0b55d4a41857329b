package dataset

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset/npy"
	"ndls/dataset/pickle"
)

// vector is an array somewhere in a file, taken as one run of n numbers.
type vector struct {
	src    *source
	off    int64
	n      int64
	typ    npy.Type
	latin1 bool // stored as the UTF-8 text of its bytes
	name   string
}

// openArray reads the header of a NumPy file; shape is checked by the caller.
func openArray(ctx context.Context, src *source) (vector, []int64, error) {
	v, h, err := openAnyOrder(ctx, src)
	if err == nil {
		if _, err = h.Plain(); err != nil {
			err = badData(src.name, "%v", err)
		}
	}
	return v, h.Shape, err
}

// openAnyOrder is openArray for arrays in C or Fortran order.
func openAnyOrder(ctx context.Context, src *source) (vector, npy.Header, error) {
	h, err := readHeader(ctx, src)
	if err != nil {
		return vector{}, h, err
	}
	t, err := npy.ParseType(h.Descr)
	if err != nil {
		return vector{}, h, badData(src.name, "%v", err)
	}
	v := vector{src: src, off: h.Size, n: h.Items(), typ: t, name: src.name}
	if want := v.off + v.n*t.Size(); src.size >= 0 && src.size != want {
		return vector{}, h, badData(src.name, "has %d bytes, its header (%s, shape %v) promises %d: it is truncated or damaged, write it again",
			src.size, h.Descr, h.Shape, want)
	}
	return v, h, nil
}

func readHeader(ctx context.Context, src *source) (npy.Header, error) {
	st, err := src.open(ctx, 0)
	if err != nil {
		return npy.Header{}, err
	}
	defer st.Close()
	h, err := npy.Read(st)
	if err != nil {
		if errors.Is(err, npy.ErrFormat) {
			err = fmt.Errorf("%w: write it with numpy.save", err)
		}
		return h, damaged(src.name, err)
	}
	return h, nil
}

// pickledVector is an array inside a pickle that starts at byte base of src.
func pickledVector(src *source, base int64, value any, name string) (vector, []int64, error) {
	name = src.name + " " + name
	a, ok := value.(*pickle.Array)
	if !ok || a.Objects != nil {
		return vector{}, nil, badData(name, "is no array of numbers: save it again with SciPy or NumPy")
	}
	h := npy.Header{Descr: a.Descr, Fortran: a.Fortran, Shape: a.Shape}
	t, err := h.Plain()
	if err != nil {
		return vector{}, nil, badData(name, "%v", err)
	}
	n := int64(1)
	for _, d := range a.Shape {
		if d > 0 && n > math.MaxInt64>>6/d {
			return vector{}, nil, badData(name, "its shape %v is too large", a.Shape)
		}
		n *= d
	}
	stored := a.Data.Len
	if want := n * t.Size(); !a.Data.Latin1 && stored != want || stored < want {
		return vector{}, nil, badData(name, "has %d bytes, its shape %v promises %d: it is damaged, write it again", stored, a.Shape, want)
	}
	return vector{src: src, off: base + a.Data.Off, n: n, typ: t, latin1: a.Data.Latin1, name: name}, a.Shape, nil
}

// elements reads a vector front to back.
type elements struct {
	v    vector
	st   *stream
	r    io.Reader
	left int64
	buf  []byte
}

// open reads from element first on.
func (v vector) open(ctx context.Context, first int64) (*elements, error) {
	off, skip := v.off+first*v.typ.Size(), int64(0)
	if v.latin1 {
		off, skip = v.off, first*v.typ.Size()
	}
	st, err := v.src.open(ctx, off)
	if err != nil {
		return nil, err
	}
	e := &elements{v: v, st: st, left: v.n - first, buf: make([]byte, 64<<10)}
	e.r = bufio.NewReaderSize(st, 64<<10)
	if v.latin1 {
		e.r = pickle.Latin1Reader(e.r)
		if _, err := io.CopyN(io.Discard, e.r, skip); err != nil {
			return nil, damaged(v.name, err)
		}
	}
	return e, nil
}

func (e *elements) Close() error { return e.st.Close() }

// raw returns the bytes of up to n elements, or io.EOF.
func (e *elements) raw(n int) ([]byte, int, error) {
	size := e.v.typ.Size()
	n = int(min(int64(n), e.left, int64(len(e.buf))/size))
	if n == 0 {
		return nil, 0, e.finish()
	}
	b := e.buf[:int64(n)*size]
	if _, err := io.ReadFull(e.r, b); err != nil {
		return nil, 0, damaged(e.v.name, err)
	}
	e.left -= int64(n)
	return b, n, nil
}

// finish reads up to the end of an archive member, where its checksum is checked.
func (e *elements) finish() error {
	if !e.st.check {
		return io.EOF
	}
	if _, err := io.Copy(io.Discard, e.r); err != nil {
		return err
	}
	return io.EOF
}

// ints fills dst from the front and returns how many elements it holds, or io.EOF.
func (e *elements) ints(dst []int64) (int, error) {
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.v.typ.Ints(dst[:n], b)
	}
	return n, err
}

// floats is ints for float32.
func (e *elements) floats(dst []float32) (int, error) {
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.v.typ.Floats(dst[:n], b)
	}
	return n, err
}

// fill reads exactly len(dst) elements.
func (e *elements) fill(dst []float32) error {
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
	*elements
	read func([]T) (int, error)
	buf  []T
	pos  int
}

const cursorSize = 4096

func (v vector) integers(ctx context.Context, first int64) (*cursor[int64], error) {
	e, err := v.open(ctx, first)
	if err != nil {
		return nil, err
	}
	return &cursor[int64]{elements: e, read: e.ints, buf: make([]int64, 0, cursorSize)}, nil
}

func (v vector) numbers(ctx context.Context) (*cursor[float32], error) {
	e, err := v.open(ctx, 0)
	if err != nil {
		return nil, err
	}
	return &cursor[float32]{elements: e, read: e.floats, buf: make([]float32, 0, cursorSize)}, nil
}

func (c *cursor[T]) next() (v T, err error) {
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

func finite(v float32) bool { return v-v == 0 }

// denseRows streams a matrix whose row i belongs to node i.
type denseRows struct {
	e         *elements
	row       []float32
	next, end int64
	last      bool // the rows of the matrix end at end
}

func (d *denseRows) Next() (FeatureRow, error) {
	if d.next == d.end && !d.last {
		return FeatureRow{}, io.EOF
	}
	if err := d.e.fill(d.row); err != nil {
		return FeatureRow{}, err
	}
	id := d.next
	d.next++
	for c, v := range d.row {
		if !finite(v) {
			return FeatureRow{}, notFinite(d.e.v.name, id, int64(c), v)
		}
	}
	return FeatureRow{ID: uint32(id), Dense: d.row}, nil
}

func (d *denseRows) Close() error { return d.e.Close() }

func notFinite(name string, row, column int64, v float32) error {
	return badData(name, "row %d, column %d is %s: replace what is not finite in float32 before the import",
		row, column, fmt.Sprint(v))
}

// checkMatrix takes the shape of a feature matrix.
func checkMatrix(name string, shape []int64) (rows int64, width int, err error) {
	if len(shape) != 2 {
		return 0, 0, badData(name, "has shape %v: features are a matrix with one row for each node", shape)
	}
	return shape[0], int(min(shape[1], MaxFeatures)), checkSize(name, shape[0], shape[1])
}

// checkSize checks a number of nodes and of features against the limits.
func checkSize(name string, rows, width int64) error {
	if rows > MaxID+1 {
		return badData(name, "has %d rows: node ids go up to %d", rows, int64(MaxID))
	}
	if width < 1 || width > MaxFeatures {
		return badData(name, "has %d feature columns: from 1 to %d are read", width, MaxFeatures)
	}
	return nil
}
