package arrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/internal/half"
)

// batch is the number of values that are read at a time.
const batch = 1024

// reader gives the rows of a record batch.
type reader struct {
	f       *File
	unit    int
	opener  *opener
	left    int64
	columns []column
}

// column reads a column.
type column interface {
	next(n int, v *columnar.Values) error
}

// Close implements columnar.Reader.
func (r *reader) Close() error {
	r.opener.close()
	r.opener.room.Close()
	return nil
}

// wanted holds some columns of a record batch.
type wanted struct {
	codec   int
	columns []*placed
	parents [][]*placed // of each column: the structs that it lies in
}

// find finds the buffers of columns in a record batch.
func (f *File) find(u *unit, columns []int) (w wanted, err error) {
	t, err := f.message(u.block, batchMessage)
	if err != nil {
		return w, err
	}
	l, err := lay(t, u.block, f.version)
	if err != nil {
		return w, err
	}
	var all []*placed
	for _, n := range f.schema {
		p := l.place(n, false)
		if p.rows != u.rows {
			t.of.bad = true
		}
		all = append(all, p)
	}
	if t.of.bad {
		return w, errLayout
	}
	w.codec, w.parents = l.codec, make([][]*placed, len(columns))
	for k, c := range columns {
		field := &f.columns[c]
		if field.Type.Kind == columnar.Other {
			return w, graph.BadData(f.name, "column %q is of type %s, which is not read", field.Name, field.Type.Name)
		}
		p := all[field.path[0]]
		for _, at := range field.path[1:] {
			w.parents[k] = append(w.parents[k], p)
			p = p.children[at]
		}
		w.columns = append(w.columns, p)
	}
	return w, nil
}

// Read implements columnar.File.
func (f *File) Read(i int, columns []int, widest int) (_ columnar.Reader, err error) {
	u := f.units[i]
	r := &reader{f: f, unit: i, left: u.rows, opener: &opener{f: f, codec: noCodec}}
	defer func() {
		if err != nil {
			_ = r.Close()
			err = r.damaged("", err)
		}
	}()
	w, err := f.find(&u, columns)
	if err != nil {
		return nil, err
	}
	r.opener.codec = w.codec
	if _, err := r.opener.prepare(w.columns); err != nil {
		return nil, err
	}
	for k, p := range w.columns {
		field := &f.columns[columns[k]]
		c, err := r.column(field, p, w.parents[k], u.dictionaries, widest)
		if err != nil {
			return nil, r.damaged(field.Name, err)
		}
		r.columns = append(r.columns, c)
	}
	return r, nil
}

// damaged names the place of an error.
func (r *reader) damaged(column string, err error) error {
	var fault *graph.Fault
	if errors.As(err, &fault) {
		return err
	}
	where := ""
	if column != "" {
		where = fmt.Sprintf("column %q: ", column)
	}
	var large tooLarge
	if errors.As(err, &large) {
		return graph.BadData(r.f.name, "record batch %d %v", r.unit, err)
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("a buffer ends too early")
	}
	return graph.Damaged(r.f.name, fmt.Errorf("record batch %d: %s%w: it is damaged, write it again", r.unit, where, err))
}

// Next implements columnar.Reader.
func (r *reader) Next(n int, to []columnar.Values) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n = int(min(int64(n), r.left))
	for i, c := range r.columns {
		to[i].Reset()
		if err := c.next(n, &to[i]); err != nil {
			return 0, r.damaged("", err)
		}
	}
	r.left -= int64(n)
	return n, nil
}

// column opens a column of a record batch.
func (r *reader) column(f *field, p *placed, parents []*placed, dictionaries, widest int) (column, error) {
	switch f.Type.Kind {
	case columnar.List:
		return r.list(p, parents, widest, false)
	case columnar.Vector:
		v := &vector{}
		in := append(parents[:len(parents):len(parents)], p)
		var err error
		for i, c := range p.children {
			if i < columnar.VectorIndices {
				v.parts[i], err = r.leaf(c, in, dictionaries)
			} else {
				v.parts[i], err = r.list(c, in, widest, i == columnar.VectorIndices)
			}
			if err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	return r.leaf(p, parents, dictionaries)
}

// leaf reads values that are no lists.
type leaf struct {
	node       *node
	kind       columnar.Type
	valid      []*bitStream // its own, and those of structs around it
	bits       *bitStream   // of booleans
	data       *stream
	text       *stream
	views      *viewData
	offset     int64 // of the text that comes next
	started    bool
	dictionary *columnar.Values
	flags      []bool
	width      int
	scratch    []byte
}

func (r *reader) validity(p *placed, to []*bitStream) ([]*bitStream, error) {
	if p.nulls == 0 || p.validity.size == 0 {
		return to, nil
	}
	s, err := r.opener.open(p.validity)
	return append(to, &bitStream{s: s}), err
}

// leaf opens a leaf. dictionaries is the number of dictionaries of the file that count.
func (r *reader) leaf(p *placed, parents []*placed, dictionaries int) (l *leaf, err error) {
	l = &leaf{node: p.node, kind: p.node.value()}
	for _, parent := range append(parents[:len(parents):len(parents)], p) {
		if l.valid, err = r.validity(parent, l.valid); err != nil {
			return nil, err
		}
	}
	if len(p.buffers) == 0 { // nothing but nulls
		return l, nil
	}
	if l.data, err = r.opener.open(p.buffers[0]); err != nil {
		return nil, err
	}
	switch {
	case p.isDictionary:
		l.width = p.node.indexBits / 8
		l.dictionary, err = r.f.load(p.node, dictionaries)
	case p.node.id == typeBool:
		l.bits = &bitStream{s: l.data}
	case p.node.id == typeUTF8View || p.node.id == typeBinaryView:
		l.width, l.views = 16, &viewData{o: r.opener, extents: p.data}
	case p.node.id == typeFixedBinary:
		l.width = p.node.size
	default:
		if l.width = p.node.bits / 8; len(p.buffers) > 1 {
			l.text, err = r.opener.open(p.buffers[1])
		}
	}
	return l, err
}

// next reads n values.
func (l *leaf) next(n int, v *columnar.Values) error {
	for n > 0 {
		some := min(n, batch)
		if err := l.some(some, n, v); err != nil {
			return err
		}
		n -= some
	}
	return nil
}

func (l *leaf) some(n, rest int, v *columnar.Values) (err error) {
	at := max(len(v.Ints), len(v.Floats), len(v.Text))
	isNull := func(i int) bool { return v.IsNull(at + i) }
	for _, valid := range l.valid {
		if l.flags, err = valid.next(l.flags[:0], n); err != nil {
			return err
		}
		for i, ok := range l.flags {
			if !ok {
				v.SetNull(at+i, at+rest)
			}
		}
	}
	switch {
	case l.data == nil:
		for i := range n {
			v.SetNull(at+i, at+rest)
		}
		v.Ints = append(v.Ints, make([]int64, n)...)
		return nil
	case l.bits != nil:
		if l.flags, err = l.bits.next(l.flags[:0], n); err != nil {
			return err
		}
		for _, is := range l.flags {
			x := int64(0)
			if is {
				x = 1
			}
			v.Ints = append(v.Ints, x)
		}
		return nil
	case l.text != nil:
		return l.texts(n, isNull, v)
	}
	b, err := l.data.next(n * l.width)
	if err != nil {
		return err
	}
	if l.dictionary != nil {
		return l.look(b, n, at, rest, v)
	}
	switch l.kind.Kind {
	case columnar.Float:
		for i := range n {
			v.Floats = append(v.Floats, floatOf(b[i*l.width:], l.width))
		}
	case columnar.Decimal:
		for i := range n {
			l.scratch = append(l.scratch[:0], b[i*l.width:(i+1)*l.width]...)
			slices.Reverse(l.scratch)
			if err := v.AddText(columnar.AppendBigDecimal(nil, l.scratch, l.node.scale)); err != nil {
				return err
			}
		}
	case columnar.Text:
		for i := range n {
			text := b[i*l.width : (i+1)*l.width]
			switch {
			case isNull(i):
				v.Text = append(v.Text, nil)
				continue
			case l.views == nil:
				l.scratch = columnar.AppendUUID(l.scratch[:0], text)
				text = l.scratch
			default:
				if text, err = l.view(text); err != nil {
					return err
				}
			}
			if err := v.AddText(text); err != nil {
				return err
			}
		}
	default:
		for i := range n {
			v.Ints = append(v.Ints, intOf(b[i*l.width:], l.width, l.node.id != typeInt || l.node.signed))
		}
	}
	return nil
}

// view finds the text of a view.
func (l *leaf) view(b []byte) ([]byte, error) {
	size := int64(int32(binary.LittleEndian.Uint32(b)))
	if size < 0 {
		return nil, errLayout
	}
	if size <= 12 {
		return b[4 : 4+size], nil
	}
	return l.views.get(int(int32(binary.LittleEndian.Uint32(b[8:]))), int64(int32(binary.LittleEndian.Uint32(b[12:]))), size)
}

// texts reads text that lies between offsets.
func (l *leaf) texts(n int, isNull func(int) bool, v *columnar.Values) error {
	if !l.started {
		b, err := l.data.next(l.width)
		if err != nil {
			return err
		}
		l.offset, l.started = intOf(b, l.width, true), true
		if l.offset < 0 {
			return errLayout
		}
		if err := l.text.skip(l.offset); err != nil {
			return err
		}
	}
	offsets, err := l.data.next(n * l.width)
	if err != nil {
		return err
	}
	for i := range n {
		end := intOf(offsets[i*l.width:], l.width, true)
		size := end - l.offset
		if size < 0 {
			return errLayout
		}
		l.offset = end
		if isNull(i) {
			v.Text = append(v.Text, nil)
			if err := l.text.skip(size); err != nil {
				return err
			}
			continue
		}
		if size > columnar.MaxText {
			return columnar.ErrText
		}
		text, err := l.text.next(int(size))
		if err != nil {
			return err
		}
		if err := v.AddText(text); err != nil {
			return err
		}
	}
	return nil
}

// look finds values in the dictionary.
func (l *leaf) look(b []byte, n, at, rest int, v *columnar.Values) error {
	d := l.dictionary
	size := int64(max(len(d.Ints), len(d.Floats), len(d.Text)))
	for i := range n {
		id := int64(-1)
		if !v.IsNull(at + i) {
			if id = intOf(b[i*l.width:], l.width, l.node.indexSigned); id < 0 || id >= size {
				return errors.New("a value lies outside of its dictionary")
			}
			if d.IsNull(int(id)) {
				v.SetNull(at+i, at+rest)
				id = -1
			}
		}
		switch {
		case l.kind.Kind == columnar.Text || l.kind.Kind == columnar.Decimal:
			var text []byte
			if id >= 0 {
				text = d.Text[id]
			}
			v.Text = append(v.Text, text)
		case l.kind.Kind == columnar.Float:
			x := 0.0
			if id >= 0 {
				x = d.Floats[id]
			}
			v.Floats = append(v.Floats, x)
		default:
			x := int64(0)
			if id >= 0 {
				x = d.Ints[id]
			}
			v.Ints = append(v.Ints, x)
		}
	}
	return nil
}

func intOf(b []byte, width int, signed bool) int64 {
	switch width {
	case 1:
		if signed {
			return int64(int8(b[0]))
		}
		return int64(b[0])
	case 2:
		if x := binary.LittleEndian.Uint16(b); !signed {
			return int64(x)
		} else {
			return int64(int16(x))
		}
	case 4:
		if x := binary.LittleEndian.Uint32(b); !signed {
			return int64(x)
		} else {
			return int64(int32(x))
		}
	}
	return int64(binary.LittleEndian.Uint64(b))
}

func floatOf(b []byte, width int) float64 {
	switch width {
	case 2:
		return float64(half.Float(binary.LittleEndian.Uint16(b)))
	case 4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return math.Float64frombits(binary.LittleEndian.Uint64(b))
}

// list reads lists of numbers.
type list struct {
	valid   []*bitStream
	flags   []bool
	offsets *stream
	width   int // of offsets
	size    int // of fixed lists
	place   int64
	started bool
	widest  int
	whole   bool // its numbers go to Ints, too

	items *leaf
	got   columnar.Values
	at, n int
	done  int64 // items that were read or passed over
}

func (r *reader) list(p *placed, parents []*placed, widest int, whole bool) (l *list, err error) {
	l = &list{size: p.node.size, widest: widest, whole: whole}
	for _, parent := range append(parents[:len(parents):len(parents)], p) {
		if l.valid, err = r.validity(parent, l.valid); err != nil {
			return nil, err
		}
	}
	if len(p.children) != 1 {
		return nil, errLayout
	}
	if l.items, err = r.leaf(p.children[0], nil, 0); err != nil {
		return nil, err
	}
	if len(p.buffers) > 0 {
		l.width = p.node.bits / 8
		l.offsets, err = r.opener.open(p.buffers[0])
	}
	return l, err
}

// next reads n lists.
func (l *list) next(n int, v *columnar.Values) (err error) {
	for _, valid := range l.valid {
		if l.flags, err = valid.next(l.flags[:0], n); err != nil {
			return err
		}
		for i, ok := range l.flags {
			if !ok {
				v.SetNull(i, n)
			}
		}
	}
	var offsets []byte
	if l.offsets != nil {
		if !l.started {
			b, err := l.offsets.next(l.width)
			if err != nil {
				return err
			}
			l.place, l.started = intOf(b, l.width, true), true
		}
		if offsets, err = l.offsets.next(n * l.width); err != nil {
			return err
		}
	}
	for i := range n {
		end := l.place + int64(l.size)
		if l.offsets != nil {
			end = intOf(offsets[i*l.width:], l.width, true)
		}
		size := end - l.place
		if size < 0 || l.place < 0 {
			return errLayout
		}
		if !v.IsNull(i) {
			if size > int64(l.widest) {
				return fmt.Errorf("has a list of %d numbers, of more than %d", size, l.widest)
			}
			if err := l.take(l.place, int(size), v); err != nil {
				return err
			}
		}
		v.Ends = append(v.Ends, len(v.List))
		l.place = end
	}
	return nil
}

// take appends the numbers of a list that begins at an item.
func (l *list) take(from int64, size int, v *columnar.Values) error {
	for l.done < from+int64(size) {
		if l.at == l.n {
			l.got.Reset()
			l.at, l.n = 0, int(min(batch, from+int64(size)-l.done))
			if err := l.items.next(l.n, &l.got); err != nil {
				return err
			}
		}
		i := l.at
		l.at++
		if l.done++; l.done <= from {
			continue
		}
		hole := l.got.IsNull(i)
		x, exact := l.got.Number(l.items.kind.Kind, i)
		v.AddNumber(x, hole)
		if l.whole {
			v.Ints = append(v.Ints, exact)
		}
	}
	return nil
}

// vector reads vectors of Spark ML.
type vector struct {
	parts [len(columnar.VectorParts)]column
	got   [len(columnar.VectorParts)]columnar.Values
}

func (c *vector) next(n int, v *columnar.Values) error {
	for i, p := range c.parts {
		c.got[i].Reset()
		if err := p.next(n, &c.got[i]); err != nil {
			return err
		}
	}
	return v.SetVectors(n, &c.got)
}
