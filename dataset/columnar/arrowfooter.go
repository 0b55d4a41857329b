package columnar

import (
	"encoding/binary"
	"errors"
	"io"

	flatbuffers "github.com/google/flatbuffers/go"
)

const (
	// maxArrowFooter bounds the footer of an Arrow file, which is read into memory as a
	// whole.
	maxArrowFooter = 32 << 20
	// maxArrowDepth is how deep the columns of an Arrow file may be nested.
	maxArrowDepth = 64
)

// The fields of the tables of an Arrow footer that hold vectors, as offsets in the
// table's list of fields (format/File.fbs and format/Schema.fbs of the Arrow format:
// 4 + 2 · the number of the field).
const (
	footerSchema, footerDictionaries, footerBatches, footerMetadata = 6, 8, 10, 12
	schemaFields, schemaMetadata, schemaFeatures                    = 6, 8, 10
	fieldChildren, fieldMetadata                                    = 14, 16
)

var errArrowFooter = errors.New("its footer is damaged")

// checkArrowFooter refuses footers in which a length does not fit the footer, or columns
// lie in themselves. The Arrow library believes such lengths, and takes as much memory.
// The check may panic on other damage, as the library does.
func checkArrowFooter(r io.ReaderAt, size int64) error {
	tail := make([]byte, 4+len(arrowMagic))
	if size < int64(2*len(arrowMagic)+4) {
		return nil // the library says that it is too small
	}
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[4:]) != arrowMagic || n == 0 || n > size-int64(len(tail)) {
		return nil // the library says what is wrong
	}
	if n > maxArrowFooter {
		return errArrowFooter
	}
	buf := make([]byte, n)
	if _, err := r.ReadAt(buf, size-int64(len(tail))-n); err != nil {
		return err
	}
	c := footerCheck{size: uint64(n), fields: n / 4}
	footer := flatbuffers.Table{Bytes: buf, Pos: flatbuffers.GetUOffsetT(buf)}
	c.vector(&footer, footerDictionaries, 24)
	c.vector(&footer, footerBatches, 24)
	c.vector(&footer, footerMetadata, 4)
	if at := footer.Offset(footerSchema); at != 0 {
		schema := flatbuffers.Table{Bytes: buf, Pos: footer.Indirect(flatbuffers.UOffsetT(at) + footer.Pos)}
		c.vector(&schema, schemaMetadata, 4)
		c.vector(&schema, schemaFeatures, 8)
		c.columns(&schema, schemaFields, maxArrowDepth)
	}
	if c.bad {
		return errArrowFooter
	}
	return nil
}

// arrowMagic begins and ends an Arrow file.
const arrowMagic = "ARROW1"

// footerCheck looks at the vectors of a footer.
type footerCheck struct {
	size   uint64
	fields int64 // more than that many do not fit the footer
	bad    bool
}

// vector checks the length of a vector of elements of so many bytes.
func (c *footerCheck) vector(t *flatbuffers.Table, field flatbuffers.VOffsetT, element uint64) (start flatbuffers.UOffsetT, n int) {
	at := t.Offset(field)
	if at == 0 || c.bad {
		return 0, 0
	}
	n = t.VectorLen(flatbuffers.UOffsetT(at))
	start = t.Vector(flatbuffers.UOffsetT(at))
	if n < 0 || uint64(start)+element*uint64(n) > c.size {
		c.bad = true
		return 0, 0
	}
	return start, n
}

// columns checks a vector of columns and what is nested in them.
func (c *footerCheck) columns(t *flatbuffers.Table, field flatbuffers.VOffsetT, depth int) {
	start, n := c.vector(t, field, 4)
	c.fields -= int64(n)
	if c.fields < 0 || n > 0 && depth == 0 {
		c.bad = true
	}
	for i := 0; i < n && !c.bad; i++ {
		column := flatbuffers.Table{Bytes: t.Bytes, Pos: t.Indirect(start + 4*flatbuffers.UOffsetT(i))}
		c.vector(&column, fieldMetadata, 4)
		c.columns(&column, fieldChildren, depth-1)
	}
}
