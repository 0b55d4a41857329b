package catalog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"

	"github.com/xitongsys/parquet-go/parquet"
	"github.com/xitongsys/parquet-go/reader"
	"github.com/xitongsys/parquet-go/source"
	"github.com/xitongsys/parquet-go/writer"

	"ndls/internal/seal"
	"ndls/internal/storage"
)

// The catalogue's version has a key of its own: the rows are another format
// than those of the tables.
const (
	catalogVersionKey = "ndls.catalog.version"
	catalogVersion    = "1"
)

// maxCatalogBytes bounds what is read into memory: some million entries.
const maxCatalogBytes = 256 << 20

// writeCatalog replaces the catalogue of a store in one step.
func writeCatalog(ctx context.Context, store storage.Store, entries map[string]Entry) error {
	rows := make([]Entry, 0, len(entries))
	for _, e := range entries {
		rows = append(rows, e)
	}
	slices.SortFunc(rows, compareEntries)
	data, err := encodeCatalog(rows)
	if err != nil {
		return err
	}
	w, err := store.Create(ctx, Name)
	if err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	defer w.Abort()
	if _, err := w.Write(data); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	if _, err := w.Commit(ctx); err != nil {
		return fmt.Errorf("write catalogue: %w", err)
	}
	return nil
}

// encodeCatalog returns the rows as a sealed Parquet file.
func encodeCatalog(rows []Entry) ([]byte, error) {
	var out bytes.Buffer
	sink := seal.NewWriter(&out)
	sink.Hold()
	w, err := writer.NewParquetWriterFromWriter(sink, new(Entry), 1)
	if err != nil {
		return nil, fmt.Errorf("encode catalogue: %w", err)
	}
	w.CompressionType = parquet.CompressionCodec_UNCOMPRESSED
	version := catalogVersion
	w.Footer.KeyValueMetadata = []*parquet.KeyValue{{Key: catalogVersionKey, Value: &version}}
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

// readCatalog checks the seal, and only then decodes.
func readCatalog(r storage.Reader) ([]Entry, error) {
	marks, err := seal.ReadMarks(r, Name, seal.Parquet)
	if err != nil {
		return nil, err
	}
	if r.Size() > maxCatalogBytes || len(marks) != 1 {
		return nil, seal.Corrupt(Name, "it is no catalogue")
	}
	data := make([]byte, r.Size())
	if err := seal.ReadFull(r, Name, data, 0); err != nil {
		return nil, err
	}
	if crc32.Checksum(data[:marks[0].End], seal.Castagnoli) != marks[0].Sum {
		return nil, seal.Corrupt(Name, "its rows are damaged")
	}
	return decodeCatalog(data)
}

func decodeCatalog(data []byte) (rows []Entry, err error) {
	defer func() {
		if x := recover(); x != nil {
			rows, err = nil, seal.Corrupt(Name, "decoding: %v", x)
		}
	}()
	in, err := reader.NewParquetReader(&parquetBytes{Reader: bytes.NewReader(data), data: data}, new(Entry), 1)
	if err != nil {
		return nil, seal.Corrupt(Name, "%v", err)
	}
	defer in.ReadStop()
	if got := catalogVersionOf(in.Footer); got != catalogVersion {
		return nil, fmt.Errorf("%s: version %q, this program reads %q: %w: use the program that wrote it, or another run directory",
			Name, got, catalogVersion, seal.ErrVersion)
	}
	rows = make([]Entry, in.GetNumRows())
	if err := in.Read(&rows); err != nil {
		return nil, seal.Corrupt(Name, "%v", err)
	}
	return rows, nil
}

func catalogVersionOf(footer *parquet.FileMetaData) string {
	for _, kv := range footer.KeyValueMetadata {
		if kv.Key == catalogVersionKey && kv.Value != nil {
			return *kv.Value
		}
	}
	return ""
}

// parquetBytes is a file in memory as the Parquet library wants it.
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
