package shards

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"
	"github.com/apache/arrow/go/v14/parquet/schema"

	"ndls/catalog"
	"ndls/internal/inputid"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// IDsPath is the path of the table of input ids, in graphs whose ids are numbered.
const IDsPath = "graph/ids.parquet"

// Keys of the metadata of tables whose ids have a column of their own.
const (
	keyIDs     = "ndls.ids"
	keyLongest = "ndls.longest"
	keyDoubts  = "ndls.doubts"
)

// IDs describes the input ids of a table. The zero value stands for ids that are numbers and stored as such.
type IDs struct {
	Type inputid.Type
	// Longest is the length of the longest key.
	Longest int
	// Doubts names, one sentence per line, ids that may stand for something else, such as NA for a missing value.
	Doubts string
}

// pairs returns the metadata of a table with these ids.
func (ids IDs) pairs() []string {
	if ids.Type == inputid.Number {
		return nil
	}
	pairs := []string{keyIDs, ids.Type.Name(), keyLongest, strconv.Itoa(ids.Longest)}
	if ids.Doubts != "" {
		pairs = append(pairs, keyDoubts, ids.Doubts)
	}
	return pairs
}

// idGroupBytes bounds the size of the ids in a row group.
const idGroupBytes = 16 << 20

// GroupRows returns the number of rows of a row group of a table of nodes with these ids. The group stays far below maxGroupBytes, however
// long the ids are.
func (ids IDs) GroupRows() int64 {
	if ids.Type == inputid.Number {
		return tableGroupRows
	}
	return min(tableGroupRows, int64(idGroupBytes/(ids.Longest+8)))
}

// idColumns returns the columns of ids of a type: if they are numbered, the original id and its number.
func idColumns(t inputid.Type) []column {
	switch t {
	case inputid.Int64:
		return []column{int64Column("id"), int64Column("number")}
	case inputid.Uint64:
		return []column{uint64Column("id"), int64Column("number")}
	case inputid.String:
		return []column{stringColumn("id"), int64Column("number")}
	}
	return []column{int64Column("id")}
}

func uint64Column(name string) column {
	return column{name, parquet.Types.Int64, schema.NewIntLogicalType(64, false)}
}

// writeIDs writes ids to the first columns of cols. read fills the batch with the ids of n rows.
func writeIDs(p *parquetWriter, cols []file.ColumnChunkWriter, t inputid.Type, keys [][]byte, numbers []int64) error {
	if t == inputid.Number {
		return writeColumn(p, cols[0], numbers)
	}
	if len(keys) != len(numbers) {
		return fmt.Errorf("%d ids for %d rows", len(keys), len(numbers))
	}
	if err := writeKeys(p, cols[0], t, keys); err != nil {
		return err
	}
	return writeColumn(p, cols[1], numbers)
}

// writeKeys writes the ids of some keys.
func writeKeys(p *parquetWriter, col file.ColumnChunkWriter, t inputid.Type, keys [][]byte) error {
	if t == inputid.String {
		text := make([]parquet.ByteArray, len(keys))
		for i, key := range keys {
			text[i] = key
		}
		return writeColumn(p, col, text)
	}
	bits := make([]int64, len(keys))
	for i, key := range keys {
		bits[i] = t.Bits(key)
	}
	return writeColumn(p, col, bits)
}

// keyBatch receives keys.
type keyBatch struct {
	keys [][]byte
	text []byte
	bits []int64
}

// read fills the batch with the ids of n rows.
func (b *keyBatch) read(p *parquetReader, col file.ColumnChunkReader, t inputid.Type, n int) error {
	b.keys, b.text = resize(b.keys, n), b.text[:0]
	if t != inputid.String {
		b.bits = resize(b.bits, n)
		if err := readColumn(p, col, b.bits); err != nil {
			return err
		}
		b.text = slices.Grow(b.text, 8*n)
		for i, v := range b.bits {
			b.text = t.AppendBits(b.text, v)
			b.keys[i] = b.text[8*i:]
		}
		return nil
	}
	return b.readText(p, col)
}

// readText decodes page by page, because a byte array is valid until the next page.
func (b *keyBatch) readText(p *parquetReader, col file.ColumnChunkReader) (err error) {
	defer p.recovered(&err)
	typed, ok := col.(*file.ByteArrayColumnChunkReader)
	if !ok {
		return seal.Corrupt(p.name, "column id has another type")
	}
	scratch := make([]parquet.ByteArray, min(len(b.keys), 1<<12))
	for at := 0; at < len(b.keys); {
		_, n, err := typed.ReadBatch(int64(min(len(scratch), len(b.keys)-at)), scratch, nil, nil)
		if err != nil || n == 0 {
			return seal.Corrupt(p.name, "column id: %d values are missing: %v", len(b.keys)-at, err)
		}
		for i, v := range scratch[:n] {
			if len(v) > inputid.MaxKey {
				return seal.Corrupt(p.name, "an id has %d bytes", len(v))
			}
			start := len(b.text)
			b.text = append(b.text, v...)
			b.keys[at+i] = b.text[start:]
		}
		at += n
	}
	return nil
}

// openIDTable opens a table whose ids may have a column of their own. columns returns its columns, given the type of its ids and its
// metadata.
func openIDTable(r storage.Reader, name, format string,
	columns func(t inputid.Type, meta func(key string) string) []column,
) (_ *parquetReader, ids IDs, err error) {
	p, err := openSealed(r, name)
	if err != nil {
		return nil, ids, err
	}
	defer p.recovered(&err)
	if text := p.meta(keyIDs); text != "" {
		longest, err := p.metaInt(keyLongest)
		if err == nil && longest > inputid.MaxKey {
			err = seal.Corrupt(name, "its longest id has %d bytes", longest)
		}
		if err != nil {
			return nil, ids, err
		}
		ids.Longest = int(longest)
		if ids.Type, err = inputid.TypeOf(text); err != nil {
			return nil, ids, seal.Corrupt(name, "%v", err)
		}
		ids.Doubts = p.meta(keyDoubts)
	}
	return p, ids, p.check(format, columns(ids.Type, p.meta))
}

// whateverMeta adapts columns for tables whose columns depend only on the type of their ids.
func whateverMeta(columns func(inputid.Type) []column) func(inputid.Type, func(string) string) []column {
	return func(t inputid.Type, _ func(string) string) []column { return columns(t) }
}

// idTableColumns returns the one column of the table of ids: row i is the id with number i.
func idTableColumns(t inputid.Type) []column { return idColumns(t)[:1] }

// WriteIDs writes the table of input ids. give calls put with each key, in ascending order. ids.Longest is the length of the longest key,
// or more. WriteIDs returns the number of ids.
func WriteIDs(w io.Writer, ids IDs, give func(put func(key []byte) error) error) (n int64, err error) {
	p, err := newParquetWriter(w, catalog.KindIDs, idTableColumns(ids.Type), ids.pairs(), writerProperties())
	if err != nil {
		return 0, err
	}
	defer p.recovered(&err)
	// The keys of a row group, which the library writes at once.
	var (
		keys [][]byte
		text []byte
	)
	step := int(min(ids.GroupRows(), batchRows))
	flush := func() error {
		if len(keys) == 0 {
			return nil
		}
		group := p.file.AppendBufferedRowGroup()
		col, err := group.Column(0)
		if err != nil {
			return fmt.Errorf("writing Parquet: %w", err)
		}
		if err := writeKeys(p, col, ids.Type, keys); err != nil {
			return err
		}
		err = p.endGroup(group, len(keys))
		keys, text = keys[:0], text[:0]
		return err
	}
	err = give(func(key []byte) error {
		if len(key) > ids.Longest {
			return fmt.Errorf("an id of %d bytes is longer than %d", len(key), ids.Longest)
		}
		if len(text)+len(key) > cap(text) && len(keys) > 0 {
			if err := flush(); err != nil {
				return err
			}
		}
		if cap(text) == 0 {
			text = make([]byte, 0, min(step*max(ids.Longest, 1), idGroupBytes))
		}
		start := len(text)
		text = append(text, key...)
		keys = append(keys, text[start:])
		n++
		if len(keys) == step {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return 0, err
	}
	return n, p.close()
}

// IDReader finds input ids by their numbers, in the node table or in the table of ids, which it reads from front to back. A nil IDReader is
// for graphs whose ids are not numbered.
type IDReader struct {
	p       *parquetReader
	ids     IDs
	inOrder bool // the table of ids: row i is the id with number i
	passed  int64
	group   int // next row group
	cols    []file.ColumnChunkReader
	left    int64 // rows of the group that are left
	numbers []int64
	batch   keyBatch
	at      int
	keys    [][]byte
	text    []byte
}

// OpenNodeIDs opens the ids of a node table; errors use name. r stays open when reading is done.
func OpenNodeIDs(r storage.Reader, name string) (*IDReader, error) {
	p, ids, err := openIDTable(r, name, catalog.KindNodes, nodeColumnsBy)
	if err != nil {
		return nil, err
	}
	if ids.Type == inputid.Number {
		return nil, seal.Corrupt(name, "its ids are not numbered")
	}
	return &IDReader{p: p, ids: ids}, nil
}

// OpenIDs opens the table of input ids; errors use name. r stays open when reading is done.
func OpenIDs(r storage.Reader, name string) (*IDReader, error) {
	p, ids, err := openIDTable(r, name, catalog.KindIDs, whateverMeta(idTableColumns))
	if err != nil {
		return nil, err
	}
	return &IDReader{p: p, ids: ids, inOrder: true}, nil
}

// Rows returns the number of ids.
func (r *IDReader) Rows() int64 { return r.p.rows }

// Dense reports whether the ids are the whole numbers from 0 to n-1.
func (r *IDReader) Dense() (_ bool, err error) {
	defer r.p.recovered(&err)
	if r.ids.Type != inputid.Int64 || r.p.rows == 0 {
		return false, nil
	}
	// Ids are ascending, so the first and the last decide.
	ends := [2]int64{}
	for i, group := range []int{0, len(r.p.marks) - 1} {
		cols, rows, err := r.p.columns(group, 1)
		if err != nil {
			return false, err
		}
		bits := make([]int64, rows)
		if err := readColumn(r.p, cols[0], bits); err != nil {
			return false, err
		}
		ends[i] = bits[0]
		if i == 1 {
			ends[i] = bits[rows-1]
		}
	}
	return ends == [2]int64{0, r.p.rows - 1}, nil
}

// Each visits the keys of all ids in the order of the table, some at a time; first is the row of the first of them. The keys are valid
// until visit returns. Keys finds none of them afterwards.
func (r *IDReader) Each(visit func(first int64, keys [][]byte) error) error {
	first := int64(0)
	r.group, r.left, r.passed = 0, 0, 0
	for r.left > 0 || r.group < len(r.p.marks) {
		if err := r.fill(); err != nil {
			return err
		}
		if err := visit(first, r.batch.keys); err != nil {
			return err
		}
		first += int64(len(r.numbers))
	}
	r.at = len(r.numbers)
	return nil
}

// IDs describes the ids.
func (r *IDReader) IDs() IDs {
	if r == nil {
		return IDs{}
	}
	return r.ids
}

// SkipTo skips to the row group that holds a node, if the reader has read nothing yet.
func (r *IDReader) SkipTo(node int64) {
	if r == nil || r.cols != nil || r.group > 0 {
		return
	}
	for last := int64(0); r.group < len(r.p.marks); r.group++ {
		if last += int64(r.p.marks[r.group].Rows); last > node {
			return
		}
	}
}

// nameRows is the number of rows of the node table that are decoded at a time.
const nameRows = 1 << 14

// Keys returns the keys of the ids with these numbers. Their nodes are in the order of the table, after those of the preceding call; nodes
// between them are skipped. The keys are valid until the next call. A nil reader returns none.
func (r *IDReader) Keys(numbers []int64) ([][]byte, error) {
	if r == nil {
		return nil, nil
	}
	r.keys, r.text = r.keys[:0], r.text[:0]
	ends := make([]int, 0, len(numbers))
	for _, number := range numbers {
		for {
			if r.at == len(r.numbers) {
				r.pass(number)
				if err := r.fill(); err != nil {
					return nil, fmt.Errorf("find the id with number %d: %w", number, err)
				}
			}
			r.at++
			if r.numbers[r.at-1] == number {
				break
			}
		}
		r.text = append(r.text, r.batch.keys[r.at-1]...)
		ends = append(ends, len(r.text))
	}
	start := 0
	for _, end := range ends {
		r.keys = append(r.keys, r.text[start:end])
		start = end
	}
	return r.keys, nil
}

// pass skips row groups that end before a number, if the rows are in order of number.
func (r *IDReader) pass(number int64) {
	for r.inOrder && r.left == 0 && r.group < len(r.p.marks) && r.passed+int64(r.p.marks[r.group].Rows) <= number {
		r.passed += int64(r.p.marks[r.group].Rows)
		r.group++
	}
}

// fill decodes the next rows.
func (r *IDReader) fill() (err error) {
	defer r.p.recovered(&err)
	if r.left == 0 {
		if r.group == len(r.p.marks) {
			return seal.Corrupt(r.p.name, "it has no such node after the preceding ones")
		}
		columns := 3
		if r.inOrder {
			columns = 1
		}
		if r.cols, r.left, err = r.p.columns(r.group, columns); err != nil {
			return err
		}
		r.group++
	}
	n := int(min(r.left, nameRows))
	r.numbers, r.at = resize(r.numbers, n), 0
	r.left -= int64(n)
	if r.inOrder {
		for i := range r.numbers {
			r.numbers[i] = r.passed + int64(i)
		}
		r.passed += int64(n)
		return r.batch.read(r.p, r.cols[0], r.ids.Type, n)
	}
	if err := r.batch.read(r.p, r.cols[1], r.ids.Type, n); err != nil {
		return err
	}
	return readColumn(r.p, r.cols[2], r.numbers)
}
