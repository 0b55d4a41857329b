package export

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v14/arrow"
	"github.com/apache/arrow/go/v14/arrow/array"
	"github.com/apache/arrow/go/v14/arrow/memory"
	"github.com/apache/arrow/go/v14/parquet"
	"github.com/apache/arrow/go/v14/parquet/file"

	"ndls/catalog"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/storage"
	"ndls/shards"
)

// names finds the input ids of a graph whose ids are numbered. The zero value is for graphs
// whose ids are numbers.
type names struct {
	ids    shards.IDs
	file   storage.Reader
	reader *shards.IDReader // in order of the numbers, or of the nodes
	// All keys, where they are asked for in any order: key i ends before ends[i].
	ends *mem.Array[uint64]
	text *mem.Array[byte]
	// classes are the names of the classes, where columns show them.
	classes []string
}

// openNames opens the ids for rows in order of number, which path names, or in order of
// node, if it is empty.
func openNames(ctx context.Context, cat *catalog.Catalog, path string) (_ *names, err error) {
	e, ok := cat.Lookup(shards.IDsPath)
	if !ok {
		return &names{}, nil
	}
	s, err := shards.ReadSummary(ctx, cat)
	if err != nil || s.IDs == "" {
		return &names{}, err
	}
	if path == "" {
		e = cat.Entries(catalog.KindNodes)[0]
	}
	n := &names{}
	if n.file, err = cat.Open(ctx, e); err != nil {
		return nil, err
	}
	open := shards.OpenIDs
	if path == "" {
		open = shards.OpenNodeIDs
	}
	if n.reader, err = open(n.file, e.Path); err != nil {
		return nil, errors.Join(err, n.file.Close())
	}
	n.ids = n.reader.IDs()
	return n, nil
}

// loadNames reads all ids into memory: 8 bytes and its length for each.
func loadNames(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (_ *names, err error) {
	n, err := openNames(ctx, cat, shards.IDsPath)
	if err != nil || n.ids.Type == inputid.Number {
		return n, err
	}
	defer func() {
		if err != nil {
			n.close()
		}
	}()
	t, total := n.reader, uint64(0)
	if err := t.Each(func(_ int64, keys [][]byte) error {
		for _, key := range keys {
			total += uint64(len(key))
		}
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	const pages = 2 * 4096 // to which both arrays are rounded up
	if need := 8*t.Rows() + int64(total) + pages; need > b.Free() {
		return nil, fmt.Errorf("an export of edges holds all input ids in memory, %s, and %s are free; %s: %w", mem.Bytes(need), mem.Bytes(b.Free()), b.Would(need-b.Free()), mem.ErrBudget)
	}
	if n.ends, err = mem.Alloc[uint64](b, t.Rows(), "input ids"); err != nil {
		return nil, err
	}
	if n.text, err = mem.Alloc[byte](b, int64(total), "input ids"); err != nil {
		return nil, err
	}
	at := 0
	err = t.Each(func(first int64, keys [][]byte) error {
		for i, key := range keys {
			at += copy(n.text.S[at:], key)
			n.ends.S[first+int64(i)] = uint64(at)
		}
		return ctx.Err()
	})
	return n, err
}

func (n *names) close() {
	if n.file != nil {
		_ = n.file.Close()
	}
	n.ends.Free()
	n.text.Free()
}

// columns returns the columns of a table whose columns of int64 are ids.
func (n *names) columns(columns []column) []column {
	if n.ids.Type == inputid.Number {
		return columns
	}
	columns = slices.Clone(columns)
	for i, c := range columns {
		if c.kind == int64Kind {
			columns[i].kind = map[inputid.Type]kind{inputid.Int64: int64IDKind, inputid.Uint64: uint64IDKind, inputid.String: textIDKind}[n.ids.Type]
		}
	}
	return columns
}

// isText reports whether values of a column that are no ids are shown as text.
func (c column) isText() bool { return c.kind == splitKind || c.kind == classKind }

// textOf is the text that a value of a column stands for.
func (n *names) textOf(c column, value []byte) string {
	if c.kind == splitKind {
		return splitNames[value[0]]
	}
	if class := int(view[int32](value)[0]); class >= 0 && class < len(n.classes) {
		return n.classes[class]
	}
	return ""
}

// textWidth is the longest text of a column.
func (n *names) textWidth(c column) int {
	list := splitNames
	if c.kind == classKind {
		list = n.classes
	}
	width := 1
	for _, text := range list {
		width = max(width, len(text))
	}
	return width
}

// texts gives the offsets and characters of a column of texts.
func (n *names) texts(c column, values []byte) (offsets, text []byte) {
	ends := make([]int32, 1, len(values)/c.size()+1)
	for value := range slices.Chunk(values, c.size()) {
		text = append(text, n.textOf(c, value)...)
		ends = append(ends, int32(len(text)))
	}
	return mem.AsBytes(ends), text
}

// isID reports whether a column holds the numbers of ids.
func (c column) isID() bool { return c.kind >= int64IDKind }

// key is the key of the id with a number, where all keys are in memory.
func (n *names) key(number int64) []byte {
	start := uint64(0)
	if number > 0 {
		start = n.ends.S[number-1]
	}
	return n.text.S[start:n.ends.S[number]]
}

// quote is an id as messages show it, after its number, where all keys are in memory.
func (n *names) quote(number int64) string {
	if n.ids.Type == inputid.Number {
		return strconv.FormatInt(number, 10)
	}
	return n.ids.Type.Quote(n.key(number))
}

// find gives the keys of the columns that hold numbers, nil for the others. They are valid
// until the next call.
func (n *names) find(columns []column, cols [][]byte) (keys [][][]byte, err error) {
	keys = make([][][]byte, len(columns))
	for i, c := range columns {
		if !c.isID() {
			continue
		}
		numbers := view[int64](cols[i])
		if n.ends == nil {
			if keys[i], err = n.reader.Keys(numbers); err != nil {
				return nil, err
			}
			continue
		}
		keys[i] = make([][]byte, len(numbers))
		for k, number := range numbers {
			if number < 0 || number >= int64(len(n.ends.S)) {
				return nil, fmt.Errorf("there is no id with number %d", number)
			}
			keys[i][k] = n.key(number)
		}
	}
	return keys, nil
}

// batch returns the number of rows that a columnar writer receives at a time.
func (n *names) batch(columns []column) int {
	size := rowSize(columns)
	for _, c := range columns {
		if c.kind == textIDKind {
			size += n.ids.Longest
		}
	}
	return max(batchBytes/size, 1)
}

// pieces hands rows on in pieces whose ids may be in memory.
func (n *names) pieces(w writer, columns []column) writer {
	if n.ids.Type == inputid.Number {
		return w
	}
	return newBatched(w, columns, n)
}

// width is the size of a text of NumPy.
func (n *names) width() int { return max(n.ids.Longest, 1) }

// stored is an id as NumPy stores it.
func (n *names) stored(key []byte) []byte {
	if n.ids.Type == inputid.String {
		return append(make([]byte, 0, n.width()), key...)[:n.width()]
	}
	return binary.LittleEndian.AppendUint64(nil, uint64(n.ids.Type.Bits(key)))
}

// appendField appends an id as a field of CSV, in quotes where it needs them.
func (n *names) appendField(line, key []byte) []byte {
	text := n.ids.Type.AppendText(nil, key)
	if n.ids.Type != inputid.String || len(text) > 0 && !needsQuotes(string(text)) {
		return append(line, text...)
	}
	return appendQuoted(line, string(text))
}

// needsQuotes reports whether a text would not be read back from CSV without quotes.
func needsQuotes(text string) bool {
	return text != "" && (strings.ContainsAny(text, ",\"\r\n") || text[0] == ' ' || text[len(text)-1] == ' ')
}

// appendQuoted appends a text in quotes.
func appendQuoted(line []byte, text string) []byte {
	line = append(line, '"')
	line = append(line, strings.ReplaceAll(text, `"`, `""`)...)
	return append(line, '"')
}

// data is a column of ids as an Arrow array.
func (n *names) data(t arrow.DataType, keys [][]byte) *array.Data {
	if n.ids.Type != inputid.String {
		return array.NewData(t, len(keys), []*memory.Buffer{nil, memory.NewBufferBytes(mem.AsBytes(n.bits(keys)))}, nil, 0, 0)
	}
	ends := make([]int32, 1, len(keys)+1)
	var text []byte
	for _, key := range keys {
		text = append(text, key...)
		ends = append(ends, int32(len(text)))
	}
	return array.NewData(t, len(keys), []*memory.Buffer{nil, memory.NewBufferBytes(mem.AsBytes(ends)), memory.NewBufferBytes(text)}, nil, 0, 0)
}

func (n *names) bits(keys [][]byte) []int64 {
	bits := make([]int64, len(keys))
	for i, key := range keys {
		bits[i] = n.ids.Type.Bits(key)
	}
	return bits
}

// write writes a column of ids to a Parquet file.
func (n *names) write(chunk file.ColumnChunkWriter, keys [][]byte) (err error) {
	switch w := chunk.(type) {
	case *file.ByteArrayColumnChunkWriter:
		text := make([]parquet.ByteArray, len(keys))
		for i, key := range keys {
			text[i] = key
		}
		_, err = w.WriteBatch(text, nil, nil)
	case *file.Int64ColumnChunkWriter:
		_, err = w.WriteBatch(n.bits(keys), nil, nil)
	default:
		err = errors.New("no writer for ids")
	}
	return err
}
