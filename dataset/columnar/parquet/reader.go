package parquet

import (
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset/columnar"
	"ndls/internal/half"
)

// reader gives the rows of some columns of a row group.
type reader struct {
	f       *File
	columns []columnReader
	left    int64
	shared  shared
}

// columnReader reads a column.
type columnReader struct {
	field  *field
	leaves []*leafReader
	parts  [len(columnar.VectorParts)]columnar.Values // of a vector
}

// Close implements columnar.Reader.
func (r *reader) Close() error {
	r.shared.Close()
	return nil
}

// Next implements columnar.Reader.
func (r *reader) Next(n int, to []columnar.Values) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n = int(min(int64(n), r.left))
	for i := range r.columns {
		c := &r.columns[i]
		v := &to[i]
		v.Reset()
		var err error
		switch {
		case c.field.Type.Kind == columnar.Vector:
			err = c.vectors(n, v)
		case c.field.Type.Kind == columnar.List:
			err = c.leaves[0].lists(n, v, false)
		default:
			err = c.leaves[0].flat(n, v)
		}
		if err == nil && int64(n) == r.left {
			err = c.ended()
		}
		if err != nil {
			return 0, damaged(r.f.name, c.field.Name, err)
		}
	}
	r.left -= int64(n)
	return n, nil
}

var errMore = errors.New("has more values than rows")

// ended reports whether all values belonged to a row.
func (c *columnReader) ended() error {
	for _, l := range c.leaves {
		if l.values > 0 || l.inPage > 0 || l.at < l.n {
			return errMore
		}
	}
	return nil
}

// leafReader reads the values of a leaf in a row group.
type leafReader struct {
	node     *node
	kind     columnar.Type
	pages    *pages
	decoder  decoder
	rep, def levels
	values   int64 // that are not in a page yet
	inPage   int   // levels left in the page
	widest   int

	reps, defs [batch]uint32
	at, n      int // of reps and defs
	numbers    [batch]int64
	listed     columnar.Values // the values of lists
	text       []byte
}

func (f *File) leaf(c *field, n *node, g *group, widest int, s *shared) (*leafReader, error) {
	p, err := f.pages(c, n, g, s)
	if err != nil {
		return nil, err
	}
	l := &leafReader{node: n, kind: n.primitive(), pages: p, values: g.chunks[n.leaf].values, widest: widest}
	l.rep.largest, l.def.largest = uint32(n.repetition), uint32(n.definition)
	l.decoder.physical, l.decoder.size = n.physical, p.dict.size
	return l, nil
}

// page goes to the next page with values.
func (l *leafReader) page() error {
	for l.inPage == 0 {
		if l.values == 0 {
			return io.ErrUnexpectedEOF
		}
		h, rep, def, values, err := l.pages.next()
		if err != nil {
			return err
		}
		if int64(h.values) > l.values {
			return errMore
		}
		sized := h.kind == dataPageV2
		if values, err = l.rep.begin(values, rep, sized, h.repEncoding, h.values); err != nil {
			return err
		}
		if values, err = l.def.begin(values, def, sized, h.defEncoding, h.values); err != nil {
			return err
		}
		var dict *dictionary
		if l.pages.hasDict {
			dict = &l.pages.dict
		}
		if err := l.decoder.reset(h.encoding, values, dict); err != nil {
			return err
		}
		l.inPage = h.values
		l.values -= int64(h.values)
	}
	return nil
}

// flat reads n values of a column without lists.
func (l *leafReader) flat(n int, v *columnar.Values) error {
	for at := 0; at < n; {
		if err := l.page(); err != nil {
			return err
		}
		some := min(n-at, l.inPage, batch)
		full, present := l.def.full(some), some
		if !full {
			present = 0
			if err := l.def.read(l.defs[:some]); err != nil {
				return err
			}
			for _, d := range l.defs[:some] {
				if d == l.def.largest {
					present++
				}
			}
		}
		if err := l.take(v, present); err != nil {
			return err
		}
		if present < some {
			l.spread(v, at, some, present, n)
		}
		l.inPage -= some
		at += some
	}
	return nil
}

// spread makes room for nulls between values that were taken.
func (l *leafReader) spread(v *columnar.Values, at, some, present, rows int) {
	for i, d := range l.defs[:some] {
		if d != l.def.largest {
			v.SetNull(at+i, rows)
		}
	}
	from := present
	move := func(set func(to, from int), zero func(to int)) {
		for i := some - 1; i >= 0; i-- {
			if l.defs[i] == l.def.largest {
				from--
				set(at+i, at+from)
			} else {
				zero(at + i)
			}
		}
	}
	switch l.kind.Kind {
	case columnar.Text, columnar.Decimal:
		v.Text = append(v.Text, make([][]byte, some-present)...)
		move(func(to, from int) { v.Text[to] = v.Text[from] }, func(to int) { v.Text[to] = nil })
	case columnar.Float:
		v.Floats = append(v.Floats, make([]float64, some-present)...)
		move(func(to, from int) { v.Floats[to] = v.Floats[from] }, func(to int) { v.Floats[to] = 0 })
	default:
		v.Ints = append(v.Ints, make([]int64, some-present)...)
		move(func(to, from int) { v.Ints[to] = v.Ints[from] }, func(to int) { v.Ints[to] = 0 })
	}
}

// take appends n values that are there.
func (l *leafReader) take(v *columnar.Values, n int) error {
	switch l.kind.Kind {
	case columnar.Null:
		v.Ints = append(v.Ints, make([]int64, n)...)
		if n > 0 {
			return fmt.Errorf("has values, and its type is null")
		}
		return nil
	case columnar.Text:
		return l.decoder.bytes(n, func(b []byte, keeps bool) error {
			if l.kind.Name == "uuid" {
				l.text = columnar.AppendUUID(l.text[:0], b)
				return v.AddText(l.text)
			}
			if !keeps {
				return v.AddText(b)
			}
			v.Text = append(v.Text, b)
			return nil
		})
	case columnar.Decimal:
		return l.decimals(n, v.AddText)
	case columnar.Float:
		start := len(v.Floats)
		v.Floats = append(v.Floats, make([]float64, n)...)
		return l.floats(v.Floats[start:])
	}
	start := len(v.Ints)
	if v.Ints = append(v.Ints, make([]int64, n)...); l.node.physical == int96s {
		return l.moments(v.Ints[start:])
	}
	if err := l.decoder.numbers(v.Ints[start:]); err != nil {
		return err
	}
	l.narrow(v.Ints[start:])
	return nil
}

// narrow takes the sign from numbers of up to 32 bits that have none.
func (l *leafReader) narrow(ints []int64) {
	if l.node.annotation() == logicalInteger && !l.node.isSigned && l.node.bits < 64 {
		for i, x := range ints {
			ints[i] = int64(uint32(x))
		}
	}
}

// moments reads timestamps of 96 bits as nanoseconds.
func (l *leafReader) moments(to []int64) error {
	i := 0
	return l.decoder.bytes(len(to), func(b []byte, _ bool) error {
		var parts [1]int64
		get(parts[:], b, 8, true)
		nanos := parts[0]
		get(parts[:], b[8:], 4, true)
		to[i] = (parts[0]-2440588)*86400e9 + nanos
		i++
		return nil
	})
}

// floats reads numbers with a fraction.
func (l *leafReader) floats(to []float64) error {
	if l.node.physical == fixedArrays { // of 16 bits
		i := 0
		return l.decoder.bytes(len(to), func(b []byte, _ bool) error {
			to[i] = float64(half.Float(uint16(b[0]) | uint16(b[1])<<8))
			i++
			return nil
		})
	}
	for len(to) > 0 {
		numbers := l.numbers[:min(batch, len(to))]
		if err := l.decoder.numbers(numbers); err != nil {
			return err
		}
		if l.node.physical == floats {
			for i, x := range numbers {
				to[i] = float64(math.Float32frombits(uint32(x)))
			}
		} else {
			for i, x := range numbers {
				to[i] = math.Float64frombits(uint64(x))
			}
		}
		to = to[len(numbers):]
	}
	return nil
}

// decimals visits decimals as text.
func (l *leafReader) decimals(n int, visit func(text []byte) error) error {
	if l.node.physical == byteArrays || l.node.physical == fixedArrays {
		return l.decoder.bytes(n, func(b []byte, _ bool) error {
			if len(b) > 64 {
				return errors.New("has decimals of more than 64 bytes")
			}
			if len(b) == 0 {
				return errors.New("has decimals of no bytes")
			}
			l.text = columnar.AppendBigDecimal(l.text[:0], b, l.node.scale)
			return visit(l.text)
		})
	}
	for n > 0 {
		numbers := l.numbers[:min(batch, n)]
		if err := l.decoder.numbers(numbers); err != nil {
			return err
		}
		for _, x := range numbers {
			l.text = columnar.AppendDecimal(l.text[:0], x, l.node.scale)
			if err := visit(l.text); err != nil {
				return err
			}
		}
		n -= len(numbers)
	}
	return nil
}

// level moves to the next pair of levels; at io.EOF there are no more.
func (l *leafReader) level() error {
	if l.at < l.n {
		return nil
	}
	if l.inPage == 0 && l.values == 0 {
		return io.EOF
	}
	if err := l.page(); err != nil {
		return err
	}
	l.at, l.n = 0, min(l.inPage, batch)
	if err := l.rep.read(l.reps[:l.n]); err != nil {
		return err
	}
	if err := l.def.read(l.defs[:l.n]); err != nil {
		return err
	}
	l.inPage -= l.n
	return nil
}

// lists reads n lists. The numbers of whole ones go to Ints, too.
func (l *leafReader) lists(n int, v *columnar.Values, whole bool) error {
	present := uint32(l.node.present)
	for row := 0; ; {
		if err := l.level(); err == io.EOF && row == n {
			break
		} else if err != nil {
			return err
		}
		// What follows in the same row, or begins the next ones, up to the end of the levels.
		from, values := l.at, 0
		done := false
		for ; l.at < l.n; l.at++ {
			if l.reps[l.at] == 0 {
				if row == n {
					done = true
					break
				}
				row++
			} else if row == 0 {
				return errors.New("a list begins in the middle")
			}
			if l.defs[l.at] == l.def.largest {
				values++
			}
		}
		if err := l.takeList(v, from, values, present, n, whole); err != nil {
			return err
		}
		if done {
			break
		}
	}
	for len(v.Ends) < n {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// takeList takes the values of levels from on.
func (l *leafReader) takeList(v *columnar.Values, from, values int, present uint32, rows int, whole bool) error {
	l.listed.Reset()
	if err := l.take(&l.listed, values); err != nil {
		return err
	}
	taken := 0
	for i := from; i < l.at; i++ {
		if l.reps[i] == 0 {
			v.Ends = append(v.Ends, len(v.List))
		} else if l.defs[i] < present {
			return errLevels
		}
		switch d := l.defs[i]; {
		case d == l.def.largest:
			x, exact := l.listed.Number(l.kind.Kind, taken)
			taken++
			v.AddNumber(x, false)
			if whole {
				v.Ints = append(v.Ints, exact)
			}
		case d >= present:
			v.AddNumber(0, true)
			if whole {
				v.Ints = append(v.Ints, 0)
			}
		case d+1 < present: // the list itself is null; else it is empty
			v.SetNull(len(v.Ends)-1, rows)
		}
		row := len(v.Ends) - 1
		start := 0
		if row > 0 {
			start = v.Ends[row-1]
		}
		if v.Ends[row] = len(v.List); v.Ends[row]-start > l.widest {
			return tooWide(l.widest)
		}
	}
	return nil
}

// tooWide reports a list that is longer than features can be.
type tooWide int

func (n tooWide) Error() string { return fmt.Sprintf("has a list of more than %d numbers", int(n)) }

// vectors reads n vectors of Spark ML.
func (c *columnReader) vectors(n int, v *columnar.Values) error {
	for i, l := range c.leaves {
		c.parts[i].Reset()
		var err error
		if i < columnar.VectorIndices {
			err = l.flat(n, &c.parts[i])
		} else {
			err = l.lists(n, &c.parts[i], i == columnar.VectorIndices)
		}
		if err != nil {
			return err
		}
	}
	return v.SetVectors(n, &c.parts)
}
