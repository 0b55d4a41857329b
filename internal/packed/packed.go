package packed

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"
)

const (
	// BlockShift is the number of bits of a destination within its block.
	BlockShift = 20
	// BlockRows is the number of destination rows of a block. Measured: 2^16
	// is twice as slow, 2^21 and 2^22 are no faster.
	BlockRows = 1 << BlockShift
	// Escape marks a word whose source stands in the next word.
	Escape = 1<<(32-BlockShift) - 1
	// FrameBytes is the largest size of a frame, one disk transfer.
	FrameBytes = 1 << 20
	// Align is what frame sizes and offsets are multiples of, for direct I/O.
	Align = 4096
	// HeaderBytes precede the words of a frame.
	HeaderBytes = 64
	// FrameWords is the largest number of words in a frame.
	FrameWords = (FrameBytes - HeaderBytes) / 4
)

const rowMask = BlockRows - 1

// ErrFrame reports a frame that is damaged.
var ErrFrame = errors.New("damaged frame")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is a decoded frame header with its words, which alias the buffer that
// the frame was read into.
type Frame struct {
	// Block is the destination block that all edges belong to.
	Block uint32
	// Src is the source that the first difference is counted from.
	Src uint32
	// Edges is the number of edges in Words.
	Edges uint32
	Words []uint32
}

// Source gives the edges of a graph block by block. It is safe for concurrent
// use; blocks may be opened in any order and any number of times.
type Source interface {
	// NumNodes is the number of rows; ids are below it.
	NumNodes() int64
	// Blocks is the number of destination blocks, NumNodes/BlockRows rounded up.
	Blocks() int
	// Edges is the number of directed edges into a block.
	Edges(block int) int64
	// Open starts reading the frames of a block.
	Open(block int) (Frames, error)
}

// Frames reads the frames of one block in order.
type Frames interface {
	// Next returns the next frame, or io.EOF. The frame is valid until the
	// next call.
	Next() (Frame, error)
	Close() error
}

// Encoder packs the edges of one block after the other. Edges of a block come
// sorted by (source, destination).
type Encoder struct {
	buf   []byte
	words []uint32
	n     int
	edges uint32
	block uint32
	base  uint32
	last  uint32
	emit  func(frame []byte) error
}

// NewEncoder returns an encoder that hands each finished frame to emit; the
// bytes are valid during the call.
func NewEncoder(emit func(frame []byte) error) *Encoder {
	buf := make([]byte, FrameBytes)
	return &Encoder{
		buf:   buf,
		words: unsafe.Slice((*uint32)(unsafe.Pointer(&buf[HeaderBytes])), FrameWords),
		emit:  emit,
	}
}

// Add appends the edge src → dst, where dst is a row of the whole graph. The
// caller ends a block with Flush before it adds an edge of another.
func (e *Encoder) Add(src, dst uint32) error {
	if e.n+2 > FrameWords {
		if err := e.Flush(); err != nil {
			return err
		}
	}
	if e.n == 0 {
		e.block, e.base, e.last = dst>>BlockShift, src, src
	}
	if dst>>BlockShift != e.block || src < e.last {
		return fmt.Errorf("packed: edge %d → %d is out of order in block %d", src, dst, e.block)
	}
	if d := src - e.last; d < Escape {
		e.words[e.n] = d<<BlockShift | dst&rowMask
		e.n++
	} else {
		e.words[e.n] = Escape<<BlockShift | dst&rowMask
		e.words[e.n+1] = src
		e.n += 2
	}
	e.last = src
	e.edges++
	return nil
}

// Flush ends the current frame, if it holds anything.
func (e *Encoder) Flush() error {
	if e.n == 0 {
		return nil
	}
	size := HeaderBytes + 4*e.n
	padded := (size + Align - 1) &^ (Align - 1)
	clear(e.buf[size:padded])
	h := e.buf[:HeaderBytes]
	clear(h)
	binary.LittleEndian.PutUint32(h[0:], crc32.Checksum(e.buf[HeaderBytes:size], castagnoli))
	binary.LittleEndian.PutUint32(h[4:], uint32(e.n))
	binary.LittleEndian.PutUint32(h[8:], e.edges)
	binary.LittleEndian.PutUint32(h[12:], e.base)
	binary.LittleEndian.PutUint32(h[16:], e.block)
	err := e.emit(e.buf[:padded])
	e.n, e.edges = 0, 0
	return err
}

// Decode reads the frame at the start of buf, checks its checksum and returns
// it with the number of bytes it takes up. buf must be 4-byte aligned.
func Decode(buf []byte) (Frame, int, error) {
	if len(buf) < HeaderBytes {
		return Frame{}, 0, fmt.Errorf("%d bytes, shorter than a header: %w", len(buf), ErrFrame)
	}
	words := int(binary.LittleEndian.Uint32(buf[4:]))
	size := HeaderBytes + 4*words
	padded := (size + Align - 1) &^ (Align - 1)
	if words == 0 || words > FrameWords || padded > len(buf) {
		return Frame{}, 0, fmt.Errorf("%d words do not fit: %w", words, ErrFrame)
	}
	if crc32.Checksum(buf[HeaderBytes:size], castagnoli) != binary.LittleEndian.Uint32(buf[0:]) {
		return Frame{}, 0, fmt.Errorf("checksum differs: %w", ErrFrame)
	}
	return Frame{
		Block: binary.LittleEndian.Uint32(buf[16:]),
		Src:   binary.LittleEndian.Uint32(buf[12:]),
		Edges: binary.LittleEndian.Uint32(buf[8:]),
		Words: unsafe.Slice((*uint32)(unsafe.Pointer(&buf[HeaderBytes])), words),
	}, padded, nil
}

// Check walks the words of a frame and fails unless every source is below
// nodes, every destination below rows, sources ascend and the edges are as many
// as stated. A frame that passes cannot make a kernel leave its arrays.
func (f Frame) Check(nodes, rows int64) error {
	edges := uint32(0)
	src := uint64(f.Src)
	for i := 0; i < len(f.Words); i++ {
		w := f.Words[i]
		if d := w >> BlockShift; d < Escape {
			src += uint64(d)
		} else {
			i++
			if i == len(f.Words) || uint64(f.Words[i]) < src {
				return fmt.Errorf("escape at word %d leads nowhere: %w", i-1, ErrFrame)
			}
			src = uint64(f.Words[i])
		}
		if src >= uint64(nodes) || int64(w&rowMask) >= rows {
			return fmt.Errorf("edge %d → row %d of the block is outside the graph: %w", src, w&rowMask, ErrFrame)
		}
		edges++
	}
	if edges != f.Edges {
		return fmt.Errorf("%d edges, the header says %d: %w", edges, f.Edges, ErrFrame)
	}
	return nil
}

// Visit calls edge for each edge of the frame with its source and its
// destination row within the block.
func (f Frame) Visit(edge func(src, row uint32)) {
	src := f.Src
	for i := 0; i < len(f.Words); i++ {
		w := f.Words[i]
		if d := w >> BlockShift; d < Escape {
			src += d
		} else {
			i++
			src = f.Words[i]
		}
		edge(src, w&rowMask)
	}
}
