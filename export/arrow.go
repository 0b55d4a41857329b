package export

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"
	"github.com/apache/arrow/go/v14/arrow/memory"
)

// arrowTypes are the types of scalar columns.
var arrowTypes = []arrow.DataType{
	int64Kind: arrow.PrimitiveTypes.Int64, int32Kind: arrow.PrimitiveTypes.Int32, uint32Kind: arrow.PrimitiveTypes.Uint32,
	boolKind: arrow.FixedWidthTypes.Boolean, splitKind: arrow.BinaryTypes.String, classKind: arrow.BinaryTypes.String,
	float32Kind: arrow.PrimitiveTypes.Float32,
	int64IDKind: arrow.PrimitiveTypes.Int64, uint64IDKind: arrow.PrimitiveTypes.Uint64, textIDKind: arrow.BinaryTypes.String,
}

func arrowSchema(columns []column) *arrow.Schema {
	var fields []arrow.Field
	for _, c := range columns {
		t := arrowTypes[c.kind]
		if c.list > 0 {
			t = arrow.FixedSizeListOfNonNullable(int32(c.list), t)
		}
		fields = append(fields, arrow.Field{Name: c.name, Type: t})
	}
	return arrow.NewSchema(fields, nil)
}

// arrowWriter writes a record batch a batch.
type arrowWriter struct {
	columns []column
	names   *names
	schema  *arrow.Schema
	file    *ipc.FileWriter
}

func newArrow(out io.Writer, columns []column, names *names) (*arrowWriter, error) {
	schema := arrowSchema(columns)
	// The file writer asks for positions; it only ever writes on.
	file, err := ipc.NewFileWriter(&positioned{w: out}, ipc.WithSchema(schema))
	return &arrowWriter{columns, names, schema, file}, err
}

func (w *arrowWriter) write(cols [][]byte, _ int) error {
	rec, err := record(w.schema, w.columns, cols, w.names)
	if err != nil {
		return err
	}
	defer rec.Release()
	return w.file.Write(rec)
}

func (w *arrowWriter) close() error { return w.file.Close() }

// columnData wraps a column's bytes, without copying numbers.
func columnData(c column, t arrow.DataType, values []byte, n int, names *names) *array.Data {
	buffers := []*memory.Buffer{nil}
	wrap := func(b []byte) { buffers = append(buffers, memory.NewBufferBytes(b)) }
	switch {
	case c.list > 0:
		child := array.NewData(arrowTypes[c.kind], n*c.list, []*memory.Buffer{nil, memory.NewBufferBytes(values)}, nil, 0, 0)
		defer child.Release()
		return array.NewData(t, n, buffers, []arrow.ArrayData{child}, 0, 0)
	case c.kind == boolKind:
		wrap(bits(values))
	case c.isText():
		offsets, text := names.texts(c, values)
		wrap(offsets)
		wrap(text)
	default:
		wrap(values)
	}
	return array.NewData(t, n, buffers, nil, 0, 0)
}

// positioned is a writer that counts what it has written.
type positioned struct {
	w   io.Writer
	pos int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.pos += int64(n)
	return n, err
}

// Seek tells the position and goes nowhere.
func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("seek in a file that is written front to back")
	}
	return p.pos, nil
}
