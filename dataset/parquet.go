package dataset

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/compress"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/metadata"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
)

const (
	// maxPage is the largest page of a Parquet file that is read into memory.
	maxPage = 16 << 20
	// maxGroup is the largest row group of a file with one column for each
	// feature, where a page of every column is in memory.
	maxGroup = 16 << 20
	// parquetBatch is how many values of a column are decoded at a time.
	parquetBatch = 1024
)

// parquetFile is an opened Parquet file.
type parquetFile struct {
	name   string
	src    *source.Source
	reader *file.Reader
	memory memory.Allocator
	rows   int64
}

func openParquet(src *source.Source) (f *parquetFile, err error) {
	if src.Unpack != nil {
		return nil, graph.BadData(src.Name, "is a packed Parquet file: unpack it, Parquet is compressed inside")
	}
	defer recoverParquet(src.Name, &err)
	capped := cappedAllocator{memory.NewGoAllocator(), src.Name}
	props := parquet.NewReaderProperties(capped)
	r, err := file.NewParquetReader(io.NewSectionReader(src.File, src.Off, src.End-src.Off), file.WithReadProps(props))
	if err != nil {
		return nil, graph.BadData(src.Name, "%v: it is damaged or no Parquet file, write it again", err)
	}
	return &parquetFile{src.Name, src, r, capped, r.NumRows()}, nil
}

// cappedAllocator refuses the sizes that a damaged page header may claim.
type cappedAllocator struct {
	memory.Allocator
	name string
}

func (a cappedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a cappedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a cappedAllocator) check(size int) {
	if size > maxPage {
		panic(graph.BadData(a.name, "a page of %s: write it with pages of at most %s (data_page_size in pyarrow)", mem.Bytes(size), mem.Bytes(maxPage)))
	}
}

// recoverParquet turns a panic of the Parquet or Arrow library, which it has for damaged
// files, into an error.
func recoverParquet(name string, err *error) {
	switch p := recover().(type) {
	case nil:
	case *graph.Fault:
		*err = p
	case runtime.Error:
		*err = graph.BadData(name, "its structure is damaged, write it again (the reader says: %v)", p)
	default:
		*err = graph.BadData(name, "%v: it is damaged, write it again", p)
	}
}

// chunk is what the file says of a column in a row group.
func (f *parquetFile) chunk(group, column int) (chunk *metadata.ColumnChunkMetaData, err error) {
	defer recoverParquet(f.name, &err)
	if chunk, err = f.reader.RowGroup(group).MetaData().ColumnChunk(column); err != nil {
		err = graph.Damaged(f.name, fmt.Errorf("%w: it is damaged, write it again", err))
	}
	return chunk, err
}

// check refuses compressions and encodings that the library cannot read, or reads
// wrongly.
func (f *parquetFile) check(column int) error {
	for g := range f.reader.NumRowGroups() {
		chunk, err := f.chunk(g, column)
		if err != nil {
			return err
		}
		if codec := chunk.Compression(); !slices.Contains(codecs, codec) {
			return graph.BadData(f.name, "column %q is compressed as %s, which is not read: write the file with zstd or snappy (in pyarrow, compression='zstd')",
				f.column(column).Name(), codec)
		}
		for _, e := range chunk.Encodings() {
			if strings.HasPrefix(e.String(), "DELTA") {
				return graph.BadData(f.name, "column %q is encoded as %s, which is not read: write the file with plain or dictionary encoding (the default in pyarrow, DuckDB and Spark)",
					f.column(column).Name(), e)
			}
		}
	}
	return nil
}

// codecs are the compressions that the library reads.
var codecs = []compress.Compression{
	compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd,
}

func (f *parquetFile) column(i int) *schema.Column { return f.reader.MetaData().Schema.Column(i) }

// integers finds the flat integer columns.
func (f *parquetFile) integers() (found []int, names []string) {
	for i := range f.reader.MetaData().Schema.NumColumns() {
		c := f.column(i)
		names = append(names, c.Path())
		isInteger := c.PhysicalType() == parquet.Types.Int32 || c.PhysicalType() == parquet.Types.Int64
		if isInteger && c.MaxRepetitionLevel() == 0 {
			found = append(found, i)
		}
	}
	return found, names
}

// parquetColumn streams the numbers of a column over all row groups.
type parquetColumn struct {
	f        *parquetFile
	index    int
	group    int // the next
	end      int // row group to stop at
	chunk    file.ColumnChunkReader
	left     int64 // values of chunk that are still to come
	def, rep []int16
	// decode reads a batch of the column's type; the functions below give a value of it.
	decode  func() (total int64, n int, err error)
	integer func(i int) int64
	number  func(i int) float32
	// ids copies integers from place i on, and returns how many are ids below limit from
	// the first on.
	ids func(i int, to []uint32, limit int64) int
	// The value that next moved to is at place pos of the batch of n.
	pos, n int
	values int64
}

// decoder is what the typed readers have in common.
type decoder[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (int64, int, error)
}

// bind prepares a column of the physical type T.
func bind[T int32 | int64 | float32 | float64, R decoder[T]](c *parquetColumn) {
	batch := make([]T, parquetBatch)
	c.decode = func() (int64, int, error) {
		return c.chunk.(R).ReadBatch(parquetBatch, batch, c.def, c.rep)
	}
	c.integer = func(i int) int64 { return int64(batch[i]) }
	c.number = func(i int) float32 { return float32(batch[i]) }
	c.ids = func(i int, to []uint32, limit int64) int {
		for k, v := range batch[i:][:len(to)] {
			if id := int64(v); id < 0 || id >= limit {
				return k
			}
			to[k] = uint32(v)
		}
		return len(to)
	}
}

func (f *parquetFile) stream(index int) (_ *parquetColumn, err error) {
	defer recoverParquet(f.name, &err)
	c := &parquetColumn{f: f, index: index, end: f.reader.NumRowGroups(), def: make([]int16, parquetBatch), rep: make([]int16, parquetBatch)}
	descr := f.column(index)
	switch descr.PhysicalType() {
	case parquet.Types.Int32:
		bind[int32, *file.Int32ColumnChunkReader](c)
		if descr.ConvertedType() == schema.ConvertedTypes.Uint32 {
			signed := c.integer
			c.integer = func(i int) int64 { return int64(uint32(signed(i))) }
			c.number = func(i int) float32 { return float32(c.integer(i)) }
			c.ids = func(i int, to []uint32, limit int64) int {
				for k := range to {
					if v := c.integer(i + k); v < limit {
						to[k] = uint32(v)
					} else {
						return k
					}
				}
				return len(to)
			}
		}
	case parquet.Types.Int64:
		bind[int64, *file.Int64ColumnChunkReader](c)
	case parquet.Types.Float:
		bind[float32, *file.Float32ColumnChunkReader](c)
	case parquet.Types.Double:
		bind[float64, *file.Float64ColumnChunkReader](c)
	default:
		return nil, graph.BadData(f.name, "column %q holds %s: features are numbers, leave the column out", descr.Path(), f.typeName(index))
	}
	return c, f.check(index)
}

// Position names the value that next moved to.
func (c *parquetColumn) Position() string {
	return fmt.Sprintf("%s column %q value %d", c.f.name, c.f.column(c.index).Path(), c.values-1)
}

// next moves to the next value, or returns io.EOF.
func (c *parquetColumn) next() error {
	c.values++
	c.pos++
	if c.pos < c.n {
		return nil
	}
	c.pos, c.n = 0, 0
	return c.fill()
}

// fill decodes the next batch.
func (c *parquetColumn) fill() (err error) {
	defer recoverParquet(c.f.name, &err)
	for c.chunk == nil || !c.chunk.HasNext() {
		if c.chunk != nil && c.chunk.Err() != nil {
			return graph.Damaged(c.f.name, fmt.Errorf("%w: it is damaged, write it again", c.chunk.Err()))
		}
		if c.left != 0 {
			return graph.BadData(c.Position(), "the column ends too early: the file is damaged, write it again")
		}
		if c.group == c.end {
			return io.EOF
		}
		if err := c.nextChunk(); err != nil {
			return err
		}
	}
	total, n, err := c.decode()
	switch {
	case err != nil:
		return graph.Damaged(c.f.name, fmt.Errorf("%w: it is damaged, write it again", err))
	case total != int64(n):
		return graph.BadData(c.Position(), "one of the %d values from here on is null: remove nulls before the import", total)
	case n == 0:
		return graph.BadData(c.Position(), "the column ends too early: the file is damaged, write it again")
	}
	c.n = n
	c.left -= total
	return nil
}

// nextChunk opens the column in the next row group.
func (c *parquetColumn) nextChunk() error {
	meta, err := c.f.chunk(c.group, c.index)
	if err != nil {
		return err
	}
	rows, isFlat := c.f.reader.RowGroup(c.group).NumRows(), c.f.column(c.index).MaxRepetitionLevel() == 0
	if c.left = meta.NumValues(); c.left < 0 || isFlat && c.left != rows {
		return graph.BadData(c.f.name, "column %q has %d values in a row group of %d rows: the file is damaged, write it again", c.f.column(c.index).Path(), c.left, rows)
	}
	if c.chunk, err = c.f.openChunk(c.group, c.index); err != nil {
		return err
	}
	c.group++
	return nil
}

// id reads a node id.
func (c *parquetColumn) id(limit *graph.IDLimit) (uint32, error) {
	if err := c.next(); err != nil {
		return 0, err
	}
	if v := c.integer(c.pos); v < 0 || v >= limit.N {
		return 0, c.noID(limit)
	}
	return uint32(c.integer(c.pos)), nil
}

// noID is the error about the value that next moved to.
func (c *parquetColumn) noID(limit *graph.IDLimit) error {
	unsigned := c.f.column(c.index).ConvertedType() == schema.ConvertedTypes.Uint64
	return graph.BadData(c.Position(), "%s", limit.Check(c.integer(c.pos), unsigned))
}

// ahead is how many values are decoded behind the one that next moved to, at least one,
// or the error of next.
func (c *parquetColumn) ahead() (int, error) {
	if c.pos+1 >= c.n {
		if err := c.next(); err != nil {
			return 0, err
		}
		c.pos--
		c.values--
	}
	return c.n - c.pos - 1, nil
}

// take moves over the next values and copies their ids. It stops behind one that is none,
// and returns how many ids came before.
func (c *parquetColumn) take(to []uint32, limit *graph.IDLimit) int {
	n := c.ids(c.pos+1, to, limit.N)
	moved := min(n+1, len(to))
	c.pos += moved
	c.values += int64(moved)
	return n
}

// parquetEdges is an edge list in two integer columns.
type parquetEdges struct {
	file  *parquetFile
	u, v  int
	limit graph.IDLimit
	notes []graph.Note
}

func openParquetEdges(src *source.Source, limit graph.IDLimit, named ends) (*parquetEdges, error) {
	f, err := openParquet(src)
	if err != nil {
		return nil, err
	}
	found, titles := f.integers()
	c := edgeColumns{file: src.Name, titles: titles, width: len(titles), candidates: func() ([]int, error) { return found, nil }}
	if len(titles) < 2 {
		return nil, graph.BadData(src.Name, "has not two columns: an edge list has two of whole numbers; the columns are %s", c.list())
	}
	e := &parquetEdges{file: f, limit: limit}
	if e.u, e.v, err = c.find(named); err != nil {
		return nil, err
	}
	for _, i := range []int{e.u, e.v} {
		if !slices.Contains(found, i) {
			return nil, graph.BadData(src.Name, "column %q holds %s: node ids are whole numbers from 0, number the nodes; the columns are %s",
				titles[i], f.typeName(i), c.list())
		}
		if err := f.check(i); err != nil {
			return nil, err
		}
	}
	e.notes = c.notes(e.u, e.v, func(int) bool { return false })
	return e, nil
}

// parquetPairs opens an edge list whose columns have well-known names, or are the only two.
func parquetPairs(src *source.Source, limit graph.IDLimit) (graph.EdgeSource, error) {
	e, err := openParquetEdges(src, limit, ends{})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// typeName names the type of a column as users of tables do.
func (f *parquetFile) typeName(i int) string {
	c := f.column(i)
	switch {
	case c.MaxRepetitionLevel() > 0:
		return "lists"
	case c.ConvertedType() == schema.ConvertedTypes.UTF8:
		return "text"
	}
	return c.PhysicalType().String()
}

func (e *parquetEdges) Open(ctx context.Context) (EdgeReader, error) {
	return e.openGroups(ctx, 0, e.file.reader.NumRowGroups())
}

// openGroups reads row groups [lo, hi).
func (e *parquetEdges) openGroups(ctx context.Context, lo, hi int) (_ EdgeReader, err error) {
	defer recoverParquet(e.file.name, &err)
	u, err := e.file.stream(e.u)
	if err != nil {
		return nil, err
	}
	v, err := e.file.stream(e.v)
	if err != nil {
		return nil, err
	}
	for _, c := range []*parquetColumn{u, v} {
		c.group, c.end = lo, hi
		for g := range lo {
			c.values += e.file.reader.RowGroup(g).NumRows()
		}
	}
	return &parquetEdgeReader{ctx: ctx, u: u, v: v, limit: &e.limit}, nil
}

type parquetEdgeReader struct {
	ctx    context.Context
	u, v   *parquetColumn
	limit  *graph.IDLimit
	us, vs [parquetBatch]uint32
}

func (r *parquetEdgeReader) Read(batch []Edge) (n int, err error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	for n < len(batch) {
		some, err := r.read(batch[n:])
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// read reads some edges. The error is that of the first row with one.
func (r *parquetEdgeReader) read(batch []Edge) (int, error) {
	u, err := r.u.ahead()
	if err != nil {
		return 0, err
	}
	v, err := r.v.ahead()
	if err != nil {
		return 0, graph.Damaged(r.v.Position(), err)
	}
	n := min(u, v, len(batch), parquetBatch)
	us, vs := r.us[:n], r.vs[:n]
	good := r.u.take(us, r.limit)
	if r.v.take(vs[:good], r.limit) < good {
		return 0, graph.Damaged(r.v.Position(), r.v.noID(r.limit))
	}
	if good < n {
		return 0, r.u.noID(r.limit)
	}
	for i := range us {
		batch[i] = Edge{U: us[i], V: vs[i]}
	}
	return n, nil
}

func (r *parquetEdgeReader) Close() error { return nil }

// parquetFeatures is a column of ids and one list column, or one column for each
// feature.
type parquetFeatures struct {
	file    *parquetFile
	id      int
	columns []int
	width   int
	limit   graph.IDLimit
	note    graph.Note
}

func openParquetFeatures(src *source.Source, limit graph.IDLimit) (*parquetFeatures, error) {
	f, err := openParquet(src)
	if err != nil {
		return nil, err
	}
	found, names := f.integers()
	p := &parquetFeatures{file: f, id: -1, limit: limit}
	for _, i := range found {
		if slices.Contains(column.IDNames, strings.ToLower(names[i])) {
			p.id = i
			break
		}
	}
	if p.id < 0 {
		return nil, graph.BadData(src.Name, "has no integer column named id; its columns are %s", strings.Join(names, ", "))
	}
	for i := range names {
		if i != p.id {
			p.columns = append(p.columns, i)
		}
	}
	if err := p.measure(); err != nil {
		return nil, err
	}
	p.note = graph.NoteOf(src.Name, "node ids are in column %q, features in the %d others", names[p.id], len(p.columns))
	if len(p.columns) == 1 {
		p.note = graph.NoteOf(src.Name, "node ids are in column %q, features in column %q", names[p.id], names[p.columns[0]])
	}
	r, err := p.Open(context.Background())
	if err == nil {
		err = r.Close()
	}
	return p, err
}

// measure finds the width, and checks what would be in memory at a time.
func (p *parquetFeatures) measure() (err error) {
	defer recoverParquet(p.file.name, &err)
	f := p.file
	lists := slices.ContainsFunc(p.columns, func(i int) bool { return f.column(i).MaxRepetitionLevel() > 0 })
	p.width = len(p.columns)
	if !lists {
		for g := range f.reader.NumRowGroups() {
			if size := f.reader.RowGroup(g).ByteSize(); size > maxGroup && p.width > 16 {
				return graph.BadData(f.name, "row group %d has %s in %d columns: write row groups of at most %s, or one column of fixed-size lists",
					g, mem.Bytes(size), p.width, mem.Bytes(maxGroup))
			}
		}
		return graph.CheckSize(f.name, f.rows, int64(p.width))
	}
	if len(p.columns) != 1 {
		return graph.BadData(f.name, "has a list column and %d others: an id and one list of features are needed", len(p.columns)-1)
	}
	var values int64
	for g := range f.reader.NumRowGroups() {
		chunk, err := f.chunk(g, p.columns[0])
		if err != nil {
			return err
		}
		values += chunk.NumValues()
	}
	if f.rows == 0 || values%f.rows != 0 {
		return graph.BadData(f.name, "%d values in %d rows: every list must have the same length, without nulls", values, f.rows)
	}
	if err := graph.CheckSize(f.name, f.rows, values/f.rows); err != nil {
		return err
	}
	p.width = int(values / f.rows)
	return nil
}

func (p *parquetFeatures) Open(ctx context.Context) (FeatureReader, error) {
	r := &parquetFeatureReader{parquetFeatures: p, ctx: ctx, row: make([]float32, p.width)}
	var err error
	if r.ids, err = p.file.stream(p.id); err != nil {
		return nil, err
	}
	for _, i := range p.columns {
		c, err := p.file.stream(i)
		if err != nil {
			return nil, err
		}
		r.values = append(r.values, c)
	}
	return r, nil
}

type parquetFeatureReader struct {
	*parquetFeatures
	ctx    context.Context
	ids    *parquetColumn
	values []*parquetColumn
	row    []float32
}

func (r *parquetFeatureReader) Close() error { return nil }

func (r *parquetFeatureReader) Next() (FeatureRow, error) {
	if err := r.ctx.Err(); err != nil {
		return FeatureRow{}, err
	}
	id, err := r.ids.id(&r.limit)
	if err != nil {
		return FeatureRow{}, err
	}
	isList := len(r.values) == 1 && r.file.column(r.values[0].index).MaxRepetitionLevel() > 0
	for i := range r.row {
		c := r.values[0]
		if !isList {
			c = r.values[i]
		}
		if err := c.next(); err != nil {
			return FeatureRow{}, graph.Damaged(c.Position(), err)
		}
		if starts := c.rep[c.pos] == 0; isList && starts != (i == 0) {
			return FeatureRow{}, graph.BadData(r.ids.Position(), "its list has not %d values: every list must have the same length", r.width)
		}
		if r.row[i] = c.number(c.pos); !graph.Finite(r.row[i]) {
			return FeatureRow{}, graph.NotFinite(r.file.name, r.ids.values-1, int64(i), r.row[i])
		}
	}
	return FeatureRow{ID: id, Dense: r.row}, nil
}
