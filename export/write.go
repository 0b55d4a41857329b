package export

import (
	"bufio"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/share"
	"ndls/shards"
)

// newWriter writes rows of columns to out, with the ids that names finds.
func newWriter(format string, out io.Writer, columns []column, rows int64, names *names) (writer, error) {
	switch format {
	case "csv":
		w, err := newCSV(out, columns, names)
		return names.pieces(w, columns), err
	case "npy":
		w, err := newNPY(out, columns, rows, names)
		return names.pieces(w, columns), err
	case "parquet":
		w, err := newParquet(out, columns, names)
		return newBatched(w, columns, names), err
	default:
		w, err := newArrow(out, columns, names)
		return newBatched(w, columns, names), err
	}
}

// batchBytes is the number of bytes that a columnar writer receives at a time, and holds on the
// heap.
const batchBytes = 4 << 20

// batched cuts rows into batches whose size does not depend on how they come.
type batched struct {
	writer
	columns []column
	size    int
	rows    int
	held    [][]byte
}

func newBatched(w writer, columns []column, names *names) *batched {
	return &batched{writer: w, columns: columns, size: names.batch(columns), held: make([][]byte, len(columns))}
}

func (b *batched) write(cols [][]byte, n int) error {
	for at := 0; at < n; {
		end := min(at+b.size-b.rows, n)
		for i, c := range b.columns {
			b.held[i] = append(b.held[i], cols[i][at*c.size():end*c.size()]...)
		}
		b.rows += end - at
		at = end
		if b.rows == b.size {
			if err := b.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *batched) flush() error {
	err := b.writer.write(b.held, b.rows)
	b.rows = 0
	for i := range b.held {
		b.held[i] = b.held[i][:0]
	}
	return err
}

func (b *batched) close() error {
	if b.rows > 0 {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return b.writer.close()
}

type csvWriter struct {
	out     *bufio.Writer
	columns []column
	names   *names
	// lines is the text of some rows for each thread.
	lines [][]byte
}

const (
	// textBytes is about how long the text is that a thread makes at a time.
	textBytes = 64 << 10
	// mostText bounds how many threads make text.
	mostText = 16
)

func newCSV(out io.Writer, columns []column, names *names) (*csvWriter, error) {
	w := &csvWriter{
		out: bufio.NewWriterSize(out, 256<<10), columns: columns, names: names,
		lines: make([][]byte, min(runtime.GOMAXPROCS(0), mostText)),
	}
	var head []string
	for _, c := range columns {
		if c.list == 0 {
			head = append(head, c.name)
		}
		for i := range c.list {
			head = append(head, fmt.Sprintf("%s_%d", c.name, i))
		}
	}
	_, err := w.out.WriteString(strings.Join(head, ",") + "\n")
	return w, err
}

// write makes text of the rows on all threads, which take a stretch of rows each, and writes
// it in order.
func (w *csvWriter) write(cols [][]byte, n int) error {
	keys, err := w.names.find(w.columns, cols)
	if err != nil {
		return err
	}
	rows := max(textBytes/(3*rowSize(w.columns)), 1) // text is about three times as long
	for first := 0; first < n; first += rows * len(w.lines) {
		parts := min(len(w.lines), (n-first+rows-1)/rows)
		if err := share.Each(parts, parts, func(k int) error {
			lo := first + k*rows
			w.lines[k] = w.text(w.lines[k][:0], cols, keys, lo, min(lo+rows, n))
			return nil
		}); err != nil {
			return err
		}
		for _, text := range w.lines[:parts] {
			if _, err := w.out.Write(text); err != nil {
				return err
			}
		}
	}
	return nil
}

// text appends the lines of rows [lo, hi).
func (w *csvWriter) text(to []byte, cols [][]byte, keys [][][]byte, lo, hi int) []byte {
	for i := lo; i < hi; i++ {
		for c, col := range w.columns {
			if col.isID() {
				to = append(w.names.appendField(to, keys[c][i]), ',')
				continue
			}
			s := col.size()
			to = w.names.appendText(to, col, cols[c][i*s:(i+1)*s])
		}
		to[len(to)-1] = '\n'
	}
	return to
}

// appendText appends the values of one row of a column, each with a comma.
func (n *names) appendText(line []byte, c column, value []byte) []byte {
	switch c.kind {
	case int64Kind:
		line = strconv.AppendInt(line, view[int64](value)[0], 10)
	case int32Kind:
		line = strconv.AppendInt(line, int64(view[int32](value)[0]), 10)
	case uint32Kind:
		line = strconv.AppendUint(line, uint64(view[uint32](value)[0]), 10)
	case boolKind:
		line = strconv.AppendBool(line, value[0] != 0)
	case splitKind, classKind:
		if text := n.textOf(c, value); needsQuotes(text) {
			line = appendQuoted(line, text)
		} else {
			line = append(line, text...)
		}
	case float32Kind:
		for i, x := range view[float32](value) {
			if i > 0 {
				line = append(line, ',')
			}
			line = strconv.AppendFloat(line, float64(x), 'g', -1, 32)
		}
	}
	return append(line, ',')
}

func (w *csvWriter) close() error { return w.out.Flush() }

// npyWriter writes format version 1.0 of NumPy's NEP 1.
type npyWriter struct {
	out     *bufio.Writer
	columns []column
	names   *names
	// first is 1 where the id column is left out.
	first int
}

// numpyTypes spells the kinds as NumPy does, but for texts, which are padded with zero bytes.
var numpyTypes = []string{
	int64Kind: "<i8", int32Kind: "<i4", uint32Kind: "<u4", boolKind: "|b1", float32Kind: "<f4",
	int64IDKind: "<i8", uint64IDKind: "<u8",
}

// matrix gives the shape of a row where columns are written as an ordinary matrix, from column
// first on: a list of numbers for each id, whose row number stands for the id; hops, each of
// which is a list; or columns that are all alike. Otherwise there is no shape.
func matrix(columns []column) (first int, shape []int) {
	same := func(c column) bool { return c.kind == columns[1].kind && c.list == columns[1].list }
	switch {
	case len(columns) > 1 && shards.IsHop(columns[1].name) && !slices.ContainsFunc(columns[1:], func(c column) bool { return !same(c) }):
		return 1, []int{len(columns) - 1, columns[1].list}
	case len(columns) == 2 && columns[1].list > 0:
		return 1, []int{columns[1].list}
	}
	for _, c := range columns {
		if c.kind != columns[0].kind || c.list > 0 {
			return 0, nil
		}
	}
	return 0, []int{len(columns)}
}

func newNPY(out io.Writer, columns []column, rows int64, names *names) (*npyWriter, error) {
	first, of := matrix(columns)
	w := &npyWriter{bufio.NewWriterSize(out, 256<<10), columns, names, first}
	descr, shape := fmt.Sprintf("'%s'", w.numpyType(columns[first])), fmt.Sprintf("(%d", rows)
	for _, n := range of {
		shape += fmt.Sprintf(", %d", n)
	}
	shape += ")"
	if of == nil {
		var fields []string
		for _, c := range columns {
			field := fmt.Sprintf("('%s', '%s'", c.name, w.numpyType(c))
			if c.list > 0 {
				field += fmt.Sprintf(", (%d,)", c.list)
			}
			fields = append(fields, field+")")
		}
		descr, shape = "["+strings.Join(fields, ", ")+"]", fmt.Sprintf("(%d,)", rows)
	}
	_, err := w.out.Write(npyHead(descr, shape))
	return w, err
}

// numpyType is the type of a column's values.
func (w *npyWriter) numpyType(c column) string {
	switch {
	case c.kind == textIDKind:
		return fmt.Sprintf("|S%d", w.names.width())
	case c.isText():
		return fmt.Sprintf("|S%d", w.names.textWidth(c))
	}
	return numpyTypes[c.kind]
}

func (w *npyWriter) write(cols [][]byte, n int) error {
	keys, err := w.names.find(w.columns[w.first:], cols[w.first:])
	if err != nil {
		return err
	}
	for i := range n {
		for c := w.first; c < len(w.columns); c++ {
			col := w.columns[c]
			if col.isID() {
				if _, err := w.out.Write(w.names.stored(keys[c-w.first][i])); err != nil {
					return err
				}
				continue
			}
			s := col.size()
			value := cols[c][i*s : (i+1)*s]
			if col.isText() {
				name := make([]byte, w.names.textWidth(col))
				copy(name, w.names.textOf(col, value))
				value = name
			}
			if _, err := w.out.Write(value); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *npyWriter) close() error { return w.out.Flush() }

// bits packs one byte a value into one bit a value, lowest bit first.
func bits(values []byte) []byte {
	packed := make([]byte, (len(values)+7)/8)
	for i, b := range values {
		if b != 0 {
			packed[i/8] |= 1 << (i % 8)
		}
	}
	return packed
}
