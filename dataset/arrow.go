package dataset

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v14/arrow"
	arrays "github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/ipc"

	"ndls/dataset/column"
	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/dataset/table"
	"ndls/internal/inputid"
)

// arrowFeatures is an Arrow IPC file with an integer id column and one column of
// fixed-size lists of float32, as ndls itself writes rows.
type arrowFeatures struct {
	src    *source.Source
	limit  graph.IDLimit
	id     int
	list   int
	width  int
	reader *ipc.FileReader
}

func openArrowFeatures(src *source.Source, limit graph.IDLimit) (f *arrowFeatures, err error) {
	r, err := columnar.OpenArrow(src)
	if err != nil {
		return nil, err
	}
	f = &arrowFeatures{src: src, limit: limit, id: -1, list: -1, reader: r}
	var names []string
	for i, field := range r.Schema().Fields() {
		names = append(names, field.Name)
		if slices.Contains(column.IDNames, strings.ToLower(field.Name)) && (field.Type.ID() == arrow.INT64 || field.Type.ID() == arrow.UINT32) {
			f.id = i
		}
		if l, ok := field.Type.(*arrow.FixedSizeListType); ok && l.Elem().ID() == arrow.FLOAT32 {
			f.list, f.width = i, int(l.Len())
		}
	}
	if f.id < 0 || f.list < 0 {
		return nil, graph.BadData(src.Name, "has the columns %s: a column id of int64 or uint32 and one of fixed-size lists of float32 are needed",
			strings.Join(names, ", "))
	}
	return f, nil
}

func (f *arrowFeatures) Open(ctx context.Context) (FeatureReader, error) {
	return &arrowReader{f: f, ctx: ctx}, nil
}

type arrowReader struct {
	f      *arrowFeatures
	ctx    context.Context
	batch  int
	row    int64 // of the file, next
	at     int
	ids    func(i int) int64
	values []float32
	n      int
}

func (r *arrowReader) Close() error { return nil }

// Next implements FeatureReader.
func (r *arrowReader) Next() (FeatureRow, error) {
	for r.at == r.n {
		if err := r.ctx.Err(); err != nil {
			return FeatureRow{}, err
		}
		if r.batch == r.f.reader.NumRecords() {
			return FeatureRow{}, io.EOF
		}
		if err := r.load(); err != nil {
			return FeatureRow{}, err
		}
	}
	f := r.f
	row := r.values[r.at*f.width : (r.at+1)*f.width]
	for c, v := range row {
		if !graph.Finite(v) {
			return FeatureRow{}, graph.NotFinite(f.src.Name, r.row, int64(c), v)
		}
	}
	id := r.ids(r.at)
	if problem := f.limit.Check(id, false); problem != "" {
		return FeatureRow{}, graph.BadData(f.src.Name, "row %d: %s", r.row, problem)
	}
	r.at++
	r.row++
	return FeatureRow{ID: uint32(id), Dense: row}, nil
}

// load reads the next record batch.
func (r *arrowReader) load() (err error) {
	f := r.f
	defer columnar.Recover(f.src.Name, &err)
	rec, err := f.reader.Record(r.batch)
	if err != nil {
		return graph.BadData(f.src.Name, "record batch %d: %v: it is damaged, write it again", r.batch, err)
	}
	ids, lists := rec.Column(f.id), rec.Column(f.list).(*arrays.FixedSizeList)
	list, ok := lists.ListValues().(*arrays.Float32)
	r.at, r.n = 0, int(rec.NumRows())
	if !ok || ids.NullN()+lists.NullN()+list.NullN() > 0 || list.Len() != r.n*f.width || ids.Len() != r.n {
		return graph.BadData(f.src.Name, "record batch %d has nulls or lists of another length: every node needs %d numbers", r.batch, f.width)
	}
	r.values = list.Float32Values()
	switch ids := ids.(type) {
	case *arrays.Int64:
		r.ids = func(i int) int64 { return ids.Value(i) }
	case *arrays.Uint32:
		r.ids = func(i int) int64 { return int64(ids.Value(i)) }
	}
	r.batch++
	return nil
}

// Rows is one file of rows by input id, such as the soft labels of another
// model, in any form that features may have: Arrow, Parquet, .npy, CSV, text.
type Rows struct {
	Dataset
	open func(ctx context.Context) (FeatureReader, error)
}

// OpenRows opens a file of rows.
func OpenRows(ctx context.Context, path string) (_ *Rows, err error) {
	d := &edgeFiles{}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	src, ext, err := d.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Rows{Dataset: d, open: func(ctx context.Context) (FeatureReader, error) { return d.features.Open(ctx) }}
	return r, d.openFeatures(ctx, &edgesURI{nodes: -1}, src, ext)
}

// OpenKeyedRows opens a table of rows by ids of a type; rows have the numbers that find
// gives.
func OpenKeyedRows(ctx context.Context, path string, t inputid.Type, find func(key []byte) (uint32, bool)) (*Rows, error) {
	g, err := table.OpenRows(ctx, path, t, find)
	if err != nil {
		return nil, err
	}
	return &Rows{Dataset: g, open: g.Features}, nil
}

// Width is the number of values of a row.
func (r *Rows) Width() int { return r.Info().NumFeatures }

// Read streams the rows.
func (r *Rows) Read(ctx context.Context) (FeatureReader, error) { return r.open(ctx) }
