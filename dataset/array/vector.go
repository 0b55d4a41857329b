package array

import (
	"bufio"
	"bytes"
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

// Vector is an array somewhere in a file, taken as one run of n numbers, or of n texts. Those
// of a matrix follow each other row by row, whatever the order in which it is stored.
type Vector struct {
	src     *source.Source
	off     int64
	N       int64
	Type    npy.Type
	latin1  bool // stored as the UTF-8 text of its bytes
	swapped bool // the most significant byte of an element comes first
	Name    string
	// rows and cols are the sides of a matrix that is stored column by column, and 0 elsewhere;
	// first is its element with which the vector begins.
	rows, cols, first int64
}

// Open reads the header of a NumPy file of numbers; shape is checked by the caller.
func Open(ctx context.Context, src *source.Source) (Vector, []int64, error) {
	v, h, err := openAnyOrder(ctx, src)
	if err != nil {
		return v, nil, err
	}
	v, err = v.inOrder(h)
	return v, h.Shape, err
}

// inOrder takes an array of a header row by row.
func (v Vector) inOrder(h npy.Header) (Vector, error) {
	if err := h.CheckOrder(); err != nil {
		return v, graph.BadData(v.Name, "%v", err)
	}
	if h.ByColumns() {
		v.rows, v.cols = h.Shape[0], h.Shape[1]
		return v, v.checkReadings()
	}
	return v, nil
}

// OpenNamed is Open of numbers or text.
func OpenNamed(ctx context.Context, src *source.Source) (Vector, []int64, error) {
	h, err := readHeader(ctx, src)
	if err != nil {
		return Vector{}, nil, err
	}
	t, swapped, isText := npy.ParseText(h.Descr)
	if !isText {
		return Open(ctx, src)
	}
	v, err := vectorOf(src, h, t, swapped)
	if err == nil {
		v, err = v.inOrder(h)
	}
	return v, h.Shape, err
}

// CheckNumbers refuses text.
func CheckNumbers(v Vector) error {
	if !v.Type.IsText() {
		return nil
	}
	_, _, err := npy.ParseType(string(v.Type))
	return graph.BadData(v.Name, "%v", err)
}

// openAnyOrder is Open of an array whose order of storage is left to the caller: the elements
// of the vector are in that order.
func openAnyOrder(ctx context.Context, src *source.Source) (Vector, npy.Header, error) {
	h, err := readHeader(ctx, src)
	if err != nil {
		return Vector{}, h, err
	}
	t, swapped, err := npy.ParseType(h.Descr)
	if err != nil {
		return Vector{}, h, graph.BadData(src.Name, "%v", err)
	}
	v, err := vectorOf(src, h, t, swapped)
	return v, h, err
}

// vectorOf is the array behind a header. A file may be longer than its header promises, as
// numpy.load has it.
func vectorOf(src *source.Source, h npy.Header, t npy.Type, swapped bool) (Vector, error) {
	v := Vector{src: src, off: h.Size, N: h.Items(), Type: t, swapped: swapped, Name: src.Name}
	want := v.off + v.N*t.Size()
	switch {
	case src.Size >= 0 && src.Size < want:
		return v, graph.BadData(src.Name, "has %d bytes, its header (%s, shape %v) promises %d: it is truncated or damaged, write it again",
			src.Size, h.Descr, h.Shape, want)
	case src.Size > want:
		src.Note(graph.WarningOf(src.Name, "has %d bytes behind the array of shape %v that its header describes: they are not read", src.Size-want, h.Shape))
	}
	return v, nil
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
			if other := notAnArray(ctx, src); other != nil {
				return h, other
			}
			err = fmt.Errorf("%w: write it with numpy.save", err)
		}
		return h, graph.Damaged(src.Name, err)
	}
	return h, nil
}

// notAnArray is the error for a file of another known format, nil if it is none.
func notAnArray(ctx context.Context, src *source.Source) error {
	st, err := src.Open(ctx, 0)
	if err != nil {
		return err
	}
	defer st.Close()
	head := make([]byte, source.Sniffed)
	n, _ := io.ReadFull(st, head)
	if bytes.HasPrefix(head, []byte(npy.Magic)) {
		return nil // an array with a damaged header
	}
	return source.RefuseKnown(src.Name, head[:n])
}

// PickledVector is an array inside a pickle that starts at byte base of src.
func PickledVector(src *source.Source, base int64, value any, name string) (Vector, []int64, error) {
	name = src.Name + " " + name
	a, ok := value.(*pickle.Array)
	if !ok || a.Objects != nil {
		return Vector{}, nil, graph.BadData(name, "is no array of numbers: save it again with SciPy or NumPy")
	}
	h := npy.Header{Descr: a.Descr, Fortran: a.Fortran, Shape: a.Shape}
	t, swapped, err := npy.ParseType(h.Descr)
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
	v, err := Vector{src: src, off: base + a.Data.Off, N: n, Type: t, swapped: swapped, latin1: a.Data.Latin1, Name: name}.inOrder(h)
	return v, a.Shape, err
}

// Elements reads a vector front to back.
type Elements struct {
	V     Vector
	r     io.Reader
	left  int64        // elements that are not read yet
	read  int64        // elements that were given
	buf   []byte       // of whole elements
	some  []byte       // the elements of buf that were not given yet
	end   func() error // reads what is behind the last element
	close func() error
}

// readBytes is the number of bytes of a vector that are read at a time.
const readBytes = 64 << 10

// Open reads from element first on.
func (v Vector) Open(ctx context.Context, first int64) (*Elements, error) {
	e := &Elements{V: v, left: v.N - first, read: first, buf: make([]byte, readBytes/v.Type.Size()*v.Type.Size())}
	if v.rows > 0 {
		t, err := newTurned(ctx, v, v.first+first)
		if err != nil {
			return nil, err
		}
		e.r, e.end, e.close = t, t.finish, t.Close
		return e, nil
	}
	off, skip := v.off+first*v.Type.Size(), int64(0)
	if v.latin1 {
		off, skip = v.off, first*v.Type.Size()
	}
	st, err := v.src.Open(ctx, off)
	if err != nil {
		return nil, err
	}
	e.close = st.Close
	e.end = func() error {
		if !st.Check {
			return nil
		}
		return source.Skip(st, -1)
	}
	e.r = st
	if v.latin1 {
		e.r = pickle.Latin1Reader(bufio.NewReaderSize(st, readBytes))
		if err := source.Skip(e.r, skip); err != nil {
			return nil, errors.Join(graph.Damaged(v.Name, err), st.Close())
		}
	}
	return e, nil
}

// Close closes the file.
func (e *Elements) Close() error { return e.close() }

// raw returns the bytes of up to n elements, valid until the next call, or io.EOF. At the end it checks the checksum of a
// member of an archive.
func (e *Elements) raw(n int) ([]byte, int, error) {
	if n > 0 && len(e.some) == 0 && e.left > 0 {
		if err := e.readBlock(); err != nil {
			return nil, 0, err
		}
	}
	size := int(e.V.Type.Size())
	n = min(n, len(e.some)/size)
	if n == 0 {
		if err := e.end(); err != nil {
			return nil, 0, err
		}
		return nil, 0, io.EOF
	}
	b := e.some[:n*size]
	e.some = e.some[n*size:]
	e.read += int64(n)
	return b, n, nil
}

// readBlock fills buf with the elements that follow.
func (e *Elements) readBlock() error {
	size := e.V.Type.Size()
	n := min(e.left, int64(len(e.buf))/size)
	b := e.buf[:n*size]
	if _, err := io.ReadFull(e.r, b); err != nil {
		return graph.Damaged(e.V.Name, err)
	}
	if e.V.swapped {
		e.V.Type.Swap(b)
	}
	e.left, e.some = e.left-n, b
	return nil
}

// ints fills dst from the front and returns how many elements it holds, or io.EOF. Floats
// must be whole.
func (e *Elements) ints(dst []int64) (int, error) {
	if !e.V.Type.IsInteger() {
		return e.wholes(dst)
	}
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.V.Type.Ints(dst[:n], b)
	}
	return n, err
}

// wholes is ints of floats.
func (e *Elements) wholes(dst []int64) (int, error) {
	var floats [256]float64
	first := e.read
	n, err := e.doubles(floats[:min(len(dst), len(floats))])
	if err != nil {
		return 0, err
	}
	for i, v := range floats[:n] {
		if problem := notWhole(e.V.Type, v); problem != "" {
			return 0, graph.BadData(e.V.Name, "number %d is %v: %s", first+int64(i), v, problem)
		}
		dst[i] = int64(v)
	}
	return n, nil
}

// notWhole says what is wrong with a float where a whole number is needed, "" if nothing is.
func notWhole(t npy.Type, v float64) string {
	switch {
	case v != math.Trunc(v): // also NaN
		return "whole numbers are needed"
	case math.Abs(v) > t.Exact():
		return fmt.Sprintf("dtype %s does not hold every whole number of this size, so it may have been rounded; save integers", t)
	}
	return ""
}

// doubles is ints for float64.
func (e *Elements) doubles(dst []float64) (int, error) {
	b, n, err := e.raw(len(dst))
	if err == nil {
		e.V.Type.Doubles(dst[:n], b)
	}
	return n, err
}

// texts is ints for text.
func (e *Elements) texts(dst []string) (int, error) {
	b, n, err := e.raw(len(dst))
	size := int(e.V.Type.Size())
	for i := range n {
		dst[i] = e.V.Type.Text(b[i*size:][:size])
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
	fill func([]T) (int, error)
	buf  []T
	pos  int
}

const cursorSize = 4096

// cursorOf reads from element first on, by one of the methods of Elements.
func cursorOf[T any](ctx context.Context, v Vector, first int64, by func(*Elements, []T) (int, error)) (*cursor[T], error) {
	e, err := v.Open(ctx, first)
	if err != nil {
		return nil, err
	}
	return &cursor[T]{Elements: e, fill: func(dst []T) (int, error) { return by(e, dst) }, buf: make([]T, 0, cursorSize)}, nil
}

// Integers reads whole numbers from element first on.
func (v Vector) Integers(ctx context.Context, first int64) (*cursor[int64], error) {
	return cursorOf(ctx, v, first, (*Elements).ints)
}

// Numbers reads elements from first on.
func (v Vector) Numbers(ctx context.Context, first int64) (*cursor[float32], error) {
	return cursorOf(ctx, v, first, (*Elements).floats)
}

// Doubles reads elements from first on.
func (v Vector) Doubles(ctx context.Context, first int64) (*cursor[float64], error) {
	return cursorOf(ctx, v, first, (*Elements).doubles)
}

// Texts reads all elements, which are text.
func (v Vector) Texts(ctx context.Context) (*cursor[string], error) {
	return cursorOf(ctx, v, 0, (*Elements).texts)
}

// canCut reports whether elements can be read from the middle.
func (v Vector) canCut() bool { return v.src.Unpack == nil && !v.latin1 }

func (c *cursor[T]) Next() (v T, err error) {
	if err := c.more(); err != nil {
		return v, err
	}
	c.pos++
	return c.buf[c.pos-1], nil
}

// more reads elements if all that were read are taken.
func (c *cursor[T]) more() error {
	if c.pos < len(c.buf) {
		return nil
	}
	n, err := c.fill(c.buf[:cap(c.buf)])
	if err == nil {
		c.buf, c.pos = c.buf[:n], 0
	}
	return err
}

// peek returns 1 to n elements that follow. The caller adds to pos what it takes of them.
func (c *cursor[T]) peek(n int) ([]T, error) {
	if err := c.more(); err != nil {
		return nil, err
	}
	return c.buf[c.pos:min(len(c.buf), c.pos+n)], nil
}

// Part is n numbers from number first on.
func (v Vector) Part(first, n int64) Vector {
	if v.latin1 {
		panic("array: a part of a vector that is stored as text")
	}
	if v.N = n; v.rows > 0 {
		v.first += first
		return v
	}
	v.off += first * v.Type.Size()
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
