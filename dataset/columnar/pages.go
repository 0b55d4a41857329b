package columnar

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// levelPages hands on the pages of a column whose levels are complete. The Parquet
// library repeats for ever where a damaged page has fewer levels than values.
type levelPages struct {
	file.PageReader
	repetition, definition int16 // the largest levels of the column
	err                    error
}

// dictionaryHeader is what writers of 2013 left out of the length of a column.
const dictionaryHeader = 100

// OpenChunk reads the pages of a column in a row group. The library's own stream goes on
// with old bytes where a damaged file has fewer pages than it claims; this one ends.
func (f *Parquet) OpenChunk(group, column int) (file.ColumnChunkReader, error) {
	chunk, err := f.Chunk(group, column)
	if err != nil {
		return nil, err
	}
	if chunk.CryptoMetadata() != nil {
		return nil, graph.BadData(f.Name, "is encrypted: write it without encryption")
	}
	start, size := chunk.DataPageOffset(), chunk.TotalCompressedSize()
	if dictionary := chunk.DictionaryPageOffset(); chunk.HasDictionaryPage() && dictionary > 0 {
		start = min(start, dictionary)
	}
	if start < 0 || size < 0 || start > f.Source.End-f.Source.Off-size {
		return nil, graph.BadData(f.Name, "column %q is said to lie outside of the file: it is damaged, write it again", f.Column(column).Name())
	}
	bytes := io.NewSectionReader(f.Source.File, f.Source.Off+start, min(size+dictionaryHeader, f.Source.End-f.Source.Off-start))
	pages, err := file.NewPageReader(bufio.NewReaderSize(bytes, source.BufferSize), chunk.NumValues(), chunk.Compression(), f.memory, nil)
	if err != nil {
		return nil, graph.Damaged(f.Name, err)
	}
	pages.SetMaxPageHeaderSize(source.BufferSize)
	descr := f.Column(column)
	checked := &levelPages{pages, descr.MaxRepetitionLevel(), descr.MaxDefinitionLevel(), nil}
	return file.NewColumnReader(descr, checked, f.memory, f.Reader.BufferPool()), nil
}

// Next implements file.PageReader.
func (p *levelPages) Next() bool {
	if p.err != nil || !p.PageReader.Next() {
		return false
	}
	p.err = p.check(p.Page())
	return p.err == nil
}

// Err implements file.PageReader.
func (p *levelPages) Err() error {
	if p.err != nil {
		return p.err
	}
	return p.PageReader.Err()
}

func (p *levelPages) check(page file.Page) error {
	values := int64(page.NumValues())
	if values < 0 {
		return fmt.Errorf("a page claims %d values", values)
	}
	data := page.Data()
	var err error
	switch page := page.(type) {
	case *file.DataPageV1:
		if data, err = levelsV1(data, page.RepetitionLevelEncoding(), p.repetition, values); err == nil {
			_, err = levelsV1(data, page.DefinitionLevelEncoding(), p.definition, values)
		}
	case *file.DataPageV2:
		repetition, definition := int64(page.RepetitionLevelByteLen()), int64(page.DefinitionLevelByteLen())
		if repetition < 0 || definition < 0 || repetition+definition > int64(len(data)) {
			return errLevels
		}
		if err = enoughLevels(data[:repetition], p.repetition, values); err == nil {
			err = enoughLevels(data[repetition:repetition+definition], p.definition, values)
		}
	}
	return err
}

var errLevels = errors.New("a page has fewer levels than values")

// levelsV1 checks the levels at the front of a page of the first version, and returns
// what follows them.
func levelsV1(data []byte, encoding parquet.Encoding, largest int16, values int64) (rest []byte, err error) {
	if largest == 0 {
		return data, nil
	}
	if encoding == parquet.Encodings.BitPacked {
		size := (values*int64(bits.Len16(uint16(largest))) + 7) / 8
		if size > int64(len(data)) {
			return nil, errLevels
		}
		return data[size:], nil
	}
	if len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4) {
		return nil, errLevels
	}
	size := 4 + int(binary.LittleEndian.Uint32(data))
	return data[size:], enoughLevels(data[4:size], largest, values)
}

// enoughLevels counts levels in the hybrid of run lengths and bit packing.
func enoughLevels(data []byte, largest int16, values int64) error {
	width := int64(bits.Len16(uint16(largest)))
	for n := int64(0); width > 0 && n < values; {
		header, size := binary.Uvarint(data)
		if size <= 0 || header > 1<<32 {
			return errLevels
		}
		data = data[size:]
		count, stored := int64(header>>1), (width+7)/8
		if header&1 == 1 { // groups of eight levels
			stored = min(count*width, int64(len(data)))
			count = stored * 8 / width
		}
		if stored > int64(len(data)) {
			return errLevels
		}
		data, n = data[stored:], n+count
	}
	return nil
}
