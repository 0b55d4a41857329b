package parquet

import "encoding/binary"

// The types of fields in Thrift's compact protocol.
const (
	thriftTrue, thriftFalse            = 1, 2
	thriftByte, thriftI16              = 3, 4
	thriftI32, thriftI64, thriftDouble = 5, 6, 7
	thriftBinary                       = 8
	thriftList, thriftSet, thriftMap   = 9, 10, 11
	thriftStruct, thriftUUID           = 12, 13
)

// maxDepth is how deep structures may be nested.
const maxDepth = 64

// compact reads Thrift's compact protocol. What it reads after damage is zero.
type compact struct {
	b     []byte
	at    int
	depth int
	bad   bool
}

func (c *compact) byte() byte {
	if c.at >= len(c.b) {
		c.bad = true
		return 0
	}
	c.at++
	return c.b[c.at-1]
}

func (c *compact) uvarint() uint64 {
	v, n := binary.Uvarint(c.b[c.at:])
	if n <= 0 {
		c.bad = true
		return 0
	}
	c.at += n
	return v
}

// integer reads a whole number of a field.
func (c *compact) integer(t byte) int64 {
	switch t {
	case thriftByte:
		return int64(int8(c.byte()))
	case thriftI16, thriftI32, thriftI64:
		v := c.uvarint()
		return int64(v>>1) ^ -int64(v&1)
	}
	c.bad = true
	return 0
}

// number is integer for a number of 32 bits.
func (c *compact) number(t byte) int {
	v := c.integer(t)
	if int64(int32(v)) != v {
		c.bad = true
		return 0
	}
	return int(v)
}

func (c *compact) bytes(t byte) []byte {
	n := uint64(0)
	if t == thriftBinary {
		n = c.uvarint()
	} else {
		c.bad = true
	}
	if c.bad || n > uint64(len(c.b)-c.at) {
		c.bad = true
		return nil
	}
	c.at += int(n)
	return c.b[c.at-int(n) : c.at]
}

// fields visits the fields of a structure of type t. visit reads the field and returns true, or
// returns false for one that is passed over.
func (c *compact) fields(t byte, visit func(id int16, t byte) bool) {
	if c.depth++; t != thriftStruct || c.depth > maxDepth {
		c.bad = true
	}
	id := int16(0)
	for !c.bad {
		head := c.byte()
		if head == 0 {
			break
		}
		if step := head >> 4; step != 0 {
			id += int16(step)
		} else {
			id = int16(c.integer(thriftI16))
		}
		if t := head & 15; !c.bad && !visit(id, t) {
			c.skip(t)
		}
	}
	c.depth--
}

// list visits the elements of a list of structures.
func (c *compact) list(t byte, visit func(t byte)) {
	n, of := c.listHead(t)
	for i := uint64(0); i < n && !c.bad; i++ {
		visit(of)
	}
}

func (c *compact) listHead(t byte) (n uint64, of byte) {
	if t != thriftList && t != thriftSet {
		c.bad = true
		return 0, 0
	}
	head := c.byte()
	if n = uint64(head >> 4); n == 15 {
		n = c.uvarint()
	}
	if n > uint64(len(c.b)-c.at) { // each element takes a byte at least
		c.bad = true
	}
	return n, head & 15
}

// skip passes over a field.
func (c *compact) skip(t byte) {
	switch t {
	case thriftTrue, thriftFalse: // the type is the value
	case thriftByte:
		c.byte()
	case thriftI16, thriftI32, thriftI64:
		c.uvarint()
	case thriftDouble:
		c.pass(8)
	case thriftUUID:
		c.pass(16)
	case thriftBinary:
		c.bytes(t)
	case thriftStruct:
		c.fields(t, func(int16, byte) bool { return false })
	case thriftList, thriftSet:
		if c.depth++; c.depth > maxDepth {
			c.bad = true
			return
		}
		c.list(t, c.skipElement)
		c.depth--
	case thriftMap:
		n := c.uvarint()
		if n == 0 || c.bad {
			return
		}
		if c.depth++; c.depth > maxDepth {
			c.bad = true
		}
		of := c.byte()
		for i := uint64(0); i < n && !c.bad; i++ {
			c.skipElement(of >> 4)
			c.skipElement(of & 15)
		}
		c.depth--
	default:
		c.bad = true
	}
}

// skipElement passes over an element of a list, in which a boolean takes a byte.
func (c *compact) skipElement(t byte) {
	if t == thriftTrue || t == thriftFalse {
		c.byte()
		return
	}
	c.skip(t)
}

func (c *compact) pass(n int) {
	if c.at += n; c.at > len(c.b) {
		c.at, c.bad = len(c.b), true
	}
}
