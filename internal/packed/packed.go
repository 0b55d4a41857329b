package packed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"unsafe"

	"ndls/internal/direct"
)

const (
	// BlockShift is the number of bits of a destination within its block.
	BlockShift = 20
	// BlockRows is the number of destination rows of a block, what edge shards
	// are sorted by.
	BlockRows = 1 << BlockShift
	// StripShift is the number of bits of a destination within its strip.
	StripShift = 15
	// StripRows is the number of destination rows of a strip. Measured with
	// rows of 64 bytes: 2^16 and 2^17 are a fifth slower, 2^20 a third.
	StripRows = 1 << StripShift
	// BlockStrips is the number of strips of a block.
	BlockStrips = BlockRows / StripRows
	// Escape marks a word whose source stands in the next word.
	Escape = 1<<(32-StripShift) - 1
	// FrameBytes is the largest size of a frame, one disk transfer.
	FrameBytes = 1 << 18
	// Align is what frame sizes and offsets are multiples of, for direct I/O.
	Align = direct.Align
	// PanelColumns is the number of columns of a panel: a row of 16 float32 values
	// is one cache line.
	PanelColumns = 16
	// HeaderBytes precede the words of a frame.
	HeaderBytes = 64
	// FrameWords is the largest number of words in a frame.
	FrameWords = (FrameBytes - HeaderBytes) / 4
)

const rowMask = StripRows - 1

// ErrFrame reports a frame that is damaged.
var ErrFrame = errors.New("damaged frame")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Frame is a decoded frame header with its words, which alias the buffer that
// the frame was read into.
type Frame struct {
	// Strip is the strip that all destinations belong to.
	Strip uint32
	// Src is the source that the first difference is counted from.
	Src uint32
	// Last is the source of the last edge.
	Last uint32
	// Edges is the number of edges in Words.
	Edges uint32
	Words []uint32
}

// Source gives the edges of a graph strip by strip. It is safe for concurrent
// use; strips may be opened in any order and any number of times.
type Source interface {
	// NumNodes is the number of rows; ids are below it.
	NumNodes() int64
	// Strips is the number of strips, NumNodes/StripRows rounded up.
	Strips() int
	// Edges is the number of directed edges into a strip.
	Edges(strip int) int64
	// Open starts reading the frames of a strip. They hold exactly the edges
	// whose source is in [lo, hi); [0, NumNodes) is all of them. ctx ends the
	// reading.
	Open(ctx context.Context, strip int, lo, hi uint32) (Frames, error)
}

// Frames reads the frames of one strip in order.
type Frames interface {
	// Next returns the next frame, or io.EOF. The frame is valid until the
	// next call.
	Next() (Frame, error)
	Close() error
}

// Strips is how many strips nodes rows make.
func Strips(nodes int64) int {
	return int((nodes + StripRows - 1) >> StripShift)
}

// Panels is how many panels some columns make.
func Panels(columns int) int { return (columns + PanelColumns - 1) / PanelColumns }

// Encoder packs the edges of one strip after the other. Edges of a strip come
// sorted by (source, destination).
type Encoder struct {
	buf   []byte
	words []uint32
	n     int
	edges uint32
	strip uint32
	base  uint32
	last  uint32
	emit  func(f Frame, frame []byte) error
}

// NewEncoder returns an encoder that hands each finished frame to emit, once
// decoded and once as the bytes to store, which start at a multiple of [Align];
// both are valid during the call.
func NewEncoder(emit func(f Frame, frame []byte) error) *Encoder {
	buf := direct.AlignedBytes(FrameBytes)
	return &Encoder{
		buf:   buf,
		words: unsafe.Slice((*uint32)(unsafe.Pointer(&buf[HeaderBytes])), FrameWords),
		emit:  emit,
	}
}

// Add appends the edge src → dst, where dst is a row of the whole graph. The
// caller ends a strip with Flush before it adds an edge of another.
func (e *Encoder) Add(src, dst uint32) error {
	if e.n+2 > FrameWords {
		if err := e.Flush(); err != nil {
			return err
		}
	}
	if strip := dst >> StripShift; e.n == 0 && strip != e.strip {
		e.strip, e.last = strip, 0
	}
	if dst>>StripShift != e.strip || src < e.last {
		return fmt.Errorf("packed: edge %d → %d is out of order in strip %d", src, dst, e.strip)
	}
	if e.n == 0 {
		e.base, e.last = src, src
	}
	if d := src - e.last; d < Escape {
		e.words[e.n] = d<<StripShift | dst&rowMask
		e.n++
	} else {
		e.words[e.n] = Escape<<StripShift | dst&rowMask
		e.words[e.n+1] = src
		e.n += 2
	}
	e.last = src
	e.edges++
	return nil
}

// BlockEncoder packs the edges of one block after the other, with an encoder for each strip.
type BlockEncoder struct {
	strips [BlockStrips]*Encoder
	emit   func(f Frame, frame []byte) error
}

// NewBlockEncoder returns an encoder that hands finished frames to emit, as [NewEncoder]
// does, in the order in which they become full.
func NewBlockEncoder(emit func(f Frame, frame []byte) error) *BlockEncoder {
	return &BlockEncoder{emit: emit}
}

// Add appends edges of one block, sorted by (source, destination). The caller ends a
// block with Flush before it adds an edge of another.
func (b *BlockEncoder) Add(src, dst []uint32) error {
	src = src[:len(dst)]
	for i, d := range dst {
		strip, s := d>>StripShift%BlockStrips, src[i]
		e := b.strips[strip]
		if e == nil {
			e = NewEncoder(b.emit)
			b.strips[strip] = e
		}
		// What is rare is left to Encoder.Add: the first word of a frame, the last ones, and
		// escapes. A source that descends has a large difference.
		diff := s - e.last
		if e.n == 0 || e.n+2 > FrameWords || diff >= Escape {
			if err := e.Add(s, d); err != nil {
				return err
			}
			continue
		}
		e.words[e.n] = diff<<StripShift | d&rowMask
		e.n++
		e.edges++
		e.last = s
	}
	return nil
}

// Flush ends the frames of all strips, in the order of the strips.
func (b *BlockEncoder) Flush() error {
	for _, e := range b.strips {
		if e == nil {
			continue
		}
		if err := e.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Flush ends the current frame, if it holds anything.
func (e *Encoder) Flush() error {
	if e.n == 0 {
		return nil
	}
	size := HeaderBytes + 4*e.n
	padded := direct.RoundUp(size)
	clear(e.buf[size:padded])
	h := e.buf[:HeaderBytes]
	clear(h)
	f := Frame{Strip: e.strip, Src: e.base, Last: e.last, Edges: e.edges, Words: e.words[:e.n]}
	binary.LittleEndian.PutUint32(h[0:], crc32.Checksum(e.buf[HeaderBytes:size], castagnoli))
	binary.LittleEndian.PutUint32(h[4:], uint32(e.n))
	binary.LittleEndian.PutUint32(h[8:], f.Edges)
	binary.LittleEndian.PutUint32(h[12:], f.Src)
	binary.LittleEndian.PutUint32(h[16:], f.Strip)
	binary.LittleEndian.PutUint32(h[20:], f.Last)
	err := e.emit(f, e.buf[:padded])
	e.n, e.edges = 0, 0
	return err
}

// Decode reads the frame at the start of buf, checks its checksum and returns
// it with the number of bytes it takes up. buf must be 4-byte aligned.
func Decode(buf []byte) (Frame, int, error) {
	f, size, err := Parse(buf)
	if err == nil && crc32.Checksum(buf[HeaderBytes:HeaderBytes+4*len(f.Words)], castagnoli) != binary.LittleEndian.Uint32(buf) {
		return Frame{}, 0, fmt.Errorf("checksum differs: %w", ErrFrame)
	}
	return f, size, err
}

// Parse is Decode without the checksum, for frames whose checksum was found
// right before.
func Parse(buf []byte) (Frame, int, error) {
	if len(buf) < HeaderBytes {
		return Frame{}, 0, fmt.Errorf("%d bytes, shorter than a header: %w", len(buf), ErrFrame)
	}
	words := int(binary.LittleEndian.Uint32(buf[4:]))
	if words == 0 || words > FrameWords || direct.RoundUp(HeaderBytes+4*words) > len(buf) {
		return Frame{}, 0, fmt.Errorf("%d words do not fit: %w", words, ErrFrame)
	}
	return Frame{
		Strip: binary.LittleEndian.Uint32(buf[16:]),
		Src:   binary.LittleEndian.Uint32(buf[12:]),
		Last:  binary.LittleEndian.Uint32(buf[20:]),
		Edges: binary.LittleEndian.Uint32(buf[8:]),
		Words: unsafe.Slice((*uint32)(unsafe.Pointer(&buf[HeaderBytes])), words),
	}, direct.RoundUp(HeaderBytes + 4*words), nil
}

// Check walks the words of a frame and fails unless every source is below
// nodes, every destination below rows, sources ascend up to Last and the edges
// are as many as stated. A frame that passes cannot make a kernel leave its
// arrays.
func (f Frame) Check(nodes, rows int64) error {
	edges := uint32(0)
	src := uint64(f.Src)
	for i := 0; i < len(f.Words); i++ {
		w := f.Words[i]
		if d := w >> StripShift; d < Escape {
			src += uint64(d)
		} else {
			i++
			if i == len(f.Words) || uint64(f.Words[i]) < src {
				return fmt.Errorf("escape at word %d leads nowhere: %w", i-1, ErrFrame)
			}
			src = uint64(f.Words[i])
		}
		if src >= uint64(nodes) || int64(w&rowMask) >= rows {
			return fmt.Errorf("edge %d → row %d of the strip is outside the graph: %w", src, w&rowMask, ErrFrame)
		}
		edges++
	}
	if edges != f.Edges || src != uint64(f.Last) {
		return fmt.Errorf("%d edges up to source %d, the header says %d up to %d: %w", edges, src, f.Edges, f.Last, ErrFrame)
	}
	return nil
}

// Visit calls edge for each edge of the frame with its source and its
// destination row within the strip.
func (f Frame) Visit(edge func(src, row uint32)) {
	src := f.Src
	for i := 0; i < len(f.Words); {
		w := f.Words[i]
		src, i = f.next(src, i)
		edge(src, w&rowMask)
	}
}

// next decodes the source at word i, which follows src, and says where the next
// word is.
func (f Frame) next(src uint32, i int) (uint32, int) {
	if d := f.Words[i] >> StripShift; d < Escape {
		return src + d, i + 1
	}
	return f.Words[i+1], i + 2
}

// Trim returns the part of the frame whose sources are in [lo, hi), and whether
// there is any. A frame that passes Check is cut without copying its words.
func (f Frame) Trim(lo, hi uint32) (Frame, bool) {
	if lo <= f.Src && f.Last < hi {
		return f, true
	}
	if f.Last < lo || f.Src >= hi {
		return Frame{}, false
	}
	from, src := 0, f.Src
	skipped := uint32(0)
	for from < len(f.Words) {
		s, next := f.next(src, from)
		if s >= lo {
			break
		}
		src, from = s, next
		skipped++
	}
	cut := Frame{Strip: f.Strip, Src: src, Last: f.Last, Edges: f.Edges - skipped, Words: f.Words[from:]}
	if f.Last < hi {
		return cut, cut.Edges > 0
	}
	to, edges := 0, uint32(0)
	for to < len(cut.Words) {
		s, next := cut.next(src, to)
		if s >= hi {
			break
		}
		src, to = s, next
		edges++
	}
	cut.Last, cut.Edges, cut.Words = src, edges, cut.Words[:to]
	return cut, edges > 0
}
