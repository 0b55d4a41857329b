package shards

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"sync/atomic"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/storage"
)

// A hop stream file is the frames of package packed, block after block, then a
// footer: 24 bytes a block (offset, bytes, edges as uint64), padded so that the
// file ends on a multiple of packed.Align with a trailer of 64 bytes:
//
//	bytes  0..7   "NDLSHOPS"
//	bytes  8..11  format version
//	bytes 12..15  CRC-32C of the footer and of the trailer from byte 16 on
//	bytes 16..23  blocks
//	bytes 24..31  interval
//	bytes 32..47  first row, one past the last row
//	bytes 48..55  nodes of the graph
//	bytes 56..63  zero
const (
	hopMagic   = "NDLSHOPS"
	hopVersion = 1
	hopEntry   = 24
	hopTrailer = 64
	// hopAhead is how many frames are read ahead of a pass, for each block
	// being computed.
	hopAhead = 3
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

type hopBlock struct{ offset, bytes, edges int64 }

// HopWriter packs the edges of one interval into a hop stream.
type HopWriter struct {
	w      io.Writer
	meta   EdgeMeta
	enc    *packed.Encoder
	blocks []hopBlock
	offset int64
	edges  int64
	cur    int64 // block being written, counted from the interval's first
}

// NewHopWriter starts a hop stream for the rows of m on w.
func NewHopWriter(w io.Writer, m EdgeMeta) (*HopWriter, error) {
	if m.BlockRows != packed.BlockRows || m.Lo%packed.BlockRows != 0 || m.Lo > m.Hi || m.Hi > m.NumNodes {
		return nil, fmt.Errorf("shards: rows [%d, %d) of %d are no whole blocks of %d", m.Lo, m.Hi, m.NumNodes, packed.BlockRows)
	}
	h := &HopWriter{w: w, meta: m, blocks: make([]hopBlock, (m.Hi-m.Lo+packed.BlockRows-1)/packed.BlockRows)}
	h.enc = packed.NewEncoder(func(frame []byte) error {
		if _, err := h.w.Write(frame); err != nil {
			return err
		}
		h.blocks[h.cur].bytes += int64(len(frame))
		h.offset += int64(len(frame))
		return nil
	})
	return h, nil
}

// Write appends edges, sorted by (block of dst, src, dst) over all calls.
func (h *HopWriter) Write(src, dst []uint32) error {
	for i, d := range dst {
		if int64(d) < h.meta.Lo || int64(d) >= h.meta.Hi {
			return fmt.Errorf("shards: destination %d is outside the interval [%d, %d)", d, h.meta.Lo, h.meta.Hi)
		}
		if b := (int64(d) - h.meta.Lo) >> packed.BlockShift; b != h.cur {
			if b < h.cur {
				return fmt.Errorf("shards: destination %d comes after block %d", d, h.cur)
			}
			if err := h.seek(b); err != nil {
				return err
			}
		}
		if err := h.enc.Add(src[i], d); err != nil {
			return err
		}
		h.blocks[h.cur].edges++
	}
	h.edges += int64(len(dst))
	return nil
}

// seek ends the current block and moves to block b.
func (h *HopWriter) seek(b int64) error {
	if err := h.enc.Flush(); err != nil {
		return err
	}
	for h.cur < b {
		h.cur++
		h.blocks[h.cur].offset = h.offset
	}
	return nil
}

// Close writes the footer and returns the number of edges. It does not close
// the underlying writer.
func (h *HopWriter) Close() (int64, error) {
	if len(h.blocks) > 0 {
		if err := h.seek(int64(len(h.blocks)) - 1); err != nil {
			return h.edges, err
		}
	}
	size := hopFooterBytes(len(h.blocks))
	footer := make([]byte, size)
	for i, b := range h.blocks {
		e := footer[i*hopEntry:]
		binary.LittleEndian.PutUint64(e, uint64(b.offset))
		binary.LittleEndian.PutUint64(e[8:], uint64(b.bytes))
		binary.LittleEndian.PutUint64(e[16:], uint64(b.edges))
	}
	t := footer[size-hopTrailer:]
	copy(t, hopMagic)
	binary.LittleEndian.PutUint32(t[8:], hopVersion)
	for i, v := range []int64{int64(len(h.blocks)), int64(h.meta.Interval), h.meta.Lo, h.meta.Hi, h.meta.NumNodes} {
		binary.LittleEndian.PutUint64(t[16+8*i:], uint64(v))
	}
	binary.LittleEndian.PutUint32(t[12:], hopChecksum(footer))
	_, err := h.w.Write(footer)
	return h.edges, err
}

func hopFooterBytes(blocks int) int {
	return (blocks*hopEntry + hopTrailer + packed.Align - 1) &^ (packed.Align - 1)
}

func hopChecksum(footer []byte) uint32 {
	t := len(footer) - hopTrailer
	return crc32.Update(crc32.Checksum(footer[:t], castagnoli), castagnoli, footer[t+16:])
}

// HopFile is the hop stream of one interval, open for reading.
type HopFile struct {
	r      storage.Reader
	name   string
	meta   EdgeMeta
	blocks []hopBlock
	seen   []atomic.Bool // blocks whose frames were all checked
}

// OpenHops reads the footer of a hop stream; name is for messages. Damage gives
// ErrCorrupt, another format version ErrVersion.
func OpenHops(r storage.Reader, name string) (*HopFile, error) {
	bad := func(format string, a ...any) error {
		return fmt.Errorf("shards: %s: %s: remove it, it is rebuilt from its shard: %w", name, fmt.Sprintf(format, a...), ErrCorrupt)
	}
	size := r.Size()
	if size < packed.Align || size%packed.Align != 0 {
		return nil, bad("%d bytes is no whole number of pages", size)
	}
	last := make([]byte, packed.Align)
	if _, err := r.ReadAt(last, size-packed.Align); err != nil && err != io.EOF {
		return nil, fmt.Errorf("shards: %s: %w", name, err)
	}
	t := last[packed.Align-hopTrailer:]
	if string(t[:8]) != hopMagic {
		return nil, bad("no hop stream")
	}
	if v := binary.LittleEndian.Uint32(t[8:]); v != hopVersion {
		return nil, fmt.Errorf("shards: %s: hop stream version %d, this program reads %d: %w", name, v, hopVersion, ErrVersion)
	}
	get := func(i int) int64 { return int64(binary.LittleEndian.Uint64(t[16+8*i:])) }
	m := EdgeMeta{Interval: int(get(1)), Lo: get(2), Hi: get(3), NumNodes: get(4), BlockRows: packed.BlockRows}
	blocks := get(0)
	if m.Lo < 0 || m.Hi < m.Lo || m.NumNodes < m.Hi || m.NumNodes > 1<<32 || m.Lo%packed.BlockRows != 0 ||
		blocks != (m.Hi-m.Lo+packed.BlockRows-1)/packed.BlockRows || int64(hopFooterBytes(int(blocks))) > size {
		return nil, bad("damaged trailer")
	}
	footer := make([]byte, hopFooterBytes(int(blocks)))
	end := size - int64(len(footer))
	if _, err := r.ReadAt(footer, end); err != nil && err != io.EOF {
		return nil, fmt.Errorf("shards: %s: %w", name, err)
	}
	if binary.LittleEndian.Uint32(t[12:]) != hopChecksum(footer) {
		return nil, bad("damaged footer")
	}
	h := &HopFile{r: r, name: name, meta: m, blocks: make([]hopBlock, blocks), seen: make([]atomic.Bool, blocks)}
	at := int64(0)
	for i := range h.blocks {
		e := footer[i*hopEntry:]
		b := hopBlock{
			int64(binary.LittleEndian.Uint64(e)), int64(binary.LittleEndian.Uint64(e[8:])),
			int64(binary.LittleEndian.Uint64(e[16:])),
		}
		if b.offset != at || b.bytes < 0 || b.bytes > end-at || b.edges < 0 {
			return nil, bad("block %d lies outside the file", i)
		}
		at += b.bytes
		h.blocks[i] = b
	}
	if at != end {
		return nil, bad("%d bytes belong to no block", end-at)
	}
	return h, nil
}

// Meta describes the interval.
func (h *HopFile) Meta() EdgeMeta { return h.meta }

// frames reads one block. A frame's words are checked against the graph the
// first time they are read by this process.
func (h *HopFile) frames(ctx context.Context, block int) packed.Frames {
	f := &hopFrames{
		h: h, ctx: ctx, block: block, check: !h.seen[block].Load(),
		ready: make(chan hopBuffer, hopAhead-1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	go f.fill()
	return f
}

var hopBuffers = sync.Pool{New: func() any { b := direct.AlignedBytes(packed.FrameBytes); return &b }}

type hopBuffer struct {
	buf *[]byte
	n   int
	err error
}

// hopFrames reads the frames of a block ahead of the pass.
type hopFrames struct {
	h     *HopFile
	ctx   context.Context
	block int
	check bool
	ready chan hopBuffer
	stop  chan struct{}
	done  chan struct{}
	cur   *[]byte
	n     int
}

func (f *hopFrames) fill() {
	defer close(f.done)
	defer close(f.ready)
	b := f.h.blocks[f.block]
	for off := int64(0); off < b.bytes; off += packed.FrameBytes {
		buf := hopBuffers.Get().(*[]byte)
		size := int(min(packed.FrameBytes, b.bytes-off))
		n, err := f.h.r.ReadAt((*buf)[:size], b.offset+off)
		if n == size {
			err = nil
		} else if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		select {
		case f.ready <- hopBuffer{buf, n, err}:
		case <-f.stop:
			hopBuffers.Put(buf)
			return
		}
		if err != nil {
			return
		}
	}
}

// Next implements packed.Frames.
func (f *hopFrames) Next() (packed.Frame, error) {
	f.release()
	if err := f.ctx.Err(); err != nil {
		return packed.Frame{}, context.Cause(f.ctx)
	}
	b, ok := <-f.ready
	if !ok {
		if f.check {
			f.h.seen[f.block].Store(true)
		}
		return packed.Frame{}, io.EOF
	}
	f.cur = b.buf
	if b.err != nil {
		return packed.Frame{}, fmt.Errorf("shards: %s: block %d: %w", f.h.name, f.block, b.err)
	}
	frame, err := f.h.decode((*b.buf)[:b.n], f.block, f.check)
	if err != nil {
		return packed.Frame{}, fmt.Errorf("shards: %s: block %d, frame %d: %w: %w: remove the file, it is rebuilt from its shard",
			f.h.name, f.block, f.n, err, ErrCorrupt)
	}
	f.n++
	return frame, nil
}

func (h *HopFile) decode(buf []byte, block int, check bool) (packed.Frame, error) {
	frame, _, err := packed.Decode(buf)
	if err != nil {
		return frame, err
	}
	lo := h.meta.Lo + int64(block)<<packed.BlockShift
	if int64(frame.Block) != lo>>packed.BlockShift {
		return frame, fmt.Errorf("frame belongs to block %d of the graph: %w", frame.Block, packed.ErrFrame)
	}
	if check {
		err = frame.Check(h.meta.NumNodes, min(packed.BlockRows, h.meta.Hi-lo))
	}
	return frame, err
}

func (f *hopFrames) release() {
	if f.cur != nil {
		hopBuffers.Put(f.cur)
		f.cur = nil
	}
}

// Close implements packed.Frames.
func (f *hopFrames) Close() error {
	close(f.stop)
	<-f.done
	for b := range f.ready {
		hopBuffers.Put(b.buf)
	}
	f.release()
	return nil
}

// HopStream is the whole graph's edges as packed.Source, read from the hop
// streams of all intervals, or from memory once they are resident.
type HopStream struct {
	ctx      context.Context
	files    []*HopFile
	first    []int // first block of each file
	nodes    int64
	resident *mem.Array[byte]
	frames   [][]packed.Frame // by block, when resident
}

// OpenHopStream opens the hop stream of every interval the catalogue holds.
// ctx ends the reads of later passes too.
func OpenHopStream(ctx context.Context, c *Catalog) (_ *HopStream, err error) {
	s := &HopStream{ctx: ctx}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	rows := int64(0)
	blocks := 0
	for _, e := range c.Entries(KindHops) {
		r, err := c.Open(ctx, e)
		if err != nil {
			return nil, err
		}
		f, err := OpenHops(r, e.Path)
		if err != nil {
			_ = r.Close()
			return nil, err
		}
		if f.meta.Lo != rows {
			_ = r.Close()
			return nil, fmt.Errorf("shards: %s starts at row %d, not %d: %w", e.Path, f.meta.Lo, rows, ErrCorrupt)
		}
		s.files = append(s.files, f)
		s.first = append(s.first, blocks)
		rows, s.nodes = f.meta.Hi, f.meta.NumNodes
		blocks += len(f.blocks)
	}
	if len(s.files) == 0 || rows != s.nodes {
		return nil, fmt.Errorf("shards: the hop streams end at row %d of %d: %w", rows, s.nodes, ErrCorrupt)
	}
	s.first = append(s.first, blocks)
	return s, nil
}

// Bytes is what the frames take up on disk, or in memory once resident.
func (s *HopStream) Bytes() int64 {
	var n int64
	for _, f := range s.files {
		for _, b := range f.blocks {
			n += b.bytes
		}
	}
	return n
}

// Load reads all frames into memory charged to b, so that later passes do no
// I/O.
func (s *HopStream) Load(b *mem.Budget) error {
	a, err := mem.Alloc[byte](b, s.Bytes(), "resident hop stream")
	if err != nil {
		return err
	}
	s.resident = a
	frames := make([][]packed.Frame, s.Blocks())
	rest := a.S
	for block := range frames {
		f, i := s.find(block)
		hb := f.blocks[i]
		buf := rest[:hb.bytes]
		rest = rest[hb.bytes:]
		if n, err := f.r.ReadAt(buf, hb.offset); n < len(buf) {
			return fmt.Errorf("shards: %s: block %d: %w", f.name, i, err)
		}
		for at := 0; at < len(buf); at += packed.FrameBytes {
			frame, err := f.decode(buf[at:min(at+packed.FrameBytes, len(buf))], i, true)
			if err != nil {
				return fmt.Errorf("shards: %s: block %d, frame %d: %w: %w: remove the file, it is rebuilt from its shard",
					f.name, i, at/packed.FrameBytes, err, ErrCorrupt)
			}
			frames[block] = append(frames[block], frame)
		}
		if err := s.ctx.Err(); err != nil {
			return context.Cause(s.ctx)
		}
	}
	s.frames = frames
	return nil
}

func (s *HopStream) find(block int) (*HopFile, int) {
	i := 0
	for s.first[i+1] <= block {
		i++
	}
	return s.files[i], block - s.first[i]
}

// NumNodes implements packed.Source.
func (s *HopStream) NumNodes() int64 { return s.nodes }

// Blocks implements packed.Source.
func (s *HopStream) Blocks() int { return s.first[len(s.files)] }

// Edges implements packed.Source.
func (s *HopStream) Edges(block int) int64 {
	f, i := s.find(block)
	return f.blocks[i].edges
}

// NumEdges is the number of directed edges.
func (s *HopStream) NumEdges() int64 {
	var n int64
	for b := range s.Blocks() {
		n += s.Edges(b)
	}
	return n
}

// Open implements packed.Source.
func (s *HopStream) Open(block int) (packed.Frames, error) {
	if s.frames != nil {
		return &residentFrames{s.ctx, s.frames[block]}, nil
	}
	f, i := s.find(block)
	return f.frames(s.ctx, i), nil
}

type residentFrames struct {
	ctx  context.Context
	rest []packed.Frame
}

func (r *residentFrames) Next() (packed.Frame, error) {
	if r.ctx.Err() != nil {
		return packed.Frame{}, context.Cause(r.ctx)
	}
	if len(r.rest) == 0 {
		return packed.Frame{}, io.EOF
	}
	f := r.rest[0]
	r.rest = r.rest[1:]
	return f, nil
}

func (r *residentFrames) Close() error { return nil }

// Close closes the files and frees the memory. Passes must have ended.
func (s *HopStream) Close() {
	for _, f := range s.files {
		_ = f.r.Close()
	}
	s.files, s.frames = nil, nil
	s.resident.Free()
}

// Resident says whether Load has put the frames in memory.
func (s *HopStream) Resident() bool { return s.frames != nil }
