package table

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// arrowFile is an Arrow IPC file.
type arrowFile struct {
	src *source.Source
	mu  sync.Mutex // held while a record batch is read
	r   *ipc.FileReader
}

func openArrow(src *source.Source) (*arrowFile, error) {
	r, err := columnar.OpenArrow(src)
	if err != nil {
		return nil, err
	}
	return &arrowFile{src: src, r: r}, nil
}

func (a *arrowFile) titles() (titles []title) {
	for _, f := range a.r.Schema().Fields() {
		titles = append(titles, title{f.Name, arrowKind(f.Type)})
	}
	return titles
}

// arrowKind is what a column of an Arrow type holds.
func arrowKind(t arrow.DataType) kind {
	switch t.ID() {
	case arrow.NULL:
		return nullKind
	case arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.BOOL:
		return intKind
	case arrow.UINT64:
		return uintKind
	case arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
		return floatKind
	case arrow.STRING, arrow.LARGE_STRING, arrow.BINARY, arrow.LARGE_BINARY:
		return textKind
	case arrow.DICTIONARY:
		if arrowKind(t.(*arrow.DictionaryType).ValueType) == textKind {
			return textKind
		}
	case arrow.FIXED_SIZE_LIST, arrow.LIST, arrow.LARGE_LIST:
		if k := arrowKind(t.(arrow.ListLikeType).Elem()); k == intKind || k == uintKind || k == floatKind {
			return listKind
		}
	}
	return otherKind
}

// units is the number of record batches: a file that has none is one part without rows.
func (a *arrowFile) units() int { return max(a.r.NumRecords(), 1) }

func (a *arrowFile) rows() int64 {
	if a.r.NumRecords() == 0 {
		return 0
	}
	return -1
}

func (a *arrowFile) record(i int) (rec arrow.Record, err error) {
	defer columnar.Recover(a.src.Name, &err)
	a.mu.Lock()
	defer a.mu.Unlock()
	// RecordAt gives a record of its own to each caller; Record does not.
	if rec, err = a.r.RecordAt(i); err != nil {
		return nil, graph.BadData(a.src.Name, "record batch %d: %v: it is damaged, write it again", i, err)
	}
	return rec, nil
}

func (a *arrowFile) width(_ context.Context, f *tableFile, column int) (int, error) {
	if l, ok := a.r.Schema().Field(column).Type.(*arrow.FixedSizeListType); ok {
		return int(l.Len()), nil
	}
	for i := range a.r.NumRecords() {
		rec, err := a.record(i)
		if err != nil {
			return 0, err
		}
		if rec.NumRows() > 0 {
			start, end := rec.Column(column).(array.ListLike).ValueOffsets(0)
			rec.Release()
			return int(end - start), nil
		}
		rec.Release()
	}
	return 0, nil
}

func (a *arrowFile) open(_ context.Context, f *tableFile, unit int, w want) (cursor, error) {
	return &arrowCursor{a: a, f: f, unit: unit, columns: w.columns, widths: w.widths}, nil
}

// maxRecordRows is the most rows of a record batch.
const maxRecordRows = 1 << 23

// arrowCursor gives the rows of a record batch, all at once.
type arrowCursor struct {
	a               *arrowFile
	f               *tableFile
	unit            int
	columns, widths []int
	record          arrow.Record
}

func (r *arrowCursor) close() error {
	if r.record != nil {
		r.record.Release()
		r.record = nil
	}
	return nil
}

func (r *arrowCursor) next(b *batch) (err error) {
	if r.record != nil || r.unit >= r.a.r.NumRecords() {
		return io.EOF
	}
	b.first, b.part = 0, ""
	if r.a.r.NumRecords() > 1 {
		b.part = fmt.Sprintf(" record batch %d", r.unit)
	}
	if r.record, err = r.a.record(r.unit); err != nil {
		return err
	}
	if b.n, b.lines = int(r.record.NumRows()), nil; b.n == 0 {
		return io.EOF
	}
	if b.n > maxRecordRows { // a column of nulls takes no bytes, whatever length it claims
		return graph.BadData(r.f.name+b.part, "has %d rows: write record batches of at most %d", b.n, maxRecordRows)
	}
	defer columnar.Recover(r.f.name, &err)
	for i, c := range r.columns {
		if err := fillArrow(b, &b.cols[i], r.record.Column(c), r.widths[i], r.record.ColumnName(c)); err != nil {
			return err
		}
	}
	return nil
}

// fillArrow takes the values of an array.
func fillArrow(b *batch, v *vector, a arrow.Array, width int, name string) error {
	v.kind, v.null, v.width = arrowKind(a.DataType()), v.null[:0], width
	for i := 0; a.NullN() > 0 && i < a.Len(); i++ {
		v.null = append(v.null, a.IsNull(i))
	}
	if a.NullN() == 0 {
		v.null = nil
	}
	switch v.kind {
	case nullKind:
		v.list = append(v.list[:0], make([]float32, a.Len()*width)...)
	case listKind:
		return fillArrowList(b, v, a, name)
	case textKind:
		v.text = v.text[:0]
		for i := range a.Len() {
			v.text = append(v.text, arrowText(a, i))
		}
	case floatKind:
		v.floats = v.floats[:0]
		for i := range a.Len() {
			v.floats = append(v.floats, arrowFloat(a, i))
		}
	default:
		v.ints = v.ints[:0]
		for i := range a.Len() {
			v.ints = append(v.ints, arrowInt(a, i))
		}
	}
	return nil
}

func fillArrowList(b *batch, v *vector, a arrow.Array, name string) error {
	l := a.(array.ListLike)
	values := l.ListValues()
	v.list = v.list[:0]
	for i := range a.Len() {
		if a.IsNull(i) {
			v.list = append(v.list, make([]float32, v.width)...)
			continue
		}
		start, end := l.ValueOffsets(i)
		if int(end-start) != v.width {
			return graph.BadData(b.where(i), "column %q has a list of %d numbers, and %d before: every list must have the same length", name, end-start, v.width)
		}
		for k := start; k < end; k++ {
			if values.IsNull(int(k)) {
				return graph.BadData(b.where(i), "column %q has a list with a null: remove nulls before the import", name)
			}
			if arrowKind(values.DataType()) == floatKind {
				v.list = append(v.list, float32(arrowFloat(values, int(k))))
			} else {
				v.list = append(v.list, float32(arrowInt(values, int(k))))
			}
		}
	}
	return nil
}

func arrowText(a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return nil
	}
	switch a := a.(type) {
	case *array.String:
		return []byte(a.Value(i))
	case *array.LargeString:
		return []byte(a.Value(i))
	case *array.Binary:
		return a.Value(i)
	case *array.LargeBinary:
		return a.Value(i)
	case *array.Dictionary:
		return arrowText(a.Dictionary(), a.GetValueIndex(i))
	}
	return nil
}

func arrowFloat(a arrow.Array, i int) float64 {
	switch a := a.(type) {
	case *array.Float16:
		return float64(a.Value(i).Float32())
	case *array.Float32:
		return float64(a.Value(i))
	case *array.Float64:
		return a.Value(i)
	}
	return 0
}

// arrowInt is the bits of a whole number.
func arrowInt(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Int8:
		return int64(a.Value(i))
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Uint8:
		return int64(a.Value(i))
	case *array.Uint16:
		return int64(a.Value(i))
	case *array.Uint32:
		return int64(a.Value(i))
	case *array.Uint64:
		return int64(a.Value(i))
	case *array.Boolean:
		if a.Value(i) {
			return 1
		}
	}
	return 0
}
