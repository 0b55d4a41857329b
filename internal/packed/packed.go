package packed

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"ndls/internal/direct"
)

const (
	// BlockRows is the number of destination rows of a block, what edge shards
	// are sorted by.
	BlockRows = 1 << BlockShift
	// StripRows is the number of destination rows of a strip.
	StripRows = 1 << StripShift
	// BlockStrips is the number of strips of a block.
	BlockStrips = BlockRows / StripRows
	// RowBits is the number of bits of a word that hold the row within the strip.
	RowBits = 15
	// Narrow and Wide are the sizes of a word in bytes.
	Narrow, Wide = 3, 4
	// WeightBytes is the size of the weight of an edge, in a graph that has weights.
	WeightBytes = 4
	// FrameBytes is the largest size of a frame, one disk transfer.
	FrameBytes = 1 << 18
	// Align divides all frame sizes and offsets, for direct I/O.
	Align = direct.Align
	// PanelColumns is the number of columns of a panel: a row of 16 float32 values
	// is one cache line.
	PanelColumns = 16
	// HeaderBytes precede the words of a frame.
	HeaderBytes = 64
	// FrameWords is the largest number of narrow words in a frame. A byte is left, because
	// readers load four bytes from where a word starts.
	FrameWords = (FrameBytes - HeaderBytes - 1) / Narrow
)

// rowMask selects the row within its strip, and is the largest number of units of a skip.
const rowMask = StripRows - 1

// ErrFrame reports a frame that is damaged.
var ErrFrame = errors.New("damaged frame")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Escape returns the bound below which the difference of a word of so many bytes stays.
func Escape(width int) uint32 { return 1<<(8*width-RowBits) - 1 }

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
	// Width is the size of a word in bytes, Narrow or Wide.
	Width int
	// Words are whole words. At least one byte of memory follows them: a word is read as
	// four bytes from where it starts.
	Words []byte
	// Weights holds the weights of the edges, in their order, WeightBytes each: float32,
	// little-endian. It is empty in a graph without weights.
	Weights []byte
}

// Weight is the weight of edge i of a frame that has weights.
func (f Frame) Weight(i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(f.Weights[WeightBytes*i:]))
}

// ValidWeight reports whether a weight is one that an edge can have: positive and finite.
func ValidWeight(w float32) bool { return w > 0 && w <= math.MaxFloat32 }

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

// Strips returns the number of strips of so many rows.
func Strips(nodes int64) int {
	return int((nodes + StripRows - 1) >> StripShift)
}

// Panels returns the number of panels of some columns.
func Panels(columns int) int { return (columns + PanelColumns - 1) / PanelColumns }

// Encoder packs the edges of one strip after the other. Edges of a strip come
// sorted by (source, destination).
type Encoder struct {
	// buf is a frame of narrow words. Nearly all frames stay so. spare is where the others
	// are written in wide words; encoders of one goroutine share it.
	buf, spare *[FrameBytes]byte
	end        uint32 // of the words in buf, or noEdges
	last       uint32
	skips      uint32 // words in buf that are no edge
	leaps      uint32 // differences in buf that do not fit a wide word either
	strip      uint32
	base       uint32
	emit       func(f Frame, frame []byte) error

	// weights holds the weights of the edges in buf. They move behind the words when the frame is
	// full. weight is the size of one, 0 in a graph without weights.
	weights []byte
	weight  int
}

// noEdges is the end of the words of a frame that has none: as if it were full.
const noEdges = FrameBytes

// NewEncoder returns an encoder that hands each finished frame to emit, once
// decoded and once as the bytes to store, which start at a multiple of [Align];
// both are valid during the call.
func NewEncoder(emit func(f Frame, frame []byte) error) *Encoder {
	return &Encoder{buf: newFrame(), spare: newFrame(), end: noEdges, emit: emit}
}

// NewWeightedEncoder is [NewEncoder] for edges with weights, which [Encoder.AddWeighted]
// adds.
func NewWeightedEncoder(emit func(f Frame, frame []byte) error) *Encoder {
	e := NewEncoder(emit)
	e.weight = WeightBytes
	return e
}

func newFrame() *[FrameBytes]byte { return (*[FrameBytes]byte)(direct.AlignedBytes(FrameBytes)) }

// Limits of the bytes of narrow words in a frame: up to fullWords there is space for
// another.
const (
	fullWords    = HeaderBytes + Narrow*FrameWords
	narrowEscape = 1<<(8*Narrow-RowBits) - 1
	wideEscape   = 1<<(8*Wide-RowBits) - 1
)

// Add appends the edge src → dst, where dst is a row of the whole graph. The
// caller ends a strip with Flush before it adds an edge of another.
func (e *Encoder) Add(src, dst uint32) error {
	if strip := dst >> StripShift; e.end == noEdges && strip != e.strip {
		e.strip, e.last = strip, 0
	}
	if dst>>StripShift != e.strip || src < e.last {
		return fmt.Errorf("edge %d → %d is out of order in strip %d", src, dst, e.strip)
	}
	if e.end != noEdges && int(e.end)+len(e.weights)+e.weight+Narrow*(1+skips(src-e.last, narrowEscape)) > fullWords {
		if err := e.Flush(); err != nil {
			return err
		}
	}
	if e.end == noEdges {
		e.base, e.last, e.end = src, src, HeaderBytes
	}
	e.end = uint32(put(e.buf[:], int(e.end), Narrow, src-e.last, dst&rowMask))
	e.skips += uint32(skips(src-e.last, narrowEscape))
	e.leaps += uint32(skips(src-e.last, wideEscape))
	e.last = src
	return nil
}

// AddWeighted is [Encoder.Add] of an edge with a weight.
func (e *Encoder) AddWeighted(src, dst uint32, weight float32) error {
	if err := e.Add(src, dst); err != nil {
		return err
	}
	e.weights = binary.LittleEndian.AppendUint32(e.weights, math.Float32bits(weight))
	return nil
}

// skips returns the number of words that stand for a difference, without the word of the edge.
func skips(diff, escape uint32) int { return int((diff/escape + rowMask - 1) / rowMask) }

// put writes the words of an edge at offset at and returns their end.
func put(buf []byte, at, width int, diff, row uint32) int {
	escape := Escape(width)
	for units := diff / escape; units > 0; {
		n := min(units, rowMask)
		binary.LittleEndian.PutUint32(buf[at:], escape<<RowBits|n)
		at, units, diff = at+width, units-n, diff-n*escape
	}
	binary.LittleEndian.PutUint32(buf[at:], diff<<RowBits|row)
	return at + width
}

// BlockEncoder packs the edges of one block after the other, with an encoder for each strip.
type BlockEncoder struct {
	strips [BlockStrips]Encoder // with a frame from the first edge on
}

// NewBlockEncoder returns an encoder that hands finished frames to emit, as [NewEncoder]
// does, in the order in which they become full.
func NewBlockEncoder(emit func(f Frame, frame []byte) error) *BlockEncoder {
	b, spare := &BlockEncoder{}, newFrame()
	for i := range b.strips {
		b.strips[i] = Encoder{spare: spare, end: noEdges, emit: emit}
	}
	return b
}

// NewWeightedBlockEncoder is [NewBlockEncoder] for edges with weights.
func NewWeightedBlockEncoder(emit func(f Frame, frame []byte) error) *BlockEncoder {
	b := NewBlockEncoder(emit)
	for i := range b.strips {
		b.strips[i].weight = WeightBytes
	}
	return b
}

// AddWeighted is [BlockEncoder.Add] of edges with weights.
func (b *BlockEncoder) AddWeighted(src, dst []uint32, weights []float32) error {
	for i, d := range dst {
		e := &b.strips[d>>StripShift%BlockStrips]
		if e.buf == nil {
			e.buf = newFrame()
		}
		if err := e.AddWeighted(src[i], d, weights[i]); err != nil {
			return err
		}
	}
	return nil
}

// Add appends edges of one block, sorted by (source, destination). The caller ends a
// block with Flush before it adds an edge of another.
func (b *BlockEncoder) Add(src, dst []uint32) error {
	src = src[:len(dst)]
	for i, d := range dst {
		e, s := &b.strips[d>>StripShift%BlockStrips], src[i]
		// What is rare is left to Encoder.Add: the first word of a frame, the last one, and
		// large differences. A source that descends has one, too.
		diff, end := s-e.last, e.end
		if end > fullWords-Narrow || diff >= narrowEscape {
			if e.buf == nil {
				e.buf = newFrame()
			}
			if err := e.Add(s, d); err != nil {
				return err
			}
			continue
		}
		binary.LittleEndian.PutUint32(e.buf[end:], diff<<RowBits|d&rowMask)
		e.end, e.last = end+Narrow, s
	}
	return nil
}

// Flush ends the frames of all strips, in the order of the strips.
func (b *BlockEncoder) Flush() error {
	for i := range b.strips {
		if err := b.strips[i].Flush(); err != nil {
			return err
		}
	}
	return nil
}

// Flush ends the current frame, if it holds anything. The frame has the narrower of the
// two widths in all, and narrow words where both take as much.
func (e *Encoder) Flush() error {
	if e.end == noEdges {
		return nil
	}
	edges := (e.end-HeaderBytes)/Narrow - e.skips
	if len(e.weights) != e.weight*int(edges) {
		return fmt.Errorf("%d edges with %d bytes of weights in strip %d", edges, len(e.weights), e.strip)
	}
	f := Frame{Strip: e.strip, Src: e.base, Last: e.last, Edges: edges, Width: Narrow, Words: e.buf[HeaderBytes:e.end]}
	buf := e.buf[:]
	if wide := Wide * int(edges+e.leaps); wide < len(f.Words) {
		buf = e.spare[:]
		at, last := HeaderBytes, f.Src
		f.Visit(func(src, row uint32) {
			at = put(buf, at, Wide, src-last, row)
			last = src
		})
		f.Width, f.Words = Wide, buf[HeaderBytes:at]
	}
	if e.weight > 0 {
		end := HeaderBytes + len(f.Words)
		f.Weights = buf[end : end+copy(buf[end:], e.weights)]
		e.weights = e.weights[:0]
	}
	frame := seal(f, buf)
	e.end, e.skips, e.leaps = noEdges, 0, 0
	return e.emit(f, frame)
}

// seal writes the header of a frame, whose words and weights are in buf already, and pads
// it.
func seal(f Frame, buf []byte) []byte {
	frame := buf[:frameSize(f.bytes())]
	clear(frame[HeaderBytes+f.bytes():])
	clear(frame[:HeaderBytes])
	for i, v := range []uint32{
		uint32(len(f.Words) / f.Width), f.Edges, f.Src, f.Strip, f.Last, uint32(f.Width),
		uint32(len(f.Weights)) / f.Edges,
	} {
		binary.LittleEndian.PutUint32(frame[4+4*i:], v)
	}
	binary.LittleEndian.PutUint32(frame, checksum(frame, f))
	return frame
}

// bytes is the size of the words and weights of a frame.
func (f Frame) bytes() int { return len(f.Words) + len(f.Weights) }

// frameSize is the size of a frame with so many bytes of words and weights.
func frameSize(bytes int) int { return direct.RoundUp(HeaderBytes + bytes + 1) }

// checksum returns the sum of a frame's header, words and weights.
func checksum(frame []byte, f Frame) uint32 {
	return crc32.Checksum(frame[4:HeaderBytes+f.bytes()], castagnoli)
}

// Decode reads the frame at the start of buf, checks its checksum and returns
// it with the number of bytes it takes up.
func Decode(buf []byte) (Frame, int, error) {
	f, size, err := Parse(buf)
	if err == nil && checksum(buf, f) != binary.LittleEndian.Uint32(buf) {
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
	field := func(i int) uint32 { return binary.LittleEndian.Uint32(buf[4+4*i:]) }
	words, width, edges, weight := int(field(0)), int(field(5)), int(field(1)), int(field(6))
	if width != Narrow && width != Wide {
		return Frame{}, 0, fmt.Errorf("words of %d bytes: %w", width, ErrFrame)
	}
	if weight != 0 && weight != WeightBytes {
		return Frame{}, 0, fmt.Errorf("weights of %d bytes: %w", weight, ErrFrame)
	}
	if words == 0 || words > FrameWords || edges > words || frameSize(words*width+edges*weight) > min(len(buf), FrameBytes) {
		return Frame{}, 0, fmt.Errorf("%d words of %d bytes for %d edges do not fit: %w", words, width, edges, ErrFrame)
	}
	end := HeaderBytes + words*width
	f := Frame{
		Strip: field(3), Src: field(2), Last: field(4), Edges: field(1),
		Width: width, Words: buf[HeaderBytes:end],
	}
	if weight > 0 {
		f.Weights = buf[end : end+edges*weight]
	}
	return f, frameSize(f.bytes()), nil
}

// next decodes the edge whose words start at i, after an edge from src, and says where
// the words of the next edge start.
func (f Frame) next(src uint64, i int) (source uint64, row uint32, end int) {
	escape := Escape(f.Width)
	for {
		w := binary.LittleEndian.Uint32(f.Words[i : i+4])
		diff, row := w>>RowBits&escape, w&rowMask
		i += f.Width
		if diff < escape {
			return src + uint64(diff), row, i
		}
		src += uint64(row) * uint64(escape)
	}
}

// Check walks the words of a frame and fails unless the last one is an edge's, every
// source is below nodes, every destination below rows, sources ascend up to Last, the
// edges are as many as stated, and each weight is one that an edge can have. A frame that
// passes cannot make a kernel leave its arrays.
func (f Frame) Check(nodes, rows int64) error {
	last := binary.LittleEndian.Uint32(f.Words[len(f.Words)-f.Width:][:4])
	if escape := Escape(f.Width); last>>RowBits&escape == escape {
		return fmt.Errorf("no edge follows the last word: %w", ErrFrame)
	}
	edges, src := uint32(0), uint64(f.Src)
	for i := 0; i < len(f.Words); edges++ {
		var row uint32
		src, row, i = f.next(src, i)
		if src >= uint64(nodes) || int64(row) >= rows {
			return fmt.Errorf("edge %d → row %d of the strip is outside the graph: %w", src, row, ErrFrame)
		}
	}
	if edges != f.Edges || src != uint64(f.Last) {
		return fmt.Errorf("%d edges up to source %d, the header says %d up to %d: %w", edges, src, f.Edges, f.Last, ErrFrame)
	}
	for i := range len(f.Weights) / WeightBytes {
		if w := f.Weight(i); !ValidWeight(w) {
			return fmt.Errorf("edge %d has weight %v: %w", i, w, ErrFrame)
		}
	}
	return nil
}

// Visit calls edge for each edge of the frame with its source and its
// destination row within the strip.
func (f Frame) Visit(edge func(src, row uint32)) {
	src := uint64(f.Src)
	for i := 0; i < len(f.Words); {
		var row uint32
		src, row, i = f.next(src, i)
		edge(uint32(src), row)
	}
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
	src, from, skipped := f.before(lo)
	f.Src, f.Words, f.Edges = src, f.Words[from:], f.Edges-skipped
	weighted := len(f.Weights) > 0
	if weighted {
		f.Weights = f.Weights[WeightBytes*skipped:]
	}
	if f.Last >= hi {
		src, to, left := f.before(hi)
		f.Last, f.Words, f.Edges = src, f.Words[:to], left
	}
	if weighted {
		f.Weights = f.Weights[:WeightBytes*f.Edges]
	}
	return f, f.Edges > 0
}

// before goes through the edges whose sources are below limit. It returns the source of
// the last of them, or Src, where the words of the next edge start, and how many they are.
func (f Frame) before(limit uint32) (src uint32, end int, edges uint32) {
	src = f.Src
	for end < len(f.Words) {
		s, _, next := f.next(uint64(src), end)
		if s >= uint64(limit) {
			break
		}
		src, end = uint32(s), next
		edges++
	}
	return src, end, edges
}
