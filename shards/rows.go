package shards

import (
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

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
	// maxBatchHead bounds the bytes before a batch's buffers: its message and, for the first batch, the schema.
	maxBatchHead = 64 << 10
	// MaxValues is the largest number of values in a row, which keeps its size far from overflow.
	MaxValues = 1 << 20

	formatRows = "rows"
)

// endOfStream ends the part of a file that is also an Arrow stream.
var endOfStream = []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}

// RowSchema is the schema of an Arrow row file: column id (int64), label (int32) if Label is set, then Column, a fixed-size list of Width
// float32, or float16 if Half is set. If ids are numbered, id has their type, and a column number (int64) follows it. A file may have
// several lists of Width values; Column then has their names, separated by commas (see [HopSchema]).
type RowSchema struct {
	ID     inputid.Type
	Column string // "feature", "probability", or the names of several lists
	Width  int
	Label  bool
	Half   bool
}

// HopSchema returns the schema of a file of hops: a list of width values for each hop, named hop_K.
func HopSchema(hops []int, width int, half bool) RowSchema {
	names := make([]string, len(hops))
	for i, hop := range hops {
		names[i] = strconv.Itoa(hop)
	}
	return NamedHops(names, width, half)
}

// NamedHops is [HopSchema] for names that say more than the number of the hop.
func NamedHops(names []string, width int, half bool) RowSchema {
	return RowSchema{Column: hopPrefix + strings.Join(names, ","+hopPrefix), Width: width, Half: half}
}

const hopPrefix = "hop_"

// IsHop reports whether a list with this name is a hop.
func IsHop(name string) bool { return strings.HasPrefix(name, hopPrefix) }

// Lists returns the names of the lists of a row.
func (s RowSchema) Lists() []string { return strings.Split(s.Column, ",") }

// Values returns the number of values of a row, in all its lists.
func (s RowSchema) Values() int { return s.Width * s.lists() }

func (s RowSchema) lists() int { return strings.Count(s.Column, ",") + 1 }

func (s RowSchema) valid() bool {
	lists := s.Lists()
	for i, name := range lists {
		if name == "" || name == "id" || name == "number" || name == "label" || slices.Contains(lists[:i], name) {
			return false
		}
	}
	return s.Width > 0 && s.Width <= MaxValues && s.Values() <= MaxValues
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
	for _, name := range s.Lists() {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.FixedSizeListOfNonNullable(int32(s.Width), s.valueType())})
	}
	meta := arrow.NewMetadata([]string{keyFormat, keyVersion}, []string{formatRows, formatVersion})
	return arrow.NewSchema(fields, &meta)
}

// idTypes are the types of the column id.
var idTypes = []arrow.DataType{
	inputid.Number: arrow.PrimitiveTypes.Int64, inputid.Int64: arrow.PrimitiveTypes.Int64,
	inputid.Uint64: arrow.PrimitiveTypes.Uint64, inputid.String: arrow.BinaryTypes.String,
}

// maxHead bounds the bytes before the numbers of a batch of n rows.
func (s RowSchema) maxHead(n int64) int64 {
	if s.ID == inputid.Number {
		return maxBatchHead
	}
	return maxBatchHead + n*(8+inputid.MaxKey)
}

// bodyBytes returns the size of the buffers of a batch of n rows, from the numbers on.
func (s RowSchema) bodyBytes(n int64) int64 {
	size := padded(8*n) + int64(s.lists())*s.listBytes(n)
	if s.Label {
		size += padded(4 * n)
	}
	return size
}

// listBytes returns the size of the values of a list of n rows.
func (s RowSchema) listBytes(n int64) int64 { return padded(n * int64(s.Width) * s.valueSize()) }

func padded(n int64) int64 { return (n + rowAlign - 1) &^ (rowAlign - 1) }

// BatchRows returns the number of rows of a full record batch: some 16 MiB of float32 values, at least one row, a multiple of 64 from 64
// on.
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
	half   [][]byte // by list
	rows   int64
	names  *IDReader
}

// namedRows is the largest number of rows of a record batch if ids are numbered, because their ids are in memory at the same time. It is a
// multiple of 64.
const namedRows = 1 << 15

// NewRowWriter starts a file on w. The caller commits w after Close. names finds the ids of the nodes if they are numbered, and is nil
// otherwise; its type becomes that of the schema.
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
	return &RowWriter{schema: s, arrow: schema, sink: sink, out: out, half: make([][]byte, s.lists()), names: names}, nil
}

// Write appends one record batch of len(id) ≥ 1 rows. values holds them one after the other; with several lists, all rows of the first
// list, then all of the second. label is ignored without a label column. Slices of a multiple of 64 bytes, such as those of [BatchRows]
// rows, are written without a copy; float16 values and the last, smaller batch need one. If ids are numbered, id has the numbers, and many
// rows are written as several record batches.
func (w *RowWriter) Write(id []int64, label []int32, values []float32) error {
	n, s := len(id), w.schema
	if n == 0 || n > math.MaxInt32 || len(values) != n*s.Values() || s.Label && len(label) != n {
		return fmt.Errorf("shards: %d ids, %d labels and %d values are no batch of rows of width %d", n, len(label), len(values), s.Values())
	}
	step := n
	if s.ID != inputid.Number {
		step = min(n, namedRows)
	}
	lists := make([][]float32, s.lists())
	for lo := 0; lo < n; lo += step {
		hi := min(lo+step, n)
		for k := range lists {
			list := values[k*n*s.Width:][:n*s.Width]
			lists[k] = list[lo*s.Width : hi*s.Width]
		}
		var part []int32
		if s.Label {
			part = label[lo:hi]
		}
		if err := w.write(id[lo:hi], part, lists); err != nil {
			return err
		}
	}
	return nil
}

func (w *RowWriter) write(id []int64, label []int32, lists [][]float32) (err error) {
	n := len(id)
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
	for k, values := range lists {
		child := fixedData(w.schema.valueType(), len(values), w.valueBytes(k, values))
		defer child.Release()
		listType := w.arrow.Field(len(columns)).Type
		columns = append(columns, array.NewData(listType, n, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
	}
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

// fixedData wraps memory of the caller if it fills whole lines. The library pads buffers to 8 bytes only, so others are copied to a padded
// buffer.
func fixedData(t arrow.DataType, n int, b []byte) *array.Data {
	if size := padded(int64(len(b))); size != int64(len(b)) {
		b = append(make([]byte, 0, size), b...)[:size]
	}
	return array.NewData(t, n, []*memory.Buffer{nil, memory.NewBufferBytes(b)}, nil, 0, 0)
}

// keyData returns a column of ids.
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
	return array.NewData(idTypes[t], len(keys), []*memory.Buffer{
		nil, memory.NewBufferBytes(mem.AsBytes(ends)),
		memory.NewBufferBytes(text),
	}, nil, 0, 0)
}

// valueBytes returns the values of a list in stored form.
func (w *RowWriter) valueBytes(list int, values []float32) []byte {
	if !w.schema.Half {
		return mem.AsBytes(values)
	}
	w.half[list] = resize(w.half[list], 2*len(values))
	half.Encode(w.half[list], values)
	return w.half[list]
}

// recovered turns a panic of the library into an error, and prefers the error of the file below, if there is one.
func (w *RowWriter) recovered(err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("shards: writing Arrow: %v", x)
	}
	if w.sink.Err() != nil {
		*err = w.sink.Err()
	}
}

// Close writes the footer and returns the number of rows. It neither closes nor commits the underlying writer.
func (w *RowWriter) Close() (rows int64, err error) {
	defer w.recovered(&err)
	w.sink.Hold()
	if err := w.out.Close(); err != nil {
		return 0, fmt.Errorf("shards: closing Arrow file: %w", err)
	}
	padBlocks(w.sink.Held(), w.sink.lengths)
	return w.rows, w.sink.Finish(seal.Arrow, endOfStream)
}

// RowBatch receives the rows of a record batch in the memory of its slices, or in new memory if their capacity is too small.
type RowBatch struct {
	First  int64 // row of the file
	ID     []int64
	Label  []int32 // empty without a label column
	Values []float32
}

// RowSlack is the number of values by which memory must exceed the rows, and be aligned to pages, for reading rows into it without a copy.
const RowSlack = 3 * direct.Align / 4

// RowReader reads an Arrow row file. It is safe for concurrent use.
type RowReader struct {
	name    string
	src     storage.Reader
	schema  RowSchema
	batches []seal.Mark
	first   []int64 // first row of each batch in the file
	rows    int64
}

// OpenRows checks the file's footer and schema; errors use name. r stays open when reading is done. OpenRows reads only files of
// [RowWriter].
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

// readSchema decodes the footer, which is already checked.
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
	s = RowSchema{Width: int(list.Len()), Half: list.Elem().ID() == arrow.FLOAT16}
	first := slices.IndexFunc(fields, func(f arrow.Field) bool { return f.Type.ID() == arrow.FIXED_SIZE_LIST })
	var lists []string
	for _, f := range fields[first:] {
		lists = append(lists, f.Name)
	}
	s.Column, fields = strings.Join(lists, ","), fields[:first]
	if len(fields) > 1 && fields[1].Name == "number" {
		s.ID = inputid.Type(max(slices.IndexFunc(idTypes[1:], func(t arrow.DataType) bool { return arrow.TypeEqual(t, fields[0].Type) }), 0) + 1)
		fields = fields[1:]
	}
	s.Label = len(fields) == 2
	if !s.valid() || !got.Equal(s.arrow()) {
		return s, seal.Corrupt(name, "its columns are %s", got)
	}
	return s, nil
}

// start returns the offset of the stretch of batch i.
func (f *RowReader) start(i int) int64 {
	if i == 0 {
		return 0
	}
	return f.batches[i-1].End
}

// body returns the offset of the buffers of batch i.
func (f *RowReader) body(i int) int64 {
	return f.batches[i].End - f.schema.bodyBytes(int64(f.batches[i].Rows))
}

// Schema returns the schema of the rows.
func (f *RowReader) Schema() RowSchema { return f.schema }

// NumRows returns the number of rows in the file.
func (f *RowReader) NumRows() int64 { return f.rows }

// NumBatches returns the number of record batches in the file.
func (f *RowReader) NumBatches() int { return len(f.batches) }

// BatchRows returns the first row of batch i and its number of rows.
func (f *RowReader) BatchRows(i int) (first, rows int64) {
	return f.first[i], int64(f.batches[i].Rows)
}

// ReadBatch reads record batch i into dst. dst.ID has the numbers if ids are numbered. dst.Values has one row after the other, each with
// the values of all its lists; it may start inside its memory if that has [RowSlack]. A damaged batch gives seal.ErrCorrupt, and the
// content of dst is then undefined.
func (f *RowReader) ReadBatch(i int, dst *RowBatch) error { return f.readBatch(i, dst, true) }

// ReadLists is [RowReader.ReadBatch] with dst.Values one list after the other, each with the values of all rows.
func (f *RowReader) ReadLists(i int, dst *RowBatch) error { return f.readBatch(i, dst, false) }

func (f *RowReader) readBatch(i int, dst *RowBatch, byRow bool) error {
	m, s := f.batches[i], f.schema
	n := int(m.Rows)
	dst.First = f.first[i]
	dst.ID = resize(dst.ID, n)
	dst.Label = resize(dst.Label, 0)
	dst.Values = resize(dst.Values, n*s.Values())
	in := &batchReader{f: f, off: f.start(i)}
	in.read(make([]byte, f.body(i)-in.off))
	in.read(mem.AsBytes(dst.ID))
	in.skipPadding(8 * n)
	if s.Label {
		dst.Label = resize(dst.Label, n)
		in.read(mem.AsBytes(dst.Label))
		in.skipPadding(4 * n)
	}
	if s.lists() == 1 {
		dst.Values = in.values(dst.Values[:cap(dst.Values)], len(dst.Values))
		in.skipPadding(n * s.Width * int(s.valueSize()))
	} else {
		for k := range s.lists() {
			if byRow {
				in.list(dst.Values[k*s.Width:], s.Values(), n)
			} else {
				in.list(dst.Values[k*n*s.Width:], s.Width, n)
			}
			in.skipPadding(n * s.Width * int(s.valueSize()))
		}
	}
	if in.err != nil {
		return in.err
	}
	if in.off != m.End || in.sum != m.Sum {
		return seal.Corrupt(f.name, "record batch %d is damaged", i)
	}
	return nil
}

// ReadIDs reads the ids, or their numbers if ids are numbered, of consecutive rows of batch i from its row at on. It does not check them,
// because the checksum covers the whole batch.
func (f *RowReader) ReadIDs(i int, at int64, dst []int64) error {
	return seal.ReadFull(f.src, f.name, mem.AsBytes(dst), f.body(i)+8*at)
}

// ReadValues reads the values of rows of batch i from its row at on into space, and returns them: at the start of space, unless it has
// [RowSlack]. A row has the values of all its lists. They are not checked, as in [RowReader.ReadIDs].
func (f *RowReader) ReadValues(i int, at, rows int64, space []float32) ([]float32, error) {
	s := f.schema
	size, row := s.listBytes(int64(f.batches[i].Rows)), int64(s.Width)*s.valueSize()
	in := &batchReader{f: f, off: f.batches[i].End - int64(s.lists())*size + at*row}
	if s.lists() == 1 {
		values := in.values(space, int(rows)*s.Width)
		return values, in.err
	}
	first := in.off
	for k := range s.lists() {
		in.off = first + int64(k)*size
		in.list(space[k*s.Width:], s.Values(), int(rows))
	}
	return space[:int(rows)*s.Values()], in.err
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

// skipPadding reads the padding after a buffer of size bytes.
func (b *batchReader) skipPadding(size int) {
	var pad [rowAlign]byte
	b.read(pad[:padded(int64(size))-int64(size)])
}

// listBytes is the number of bytes of a list that are read at a time, unless one row is longer.
const listBytes = 256 << 10

// list reads the values of rows of a list; a row's values go to the start of each stride values of to.
func (b *batchReader) list(to []float32, stride, rows int) {
	width := b.f.schema.Width
	size := width * int(b.f.schema.valueSize())
	buf := make([]byte, size*min(rows, max(listBytes/size, 1)))
	for rows > 0 && b.err == nil {
		part := buf[:min(len(buf), rows*size)]
		b.read(part)
		for ; len(part) > 0; part = part[size:] {
			row := to[:width]
			if !b.f.schema.Half {
				copy(mem.AsBytes(row), part)
			} else {
				half.Decode(row, part)
			}
			rows--
			if rows > 0 {
				to = to[stride:]
			}
		}
	}
}

// values reads n values into space and returns them. If space is longer by RowSlack, they lie in it as in the pages of the file, so that
// the disk writes them without a copy. float16 values are read to the end of the place of their float32 values, which replace them one by
// one.
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
	half.Decode(space[:n], raw[first:])
	return space[:n]
}

// readPages fills whole pages of memory; the next size bytes of the stretch begin at skip.
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

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
