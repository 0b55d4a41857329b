package arrow

import "encoding/binary"

// buffer is a FlatBuffer. What is read after damage is zero.
type buffer struct {
	b     []byte
	bad   bool
	texts int // bytes of text that were read: fields of a damaged file may share theirs
}

// table is a table in a FlatBuffer; one at 0 has no fields.
type table struct {
	of     *buffer
	at     int
	vtable int
	size   int // of the vtable
}

func (b *buffer) u8(at int) byte {
	if at < 0 || at >= len(b.b) {
		b.bad = true
		return 0
	}
	return b.b[at]
}

func (b *buffer) u16(at int) int {
	if at < 0 || at > len(b.b)-2 {
		b.bad = true
		return 0
	}
	return int(binary.LittleEndian.Uint16(b.b[at:]))
}

func (b *buffer) i32(at int) int {
	if at < 0 || at > len(b.b)-4 {
		b.bad = true
		return 0
	}
	return int(int32(binary.LittleEndian.Uint32(b.b[at:])))
}

func (b *buffer) i64(at int) int64 {
	if at < 0 || at > len(b.b)-8 {
		b.bad = true
		return 0
	}
	return int64(binary.LittleEndian.Uint64(b.b[at:]))
}

// offset follows the offset at a place.
func (b *buffer) offset(at int) int {
	to := at + b.i32(at)
	if to <= 0 || to >= len(b.b) || b.bad {
		b.bad = true
		return 0
	}
	return to
}

func (b *buffer) table(at int) table {
	vtable := at - b.i32(at)
	t := table{of: b, at: at, vtable: vtable, size: b.u16(vtable)}
	if b.bad || t.size < 4 {
		b.bad = true
		t.size = 0
	}
	return t
}

func (b *buffer) root() table { return b.table(b.offset(0)) }

// field returns the place of a field of a table, 0 if it is left out.
func (t table) field(number int) int {
	if slot := 4 + 2*number; slot+2 <= t.size && !t.of.bad {
		if off := t.of.u16(t.vtable + slot); off != 0 {
			return t.at + off
		}
	}
	return 0
}

func (t table) i64(number int) int64 {
	if at := t.field(number); at != 0 {
		return t.of.i64(at)
	}
	return 0
}

func (t table) i32(number, other int) int {
	if at := t.field(number); at != 0 {
		return t.of.i32(at)
	}
	return other
}

func (t table) i16(number, other int) int { //nolint:unparam // as its siblings: other fields of the format are no shorts
	if at := t.field(number); at != 0 {
		return t.of.u16(at)
	}
	return other
}

func (t table) i8(number int) int {
	if at := t.field(number); at != 0 {
		return int(t.of.u8(at))
	}
	return 0
}

// inner is a table in a field.
func (t table) inner(number int) (inner table, ok bool) {
	at := t.field(number)
	if at == 0 {
		return table{of: t.of}, false
	}
	return t.of.table(t.of.offset(at)), !t.of.bad
}

// vector returns the place of the elements of a vector, and their number.
func (t table) vector(number, size int) (at, n int) {
	field := t.field(number)
	if field == 0 {
		return 0, 0
	}
	at = t.of.offset(field)
	n = t.of.i32(at)
	if at += 4; t.of.bad || n < 0 || n > (len(t.of.b)-at)/size {
		t.of.bad = true
		return 0, 0
	}
	return at, n
}

func (t table) text(number int) string {
	at, n := t.vector(number, 1)
	if t.of.texts += n; t.of.texts > 2*len(t.of.b) {
		t.of.bad = true
		return ""
	}
	return string(t.of.b[at : at+n])
}
