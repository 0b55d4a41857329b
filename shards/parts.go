package shards

import (
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/metadata"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/catalog"
	"ndls/internal/ahead"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// A part of a node table is a table of the nodes [lo, hi), where lo is a multiple of [IDs.GroupRows], and so is hi unless it is the number
// of nodes. Several workers write parts, and [JoinNodes] makes the table that one writer would have written: it copies the pages and
// rewrites only their offsets.

// A NodePart is a part of a node table that is open for reading.
type NodePart struct {
	Name   string
	Reader storage.Reader
}

// JoinNodes writes the node table from the parts that next returns, in order of their nodes, and returns the number of rows. next returns
// [io.EOF] after the last part. A part is read until the next call of next, or until JoinNodes returns. All parts must have the same ids
// and more. With several threads, row groups are read and checked while those before them are written, and another goroutine calls next.
func JoinNodes(w io.Writer, ids IDs, more NodeColumns, threads int, next func() (NodePart, error)) (rows int64, err error) {
	columns, pairs := nodeColumnsOf(ids, more)
	j, err := newJoiner(w, catalog.KindNodes, columns, pairs)
	if err != nil {
		return 0, err
	}
	var part *parquetReader // part being read
	at := 0                 // its next row group
	groups := ahead.New(threads, make([]partGroup, 3), func(g *partGroup) (err error) {
		for part == nil || at == len(part.marks) {
			if part, err = openPart(next, columns); err != nil {
				return err
			}
			at = 0
		}
		g.part, g.number, g.bytes = part, at, part.groupIn(g.bytes, at)
		at++
		return part.readGroup(g.bytes, g.number)
	}, func(g *partGroup) error { return g.part.checkGroup(g.bytes, g.number) })
	defer groups.Close()
	for {
		g, err := groups.Next()
		if err == io.EOF {
			return j.rows, j.close()
		}
		if err == nil {
			err = j.add(g)
		}
		if err != nil {
			return 0, err
		}
	}
}

// openPart opens the next part.
func openPart(next func() (NodePart, error), columns []column) (*parquetReader, error) {
	part, err := next()
	if err != nil {
		return nil, err
	}
	p, err := openSealed(part.Reader, part.Name)
	if err != nil {
		return nil, err
	}
	return p, p.checked(catalog.KindNodes, columns)
}

// partGroup is a row group of a part.
type partGroup struct {
	part   *parquetReader
	number int
	bytes  []byte
}

// joiner writes a table from row groups that are already encoded.
type joiner struct {
	sink   *seal.Writer
	footer *metadata.FileMetaDataBuilder
	groups int
	rows   int64
}

func newJoiner(w io.Writer, format string, columns []column, pairs []string) (*joiner, error) {
	root, err := parquetSchema(columns)
	if err != nil {
		return nil, err
	}
	kv, err := parquetPairs(format, pairs)
	if err != nil {
		return nil, err
	}
	j := &joiner{sink: seal.NewWriter(w), footer: metadata.NewFileMetadataBuilder(schema.NewSchema(root), writerProperties(), kv)}
	_, err = io.WriteString(j.sink, seal.Parquet)
	return j, err
}

// add copies a row group.
func (j *joiner) add(g *partGroup) (err error) {
	defer func() { recovered(j.sink, &err, recover()) }()
	from, to, total := g.part.file.MetaData().RowGroups[g.number], j.footer.AppendRowGroup(), int64(0)
	for c := range from.Columns {
		chunk := from.Columns[c].MetaData
		first, size := chunk.DataPageOffset-g.part.groupAt(g.number), chunk.TotalCompressedSize
		if first < 0 || size < 0 || first+size > int64(len(g.bytes)) || len(chunk.EncodingStats) != 1 {
			return seal.Corrupt(g.part.name, "row group %d has its pages of column %d elsewhere", g.number, c)
		}
		stats := chunk.EncodingStats[0]
		at := j.sink.Pos()
		if _, err := j.sink.Write(g.bytes[first : first+size]); err != nil {
			return err
		}
		col := to.NextColumnChunk()
		if err := col.Finish(metadata.ChunkMetaInfo{
			NumValues: chunk.NumValues, IndexPageOffset: -1, DataPageOffset: at,
			CompressedSize: size, UncompressedSize: chunk.TotalUncompressedSize,
		}, false, false, metadata.EncodingStats{
			DataEncodingStats: map[parquet.Encoding]int32{parquet.Encoding(stats.Encoding): stats.Count},
		}, nil); err != nil {
			return fmt.Errorf("shards: writing Parquet: %w", err)
		}
		if _, err := col.WriteTo(j.sink); err != nil {
			return fmt.Errorf("shards: writing Parquet: %w", err)
		}
		total += size
	}
	if j.groups > math.MaxInt16 {
		return fmt.Errorf("shards: a table of more than %d row groups", math.MaxInt16+1)
	}
	to.SetNumRows(int(from.NumRows))
	if err := to.Finish(total, int16(j.groups)); err != nil {
		return fmt.Errorf("shards: writing Parquet: %w", err)
	}
	j.sink.Mark(int(from.NumRows))
	j.groups++
	j.rows += from.NumRows
	return nil
}

// close writes the seal and the footer.
func (j *joiner) close() (err error) {
	defer func() { recovered(j.sink, &err, recover()) }()
	j.sink.Hold()
	return closeParquet(j.sink, j.footer)
}
