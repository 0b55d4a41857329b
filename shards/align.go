package shards

import (
	"encoding/binary"
	"io"

	"ndls/internal/seal"
)

// fileHead is the size of the bytes before the first message of an Arrow file.
const fileHead = 8

// aligner lengthens the messages of an Arrow file, which the library pads to 8 bytes, so that the buffers after them start on a line. A
// message is 0xffffffff, the length of the metadata as int32, then the metadata.
type aligner struct {
	*seal.Writer
	head     int // bytes of the file head still to come
	messages int // messages still to come
	message  []byte
	lengths  []int // of the written messages, the schema first
}

// newAligner returns an aligner that expects the file head and the schema first.
func newAligner(w io.Writer) *aligner {
	return &aligner{Writer: seal.NewWriter(w), head: fileHead, messages: 1}
}

func (a *aligner) Write(p []byte) (int, error) {
	rest := p
	if n := min(a.head, len(rest)); n > 0 && !a.Holding() {
		if _, err := a.Writer.Write(rest[:n]); err != nil {
			return 0, err
		}
		a.head, rest = a.head-n, rest[n:]
	}
	for a.messages > 0 && len(rest) > 0 && !a.Holding() {
		n := min(a.missing(), len(rest))
		a.message, rest = append(a.message, rest[:n]...), rest[n:]
		if a.missing() == 0 {
			if err := a.flush(); err != nil {
				return 0, err
			}
		}
	}
	if _, err := a.Writer.Write(rest); err != nil {
		return 0, err
	}
	return len(p), nil
}

// missing returns the number of bytes of the message, or of its prefix, that are still to come.
func (a *aligner) missing() int {
	if len(a.message) < 8 {
		return 8 - len(a.message)
	}
	return 8 + int(binary.LittleEndian.Uint32(a.message[4:])) - len(a.message)
}

// flush writes the message so that it ends on a line.
func (a *aligner) flush() error {
	end := padded(a.Pos() + int64(len(a.message)))
	a.message = append(a.message, make([]byte, end-a.Pos()-int64(len(a.message)))...)
	binary.LittleEndian.PutUint32(a.message[4:], uint32(len(a.message)-8))
	_, err := a.Writer.Write(a.message)
	a.lengths = append(a.lengths, len(a.message))
	a.messages, a.message = a.messages-1, a.message[:0]
	return err
}

// padBlocks sets the metadata lengths of the blocks in the footer, which is at the end of held, to those of the written record batches;
// lengths begins with the length of the schema. In the flatbuffer Footer, record batches are field 3, a vector of structs {offset int64,
// metadata int32, 4 bytes, body int64}.
func padBlocks(held []byte, lengths []int) {
	n, ok := seal.FooterLength(held, seal.Arrow)
	if !ok || n > int64(len(held)) {
		return
	}
	b := held[int64(len(held))-n:]
	u32 := func(at uint32) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	root := u32(0)
	field := uint32(binary.LittleEndian.Uint16(b[root-u32(root)+4+2*3:]))
	if field == 0 {
		return
	}
	vector := root + field
	vector += u32(vector)
	for i := range u32(vector) {
		meta := vector + 4 + 24*i + 8
		binary.LittleEndian.PutUint32(b[meta:], uint32(lengths[i+1]))
	}
}
