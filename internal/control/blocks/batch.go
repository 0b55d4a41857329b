package blocks

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/flight"
	"github.com/apache/arrow/go/v14/arrow/memory"

	"ndls/internal/seal"
)

// batchBytes is the largest number of bytes of rows in a batch. With its header a batch stays below
// 1 MiB, the largest buffers that gRPC keeps for reuse. Batches of 4 MiB were not faster, and would
// need four times the memory.
const batchBytes = 1<<20 - 4096

// columnName is the only column of a batch.
const columnName = "rows"

// schema returns the schema of the batches of a ticket: one list of values a row.
func (t Ticket) schema() *arrow.Schema {
	value := arrow.DataType(arrow.PrimitiveTypes.Float32)
	if t.Precision == "float16" {
		value = arrow.FixedWidthTypes.Float16
	}
	list := arrow.FixedSizeListOfNonNullable(int32(t.Columns), value)
	return arrow.NewSchema([]arrow.Field{{Name: columnName, Type: list}}, nil)
}

// schemaMessage returns the header of the first message of every answer to t.
func (t Ticket) schemaMessage() []byte {
	var first capture
	if err := newOutput(t, &first).writer.Close(); err != nil {
		panic(fmt.Sprintf("blocks: a schema goes to memory: %v", err))
	}
	return first.header
}

// capture is a stream that keeps the header of a message.
type capture struct{ header []byte }

func (c *capture) Send(d *flight.FlightData) error {
	c.header = bytes.Clone(d.DataHeader)
	return nil
}

// batchRows returns the number of rows of a full batch.
func (t Ticket) batchRows() int64 { return int64(max(1, batchBytes/t.RowBytes())) }

// record views the bytes of whole rows as a batch, without copying them.
func record(s *arrow.Schema, rows []byte, n int64) arrow.Record {
	list := s.Field(0).Type.(*arrow.FixedSizeListType)
	values := array.NewData(list.Elem(), int(n)*int(list.Len()),
		[]*memory.Buffer{nil, memory.NewBufferBytes(rows)}, nil, 0, 0)
	defer values.Release()
	lists := array.NewData(list, int(n), []*memory.Buffer{nil}, []arrow.ArrayData{values}, 0, 0)
	defer lists.Release()
	column := array.MakeFromData(lists)
	defer column.Release()
	return array.NewRecord(s, []arrow.Array{column}, n)
}

// padding returns the number of zeros after n bytes of rows, up to the multiple of 64 bytes that
// Arrow's header promises.
func padding(n int) int { return -n & 63 }

// The label of a batch, its metadata: the number of its first row, 8 bytes; the
// number of rows, 4; the CRC-32C of these 12 bytes and the rows, 4; little-endian.
const labelBytes = 16

func label(first, n int64, rows []byte) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, labelBytes), uint64(first))
	b = binary.LittleEndian.AppendUint32(b, uint32(n))
	return binary.LittleEndian.AppendUint32(b, checksum(b, rows))
}

func checksum(numbers, rows []byte) uint32 {
	return crc32.Update(crc32.Checksum(numbers, seal.Castagnoli), seal.Castagnoli, rows)
}

// check returns the rows in the body of a batch of ticket t, which must begin with row next, or
// ErrCorrupt.
func check(t Ticket, next int64, label, body []byte) ([]byte, error) {
	if len(label) != labelBytes {
		return nil, fmt.Errorf("a batch with %d bytes of metadata: %w", len(label), ErrCorrupt)
	}
	n := int64(binary.LittleEndian.Uint32(label[8:]))
	size := n * int64(t.RowBytes())
	if n < 1 || n > t.Row+t.Rows-next || int64(len(body)) != size+int64(padding(int(size))) {
		return nil, fmt.Errorf("a batch of %d rows with %d bytes at row %d: %w", n, len(body), next, ErrCorrupt)
	}
	rows, sum := body[:size], binary.LittleEndian.Uint32(label[12:])
	if got := checksum(label[:12], rows); got != sum {
		return nil, fmt.Errorf("rows from %d have checksum %08x, not %08x: %w", next, got, sum, ErrCorrupt)
	}
	if first := int64(binary.LittleEndian.Uint64(label)); first != next {
		return nil, fmt.Errorf("row %d came in place of %d: %w", first, next, ErrCorrupt)
	}
	return rows, nil
}
