package shards

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"ndls/catalog"
	"ndls/internal/inputid"
	"ndls/internal/seal"
	"ndls/internal/share"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/internal/storage"
)

// tableGroupRows is the number of rows in a row group of a table. Its compressed pages are in memory until it is complete.
const tableGroupRows = 1 << 18

// NodeBatch is a part of the node table; all slices have the same length.
type NodeBatch struct {
	// ID is the input id, or its number if the table has a separate column for input ids.
	ID                []int64
	Degree, Component []uint32
	Label             []int32 // -1 none
	Split             []uint8 // index into the spellings "", train, valid, test
	// Key is the key of the input id if ID is its number. [ReadNodes] leaves it empty.
	Key [][]byte
	// Strength is the sum of the weights of the node's edges. It is empty in a graph without weights.
	Strength []float64
	// OutDegree counts those of the node's edges in Degree that begin at the node. It is empty in a graph without directions.
	OutDegree []uint32
}

// nodeColumns returns the columns of a node table with ids of a type.
func nodeColumns(t inputid.Type) []column {
	columns := append([]column{uint32Column("node")}, idColumns(t)...)
	return append(columns, uint32Column("degree"), uint32Column("component"), int32Column("label"), stringColumn("split"))
}

// keyWeights is the metadata key for the type of the weights, in files of a graph with weights.
const keyWeights = "ndls.weights"

// keyDirections is a metadata key of the node table of a graph with directions. Its value is "edges".
const keyDirections = "ndls.directions"

// nodeColumnsBy returns the columns of a node table with this metadata. A graph with weights has one more column, the last; so does a graph
// with directions.
func nodeColumnsBy(t inputid.Type, meta func(key string) string) []column {
	columns := nodeColumns(t)
	if meta(keyWeights) != "" {
		columns = append(columns, strengthColumn)
	}
	if meta(keyDirections) != "" {
		columns = append(columns, uint32Column("out_degree"))
	}
	return columns
}

var strengthColumn = column{"strength", parquet.Types.Double, schema.NoLogicalType{}}

var splitNames = []parquet.ByteArray{[]byte(""), []byte("train"), []byte("valid"), []byte("test")}

// nodeColumnsOf returns the columns and the metadata of a node table with an additional column, unless more is 0.
func nodeColumnsOf(ids IDs, more NodeColumns) (columns []column, pairs []string) {
	columns, pairs = nodeColumns(ids.Type), ids.pairs()
	switch more {
	case NodeStrength:
		columns, pairs = append(columns, strengthColumn), append(pairs, keyWeights, weightsType)
	case NodeOutDegree:
		columns, pairs = append(columns, uint32Column("out_degree")), append(pairs, keyDirections, "edges")
	}
	return columns, pairs
}

// WriteNodes writes the table of the nodes [lo, hi) with these ids, or a part of it ([JoinNodes]), on threads, each of which encodes
// another column. It calls fill for batches of at most 65,536 rows in order; first is the node of row 0 of the batch. fill sets Key if
// the ids have a column of their own. more is an additional column, which fill also sets: NodeStrength in a graph with weights,
// NodeOutDegree in a graph with directions, or 0.
func WriteNodes(w io.Writer, lo, hi int64, ids IDs, more NodeColumns, threads int, fill func(first int64, b NodeBatch) error) error {
	if lo < 0 || hi < lo || hi > 1<<32 {
		return fmt.Errorf("shards: node table of the rows %d to %d", lo, hi)
	}
	size := int(min(hi-lo, batchRows))
	all := newNodeBatch(size)
	node, split := make([]uint32, size), make([]parquet.ByteArray, size)
	if ids.Type != inputid.Number {
		all.Key = make([][]byte, size)
	}
	columns, pairs := nodeColumnsOf(ids, more)
	switch more {
	case NodeStrength:
		all.Strength = make([]float64, size)
	case NodeOutDegree:
		all.OutDegree = make([]uint32, size)
	}
	return writeTable(w, catalog.KindNodes, columns, pairs, ids.GroupRows(), lo, hi,
		func(p *parquetWriter, cols []file.ColumnChunkWriter, first int64, rows int) error {
			b := all.slice(0, rows)
			if err := fill(first, b); err != nil {
				return err
			}
			for i := range rows {
				node[i] = uint32(first + int64(i))
				if int(b.Split[i]) >= len(splitNames) {
					return fmt.Errorf("shards: node %d: split %d is unknown", node[i], b.Split[i])
				}
				split[i] = splitNames[b.Split[i]]
			}
			rest := cols[1+len(idColumns(ids.Type)):]
			columns := []func() error{
				func() error { return writeIDs(p, cols[1:], ids.Type, b.Key, b.ID) }, // takes longest
				func() error { return writeColumn(p, cols[0], asInt32(node[:rows])) },
				func() error { return writeColumn(p, rest[0], asInt32(b.Degree)) },
				func() error { return writeColumn(p, rest[1], asInt32(b.Component)) },
				func() error { return writeColumn(p, rest[2], b.Label) },
				func() error { return writeColumn(p, rest[3], split[:rows]) },
			}
			switch more {
			case NodeStrength:
				columns = append(columns, func() error { return writeColumn(p, rest[4], b.Strength) })
			case NodeOutDegree:
				columns = append(columns, func() error { return writeColumn(p, rest[4], asInt32(b.OutDegree)) })
			}
			return share.Each(threads, len(columns), func(i int) error { return columns[i]() })
		})
}

// NodeColumns is a set of columns of a node table.
type NodeColumns uint8

// The columns of a [NodeBatch].
const (
	NodeID NodeColumns = 1 << iota
	NodeDegree
	NodeComponent
	NodeLabel
	NodeSplit
	NodeStrength  // in a graph with weights
	NodeOutDegree // in a graph with directions

	AllNodeColumns = NodeID | NodeDegree | NodeComponent | NodeLabel | NodeSplit | NodeStrength | NodeOutDegree
)

// ReadNodes calls visit for batches of at most 65,536 rows of a node table, in order, one at a time. The batch's slices are valid during
// the call.
func ReadNodes(r storage.Reader, name string, by Readers, visit func(first int64, b NodeBatch) error) error {
	return ReadNodePart(r, name, 0, AllNodeColumns, by, visit)
}

// nodeRow returns the memory of a row in a batch of some columns.
func nodeRow(want NodeColumns) (bytes int64) {
	for i, size := range []int64{8, 4, 4, 4, 1, 8, 4} {
		if want>>i&1 != 0 {
			bytes += size
		}
	}
	return bytes
}

// ReadNodePart is [ReadNodes] for some columns of the part of the nodes from lo on: the other columns are not decoded, and are empty in
// batches.
func ReadNodePart(r storage.Reader, name string, lo int64, want NodeColumns, by Readers, visit func(first int64, b NodeBatch) error) error {
	p, ids, err := openIDTable(r, name, catalog.KindNodes, nodeColumnsBy)
	if err != nil {
		return err
	}
	if p.meta(keyWeights) == "" {
		want &^= NodeStrength
	}
	if p.meta(keyDirections) == "" {
		want &^= NodeOutDegree
	}
	return eachGroup(p, by, table[NodeBatch]{
		rowBytes: nodeRow(want),
		batch:    func(s *slot, rows int) (NodeBatch, error) { return slotNodes(s, want, rows) },
		decode: func(s *slot, group *file.RowGroupReader, first int64, b NodeBatch) error {
			return decodeNodes(s, group, len(idColumns(ids.Type)), lo+first, want, b)
		},
		part: NodeBatch.slice,
	}, func(first int64, b NodeBatch) error { return visit(lo+first, b) })
}

// slotNodes allocates some columns of this number of rows.
func slotNodes(s *slot, want NodeColumns, rows int) (b NodeBatch, err error) {
	err = firstError(
		func() error { return slotColumn(s, want&NodeID, rows, &b.ID) },
		func() error { return slotColumn(s, want&NodeDegree, rows, &b.Degree) },
		func() error { return slotColumn(s, want&NodeComponent, rows, &b.Component) },
		func() error { return slotColumn(s, want&NodeLabel, rows, &b.Label) },
		func() error { return slotColumn(s, want&NodeSplit, rows, &b.Split) },
		func() error { return slotColumn(s, want&NodeStrength, rows, &b.Strength) },
		func() error { return slotColumn(s, want&NodeOutDegree, rows, &b.OutDegree) },
	)
	return b, err
}

// slotColumn allocates a column, if it is wanted.
func slotColumn[T any](s *slot, want NodeColumns, rows int, to *[]T) (err error) {
	if want != 0 {
		*to, err = slotArray[T](s, rows)
	}
	return err
}

// decodeNodes decodes some columns of a row group of nodes from first on; number is the column of the ids, or of their numbers.
func decodeNodes(s *slot, group *file.RowGroupReader, number int, first int64, want NodeColumns, b NodeBatch) error {
	reads := []func() error{func() error { return checkNodes(s, group, first, group.NumRows()) }}
	for _, c := range []struct {
		column NodeColumns
		read   func() error
	}{
		{NodeID, func() error { return decodeColumn(s, group, number, b.ID) }},
		{NodeDegree, func() error { return decodeColumn(s, group, number+1, asInt32(b.Degree)) }},
		{NodeComponent, func() error { return decodeColumn(s, group, number+2, asInt32(b.Component)) }},
		{NodeLabel, func() error { return decodeColumn(s, group, number+3, b.Label) }},
		{NodeSplit, func() error { return decodeSplits(s, group, number+4, b.Split) }},
		{NodeStrength, func() error { return decodeStrengths(s, group, number+5, first, b.Strength) }},
		{NodeOutDegree, func() error { return decodeColumn(s, group, group.NumColumns()-1, asInt32(b.OutDegree)) }},
	} {
		if want&c.column != 0 {
			reads = append(reads, c.read)
		}
	}
	return share.Each(s.threads, len(reads), func(i int) error { return reads[i]() })
}

// checkedRows is the number of rows of the column of nodes that are compared at a time.
const checkedRows = 1 << 14

// checkNodes checks that a row group holds the nodes first, first+1, … of this number of rows.
func checkNodes(s *slot, group *file.RowGroupReader, first, rows int64) (err error) {
	defer s.recovered(&err)
	c, err := s.columnOf(group, 0)
	if err != nil {
		return err
	}
	node := make([]uint32, min(rows, checkedRows))
	for end := first + rows; first < end; first += int64(len(node)) {
		node = node[:min(end-first, checkedRows)]
		if err := readColumn(s.parquetReader, c, asInt32(node)); err != nil {
			return err
		}
		for i, got := range node {
			if int64(got) != first+int64(i) {
				return seal.Corrupt(s.name, "row %d is about node %d", first+int64(i), got)
			}
		}
	}
	return nil
}

// decodeStrengths fills strengths of nodes first, first+1, … from a column.
func decodeStrengths(s *slot, group *file.RowGroupReader, column int, first int64, strengths []float64) error {
	if err := decodeColumn(s, group, column, strengths); err != nil {
		return err
	}
	for i, x := range strengths {
		if !(x >= 0 && x <= math.MaxFloat32) {
			return seal.Corrupt(s.name, "row %d has strength %v", first+int64(i), x)
		}
	}
	return nil
}

// decodeSplits fills splits from a column. It decodes the pages itself, because the library makes a slice for each value.
func decodeSplits(s *slot, group *file.RowGroupReader, column int, to []uint8) (err error) {
	defer s.recovered(&err)
	pages, err := group.GetColumnPageReader(column)
	if err != nil {
		return seal.Corrupt(s.name, "column split: %v", err)
	}
	for len(to) > 0 {
		if !pages.Next() {
			return seal.Corrupt(s.name, "column split: %d values are missing: %v", len(to), pages.Err())
		}
		page, ok := pages.Page().(*file.DataPageV1)
		if !ok || parquet.Encoding(page.Encoding()) != parquet.Encodings.Plain || int(page.NumValues()) > len(to) {
			return seal.Corrupt(s.name, "column split has a page of another kind")
		}
		n := int(page.NumValues())
		if err := splitsOf(page.Data(), to[:n]); err != nil {
			return seal.Corrupt(s.name, "%v", err)
		}
		to = to[n:]
	}
	return nil
}

// splitsOf fills splits from the bytes of a page: for each value its length, uint32, and its text.
func splitsOf(page []byte, to []uint8) error {
	for i := range to {
		if len(page) < 4 {
			return fmt.Errorf("column split: a page ends early")
		}
		size := binary.LittleEndian.Uint32(page)
		if page = page[4:]; uint64(len(page)) < uint64(size) {
			return fmt.Errorf("column split: a page ends early")
		}
		split := slices.IndexFunc(splitNames, func(name parquet.ByteArray) bool { return string(name) == string(page[:size]) })
		if split < 0 {
			return fmt.Errorf("split %q is unknown", page[:size])
		}
		to[i], page = uint8(split), page[size:]
	}
	return nil
}

func newNodeBatch(n int) NodeBatch {
	return NodeBatch{make([]int64, n), make([]uint32, n), make([]uint32, n), make([]int32, n), make([]uint8, n), nil, nil, nil}
}

// slice returns rows [from, to) of a batch; empty columns stay empty.
func (b NodeBatch) slice(from, to int) NodeBatch {
	return NodeBatch{
		rowsOf(b.ID, from, to), rowsOf(b.Degree, from, to), rowsOf(b.Component, from, to), rowsOf(b.Label, from, to), rowsOf(b.Split, from, to),
		rowsOf(b.Key, from, to), rowsOf(b.Strength, from, to), rowsOf(b.OutDegree, from, to),
	}
}

func rowsOf[T any](column []T, from, to int) []T {
	if len(column) == 0 {
		return column
	}
	return column[from:to]
}

// LSIBatch is a part of a K table; all slices have the same length.
type LSIBatch struct {
	ID     []int64 // as in NodeBatch
	K      []int32
	Capped []bool // Kmax was reached first
}

// lsiColumns returns the columns of a K table with ids of a type.
func lsiColumns(t inputid.Type) []column {
	return append(idColumns(t), int32Column("k"), boolColumn("capped"))
}

// WriteLSI writes a K table of n rows, like [WriteNodes]. If ids have a column of their own, names finds them by their numbers; otherwise
// names is nil.
func WriteLSI(w io.Writer, n int64, names *IDReader, threads int, fill func(first int64, b LSIBatch) error) error {
	all := newLSIBatch(int(min(max(n, 0), batchRows)))
	ids := names.IDs()
	return writeTable(w, catalog.KindLSI, lsiColumns(ids.Type), ids.pairs(), ids.GroupRows(), 0, n,
		func(p *parquetWriter, cols []file.ColumnChunkWriter, first int64, rows int) error {
			b := all.slice(0, rows)
			if err := fill(first, b); err != nil {
				return err
			}
			keys, err := names.Keys(b.ID)
			if err != nil {
				return err
			}
			rest := cols[len(idColumns(ids.Type)):]
			columns := []func() error{
				func() error { return writeIDs(p, cols, ids.Type, keys, b.ID) }, // takes longest
				func() error { return writeColumn(p, rest[0], b.K) },
				func() error { return writeColumn(p, rest[1], b.Capped) },
			}
			return share.Each(threads, len(columns), func(i int) error { return columns[i]() })
		})
}

// ReadLSI reads a K table, like [ReadNodes].
func ReadLSI(r storage.Reader, name string, by Readers, visit func(first int64, b LSIBatch) error) error {
	p, ids, err := openIDTable(r, name, catalog.KindLSI, whateverMeta(lsiColumns))
	if err != nil {
		return err
	}
	number := len(idColumns(ids.Type)) - 1
	return eachGroup(p, by, table[LSIBatch]{
		rowBytes: lsiRow,
		batch: func(s *slot, rows int) (b LSIBatch, err error) {
			err = firstError(
				func() (err error) { b.ID, err = slotArray[int64](s, rows); return err },
				func() (err error) { b.K, err = slotArray[int32](s, rows); return err },
				func() (err error) { b.Capped, err = slotArray[bool](s, rows); return err },
			)
			return b, err
		},
		decode: func(s *slot, group *file.RowGroupReader, _ int64, b LSIBatch) error {
			columns := []func() error{
				func() error { return decodeColumn(s, group, number, b.ID) },
				func() error { return decodeColumn(s, group, number+1, b.K) },
				func() error { return decodeColumn(s, group, number+2, b.Capped) },
			}
			return share.Each(s.threads, len(columns), func(i int) error { return columns[i]() })
		},
		part: LSIBatch.slice,
	}, visit)
}

// lsiRow is the memory of a row of a K table in a batch.
const lsiRow = 8 + 4 + 1

func newLSIBatch(n int) LSIBatch {
	return LSIBatch{make([]int64, n), make([]int32, n), make([]bool, n)}
}

// slice returns rows [from, to) of a batch.
func (b LSIBatch) slice(from, to int) LSIBatch {
	return LSIBatch{b.ID[from:to], b.K[from:to], b.Capped[from:to]}
}

// writeTable writes the rows [lo, hi) of nodes, step rows per row group, with metadata pairs of keys and values. put writes rows to every
// column.
func writeTable(w io.Writer, format string, columns []column, pairs []string, step, lo, hi int64,
	put func(p *parquetWriter, cols []file.ColumnChunkWriter, first int64, rows int) error,
) (err error) {
	p, err := newParquetWriter(w, format, columns, pairs, writerProperties())
	if err != nil {
		return err
	}
	defer p.recovered(&err)
	for first := lo; first < hi; first += step {
		if err := writeGroup(p, first, min(hi, first+step), put); err != nil {
			return err
		}
	}
	return p.close()
}

// writeGroup writes the row group of rows [first, end).
func writeGroup(p *parquetWriter, first, end int64,
	put func(p *parquetWriter, cols []file.ColumnChunkWriter, first int64, rows int) error,
) error {
	group := p.file.AppendBufferedRowGroup()
	cols := make([]file.ColumnChunkWriter, group.NumColumns())
	for i := range cols {
		var err error
		if cols[i], err = group.Column(i); err != nil {
			return fmt.Errorf("shards: writing Parquet: %w", err)
		}
	}
	for at := first; at < end; at += batchRows {
		if err := put(p, cols, at, int(min(end-at, batchRows))); err != nil {
			return err
		}
	}
	return p.endGroup(group, int(end-first))
}

func firstError(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
