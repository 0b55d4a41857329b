package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"

	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/schema"
	"github.com/xitongsys/parquet-go/source"
	"github.com/xitongsys/parquet-go/writer"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// The version of the catalogue has a key of its own, because its rows have another format than tables.
const (
	catalogVersionKey = "ndls.catalog.version"
	catalogVersion    = "3"
	// catalogNumberKey holds the number of the last change that the file includes.
	catalogNumberKey = "ndls.catalog.number"
)

// maxCatalogBytes bounds the size of a file that is read into memory: some million entries.
const maxCatalogBytes = 256 << 20

// entrySchema is the schema of an Entry. Making it takes parquet-go some milliseconds, and a catalogue is written after each stage.
var entrySchema = sync.OnceValues(func() (*schema.SchemaHandler, error) { return schema.NewSchemaHandlerFromStruct(new(Entry)) })

// newEntrySchema returns the schema for a writer, which renames its elements.
func newEntrySchema() (*schema.SchemaHandler, error) {
	made, err := entrySchema()
	if err != nil {
		return nil, err
	}
	own := *made
	own.SchemaElements = make([]*parquet.SchemaElement, len(made.SchemaElements))
	for i, e := range made.SchemaElements {
		element := *e
		own.SchemaElements[i] = &element
	}
	return &own, nil
}

// encodeCatalog returns the list after a change as a sealed Parquet file.
func encodeCatalog(rows []Entry, number uint64) ([]byte, error) {
	var out bytes.Buffer
	sink := seal.NewWriter(&out)
	sink.Hold()
	w, err := writer.NewParquetWriterFromWriter(sink, nil, 1)
	if err == nil {
		w.SchemaHandler, err = newEntrySchema()
	}
	if err != nil {
		return nil, fmt.Errorf("encode catalogue: %w", err)
	}
	w.Footer.Schema = w.SchemaHandler.SchemaElements
	w.CompressionType = parquet.CompressionCodec_UNCOMPRESSED
	version, last := catalogVersion, strconv.FormatUint(number, 10)
	w.Footer.KeyValueMetadata = []*parquet.KeyValue{{Key: catalogVersionKey, Value: &version}, {Key: catalogNumberKey, Value: &last}}
	for _, row := range rows {
		if err := w.Write(row); err != nil {
			return nil, fmt.Errorf("encode catalogue entry %s: %w", row.Path, err)
		}
	}
	if err := w.WriteStop(); err != nil {
		return nil, fmt.Errorf("encode catalogue: %w", err)
	}
	if err := sink.Finish(seal.Parquet, nil); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// readSnapshot reads a catalogue file: its entries, and the number of the last change that it includes.
func readSnapshot(ctx context.Context, store storage.Store, name string) ([]Entry, uint64, error) {
	r, err := store.Open(ctx, name)
	if err != nil {
		return nil, 0, fmt.Errorf("open catalogue: %w", err)
	}
	defer r.Close()
	return readCatalog(r, name)
}

// readCatalog checks the seal before it decodes.
func readCatalog(r storage.Reader, name string) ([]Entry, uint64, error) {
	marks, err := seal.ReadMarks(r, name, seal.Parquet)
	if err != nil {
		return nil, 0, err
	}
	if r.Size() > maxCatalogBytes || len(marks) != 1 {
		return nil, 0, damagedLog(name, "it is not a catalogue")
	}
	data := make([]byte, r.Size())
	if err := seal.ReadFull(r, name, data, 0); err != nil {
		return nil, 0, err
	}
	if crc32.Checksum(data[:marks[0].End], seal.Castagnoli) != marks[0].Sum {
		return nil, 0, damagedLog(name, "its rows are damaged")
	}
	return decodeCatalog(data, name)
}

func decodeCatalog(data []byte, name string) (rows []Entry, number uint64, err error) {
	defer func() {
		if x := recover(); x != nil {
			rows, err = nil, damagedLog(name, "decoding: %v", x)
		}
	}()
	file := &parquetBytes{Reader: bytes.NewReader(data), data: data}
	head := reader.ParquetReader{PFile: file}
	if err := head.ReadFooter(); err != nil {
		return nil, 0, damagedLog(name, "%v", err)
	}
	if got := metadata(head.Footer, catalogVersionKey); got != catalogVersion { // it may have other columns
		return nil, 0, fmt.Errorf("%s: version %q, this program reads %q: %w: use the program that wrote it, or another run directory",
			name, got, catalogVersion, seal.ErrVersion)
	}
	in, err := reader.NewParquetReader(file, new(Entry), 1)
	if err != nil {
		return nil, 0, damagedLog(name, "%v", err)
	}
	defer in.ReadStop()
	if number, err = strconv.ParseUint(metadata(in.Footer, catalogNumberKey), 10, 64); err != nil {
		return nil, 0, damagedLog(name, "it has no number")
	}
	rows = make([]Entry, in.GetNumRows())
	want := len(rows)
	if err := in.Read(&rows); err != nil {
		return nil, 0, damagedLog(name, "%v", err)
	}
	if len(rows) != want {
		return nil, 0, damagedLog(name, "it has %d rows of %d", len(rows), want)
	}
	return rows, number, nil
}

// metadata returns the value of a key in the footer, or "".
func metadata(footer *parquet.FileMetaData, key string) string {
	for _, kv := range footer.KeyValueMetadata {
		if kv.Key == key && kv.Value != nil {
			return *kv.Value
		}
	}
	return ""
}

// parquetBytes is a file in memory for the Parquet library.
type parquetBytes struct {
	*bytes.Reader
	data []byte
}

func (p *parquetBytes) Open(string) (source.ParquetFile, error) {
	return &parquetBytes{bytes.NewReader(p.data), p.data}, nil
}

func (p *parquetBytes) Create(string) (source.ParquetFile, error) { return nil, errors.ErrUnsupported }

func (p *parquetBytes) Write([]byte) (int, error) { return 0, errors.ErrUnsupported }
func (p *parquetBytes) Close() error              { return nil }
