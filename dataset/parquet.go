package dataset

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/dataset/column"
	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
)

const (
	// maxGroup is the largest row group of a file with one column for each
	// feature, where a page of every column is in memory.
	maxGroup = 16 << 20
	// parquetBatch is how many values of a column are decoded at a time.
	parquetBatch = 1024
)

// parquetColumn streams the numbers of a column over all row groups.
type parquetColumn struct {
	f        *columnar.Parquet
	index    int
	group    int // the next
	end      int // row group to stop at
	chunk    file.ColumnChunkReader
	left     int64 // values of chunk that are still to come
	def, rep []int16
	// decode reads a batch of the column's type; the functions below give a value of it.
	decode  func() (total int64, n int, err error)
	integer func(i int) int64
	number  func(i int) float32
	exact   func(i int) float64
	// ids copies integers from place i on, and returns how many are ids below limit from
	// the first on.
	ids func(i int, to []uint32, limit int64) int
	// The value that next moved to is at place pos of the batch of n.
	pos, n int
	values int64
}

// decoder is what the typed readers have in common.
type decoder[T any] interface {
	ReadBatch(n int64, values []T, def, rep []int16) (int64, int, error)
}

// bind prepares a column of the physical type T.
func bind[T int32 | int64 | float32 | float64, R decoder[T]](c *parquetColumn) {
	batch := make([]T, parquetBatch)
	c.decode = func() (int64, int, error) {
		return c.chunk.(R).ReadBatch(parquetBatch, batch, c.def, c.rep)
	}
	c.integer = func(i int) int64 { return int64(batch[i]) }
	c.number = func(i int) float32 { return float32(batch[i]) }
	c.exact = func(i int) float64 { return float64(batch[i]) }
	c.ids = func(i int, to []uint32, limit int64) int {
		for k, v := range batch[i:][:len(to)] {
			if id := int64(v); id < 0 || id >= limit {
				return k
			}
			to[k] = uint32(v)
		}
		return len(to)
	}
}

func streamParquet(f *columnar.Parquet, index int) (_ *parquetColumn, err error) {
	defer columnar.Recover(f.Name, &err)
	c := &parquetColumn{f: f, index: index, end: f.Reader.NumRowGroups(), def: make([]int16, parquetBatch), rep: make([]int16, parquetBatch)}
	descr := f.Column(index)
	switch descr.PhysicalType() {
	case parquet.Types.Int32:
		bind[int32, *file.Int32ColumnChunkReader](c)
		if descr.ConvertedType() == schema.ConvertedTypes.Uint32 {
			signed := c.integer
			c.integer = func(i int) int64 { return int64(uint32(signed(i))) }
			c.number = func(i int) float32 { return float32(c.integer(i)) }
			c.exact = func(i int) float64 { return float64(c.integer(i)) }
			c.ids = func(i int, to []uint32, limit int64) int {
				for k := range to {
					if v := c.integer(i + k); v < limit {
						to[k] = uint32(v)
					} else {
						return k
					}
				}
				return len(to)
			}
		}
	case parquet.Types.Int64:
		bind[int64, *file.Int64ColumnChunkReader](c)
	case parquet.Types.Float:
		bind[float32, *file.Float32ColumnChunkReader](c)
	case parquet.Types.Double:
		bind[float64, *file.Float64ColumnChunkReader](c)
	default:
		return nil, graph.BadData(f.Name, "column %q holds %s: features are numbers, leave the column out", descr.Path(), f.TypeName(index))
	}
	return c, f.Check(index)
}

// Position names the value that next moved to.
func (c *parquetColumn) Position() string {
	return fmt.Sprintf("%s column %q value %d", c.f.Name, c.f.Column(c.index).Path(), c.values-1)
}

// next moves to the next value, or returns io.EOF.
func (c *parquetColumn) next() error {
	c.values++
	c.pos++
	if c.pos < c.n {
		return nil
	}
	c.pos, c.n = 0, 0
	return c.fill()
}

// fill decodes the next batch.
func (c *parquetColumn) fill() (err error) {
	defer columnar.Recover(c.f.Name, &err)
	for c.chunk == nil || !c.chunk.HasNext() {
		if c.chunk != nil && c.chunk.Err() != nil {
			return graph.Damaged(c.f.Name, fmt.Errorf("%w: it is damaged, write it again", c.chunk.Err()))
		}
		if c.left != 0 {
			return graph.BadData(c.Position(), "the column ends too early: the file is damaged, write it again")
		}
		if c.group == c.end {
			return io.EOF
		}
		if err := c.nextChunk(); err != nil {
			return err
		}
	}
	total, n, err := c.decode()
	switch {
	case err != nil:
		return graph.Damaged(c.f.Name, fmt.Errorf("%w: it is damaged, write it again", err))
	case total != int64(n):
		return graph.BadData(c.Position(), "one of the %d values from here on is null: remove nulls before the import", total)
	case n == 0:
		return graph.BadData(c.Position(), "the column ends too early: the file is damaged, write it again")
	}
	c.n = n
	c.left -= total
	return nil
}

// nextChunk opens the column in the next row group.
func (c *parquetColumn) nextChunk() error {
	meta, err := c.f.Chunk(c.group, c.index)
	if err != nil {
		return err
	}
	rows, isFlat := c.f.Reader.RowGroup(c.group).NumRows(), c.f.Column(c.index).MaxRepetitionLevel() == 0
	if c.left = meta.NumValues(); c.left < 0 || isFlat && c.left != rows {
		return graph.BadData(c.f.Name, "column %q has %d values in a row group of %d rows: the file is damaged, write it again", c.f.Column(c.index).Path(), c.left, rows)
	}
	if c.chunk, err = c.f.OpenChunk(c.group, c.index); err != nil {
		return err
	}
	c.group++
	return nil
}

// id reads a node id.
func (c *parquetColumn) id(limit *graph.IDLimit) (uint32, error) {
	if err := c.next(); err != nil {
		return 0, err
	}
	if v := c.integer(c.pos); v < 0 || v >= limit.N {
		return 0, c.noID(limit)
	}
	return uint32(c.integer(c.pos)), nil
}

// noID is the error about the value that next moved to.
func (c *parquetColumn) noID(limit *graph.IDLimit) error {
	unsigned := c.f.Column(c.index).ConvertedType() == schema.ConvertedTypes.Uint64
	return graph.BadData(c.Position(), "%s", limit.Check(c.integer(c.pos), unsigned))
}

// ahead is how many values are decoded behind the one that next moved to, at least one,
// or the error of next.
func (c *parquetColumn) ahead() (int, error) {
	if c.pos+1 >= c.n {
		if err := c.next(); err != nil {
			return 0, err
		}
		c.pos--
		c.values--
	}
	return c.n - c.pos - 1, nil
}

// take moves over the next values and copies their ids. It stops behind one that is none,
// and returns how many ids came before.
func (c *parquetColumn) take(to []uint32, limit *graph.IDLimit) int {
	n := c.ids(c.pos+1, to, limit.N)
	moved := min(n+1, len(to))
	c.pos += moved
	c.values += int64(moved)
	return n
}

// parquetEdges is an edge list in two integer columns.
type parquetEdges struct {
	file  *columnar.Parquet
	u, v  int
	w     int // column of weights, below 0 for none
	limit graph.IDLimit
	notes []graph.Note
}

func openParquetEdges(src *source.Source, limit graph.IDLimit, named ends, weight string) (*parquetEdges, error) {
	f, err := columnar.OpenParquet(src)
	if err != nil {
		return nil, err
	}
	found, titles := f.Integers()
	c := edgeColumns{file: src.Name, titles: titles, width: len(titles), candidates: func() ([]int, error) { return found, nil }}
	if len(titles) < 2 {
		return nil, graph.BadData(src.Name, "has not two columns: an edge list has two of whole numbers; the columns are %s", c.list())
	}
	e := &parquetEdges{file: f, limit: limit}
	if e.u, e.v, err = c.find(named); err != nil {
		return nil, err
	}
	for _, i := range []int{e.u, e.v} {
		if !slices.Contains(found, i) {
			return nil, graph.BadData(src.Name, "column %q holds %s: node ids are whole numbers from 0, number the nodes; the columns are %s",
				titles[i], f.TypeName(i), c.list())
		}
		if err := f.Check(i); err != nil {
			return nil, err
		}
	}
	if e.w, err = c.weight(weight, e.u, e.v); err != nil {
		return nil, err
	}
	if e.w >= 0 {
		if f.Column(e.w).MaxRepetitionLevel() > 0 {
			return nil, graph.BadData(src.Name, "column %q holds lists: a weight is one number for each edge", titles[e.w])
		}
		if _, err := streamParquet(f, e.w); err != nil {
			return nil, err
		}
	}
	e.notes = c.notes(e.u, e.v, e.w, func(int) bool { return false })
	return e, nil
}

// parquetPairs opens an edge list whose columns have well-known names, or are the only two.
func parquetPairs(src *source.Source, limit graph.IDLimit) (graph.EdgeSource, error) {
	e, err := openParquetEdges(src, limit, ends{}, "")
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (e *parquetEdges) Open(ctx context.Context) (EdgeReader, error) {
	return e.openGroups(ctx, 0, e.file.Reader.NumRowGroups())
}

// openGroups reads row groups [lo, hi).
func (e *parquetEdges) openGroups(ctx context.Context, lo, hi int) (_ EdgeReader, err error) {
	defer columnar.Recover(e.file.Name, &err)
	u, err := streamParquet(e.file, e.u)
	if err != nil {
		return nil, err
	}
	v, err := streamParquet(e.file, e.v)
	if err != nil {
		return nil, err
	}
	r := &parquetEdgeReader{ctx: ctx, u: u, v: v, limit: &e.limit}
	columns := []*parquetColumn{u, v}
	if e.w >= 0 {
		if r.w, err = streamParquet(e.file, e.w); err != nil {
			return nil, err
		}
		columns = append(columns, r.w)
	}
	for _, c := range columns {
		c.group, c.end = lo, hi
		for g := range lo {
			c.values += e.file.Reader.RowGroup(g).NumRows()
		}
	}
	return r, nil
}

type parquetEdgeReader struct {
	ctx    context.Context
	u, v   *parquetColumn
	w      *parquetColumn // of weights, nil without them
	limit  *graph.IDLimit
	us, vs [parquetBatch]uint32
}

func (r *parquetEdgeReader) Read(batch []Edge) (n int, err error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	for n < len(batch) {
		some, err := r.read(batch[n:])
		if err == io.EOF && n > 0 {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		n += some
	}
	return n, nil
}

// ReadWeighted implements WeightedReader.
func (r *parquetEdgeReader) ReadWeighted(batch []Edge, weights []float32) (int, error) {
	n, err := r.Read(batch)
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := r.w.next(); err != nil {
			return 0, graph.Damaged(r.w.Position(), err)
		}
		var problem string
		if weights[i], problem = graph.Weight(r.w.exact(r.w.pos)); problem != "" {
			return 0, graph.BadData(r.w.Position(), "%s", problem)
		}
	}
	return n, nil
}

// read reads some edges. The error is that of the first row with one.
func (r *parquetEdgeReader) read(batch []Edge) (int, error) {
	u, err := r.u.ahead()
	if err != nil {
		return 0, err
	}
	v, err := r.v.ahead()
	if err != nil {
		return 0, graph.Damaged(r.v.Position(), err)
	}
	n := min(u, v, len(batch), parquetBatch)
	us, vs := r.us[:n], r.vs[:n]
	good := r.u.take(us, r.limit)
	if r.v.take(vs[:good], r.limit) < good {
		return 0, graph.Damaged(r.v.Position(), r.v.noID(r.limit))
	}
	if good < n {
		return 0, r.u.noID(r.limit)
	}
	for i := range us {
		batch[i] = Edge{U: us[i], V: vs[i]}
	}
	return n, nil
}

func (r *parquetEdgeReader) Close() error { return nil }

// parquetFeatures is a column of ids and one list column, or one column for each
// feature.
type parquetFeatures struct {
	file    *columnar.Parquet
	id      int
	columns []int
	width   int
	limit   graph.IDLimit
	note    graph.Note
}

func openParquetFeatures(src *source.Source, limit graph.IDLimit) (*parquetFeatures, error) {
	f, err := columnar.OpenParquet(src)
	if err != nil {
		return nil, err
	}
	found, names := f.Integers()
	p := &parquetFeatures{file: f, id: -1, limit: limit}
	for _, i := range found {
		if slices.Contains(column.IDNames, strings.ToLower(names[i])) {
			p.id = i
			break
		}
	}
	if p.id < 0 {
		return nil, graph.BadData(src.Name, "has no integer column named id; its columns are %s", strings.Join(names, ", "))
	}
	for i := range names {
		if i != p.id {
			p.columns = append(p.columns, i)
		}
	}
	if err := p.measure(); err != nil {
		return nil, err
	}
	p.note = graph.NoteOf(src.Name, "node ids are in column %q, features in the %d others", names[p.id], len(p.columns))
	if len(p.columns) == 1 {
		p.note = graph.NoteOf(src.Name, "node ids are in column %q, features in column %q", names[p.id], names[p.columns[0]])
	}
	r, err := p.Open(context.Background())
	if err == nil {
		err = r.Close()
	}
	return p, err
}

// measure finds the width, and checks what would be in memory at a time.
func (p *parquetFeatures) measure() (err error) {
	defer columnar.Recover(p.file.Name, &err)
	f := p.file
	lists := slices.ContainsFunc(p.columns, func(i int) bool { return f.Column(i).MaxRepetitionLevel() > 0 })
	p.width = len(p.columns)
	if !lists {
		for g := range f.Reader.NumRowGroups() {
			if size := f.Reader.RowGroup(g).ByteSize(); size > maxGroup && p.width > 16 {
				return graph.BadData(f.Name, "row group %d has %s in %d columns: write row groups of at most %s, or one column of fixed-size lists",
					g, mem.Bytes(size), p.width, mem.Bytes(maxGroup))
			}
		}
		return graph.CheckSize(f.Name, f.Rows, int64(p.width))
	}
	if len(p.columns) != 1 {
		return graph.BadData(f.Name, "has a list column and %d others: an id and one list of features are needed", len(p.columns)-1)
	}
	var values int64
	for g := range f.Reader.NumRowGroups() {
		chunk, err := f.Chunk(g, p.columns[0])
		if err != nil {
			return err
		}
		values += chunk.NumValues()
	}
	if f.Rows == 0 || values%f.Rows != 0 {
		return graph.BadData(f.Name, "%d values in %d rows: every list must have the same length, without nulls", values, f.Rows)
	}
	if err := graph.CheckSize(f.Name, f.Rows, values/f.Rows); err != nil {
		return err
	}
	p.width = int(values / f.Rows)
	return nil
}

func (p *parquetFeatures) Open(ctx context.Context) (FeatureReader, error) {
	r := &parquetFeatureReader{parquetFeatures: p, ctx: ctx, row: make([]float32, p.width)}
	var err error
	if r.ids, err = streamParquet(p.file, p.id); err != nil {
		return nil, err
	}
	for _, i := range p.columns {
		c, err := streamParquet(p.file, i)
		if err != nil {
			return nil, err
		}
		r.values = append(r.values, c)
	}
	return r, nil
}

type parquetFeatureReader struct {
	*parquetFeatures
	ctx    context.Context
	ids    *parquetColumn
	values []*parquetColumn
	row    []float32
}

func (r *parquetFeatureReader) Close() error { return nil }

func (r *parquetFeatureReader) Next() (FeatureRow, error) {
	if err := r.ctx.Err(); err != nil {
		return FeatureRow{}, err
	}
	id, err := r.ids.id(&r.limit)
	if err != nil {
		return FeatureRow{}, err
	}
	isList := len(r.values) == 1 && r.file.Column(r.values[0].index).MaxRepetitionLevel() > 0
	for i := range r.row {
		c := r.values[0]
		if !isList {
			c = r.values[i]
		}
		if err := c.next(); err != nil {
			return FeatureRow{}, graph.Damaged(c.Position(), err)
		}
		if starts := c.rep[c.pos] == 0; isList && starts != (i == 0) {
			return FeatureRow{}, graph.BadData(r.ids.Position(), "its list has not %d values: every list must have the same length", r.width)
		}
		if r.row[i] = c.number(c.pos); !graph.Finite(r.row[i]) {
			return FeatureRow{}, graph.NotFinite(r.file.Name, r.ids.values-1, int64(i), r.row[i])
		}
	}
	return FeatureRow{ID: id, Dense: r.row}, nil
}
