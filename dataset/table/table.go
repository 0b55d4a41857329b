package table

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// tableFile is a file of a table.
type tableFile struct {
	name   string
	format format
	src    *source.Source
	rows   rowSource
}

// rowSource is an open file of some format.
type rowSource interface {
	// titles are the columns of the file.
	titles() []title
	// units returns the number of parts into which the file can be cut, and rows the number of its
	// rows, -1 if unknown.
	units() int
	rows() int64
	// memory estimates the bytes that reading these columns takes beside a batch.
	memory(columns []int) int64
	// open reads the rows of a unit.
	open(ctx context.Context, f *tableFile, unit int, w want) (cursor, error)
	// width is the length of the lists in a column.
	width(ctx context.Context, f *tableFile, column int) (int, error)
}

// want says what to read of a file: columns by their numbers, what they hold in the table, and the
// length of those that are lists.
type want struct {
	columns []int
	kinds   []kind
	widths  []int
	// The first ids columns hold numbers of nodes below limit.
	ids   int
	limit *graph.IDLimit
	// The last features columns of text are numbers, none of which is missing.
	features int
	// Those lines of a list are read that begin at bytes [lo, hi), all of a unit where hi is 0.
	lo, hi int64
}

// cursor gives rows in batches.
type cursor interface {
	// next fills a batch with at least one row, or returns io.EOF.
	next(b *batch) error
	Close() error
}

// batchRows is the number of rows of a batch of text and Parquet. Text of more than batchBytes or batchFields ends a
// batch earlier.
const (
	batchRows   = 1024
	batchBytes  = 1 << 20
	batchFields = 1 << 16
)

// table is an open table.
type table struct {
	place   place
	files   []*tableFile
	titles  []title    // of the first file with rows; kinds that other files must have, too
	leading *tableFile // that file
	form    *source.Form
}

// openTable opens all files of a table and compares their columns. part is its name in the key
// header= of a URI.
func openTable(ctx context.Context, files *source.Files, p place, form *source.Form, part string) (*table, error) {
	opened, err := p.open(ctx, files)
	if err != nil {
		return nil, err
	}
	t := &table{place: p, files: opened, form: form}
	for _, f := range t.files {
		f.src.Encoding = form.Encoding
		switch f.format {
		case parquetFormat:
			f.rows, err = openParquet(f.src)
		case arrowFormat:
			f.rows, err = openArrow(f.src)
		case csvFormat:
			var c *csvFile
			if c, err = openCSV(ctx, f.src, form, part); err == nil {
				files.Note(c.note)
				f.rows = c
			}
		default:
			f.rows, err = openJSON(ctx, f.src)
		}
		if err != nil {
			return nil, err
		}
	}
	t.lead()
	return t, nil
}

// lead takes the columns of the first file with rows: one without may not tell what they hold.
func (t *table) lead() {
	first := slices.IndexFunc(t.files, func(f *tableFile) bool { return f.rows.rows() != 0 })
	t.leading = t.files[max(first, 0)]
	t.titles = slices.Clone(t.leading.rows.titles())
	t.settle()
}

// top are the names of the columns that lie in no struct.
func (t *table) top() (names []string) {
	for i, title := range t.titles {
		if !t.isNested(i) {
			names = append(names, title.name)
		}
	}
	return names
}

// settle finds what those columns hold of which the first file has nothing but nulls.
func (t *table) settle() {
	for i, title := range t.titles {
		for _, f := range t.files {
			if t.titles[i].kind != nullKind {
				break
			}
			if at := find(f.rows.titles(), title.name); at >= 0 {
				t.titles[i].kind = f.rows.titles()[at].kind
			}
		}
		if t.titles[i].kind == nullKind {
			t.titles[i].kind = numberKind
		}
	}
}

// columns finds columns in a file by their names, and checks that they hold what they hold
// in the first file.
func (t *table) columns(f *tableFile, names []string) ([]int, error) {
	titles, found := f.rows.titles(), make([]int, len(names))
	inFile, inTable := lookup(titles), lookup(t.titles)
	for i, name := range names {
		at, twice := inFile(name)
		of, _ := inTable(name)
		if at < 0 && f.rows.rows() == 0 {
			return nil, io.EOF
		}
		if at < 0 {
			return nil, graph.BadData(f.name, "has no column %q: the columns are %s%s", name, list(titles), hint(titles, name))
		}
		if j, ok := f.rows.(*jsonFile); ok && titles[at].kind == mixedKind {
			return nil, j.mixed[titles[at].name]
		}
		if twice {
			return nil, graph.BadData(f.name, "has two columns named %q: give each a name of its own; the columns are %s", name, list(titles))
		}
		if of >= 0 && titles[at].kind != t.titles[of].kind && titles[at].kind != nullKind && f.rows.rows() != 0 {
			return nil, graph.BadData(f.name, "column %q holds %s, and %s in %s: give it one type in all files of the table",
				titles[at].name, titles[at].kind, t.titles[of].kind, t.files[0].name)
		}
		found[i] = at
	}
	return found, nil
}

// lookup returns find for many names; twice reports whether a name stands for several columns.
func lookup(titles []title) func(name string) (at int, twice bool) {
	first, times := make(map[string]int, len(titles)), make(map[string]int, len(titles))
	for i, t := range slices.Backward(titles) {
		first[t.name] = i
		times[t.name]++
	}
	return func(name string) (at int, twice bool) {
		if n := times[name]; n > 0 {
			return first[name], n > 1
		}
		if at = find(titles, name); at < 0 {
			return at, false
		}
		return at, slices.ContainsFunc(titles[at+1:], func(t title) bool { return strings.EqualFold(t.name, name) })
	}
}

// kindOf returns the kind of a column that is there.
func (t *table) kindOf(name string) kind { return t.titles[find(t.titles, name)].kind }

// need checks that a column is there, in all files, and holds what it has to.
func (t *table) need(key, name string, fits func(kind) bool, what string) error {
	return t.needAll(key, []string{name}, fits, what)
}

// needAll is need for several columns.
func (t *table) needAll(key string, names []string, fits func(kind) bool, what string) error {
	at := lookup(t.titles)
	for _, name := range names {
		if i, _ := at(name); i >= 0 {
			continue
		}
		return graph.BadData(t.files[0].name, "has no column %q for %s=: %s%s", name, key, t.columnNames(), hint(t.titles, name))
	}
	for _, f := range t.files {
		if _, err := t.columns(f, names); err != nil && err != io.EOF { // a file without rows
			return err
		}
	}
	for _, name := range names {
		i, _ := at(name)
		if k := t.titles[i].kind; !fits(k) {
			return graph.BadData(t.leading.name, "column %q %s: %s%s", name, t.holds(name, k), what, k.cast())
		}
	}
	for _, f := range t.files {
		c, ok := f.rows.(*columnarFile)
		if !ok || c.rows() == 0 {
			continue
		}
		at := lookup(c.titles())
		for _, name := range names {
			i, _ := at(name)
			if err := c.Check(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// columnNames lists the columns for a message.
func (t *table) columnNames() string {
	if c, ok := t.leading.rows.(*csvFile); ok && !c.headed {
		return fmt.Sprintf("the file has no header, and its columns have numbers from 1 to %d", len(t.titles))
	}
	return "the columns are " + list(t.titles)
}

// numRows is the number of rows of all files, -1 if that is not known.
func (t *table) numRows() (n int64) {
	for _, f := range t.files {
		if f.rows.rows() < 0 {
			return -1
		}
		n += f.rows.rows()
	}
	return n
}

// units returns the number of parts into which the table can be cut.
func (t *table) units() (n int) {
	for _, f := range t.files {
		n += f.rows.units()
	}
	return n
}

// memory estimates the bytes that reading some columns takes, in the file where that is most.
func (t *table) memory(names []string) (most int64, err error) {
	for _, f := range t.files {
		columns, err := t.columns(f, names)
		if err == io.EOF { // a file without rows
			continue
		}
		if err != nil {
			return 0, err
		}
		most = max(most, f.rows.memory(columns))
	}
	return most, nil
}

// edgeMemory is the memory of a reader of edges in these columns as [graph.Info] has it.
func (t *table) edgeMemory(names []string) (int64, error) {
	memory, err := t.memory(names)
	if memory <= 8<<20 {
		memory = 0
	}
	return memory, err
}

// rows reads some columns of units [lo, hi) of the table. widths has the length of lists for
// columns that are lists, or is nil.
func (t *table) rows(ctx context.Context, lo, hi int, names []string, widths []int) *rows {
	if widths == nil {
		widths = make([]int, len(names))
	}
	return &rows{t: t, ctx: ctx, unit: lo, end: hi, names: names, widths: widths}
}

// share reads a share of the rows: units, or lines of a list.
func (t *table) share(ctx context.Context, s graph.Share, names []string, widths []int) *rows {
	if t.units() == 1 && !t.leading.src.Cuttable() {
		s = s.Uncut()
	}
	if s.IsWhole() {
		return t.all(ctx, names, widths)
	}
	if c, ok := t.leading.rows.(*csvFile); ok && c.list != nil && len(t.files) == 1 && c.src.Cuttable() && !c.empty {
		lo, hi := s.Bounds(c.src.Size - c.begin)
		r := t.rows(ctx, 0, 1, names, widths)
		if r.of.lo, r.of.hi = lo+c.begin, hi+c.begin; lo == hi {
			r.end = 0
		}
		return r
	}
	lo, hi := s.Bounds(int64(t.units()))
	return t.rows(ctx, int(lo), int(hi), names, widths)
}

// all reads all rows.
func (t *table) all(ctx context.Context, names []string, widths []int) *rows {
	return t.rows(ctx, 0, t.units(), names, widths)
}

// rows goes over the rows of a table.
type rows struct {
	t         *table
	ctx       context.Context
	unit, end int
	names     []string
	widths    []int
	cursor    cursor
	batch     batch
	nulls     nulls
	of        want // but for columns, kinds and widths
}

// next gives the next batch, or io.EOF.
func (r *rows) next() (*batch, error) {
	for {
		if err := r.ctx.Err(); err != nil {
			return nil, context.Cause(r.ctx)
		}
		if r.cursor == nil {
			if r.unit >= r.end {
				return nil, io.EOF
			}
			err := r.open()
			r.unit++
			if err == io.EOF { // a file without rows
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		err := r.cursor.next(&r.batch)
		if err == nil {
			r.blank()
			return &r.batch, nil
		}
		if err != io.EOF {
			return nil, err
		}
		err = r.cursor.Close()
		r.cursor = nil
		if err != nil {
			return nil, err
		}
	}
}

// blank makes those values of text null that stand for none.
func (r *rows) blank() {
	if !r.t.form.HasMissing() {
		return
	}
	for c := range r.names {
		v := &r.batch.cols[c]
		if v.kind != textKind && v.kind != fieldKind {
			continue
		}
		for i, text := range v.text[:r.batch.n] {
			if !r.t.form.Missing(text) {
				continue
			}
			for len(v.null) < r.batch.n {
				v.null = append(v.null, false)
			}
			v.null[i] = true
		}
	}
}

// open opens the unit that comes next.
func (r *rows) open() error {
	unit := r.unit
	for _, f := range r.t.files {
		if unit < f.rows.units() {
			columns, err := r.t.columns(f, r.names)
			if err != nil {
				return err
			}
			for len(r.batch.cols) < len(columns) {
				r.batch.cols = append(r.batch.cols, vector{})
			}
			r.batch.file = f
			for i := range r.batch.cols {
				r.batch.cols[i].values = nil
			}
			r.batch.features = nil
			r.of.columns, r.of.widths, r.of.kinds = columns, r.widths, make([]kind, len(columns))
			find := lookup(r.t.titles)
			for i, name := range r.names {
				at, _ := find(name)
				r.of.kinds[i] = r.t.titles[at].kind
			}
			r.cursor, err = f.rows.open(r.ctx, f, unit, r.of)
			return err
		}
		unit -= f.rows.units()
	}
	return io.EOF
}

func (r *rows) close() error {
	if r.cursor == nil {
		return nil
	}
	err := r.cursor.Close()
	r.cursor, r.unit = nil, r.end
	return err
}
