package columnar

import (
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

	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
)

// maxPage is the largest page of a Parquet file that is read into memory.
const maxPage = 16 << 20

// Parquet is an opened Parquet file.
type Parquet struct {
	Name   string
	Source *source.Source
	Reader *file.Reader
	Rows   int64
	memory memory.Allocator
}

// OpenParquet reads the footer of a file.
func OpenParquet(src *source.Source) (f *Parquet, err error) {
	if src.Unpack != nil {
		return nil, graph.BadData(src.Name, "is a packed Parquet file: unpack it, Parquet is compressed inside")
	}
	defer Recover(src.Name, &err)
	pages := capped{memory.NewGoAllocator(), src.Name, maxPage, "a page of %s: write it with pages of at most %s (data_page_size in pyarrow)"}
	props := parquet.NewReaderProperties(pages)
	r, err := file.NewParquetReader(io.NewSectionReader(src.File, src.Off, src.End-src.Off), file.WithReadProps(props))
	if err != nil {
		return nil, graph.BadData(src.Name, "%v: it is damaged or no Parquet file, write it again", err)
	}
	return &Parquet{src.Name, src, r, r.NumRows(), pages}, nil
}

// capped refuses sizes that a damaged header of a page or record batch may claim.
type capped struct {
	memory.Allocator
	name   string
	most   int
	refuse string // a format for the size and the largest one
}

func (a capped) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a capped) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}

func (a capped) check(size int) {
	if size > a.most {
		panic(graph.BadData(a.name, a.refuse, mem.Bytes(size), mem.Bytes(a.most)))
	}
}

// Recover turns a panic of the Parquet or Arrow library, which it has for damaged
// files, into an error.
func Recover(name string, err *error) {
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

// Chunk is what the file says of a column in a row group.
func (f *Parquet) Chunk(group, column int) (chunk *metadata.ColumnChunkMetaData, err error) {
	defer Recover(f.Name, &err)
	if chunk, err = f.Reader.RowGroup(group).MetaData().ColumnChunk(column); err != nil {
		err = graph.Damaged(f.Name, fmt.Errorf("%w: it is damaged, write it again", err))
	}
	return chunk, err
}

// Check refuses compressions and encodings that the library cannot read, or reads
// wrongly.
func (f *Parquet) Check(column int) error {
	for g := range f.Reader.NumRowGroups() {
		chunk, err := f.Chunk(g, column)
		if err != nil {
			return err
		}
		if codec := chunk.Compression(); !slices.Contains(codecs, codec) {
			return graph.BadData(f.Name, "column %q is compressed as %s, which is not read: write the file with zstd or snappy (in pyarrow, compression='zstd')",
				f.Column(column).Name(), codec)
		}
		for _, e := range chunk.Encodings() {
			if strings.HasPrefix(e.String(), "DELTA") {
				return graph.BadData(f.Name, "column %q is encoded as %s, which is not read: write the file with plain or dictionary encoding (the default in pyarrow, DuckDB and Spark)",
					f.Column(column).Name(), e)
			}
		}
	}
	return nil
}

// codecs are the compressions that the library reads.
var codecs = []compress.Compression{
	compress.Codecs.Uncompressed, compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Brotli, compress.Codecs.Zstd,
}

// Column is what the schema says of a column.
func (f *Parquet) Column(i int) *schema.Column { return f.Reader.MetaData().Schema.Column(i) }

// TypeName names the type of a column as users of tables do.
func (f *Parquet) TypeName(i int) string {
	c := f.Column(i)
	switch {
	case c.MaxRepetitionLevel() > 0:
		return "lists"
	case c.ConvertedType() == schema.ConvertedTypes.UTF8:
		return "text"
	}
	return c.PhysicalType().String()
}

// Integers finds the flat integer columns.
func (f *Parquet) Integers() (found []int, names []string) {
	for i := range f.Reader.MetaData().Schema.NumColumns() {
		c := f.Column(i)
		names = append(names, c.Path())
		isInteger := c.PhysicalType() == parquet.Types.Int32 || c.PhysicalType() == parquet.Types.Int64
		if isInteger && c.MaxRepetitionLevel() == 0 {
			found = append(found, i)
		}
	}
	return found, names
}
