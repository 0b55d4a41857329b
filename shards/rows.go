package shards

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"sync"

	"ndls/internal/inputid"
	"ndls/internal/seal"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/internal/direct"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/storage"
)

const (
	// rowAlign is the alignment of every buffer in a file, and its padding.
	rowAlign = 64
	// batchValueBytes is the size of the values of a full record batch.
	batchValueBytes = 16 << 20
	// maxBatchHead bounds what precedes a batch's buffers: its message and, for
	// the first, the schema.
	maxBatchHead = 64 << 10
	// maxWidth keeps the size of a row far from overflow.
	maxWidth = 1 << 20

	formatRows = "rows"
)

// endOfStream ends the part of a file that is also an Arrow stream.
var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// RowSchema is the shape of an Arrow row file: column id (int64), label (int32)
// where Label is set, then Column, a fixed-size list of Width float32 or, where
// Half is set, float16. Where ids are numbered, id has their type, and a column number
// (int64) follows it.
type RowSchema struct {
	ID     inputid.Type
	Column string // "feature" or "probability"
	Width  int
	Label  bool
	Half   bool
}

func (s RowSchema) valid() bool {
	return s.Column != "" && s.Column != "id" && s.Column != "number" && s.Column != "label" && s.Width > 0 && s.Width <= maxWidth
}

func (s RowSchema) valueType() arrow.DataType {
	if s.Half {
		return arrow.FixedWidthTypes.Float16
	}
	return arrow.PrimitiveTypes.Float32
}

func (s RowSchema) valueSize() int64 {
	if s.Half {
		return 2
	}
	return 4
}

func (s RowSchema) arrow() *arrow.Schema {
	fields := []arrow.Field{{Name: "id", Type: idTypes[s.ID]}}
	if s.ID != inputid.Number {
		fields = append(fields, arrow.Field{Name: "number", Type: arrow.PrimitiveTypes.Int64})
	}
	if s.Label {
		fields = append(fields, arrow.Field{Name: "label", Type: arrow.PrimitiveTypes.Int32})
	}
	fields = append(fields, arrow.Field{Name: s.Column, Type: arrow.FixedSizeListOfNonNullable(int32(s.Width), s.valueType())})
	meta := arrow.NewMetadata([]string{keyFormat, keyVersion}, []string{formatRows, formatVersion})
	return arrow.NewSchema(fields, &meta)
}

// idTypes are the types of the column id.
var idTypes = []arrow.DataType{
	inputid.Number: arrow.PrimitiveTypes.Int64, inputid.Int64: arrow.PrimitiveTypes.Int64,
	inputid.Uint64: arrow.PrimitiveTypes.Uint64, inputid.String: arrow.BinaryTypes.String,
}

// maxHead is the most that precedes the numbers of a batch of n rows.
func (s RowSchema) maxHead(n int64) int64 {
	if s.ID == inputid.Number {
		return maxBatchHead
	}
	return maxBatchHead + n*(8+inputid.MaxKey)
}

// bodyBytes is the size of the buffers of a batch of n rows, from the numbers on.
func (s RowSchema) bodyBytes(n int64) int64 {
	size := padded(8*n) + padded(n*int64(s.Width)*s.valueSize())
	if s.Label {
		size += padded(4 * n)
	}
	return size
}

func padded(n int64) int64 { return (n + rowAlign - 1) &^ (rowAlign - 1) }

// BatchRows is the number of rows of a full record batch: some 16 MiB of
// float32 values, at least one row, a multiple of 64 from 64 on.
func BatchRows(width int) int {
	n := batchValueBytes / (4 * max(width, 1))
	if n >= 64 {
		n &^= 63
	}
	return max(n, 1)
}

// RowWriter writes an Arrow row file.
type RowWriter struct {
	schema RowSchema
	arrow  *arrow.Schema
	sink   *aligner
	out    *ipc.FileWriter
	half   []uint16
	rows   int64
	names  *IDReader
}

// namedRows is the most rows of a record batch where ids are numbered: their ids are in
// memory at a time. It is a multiple of 64.
const namedRows = 1 << 15

// NewRowWriter starts a file on w, which the caller commits after Close. names finds the ids
// of the nodes where they are numbered, and is nil elsewhere: its type becomes that of the
// schema.
func NewRowWriter(w io.Writer, s RowSchema, names *IDReader) (*RowWriter, error) {
	s.ID = names.IDs().Type
	if !s.valid() {
		return nil, fmt.Errorf("shards: impossible row schema %+v", s)
	}
	sink := newAligner(w)
	schema := s.arrow()
	out, err := ipc.NewFileWriter(sink, ipc.WithSchema(schema), ipc.WithAllocator(allocator))
	if err != nil {
		return nil, fmt.Errorf("shards: writing Arrow: %w", err)
	}
	return &RowWriter{schema: s, arrow: schema, sink: sink, out: out, names: names}, nil
}

// Write appends one record batch of len(id) ≥ 1 rows: values holds them one
// after the other, label is ignored without a label column. Slices of a multiple
// of 64 bytes, as [BatchRows] rows give, are written without a copy; float16
// values and the odd last batch need one. Where ids are numbered, id has the numbers, and
// many rows are written as several record batches.
func (w *RowWriter) Write(id []int64, label []int32, values []float32) error {
	for w.schema.ID != inputid.Number && len(id) > namedRows && len(values) == len(id)*w.schema.Width {
		var first []int32
		if w.schema.Label && len(label) == len(id) {
			first, label = label[:namedRows], label[namedRows:]
		}
		if err := w.write(id[:namedRows], first, values[:namedRows*w.schema.Width]); err != nil {
			return err
		}
		id, values = id[namedRows:], values[namedRows*w.schema.Width:]
	}
	return w.write(id, label, values)
}

func (w *RowWriter) write(id []int64, label []int32, values []float32) (err error) {
	n := len(id)
	if n == 0 || n > math.MaxInt32 || len(values) != n*w.schema.Width || w.schema.Label && len(label) != n {
		return fmt.Errorf("shards: %d ids, %d labels and %d values are no batch of rows of width %d", n, len(label), len(values), w.schema.Width)
	}
	defer w.recovered(&err)
	columns := []arrow.ArrayData{fixedData(arrow.PrimitiveTypes.Int64, n, mem.AsBytes(id))}
	if w.schema.ID != inputid.Number {
		keys, err := w.names.Keys(id)
		if err != nil {
			return err
		}
		columns = append([]arrow.ArrayData{keyData(w.schema.ID, keys)}, columns...)
	}
	if w.schema.Label {
		columns = append(columns, fixedData(arrow.PrimitiveTypes.Int32, n, mem.AsBytes(label)))
	}
	child := fixedData(w.schema.valueType(), len(values), w.valueBytes(values))
	defer child.Release()
	listType := w.arrow.Field(len(columns)).Type
	columns = append(columns, array.NewData(listType, n, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
	w.sink.messages++
	if err := w.writeRecord(columns, n); err != nil {
		return err
	}
	w.sink.Mark(n)
	w.rows += int64(n)
	return nil
}

func (w *RowWriter) writeRecord(columns []arrow.ArrayData, n int) error {
	arrays := make([]arrow.Array, len(columns))
	for i, c := range columns {
		arrays[i] = array.MakeFromData(c)
		defer arrays[i].Release()
		c.Release()
	}
	record := array.NewRecord(w.arrow, arrays, int64(n))
	defer record.Release()
	if err := w.out.Write(record); err != nil {
		return fmt.Errorf("shards: writing Arrow: %w", err)
	}
	return nil
}

// fixedData wraps memory of the caller where it fills whole lines. The library
// pads buffers to 8 bytes only, so others are copied to a padded buffer.
func fixedData(t arrow.DataType, n int, b []byte) *array.Data {
	if size := padded(int64(len(b))); size != int64(len(b)) {
		b = append(make([]byte, 0, size), b...)[:size]
	}
	return array.NewData(t, n, []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0)
}

// keyData is a column of ids.
func keyData(t inputid.Type, keys [][]byte) arrow.ArrayData {
	if t != inputid.String {
		bits := make([]int64, len(keys))
		for i, key := range keys {
			bits[i] = t.Bits(key)
		}
		return fixedData(idTypes[t], len(keys), mem.AsBytes(bits))
	}
	ends := make([]int32, 1, len(keys)+1)
	var text []byte
	for _, key := range keys {
		text = append(text, key...)
		ends = append(ends, int32(len(text)))
	}
	return array.NewData(idTypes[t], len(keys), []*memory.Buffer{nil, memory.NewBufferBytes(mem.AsBytes(ends)), memory.NewBufferBytes(text)}, nil, 0, 0)
}

func (w *RowWriter) valueBytes(values []float32) []byte {
	if !w.schema.Half {
		return mem.AsBytes(values)
	}
	w.half = resize(w.half, len(values))
	for i, v := range values {
		w.half[i] = half.FromFloat(v)
	}
	return mem.AsBytes(w.half)
}

// recovered turns a panic of the library into an error, and prefers the error
// of the file below, where there is one.
func (w *RowWriter) recovered(err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("shards: writing Arrow: %v", x)
	}
	if w.sink.Err() != nil {
		*err = w.sink.Err()
	}
}

// Close writes the footer and returns the number of rows. It does not close or
// commit what is below.
func (w *RowWriter) Close() (rows int64, err error) {
	defer w.recovered(&err)
	w.sink.Hold()
	if err := w.out.Close(); err != nil {
		return 0, fmt.Errorf("shards: closing Arrow file: %w", err)
	}
	padBlocks(w.sink.Held())
	return w.rows, w.sink.Finish(seal.Arrow, endOfStream)
}

// RowBatch receives the rows of a record batch, in the memory of its slices up
// to their capacity, or more where that is too small.
type RowBatch struct {
	First  int64 // row of the file
	ID     []int64
	Label  []int32 // empty without a label column
	Values []float32
}

// RowSlack is how many values longer than the rows memory has to be, and aligned
// to pages, for reading rows into it without a copy.
const RowSlack = 3 * direct.Align / 4

// RowReader reads an Arrow row file. It is safe for concurrent use.
type RowReader struct {
	name    string
	src     storage.Reader
	schema  RowSchema
	batches []seal.Mark
	first   []int64 // row of the file at which a batch starts
	rows    int64
}

// OpenRows checks the file's footer and schema; name stands for it in errors. r
// stays open when reading is done. It reads files of [RowWriter] only.
func OpenRows(r storage.Reader, name string) (*RowReader, error) {
	marks, err := seal.ReadMarks(r, name, seal.Arrow)
	if err != nil {
		return nil, err
	}
	schema, err := readSchema(r, name)
	if err != nil {
		return nil, err
	}
	f := &RowReader{name: name, src: r, schema: schema, batches: marks[:len(marks)-1]}
	for i, m := range f.batches {
		body := schema.bodyBytes(int64(m.Rows))
		if head := m.End - f.start(i) - body; m.Rows == 0 || head < 0 || head > schema.maxHead(int64(m.Rows)) {
			return nil, seal.Corrupt(name, "record batch %d of %d rows has %d bytes", i, m.Rows, m.End-f.start(i))
		}
		f.first = append(f.first, f.rows)
		f.rows += int64(m.Rows)
	}
	return f, nil
}

// readSchema decodes the footer, which has been checked.
func readSchema(r storage.Reader, name string) (s RowSchema, err error) {
	src := &groupSource{Reader: r}
	defer func() {
		if x := recover(); x != nil {
			err = seal.Corrupt(name, "decoding: %v", x)
		}
		if src.err != nil {
			err = fmt.Errorf("shards: read %s: %w", name, src.err)
		}
	}()
	f, err := ipc.NewFileReader(src, ipc.WithAllocator(allocator))
	if err != nil {
		return s, seal.Corrupt(name, "%v", err)
	}
	defer f.Close()
	got := f.Schema()
	if v, ok := got.Metadata().GetValue(keyVersion); ok && v != formatVersion {
		return s, fmt.Errorf("shards: %s: version %q, this program reads %q: %w: use the program that wrote it, or run the stage again",
			name, v, formatVersion, seal.ErrVersion)
	}
	fields := got.Fields()
	if len(fields) == 0 {
		return s, seal.Corrupt(name, "it has no columns")
	}
	list, ok := fields[len(fields)-1].Type.(*arrow.FixedSizeListType)
	if !ok {
		return s, seal.Corrupt(name, "its columns are %s", got)
	}
	s = RowSchema{Column: fields[len(fields)-1].Name, Width: int(list.Len()), Half: list.Elem().ID() == arrow.FLOAT16}
	if len(fields) > 1 && fields[1].Name == "number" {
		s.ID = inputid.Type(max(slices.IndexFunc(idTypes[1:], func(t arrow.DataType) bool { return arrow.TypeEqual(t, fields[0].Type) }), 0) + 1)
		fields = fields[1:]
	}
	s.Label = len(fields) == 3
	if !s.valid() || !got.Equal(s.arrow()) {
		return s, seal.Corrupt(name, "its columns are %s", got)
	}
	return s, nil
}

// start is where the stretch of batch i starts.
func (f *RowReader) start(i int) int64 {
	if i == 0 {
		return 0
	}
	return f.batches[i-1].End
}

// body is where the buffers of batch i start.
func (f *RowReader) body(i int) int64 {
	return f.batches[i].End - f.schema.bodyBytes(int64(f.batches[i].Rows))
}

// Schema is the shape of the rows.
func (f *RowReader) Schema() RowSchema { return f.schema }

// NumRows is the number of rows in the file.
func (f *RowReader) NumRows() int64 { return f.rows }

// NumBatches is the number of record batches in the file.
func (f *RowReader) NumBatches() int { return len(f.batches) }

// BatchRows is the number of rows of batch i, and First its first row.
func (f *RowReader) BatchRows(i int) (first, rows int64) {
	return f.first[i], int64(f.batches[i].Rows)
}

// ReadBatch reads record batch i into dst; dst.ID has the numbers where ids are numbered. Where the memory of dst.Values has
// [RowSlack], dst.Values may start inside it. A damaged batch gives seal.ErrCorrupt,
// and dst holds nothing of use.
func (f *RowReader) ReadBatch(i int, dst *RowBatch) error {
	m := f.batches[i]
	n := int(m.Rows)
	dst.First = f.first[i]
	dst.ID = resize(dst.ID, n)
	dst.Label = resize(dst.Label, 0)
	dst.Values = resize(dst.Values, n*f.schema.Width)
	in := &batchReader{f: f, off: f.start(i)}
	in.read(make([]byte, f.body(i)-in.off))
	in.read(mem.AsBytes(dst.ID))
	in.skipPadding(8 * n)
	if f.schema.Label {
		dst.Label = resize(dst.Label, n)
		in.read(mem.AsBytes(dst.Label))
		in.skipPadding(4 * n)
	}
	dst.Values = in.values(dst.Values[:cap(dst.Values)], len(dst.Values))
	in.skipPadding(n * f.schema.Width * int(f.schema.valueSize()))
	if in.err != nil {
		return in.err
	}
	if in.off != m.End || in.sum != m.Sum {
		return seal.Corrupt(f.name, "record batch %d is damaged", i)
	}
	return nil
}

// ReadIDs reads the ids of consecutive rows of batch i, from its row at on, or their numbers
// where ids are numbered. They
// are not checked: the checksum is that of the whole batch.
func (f *RowReader) ReadIDs(i int, at int64, dst []int64) error {
	return seal.ReadFull(f.src, f.name, mem.AsBytes(dst), f.body(i)+8*at)
}

// ReadValues reads the values of so many rows of batch i, from its row at on, into
// space and returns where they are: at its start, unless it has [RowSlack]. They
// are not checked, as in [RowReader.ReadIDs].
func (f *RowReader) ReadValues(i int, at, rows int64, space []float32) ([]float32, error) {
	row := int64(f.schema.Width) * f.schema.valueSize()
	in := &batchReader{f: f, off: f.batches[i].End - padded(int64(f.batches[i].Rows)*row) + at*row}
	values := in.values(space, int(rows)*f.schema.Width)
	return values, in.err
}

// batchReader reads a stretch of a batch from front to back.
type batchReader struct {
	f   *RowReader
	off int64
	sum uint32
	err error
}

func (b *batchReader) read(p []byte) {
	if b.err != nil {
		return
	}
	b.err = seal.ReadFull(b.f.src, b.f.name, p, b.off)
	b.sum = crc32.Update(b.sum, seal.Castagnoli, p)
	b.off += int64(len(p))
}

// skipPadding reads what follows a buffer of so many bytes.
func (b *batchReader) skipPadding(size int) {
	var pad [rowAlign]byte
	b.read(pad[:padded(int64(size))-int64(size)])
}

// values reads n values into space and returns where they are. If space is
// longer by RowSlack, they lie in it as they lie in the pages of the file, which
// the disk then writes without a copy. float16 values are read behind where
// their float32 values go, each of which takes the place of those that are done.
func (b *batchReader) values(space []float32, n int) []float32 {
	raw, size := mem.AsBytes(space), n*int(b.f.schema.valueSize())
	first := 4*n - size
	if skip := int(b.off % direct.Align); len(space) >= n+RowSlack {
		pages := func(x int) int { return (x + direct.Align - 1) / direct.Align * direct.Align }
		first = pages(first) + skip
		b.readPages(raw[first-skip:first+pages(size+skip)-skip], skip, size)
	} else {
		b.read(raw[first : first+size])
	}
	if !b.f.schema.Half {
		return space[first/4 : first/4+n]
	}
	float := halfTable()
	for i := range n {
		space[i] = float[binary.LittleEndian.Uint16(raw[first+2*i:])]
	}
	return space[:n]
}

// readPages fills whole pages of memory, of which size bytes from skip on are
// those that follow.
func (b *batchReader) readPages(p []byte, skip, size int) {
	if b.err != nil {
		return
	}
	got, err := b.f.src.ReadAt(p, b.off-int64(skip))
	if got < skip+size {
		if err == nil || err == io.EOF || err == io.ErrUnexpectedEOF {
			b.err = seal.Corrupt(b.f.name, "it ends at byte %d, %d more were expected", b.off-int64(skip-got), skip+size-got)
		} else {
			b.err = fmt.Errorf("shards: read %s: %w", b.f.name, err)
		}
		return
	}
	b.sum = crc32.Update(b.sum, seal.Castagnoli, p[skip:skip+size])
	b.off += int64(size)
}

// halfTable lists the values of all float16: looking one up takes a quarter of
// the time of converting it.
var halfTable = sync.OnceValue(func() *[1 << 16]float32 {
	table := new([1 << 16]float32)
	for h := range table {
		table[h] = half.Float(uint16(h))
	}
	return table
})

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
