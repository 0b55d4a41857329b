package shards

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"sync"

	"ndls/internal/seal"

	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/metadata"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/internal/storage"
)

const (
	// batchRows is the number of rows of a table that pass through memory at a time.
	batchRows = 1 << 16
	// pageBytes is the size of a data page before compression.
	pageBytes = 256 << 10
	// pageBatch is the number of values after each of which a page may end.
	pageBatch = 16 << 10
	// maxGroupBytes bounds the size of a row group; every table's is several times smaller.
	maxGroupBytes = 64 << 20
)

// Keys of the metadata in our Parquet and Arrow files.
const (
	keyFormat  = "ndls.format"
	keyVersion = "ndls.version"
	// formatVersion increases when an older program would misread a file.
	formatVersion = "1"
)

// allocator serves the libraries; tests replace it by one that counts.
var allocator memory.Allocator = memory.NewGoAllocator()

// column is a required column of a table.
type column struct {
	name     string
	physical parquet.Type
	logical  schema.LogicalType
}

func uint32Column(name string) column {
	return column{name, parquet.Types.Int32, schema.NewIntLogicalType(32, false)}
}

func int32Column(name string) column {
	return column{name, parquet.Types.Int32, schema.NewIntLogicalType(32, true)}
}

func int64Column(name string) column {
	return column{name, parquet.Types.Int64, schema.NewIntLogicalType(64, true)}
}

func boolColumn(name string) column {
	return column{name, parquet.Types.Boolean, schema.NoLogicalType{}}
}

func stringColumn(name string) column {
	return column{name, parquet.Types.ByteArray, schema.StringLogicalType{}}
}

// parquetSchema sets the root's repetition to REQUIRED: hyparquet counts a REPEATED root, arrow's default, as a level of nesting.
func parquetSchema(columns []column) (*schema.GroupNode, error) {
	fields := make(schema.FieldList, len(columns))
	for i, c := range columns {
		node, err := schema.NewPrimitiveNodeLogical(c.name, parquet.Repetitions.Required, c.logical, c.physical, 0, -1)
		if err != nil {
			return nil, fmt.Errorf("shards: column %s: %w", c.name, err)
		}
		fields[i] = node
	}
	return schema.NewGroupNode("schema", parquet.Repetitions.Required, fields, -1)
}

// writerProperties returns the properties of our files: PLAIN, because v14 reads DELTA pages wrongly; no dictionary; no statistics, because
// v14 writes a false distinct count; snappy, because v14 makes a new zstd encoder for every page.
func writerProperties(extra ...parquet.WriterProperty) *parquet.WriterProperties {
	return parquet.NewWriterProperties(append([]parquet.WriterProperty{
		parquet.WithAllocator(allocator),
		parquet.WithDictionaryDefault(false),
		parquet.WithEncoding(parquet.Encodings.Plain),
		parquet.WithStats(false),
		parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithDataPageSize(pageBytes),
		parquet.WithBatchSize(pageBatch),
		parquet.WithRootRepetition(parquet.Repetitions.Required),
		parquet.WithCreatedBy("ndls"),
	}, extra...)...)
}

// parquetWriter writes a sealed Parquet file of one table.
type parquetWriter struct {
	sink *seal.Writer
	file *file.Writer
	rows int64
}

// newParquetWriter starts a file; pairs holds keys and values of its metadata.
func newParquetWriter(w io.Writer, format string, columns []column, pairs []string,
	props *parquet.WriterProperties,
) (_ *parquetWriter, err error) {
	p := &parquetWriter{sink: seal.NewWriter(w)}
	defer p.recovered(&err)
	root, err := parquetSchema(columns)
	if err != nil {
		return nil, err
	}
	kv, err := parquetPairs(format, pairs)
	if err != nil {
		return nil, err
	}
	p.file = file.NewParquetWriter(p.sink, root, file.WithWriterProps(props), file.WithWriteMetadata(kv))
	return p, nil
}

// parquetPairs returns the metadata of a file: its format, then its own keys and values.
func parquetPairs(format string, own []string) (metadata.KeyValueMetadata, error) {
	all := metadata.NewKeyValueMetadata()
	for i, pairs := 0, append([]string{keyFormat, format, keyVersion, formatVersion}, own...); i < len(pairs); i += 2 {
		if err := all.Append(pairs[i], pairs[i+1]); err != nil {
			return nil, fmt.Errorf("shards: metadata: %w", err)
		}
	}
	return all, nil
}

// recovered turns a panic of the library into an error, and prefers the error of the file below, if there is one.
func (p *parquetWriter) recovered(err *error) { recovered(p.sink, err, recover()) }

func recovered(sink *seal.Writer, err *error, panicked any) {
	if panicked != nil {
		*err = fmt.Errorf("shards: writing Parquet: %v", panicked)
	}
	if sink.Err() != nil {
		*err = sink.Err()
	}
}

// endGroup closes a row group and marks it.
func (p *parquetWriter) endGroup(g file.RowGroupWriter, rows int) error {
	if err := g.Close(); err != nil {
		return fmt.Errorf("shards: closing row group: %w", err)
	}
	p.sink.Mark(rows)
	p.rows += int64(rows)
	return nil
}

func (p *parquetWriter) close() error {
	p.sink.Hold()
	if err := p.file.Close(); err != nil {
		return fmt.Errorf("shards: closing Parquet file: %w", err)
	}
	return p.sink.Finish(seal.Parquet, nil)
}

// closeParquet writes the footer of a file, and its seal. The sink holds the bytes from the footer on back.
func closeParquet(sink *seal.Writer, b *metadata.FileMetaDataBuilder) error {
	footer, err := b.Finish()
	if err != nil {
		return fmt.Errorf("shards: closing Parquet file: %w", err)
	}
	size, err := footer.WriteTo(sink, nil)
	if err != nil {
		return fmt.Errorf("shards: closing Parquet file: %w", err)
	}
	if _, err := sink.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(size)), seal.Parquet...)); err != nil {
		return err
	}
	return sink.Finish(seal.Parquet, nil)
}

// parquetReader reads a sealed Parquet file by row group. It loads and checks a whole row group before it decodes any of it.
type parquetReader struct {
	name  string
	src   *groupSource
	file  *file.Reader
	marks []seal.Mark
	rows  int64
}

// groupSource serves a file's footer to the library from the file, and a row group from memory.
type groupSource struct {
	storage.Reader
	off    int64
	first  int64
	group  []byte
	failed sync.Mutex
	err    error // first error of the storage; guarded by failed
}

func (s *groupSource) fail(err error) {
	s.failed.Lock()
	defer s.failed.Unlock()
	if s.err == nil {
		s.err = err
	}
}

func (s *groupSource) failure() error {
	s.failed.Lock()
	defer s.failed.Unlock()
	return s.err
}

func (s *groupSource) ReadAt(p []byte, off int64) (int, error) {
	if at := off - s.first; at >= 0 && at+int64(len(p)) <= int64(len(s.group)) {
		return copy(p, s.group[at:]), nil
	}
	n, err := s.Reader.ReadAt(p, off)
	if err != nil && err != io.EOF {
		s.fail(err)
	}
	return n, err
}

func (s *groupSource) Read(p []byte) (int, error) {
	n, err := s.ReadAt(p, s.off)
	s.off += int64(n)
	return n, err
}

func (s *groupSource) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekStart:
		s.off = offset
	case io.SeekCurrent:
		s.off += offset
	case io.SeekEnd:
		s.off = s.Size() + offset
	}
	return s.off, nil
}

// Close leaves the storage open, because its opener closes it.
func (s *groupSource) Close() error { return nil }

// checked calls check and turns a panic of the library into an error.
func (p *parquetReader) checked(format string, columns []column) (err error) {
	defer p.recovered(&err)
	return p.check(format, columns)
}

// openSealed reads the seal and the footer of a file.
func openSealed(r storage.Reader, name string) (_ *parquetReader, err error) {
	p := &parquetReader{name: name, src: &groupSource{Reader: r}}
	marks, err := seal.ReadMarks(r, name, seal.Parquet)
	if err != nil {
		if reason := foreignEncoding(r); reason != "" {
			return nil, seal.Refuse(name, reason)
		}
		return nil, err
	}
	p.marks = marks[:len(marks)-1]
	if err := p.open(); err != nil {
		return nil, err
	}
	p.rows = p.file.NumRows()
	return p, nil
}

// open makes the library open the file.
func (p *parquetReader) open(options ...file.ReadOption) (err error) {
	defer p.recovered(&err)
	props := parquet.NewReaderProperties(allocator)
	props.BufferedStreamEnabled = true
	props.BufferSize = 64 << 10
	if p.file, err = file.NewParquetReader(p.src, append(options, file.WithReadProps(props))...); err != nil {
		return seal.Corrupt(p.name, "%v", err)
	}
	return nil
}

// another returns a second reader of the same file, for another row group at the same time.
func (p *parquetReader) another() (*parquetReader, error) {
	q := &parquetReader{name: p.name, src: &groupSource{Reader: p.src.Reader}, marks: p.marks, rows: p.rows}
	return q, q.open(file.WithMetadata(p.file.MetaData()))
}

// recovered turns a panic of the library into seal.ErrCorrupt, unless the storage failed below it.
func (p *parquetReader) recovered(err *error) {
	if x := recover(); x != nil {
		*err = seal.Corrupt(p.name, "decoding: %v", x)
	}
	if failed := p.src.failure(); failed != nil {
		*err = fmt.Errorf("shards: read %s: %w", p.name, failed)
	}
}

// meta returns the value of a metadata key, or "" if there is none.
func (p *parquetReader) meta(key string) string {
	if v := p.file.MetaData().KeyValueMetadata().FindValue(key); v != nil {
		return *v
	}
	return ""
}

// metaInt returns the value of a metadata key that must be a number ≥ 0.
func (p *parquetReader) metaInt(key string) (int64, error) {
	v, err := strconv.ParseInt(p.meta(key), 10, 64)
	if err != nil || v < 0 {
		return 0, seal.Corrupt(p.name, "its metadata %s is %q", key, p.meta(key))
	}
	return v, nil
}

func (p *parquetReader) check(format string, columns []column) error {
	if got := p.meta(keyFormat); got != format {
		return seal.Corrupt(p.name, "it holds %q where %q was expected", got, format)
	}
	if got := p.meta(keyVersion); got != formatVersion {
		return fmt.Errorf("shards: %s: version %q, this program reads %q: %w: use the program that wrote it, or run the stage again",
			p.name, got, formatVersion, seal.ErrVersion)
	}
	if reason := badEncoding(p.file); reason != "" {
		return seal.Refuse(p.name, reason)
	}
	root, err := parquetSchema(columns)
	if err != nil {
		return err
	}
	if !p.file.MetaData().Schema.Equals(schema.NewSchema(root)) {
		return seal.Corrupt(p.name, "its columns are %s", p.file.MetaData().Schema)
	}
	if p.file.NumRowGroups() != len(p.marks) {
		return seal.Corrupt(p.name, "%d row groups, %d in its seal", p.file.NumRowGroups(), len(p.marks))
	}
	var rows, first int64
	for i, m := range p.marks {
		n := p.file.RowGroup(i).NumRows()
		if n != int64(m.Rows) || m.End-first > maxGroupBytes {
			return seal.Corrupt(p.name, "row group %d has %d rows in %d bytes, %d rows in its seal", i, n, m.End-first, m.Rows)
		}
		rows, first = rows+n, m.End
	}
	if rows != p.rows {
		return seal.Corrupt(p.name, "%d rows in row groups, %d in all", rows, p.rows)
	}
	return nil
}

// badEncoding names the column whose encoding must not be read.
func badEncoding(f *file.Reader) string {
	for g := range f.NumRowGroups() {
		rg := f.MetaData().RowGroup(g)
		for c := range rg.NumColumns() {
			chunk, err := rg.ColumnChunk(c)
			if err != nil {
				return err.Error()
			}
			for _, e := range chunk.Encodings() {
				if e != parquet.Encodings.Plain && e != parquet.Encodings.RLE {
					return fmt.Sprintf("row group %d, column %s: encoding %s is not read here, only PLAIN: "+
						"the Parquet library returns wrong values for DELTA encodings from the second page on", g, chunk.PathInSchema(), e)
				}
			}
		}
	}
	return ""
}

// foreignEncoding looks for a better reason to refuse a file than its missing seal.
func foreignEncoding(r storage.Reader) (reason string) {
	defer func() {
		if recover() != nil {
			reason = ""
		}
	}()
	tail := make([]byte, min(r.Size(), 8))
	if _, err := r.ReadAt(tail, r.Size()-int64(len(tail))); err != nil && err != io.EOF {
		return ""
	}
	if n, ok := seal.FooterLength(tail, seal.Parquet); !ok || n > r.Size() {
		return ""
	}
	f, err := file.NewParquetReader(&groupSource{Reader: r})
	if err != nil {
		return ""
	}
	return badEncoding(f)
}

// columns loads and checks row group i, and returns readers of its columns and its number of rows.
func (p *parquetReader) columns(i, n int) (cols []file.ColumnChunkReader, rows int64, err error) {
	if err := p.load(i); err != nil {
		return nil, 0, err
	}
	defer p.recovered(&err)
	group := p.file.RowGroup(i)
	cols = make([]file.ColumnChunkReader, n)
	for c := range cols {
		if cols[c], err = group.Column(c); err != nil {
			return nil, 0, seal.Corrupt(p.name, "row group %d: %v", i, err)
		}
	}
	return cols, group.NumRows(), nil
}

// load reads row group i into memory and checks it.
func (p *parquetReader) load(i int) error {
	p.src.group, p.src.first = p.groupIn(p.src.group, i), p.groupAt(i)
	if err := p.readGroup(p.src.group, i); err != nil {
		return err
	}
	return p.checkGroup(p.src.group, i)
}

// groupAt returns the offset of row group i in the file.
func (p *parquetReader) groupAt(i int) int64 {
	if i == 0 {
		return 0
	}
	return p.marks[i-1].End
}

// groupIn returns a buffer of the size of row group i: b, or a new one.
func (p *parquetReader) groupIn(b []byte, i int) []byte {
	size := int(p.marks[i].End - p.groupAt(i))
	if cap(b) < size {
		b = make([]byte, size)
	}
	return b[:size]
}

// readGroup reads row group i.
func (p *parquetReader) readGroup(to []byte, i int) error {
	return seal.ReadFull(p.src.Reader, p.name, to, p.groupAt(i))
}

// checkGroup compares row group i with its checksum.
func (p *parquetReader) checkGroup(group []byte, i int) error {
	if crc32.Checksum(group, seal.Castagnoli) != p.marks[i].Sum {
		return seal.Corrupt(p.name, "row group %d is damaged", i)
	}
	return nil
}

// columnReader is the part of arrow's typed column readers that this package uses.
type columnReader[T any] interface {
	ReadBatch(batchSize int64, values []T, defLvls, repLvls []int16) (total int64, valuesRead int, err error)
}

// readColumn fills values from a required column.
func readColumn[T any](p *parquetReader, col file.ColumnChunkReader, values []T) (err error) {
	defer p.recovered(&err)
	typed, ok := col.(columnReader[T])
	if !ok {
		return seal.Corrupt(p.name, "column %s has another type", col.Descriptor().Name())
	}
	for len(values) > 0 {
		_, n, err := typed.ReadBatch(int64(len(values)), values, nil, nil)
		if err != nil {
			return seal.Corrupt(p.name, "column %s: %v", col.Descriptor().Name(), err)
		}
		if n == 0 {
			return seal.Corrupt(p.name, "column %s: %d values are missing", col.Descriptor().Name(), len(values))
		}
		values = values[n:]
	}
	return nil
}

// columnWriter is the part of arrow's typed column writers that this package uses.
type columnWriter[T any] interface {
	WriteBatch(values []T, defLevels, repLevels []int16) (int64, error)
}

// writeColumn appends values to a required column.
func writeColumn[T any](p *parquetWriter, col file.ColumnChunkWriter, values []T) (err error) {
	defer p.recovered(&err)
	if _, err := col.(columnWriter[T]).WriteBatch(values, nil, nil); err != nil {
		return fmt.Errorf("shards: writing Parquet: %w", err)
	}
	return nil
}
