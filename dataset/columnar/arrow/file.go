package arrow

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/internal/mem"
)

const (
	// magic begins and ends an Arrow file.
	magic = "ARROW1"
	// feather begins a file of the first version of Feather.
	feather = "FEA1"
	// maxMetadata bounds the metadata of a message and the footer, which are read into memory.
	maxMetadata = 32 << 20
	// maxRows is the most rows of a record batch.
	maxRows = 1 << 36
)

// The kinds of messages.
const (
	schemaMessage     = 1
	dictionaryMessage = 2
	batchMessage      = 3
)

// block is the place of a message.
type block struct {
	at       int64 // of its metadata
	metadata int
	body     int64
}

// unit is a record batch.
type unit struct {
	block
	first, rows int64
	// dictionaries is the number of dictionaries of the file that come before the batch.
	dictionaries int
}

// File is an open file or stream of Arrow.
type File struct {
	name         string
	src          *source.Source
	size         int64
	columns      []field
	schema       []*node
	version      int // of the metadata: 3 is V4, 4 is V5
	units        []unit
	dictionaries []block
	ids          []int64 // of the dictionaries
	isStream     bool
	rows         int64

	mu     sync.Mutex
	loaded map[int64]dictionary // by id, held under mu
}

var errMessage = errors.New("the head of a message is damaged")

// Open reads the schema of a file or stream, and where its record batches are.
func Open(src *source.Source) (*File, error) {
	if src.Unpack != nil {
		return nil, graph.BadData(src.Name, "is a packed Arrow file: unpack it")
	}
	f := &File{name: src.Name, src: src, size: src.End - src.Off}
	if f.size == 0 {
		return nil, graph.BadData(src.Name, "is empty (0 bytes): write it again, or remove it")
	}
	err := f.open()
	var fault *graph.Fault
	switch {
	case err == nil || errors.As(err, &fault):
		return f, err
	case errors.Is(err, errEndian):
		return nil, graph.BadData(src.Name, "%v", err)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, graph.Damaged(src.Name, err)
	}
	return nil, graph.BadData(src.Name, "%v: it is damaged or no Arrow IPC file, write it again", err)
}

func (f *File) open() error {
	head := make([]byte, min(f.size, 8))
	if err := f.read(head, 0); err != nil {
		return err
	}
	switch {
	case len(head) >= len(feather) && string(head[:len(feather)]) == feather:
		return graph.BadData(f.name, "is a Feather file of version 1, which is not read: write version 2 (pyarrow.feather.write_feather)")
	case len(head) >= len(magic) && string(head[:len(magic)]) == magic:
		return f.openFile()
	}
	f.isStream = true
	return f.openStream()
}

// read fills b from byte at of the file.
func (f *File) read(b []byte, at int64) error {
	if at < 0 || int64(len(b)) > f.size-at {
		return io.ErrUnexpectedEOF
	}
	n, err := f.src.File.ReadAt(b, f.src.Off+at)
	if n == len(b) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// openFile reads the footer.
func (f *File) openFile() error {
	tail := make([]byte, 4+len(magic))
	if f.size < int64(8+len(tail)) {
		return errors.New("it is too short")
	}
	if err := f.read(tail, f.size-int64(len(tail))); err != nil {
		return err
	}
	n := int64(int32(binary.LittleEndian.Uint32(tail)))
	if string(tail[4:]) != magic || n <= 0 || n > f.size-int64(len(tail)) {
		return errors.New("it does not end as an Arrow file does")
	}
	if n > maxMetadata {
		return fmt.Errorf("its footer has %s, more than is read", mem.Bytes(n))
	}
	b := &buffer{b: make([]byte, n)}
	if err := f.read(b.b, f.size-int64(len(tail))-n); err != nil {
		return err
	}
	footer := b.root()
	schema, ok := footer.inner(1)
	if !ok {
		return errors.New("its footer is damaged")
	}
	if f.version = footer.i16(0, 0); f.version < 3 {
		return fmt.Errorf("its metadata is of version V%d, of before Arrow 0.8", f.version+1)
	}
	if err := f.fields(schema); err != nil {
		return err
	}
	blocks := func(number int) (all []block) {
		at, n := footer.vector(number, 24)
		for i := range n {
			all = append(all, block{b.i64(at + 24*i), b.i32(at + 24*i + 8), b.i64(at + 24*i + 16)})
		}
		return all
	}
	f.dictionaries = blocks(2)
	batches := blocks(3)
	if b.bad {
		return errors.New("its footer is damaged")
	}
	for i, d := range f.dictionaries {
		m, err := f.message(d, dictionaryMessage)
		if err != nil {
			return fmt.Errorf("dictionary %d: %w", i, err)
		}
		f.ids = append(f.ids, m.i64(0))
	}
	for i, d := range batches {
		m, err := f.message(d, batchMessage)
		if err == nil {
			err = f.addBatch(d, m.i64(0))
		}
		if err != nil {
			return fmt.Errorf("record batch %d: %w", i, err)
		}
	}
	return nil
}

func (f *File) fields(schema table) (err error) {
	if f.schema, err = readSchema(schema); err == nil {
		f.columns = columns(f.schema)
	}
	return err
}

func (f *File) addBatch(b block, rows int64) error {
	if rows < 0 || rows > maxRows {
		return errMessage
	}
	f.units = append(f.units, unit{b, f.rows, rows, len(f.dictionaries)})
	f.rows += rows
	return nil
}

// message reads the head of a message of a kind. The block comes from a footer, or from a stream.
func (f *File) message(at block, kind int) (table, error) {
	t, got, _, err := f.anyMessage(at)
	if err == nil && got != kind {
		err = errMessage
	}
	return t, err
}

// anyMessage is message of any kind. It returns the kind, and the size of the body.
func (f *File) anyMessage(at block) (t table, kind int, body int64, err error) {
	if at.metadata < 8 || at.metadata > maxMetadata || at.body < 0 || at.at < 0 || int64(at.metadata) > f.size-at.at ||
		at.body > f.size-at.at-int64(at.metadata) {
		return t, 0, 0, errMessage
	}
	b := make([]byte, at.metadata)
	if err := f.read(b, at.at); err != nil {
		return t, 0, 0, err
	}
	if binary.LittleEndian.Uint32(b) == continuation {
		b = b[4:]
	}
	buf := &buffer{b: b[4:]}
	m := buf.root()
	if f.version == 0 {
		f.version = m.i16(0, 0)
	}
	kind, body = m.i8(1), m.i64(3)
	t, ok := m.inner(2)
	if !ok || buf.bad {
		return t, 0, 0, errMessage
	}
	return t, kind, body, nil
}

// continuation stands before the length of a message since Arrow 0.15.
const continuation = 0xffffffff

// openStream goes over the messages of a stream.
func (f *File) openStream() error {
	for at := int64(0); ; {
		head := make([]byte, 8)
		if left := f.size - at; left < 8 {
			clear(head)
			if left == 0 || left < 4 {
				break
			}
			head = head[:4]
		}
		if err := f.read(head, at); err != nil {
			return err
		}
		n, before := binary.LittleEndian.Uint32(head), int64(4)
		if n == continuation && len(head) == 8 {
			n, before = binary.LittleEndian.Uint32(head[4:]), 8
		}
		if n == 0 { // the end
			break
		}
		if int64(n) > min(maxMetadata, f.size-at-before) {
			if f.schema == nil {
				return errors.New("it does not begin as Arrow does")
			}
			return io.ErrUnexpectedEOF
		}
		m := block{at: at, metadata: int(before) + int(n)}
		t, kind, body, err := f.anyMessage(m)
		if err != nil {
			return err
		}
		if m.body = body; body < 0 || body > f.size-at-int64(m.metadata) {
			return io.ErrUnexpectedEOF
		}
		if f.schema == nil && kind != schemaMessage {
			return errMessage
		}
		switch kind {
		case schemaMessage:
			if f.schema != nil {
				return errors.New("it has two schemas")
			}
			if f.version < 3 {
				return fmt.Errorf("its metadata is of version V%d, of before Arrow 0.8", f.version+1)
			}
			if err := f.fields(t); err != nil {
				return err
			}
			if f.schema == nil {
				f.schema = []*node{}
			}
		case dictionaryMessage:
			f.dictionaries, f.ids = append(f.dictionaries, m), append(f.ids, t.i64(0))
		case batchMessage:
			if err := f.addBatch(m, t.i64(0)); err != nil {
				return err
			}
		}
		at += int64(m.metadata) + m.body
	}
	if f.schema == nil {
		return errors.New("it does not begin as Arrow does")
	}
	return nil
}

// Columns lists the columns: those of the schema first, then those inside of structs.
func (f *File) Columns() []columnar.Column {
	all := make([]columnar.Column, len(f.columns))
	for i, c := range f.columns {
		all[i] = c.Column
	}
	return all
}

// Rows is the number of rows.
func (f *File) Rows() int64 { return f.rows }

// Memory implements columnar.File: two buffers for each column, and what packed buffers of the largest record batch take. A batch that is
// damaged is reported where its rows are read.
func (f *File) Memory(columns []int) int64 {
	held := int64(len(columns)) * 2 * bufferSize
	if len(f.units) == 0 {
		return held
	}
	u := slices.MaxFunc(f.units, func(a, b unit) int { return cmp.Compare(a.body, b.body) })
	w, err := f.find(&u, columns)
	if err != nil {
		return held
	}
	packed, err := (&opener{f: f, codec: w.codec}).prepare(w.columns)
	if err != nil {
		return held
	}
	return held + packed
}

// Units is the number of record batches.
func (f *File) Units() int { return len(f.units) }

// Unit tells the first row of a record batch, and how many it has.
func (f *File) Unit(i int) (first, rows int64) { return f.units[i].first, f.units[i].rows }

// Check implements columnar.File: how buffers are stored is found when they are read.
func (f *File) Check(int) error { return nil }
