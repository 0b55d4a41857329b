package shards

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/internal/storage"
)

// A hop stream file consists of frames of package packed, then a footer. The strips of a block are filled side by side, and their frames
// lie in the order in which they became full; all frames of a block precede those of the next. The footer has 20 bytes per frame, in order:
// strip counted from the interval's first, size in multiples of packed.Align, first source, last source, edges, each uint32. It is padded
// so that the file ends on a multiple of packed.Align with a trailer of 96 bytes:
//
//	bytes  0..7   "NDLSHOPS"
//	bytes  8..11  format version
//	bytes 12..15  CRC-32C of the footer and of the trailer from byte 16 on
//	bytes 16..23  frames
//	bytes 24..31  interval
//	bytes 32..47  first row, one past the last row
//	bytes 48..55  nodes of the graph
//	bytes 56..87  SHA-256 of the shard with the same edges
//	bytes 88..95  zero
//
// In a graph with weights the format version is one more, and frames have weights.
const (
	hopMagic   = "NDLSHOPS"
	hopVersion = 4
	// hopWeighted is the version with weights, which programs without weights refuse.
	hopWeighted = 5
	hopEntry    = 20
	hopTrailer  = 96
	hopShard    = 56 // offset of the shard's checksum in the trailer
	// hopReads is the number of reads in progress, divided evenly among the open strips, but at least hopLeast for each.
	hopReads = 64
	hopLeast = 4
	// ReadAheadBytes is the heap memory of these reads if few strips are open.
	ReadAheadBytes = hopReads * packed.FrameBytes
	// hopLoad is the number of bytes that are read at a time to make a stream resident.
	hopLoad = 4 << 20
)

// HopWriter packs the edges of one interval into a hop stream.
type HopWriter struct {
	w      io.Writer
	meta   EdgeMeta
	strips *packed.BlockEncoder
	footer []byte
	edges  int64
	block  int64 // being written
}

// NewHopWriter starts a hop stream for the rows of m on w.
func NewHopWriter(w io.Writer, m EdgeMeta) (*HopWriter, error) {
	if m.BlockRows != packed.BlockRows || m.Lo%packed.StripRows != 0 || m.Lo > m.Hi || m.Hi > m.NumNodes {
		return nil, fmt.Errorf("shards: rows [%d, %d) of %d are no whole strips of %d", m.Lo, m.Hi, m.NumNodes, packed.StripRows)
	}
	h := &HopWriter{w: w, meta: m, block: m.Lo >> packed.BlockShift}
	h.strips = packed.NewBlockEncoder(h.emit)
	if m.Weighted {
		h.strips = packed.NewWeightedBlockEncoder(h.emit)
	}
	return h, nil
}

// Write appends edges, sorted by (block of dst, src, dst) over all calls, with the weights of edges that have some.
func (h *HopWriter) Write(src, dst []uint32, weights []float32) error {
	if h.meta.Weighted && len(weights) != len(dst) {
		return fmt.Errorf("%d edges with %d weights", len(dst), len(weights))
	}
	for len(dst) > 0 {
		d := int64(dst[0])
		b := d >> packed.BlockShift
		lo := max(b<<packed.BlockShift, h.meta.Lo)
		hi := min((b+1)<<packed.BlockShift, h.meta.Hi)
		switch {
		case d < h.meta.Lo || d >= h.meta.Hi:
			return fmt.Errorf("destination %d is outside the interval [%d, %d)", d, h.meta.Lo, h.meta.Hi)
		case b < h.block:
			return fmt.Errorf("destination %d comes after block %d", d, h.block)
		case b > h.block:
			if err := h.strips.Flush(); err != nil {
				return err
			}
			h.block = b
		}
		n := 1 // edges of the block
		for n < len(dst) && lo <= int64(dst[n]) && int64(dst[n]) < hi {
			n++
		}
		if h.meta.Weighted {
			if err := h.strips.AddWeighted(src[:n], dst[:n], weights[:n]); err != nil {
				return err
			}
			weights = weights[n:]
		} else if err := h.strips.Add(src[:n], dst[:n]); err != nil {
			return err
		}
		h.edges += int64(n)
		src, dst = src[n:], dst[n:]
	}
	return nil
}

func (h *HopWriter) emit(f packed.Frame, frame []byte) error {
	strip := f.Strip - uint32(h.meta.Lo>>packed.StripShift)
	for _, v := range []uint32{strip, uint32(len(frame) / packed.Align), f.Src, f.Last, f.Edges} {
		h.footer = binary.LittleEndian.AppendUint32(h.footer, v)
	}
	_, err := h.w.Write(frame)
	return err
}

// Close writes the footer and returns the number of edges. shard is the SHA-256, in hex, of the shard with the same edges, or "" if there
// is none. Close does not close the underlying writer.
func (h *HopWriter) Close(shard string) (int64, error) {
	sum, err := hex.DecodeString(shard)
	if err != nil || len(sum) != sha256.Size && shard != "" {
		return h.edges, fmt.Errorf("the checksum %q of a shard is not a SHA-256", shard)
	}
	if err := h.strips.Flush(); err != nil {
		return h.edges, err
	}
	frames := len(h.footer) / hopEntry
	footer := append(h.footer, make([]byte, hopFooterBytes(int64(frames))-int64(len(h.footer)))...)
	t := footer[len(footer)-hopTrailer:]
	copy(t, hopMagic)
	binary.LittleEndian.PutUint32(t[8:], hopVersion)
	if h.meta.Weighted {
		binary.LittleEndian.PutUint32(t[8:], hopWeighted)
	}
	for i, v := range []int64{int64(frames), int64(h.meta.Interval), h.meta.Lo, h.meta.Hi, h.meta.NumNodes} {
		binary.LittleEndian.PutUint64(t[16+8*i:], uint64(v))
	}
	copy(t[hopShard:], sum)
	binary.LittleEndian.PutUint32(t[12:], hopChecksum(footer))
	_, err = h.w.Write(footer)
	return h.edges, err
}

func hopFooterBytes(frames int64) int64 {
	return (frames*hopEntry + hopTrailer + packed.Align - 1) &^ (packed.Align - 1)
}

func hopChecksum(footer []byte) uint32 {
	t := len(footer) - hopTrailer
	return crc32.Update(crc32.Checksum(footer[:t], seal.Castagnoli), seal.Castagnoli, footer[t+16:])
}

// hopFrame is the place of a frame, in multiples of packed.Align, and its content.
type hopFrame struct{ page, pages, first, last, edges uint32 }

// HopFile is the hop stream of one interval, open for reading.
type HopFile struct {
	r        io.ReaderAt
	c        io.Closer
	name     string
	meta     EdgeMeta
	frames   []hopFrame    // by strip, in order of source
	start    []uint32      // first frame of each strip, then the end
	seen     []atomic.Bool // frames that were checked
	bytes    int64         // in all frames
	resident residentHops
}

// residentHops holds the frames of some strips of a file in memory, in the order of the file.
type residentHops struct {
	first, last int // strips
	frames      []byte
	page        []uint32 // start of each frame, strip by strip
}

// has reports whether a strip is in memory.
func (r *residentHops) has(strip int) bool { return r.first <= strip && strip < r.last }

// OpenHops reads the footer of a hop stream; errors use name. Damage gives seal.ErrCorrupt, another format version seal.ErrVersion.
func OpenHops(r storage.Reader, name string) (*HopFile, error) {
	h := &HopFile{r: r, c: r, name: name}
	size := r.Size()
	t, err := h.trailer(size)
	if err != nil {
		return nil, err
	}
	get := func(i int) int64 { return int64(binary.LittleEndian.Uint64(t[16+8*i:])) }
	m := EdgeMeta{Interval: int(get(1)), Lo: get(2), Hi: get(3), NumNodes: get(4), BlockRows: packed.BlockRows}
	m.Weighted = binary.LittleEndian.Uint32(t[8:]) == hopWeighted
	frames := get(0)
	if !m.valid() || m.Lo%packed.StripRows != 0 || frames < 0 || frames > size/packed.Align || hopFooterBytes(frames) > size {
		return nil, h.bad("damaged trailer")
	}
	footer := make([]byte, hopFooterBytes(frames))
	if _, err := r.ReadAt(footer, size-int64(len(footer))); err != nil && err != io.EOF {
		return nil, fmt.Errorf("shards: %s: %w", name, err)
	}
	if binary.LittleEndian.Uint32(t[12:]) != hopChecksum(footer) {
		return nil, h.bad("damaged footer")
	}
	h.meta, h.bytes = m, size-int64(len(footer))
	return h, h.index(footer[:frames*hopEntry])
}

// trailer reads the trailer of a file of this size.
func (h *HopFile) trailer(size int64) ([]byte, error) {
	if size < packed.Align || size%packed.Align != 0 {
		return nil, h.bad("%d bytes is not a whole number of pages", size)
	}
	last := make([]byte, packed.Align)
	if _, err := h.r.ReadAt(last, size-packed.Align); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read %s: %w", h.name, err)
	}
	t := last[packed.Align-hopTrailer:]
	if string(t[:8]) != hopMagic {
		return nil, h.bad("no hop stream")
	}
	if v := binary.LittleEndian.Uint32(t[8:]); v != hopVersion && v != hopWeighted {
		return nil, fmt.Errorf("%s has version %d of hop streams, this program reads %d: remove the file, and it is rebuilt from its shard; where there are none (--shards none), ndls partition --resume=false makes it again: %w", h.name, v, hopVersion, seal.ErrVersion)
	}
	return t, nil
}

// ReadHopShard reads the SHA-256, in hex, of the shard with the same edges from a hop stream. It returns the errors of [OpenHops], but
// reads only the trailer and does not find damage elsewhere.
func ReadHopShard(r storage.Reader, name string) (string, error) {
	t, err := (&HopFile{r: r, name: name}).trailer(r.Size())
	if err != nil {
		return "", err
	}
	return hex.EncodeToString(t[hopShard:][:sha256.Size]), nil
}

func (h *HopFile) bad(format string, a ...any) error {
	return seal.Corrupt(h.name, format, a...)
}

// index sorts the frames of a footer by strip.
func (h *HopFile) index(footer []byte) error {
	strips := packed.Strips(h.meta.Hi - h.meta.Lo)
	field := func(i, f int) uint32 { return binary.LittleEndian.Uint32(footer[i*hopEntry+4*f:]) }
	n := len(footer) / hopEntry
	h.start = make([]uint32, strips+1)
	for i := range n {
		strip := field(i, 0)
		if int64(strip) >= int64(strips) {
			return h.bad("frame %d belongs to no strip", i)
		}
		h.start[strip+1]++
	}
	for s := range strips {
		h.start[s+1] += h.start[s]
	}
	h.frames, h.seen = make([]hopFrame, n), make([]atomic.Bool, n)
	next := slices.Clone(h.start)
	page := int64(0)
	for i := range n {
		strip := field(i, 0)
		f := hopFrame{uint32(page), field(i, 1), field(i, 2), field(i, 3), field(i, 4)}
		at := next[strip]
		if f.pages == 0 || f.pages > packed.FrameBytes/packed.Align || f.first > f.last || int64(f.last) >= h.meta.NumNodes ||
			at > h.start[strip] && f.first < h.frames[at-1].last {
			return h.bad("frame %d is out of order", i)
		}
		page += int64(f.pages)
		h.frames[at] = f
		next[strip]++
	}
	if page*packed.Align != h.bytes {
		return h.bad("%d bytes belong to no frame", h.bytes-page*packed.Align)
	}
	return nil
}

// Meta describes the interval.
func (h *HopFile) Meta() EdgeMeta { return h.meta }

// Bytes returns the size of the frames.
func (h *HopFile) Bytes() int64 { return h.bytes }

func (h *HopFile) strips() int { return len(h.start) - 1 }

func (h *HopFile) edges(strip int) (n int64) {
	for _, f := range h.frames[h.start[strip]:h.start[strip+1]] {
		n += int64(f.edges)
	}
	return n
}

// StripEdges counts the edges into each strip.
func (h *HopFile) StripEdges() []int64 {
	all := make([]int64, h.strips())
	for i := range all {
		all[i] = h.edges(i)
	}
	return all
}

// find returns the frames of a strip that may have sources in [lo, hi).
func (h *HopFile) find(strip int, lo, hi uint32) (from, to int) {
	from, to = int(h.start[strip]), int(h.start[strip+1])
	for from < to && h.frames[from].last < lo {
		from++
	}
	for from < to && h.frames[to-1].first >= hi {
		to--
	}
	return from, to
}

// decode decodes the frame of an index entry. It checks the words against the graph when this process first reads them.
func (h *HopFile) decode(buf []byte, strip, at int) (packed.Frame, error) {
	frame, size, err := packed.Decode(buf)
	if err == nil {
		err = h.compare(frame, size, strip, h.frames[at])
	}
	if err == nil && !h.seen[at].Load() {
		lo := h.meta.Lo + int64(strip)<<packed.StripShift
		err = frame.Check(h.meta.NumNodes, min(packed.StripRows, h.meta.Hi-lo))
		h.seen[at].Store(err == nil)
	}
	if err != nil {
		return frame, seal.Corrupt(h.name, "strip %d, frame %d: %v", strip, at-int(h.start[strip]), err)
	}
	return frame, nil
}

// compare returns an error if a frame differs from its index entry.
func (h *HopFile) compare(frame packed.Frame, size, strip int, f hopFrame) error {
	switch {
	case int64(frame.Strip) != h.meta.Lo>>packed.StripShift+int64(strip):
		return fmt.Errorf("frame belongs to strip %d of the graph: %w", frame.Strip, packed.ErrFrame)
	case frame.Src != f.first || frame.Last != f.last || frame.Edges != f.edges || size != int(f.pages)*packed.Align:
		return fmt.Errorf("frame differs from its footer entry: %w", packed.ErrFrame)
	case (len(frame.Weights) > 0) != h.meta.Weighted:
		return fmt.Errorf("frame has %d bytes of weights in a graph where edges have weights: %v: %w", len(frame.Weights), h.meta.Weighted, packed.ErrFrame)
	}
	return nil
}

// open reads the edges of a strip with sources in [lo, hi).
func (h *HopFile) open(ctx context.Context, strip int, lo, hi uint32) packed.Frames {
	from, to := h.find(strip, lo, hi)
	f := hopFrames{h: h, ctx: ctx, strip: strip, at: from, end: to, lo: lo, hi: hi}
	if h.resident.has(strip) {
		return &residentFrames{f}
	}
	depth := min(max(hopReads/int(hopOpen.Add(1)), hopLeast), direct.QueueDepth)
	r := &diskFrames{hopFrames: f, queue: direct.NewQueue(), bufs: make([]*[]byte, min(depth, to-from)), next: from}
	for range r.bufs {
		r.start()
	}
	return r
}

// hopOpen counts the strips that are being read.
var hopOpen atomic.Int32

// hopFrames is a range of the frames of a file.
type hopFrames struct {
	h       *HopFile
	ctx     context.Context
	strip   int
	at, end int
	lo, hi  uint32
}

// residentFrames reads frames from memory.
type residentFrames struct{ hopFrames }

// Next implements packed.Frames.
func (r *residentFrames) Next() (packed.Frame, error) {
	if r.ctx.Err() != nil {
		return packed.Frame{}, context.Cause(r.ctx)
	}
	for r.at < r.end {
		in := &r.h.resident
		frame, _, err := packed.Parse(in.frames[int64(in.page[r.at-int(r.h.start[in.first])])*packed.Align:])
		r.at++
		if err != nil {
			return frame, err
		}
		if frame, ok := frame.Trim(r.lo, r.hi); ok {
			return frame, nil
		}
	}
	return packed.Frame{}, io.EOF
}

// Close implements packed.Frames.
func (r *residentFrames) Close() error { return nil }

var hopBuffers = sync.Pool{New: func() any { b := direct.AlignedBytes(packed.FrameBytes); return &b }}

// diskFrames reads frames ahead of the pass. Frame i goes to buffer i modulo the number of buffers, as soon as the pass has finished with
// the frame that held it.
type diskFrames struct {
	hopFrames
	queue *direct.Queue
	bufs  []*[]byte
	next  int  // next frame to read
	taken bool // the pass uses the frame before at
	err   error
}

func (r *diskFrames) slot(frame int) int { return frame % len(r.bufs) }

// start starts reading the next frame, if there is one.
func (r *diskFrames) start() {
	if r.next == r.end {
		return
	}
	i := r.slot(r.next)
	if r.bufs[i] == nil {
		r.bufs[i] = hopBuffers.Get().(*[]byte)
	}
	f := r.h.frames[r.next]
	r.queue.Start(i, r.h.r, (*r.bufs[i])[:int(f.pages)*packed.Align], int64(f.page)*packed.Align)
	r.next++
}

// Next implements packed.Frames.
func (r *diskFrames) Next() (packed.Frame, error) {
	for r.err == nil && r.at < r.end {
		if r.taken {
			r.start()
		}
		if r.ctx.Err() != nil {
			return packed.Frame{}, context.Cause(r.ctx)
		}
		var frame packed.Frame
		frame, r.err = r.read()
		r.at, r.taken = r.at+1, true
		if frame, ok := frame.Trim(r.lo, r.hi); ok && r.err == nil {
			return frame, nil
		}
	}
	if r.err != nil {
		return packed.Frame{}, r.err
	}
	return packed.Frame{}, io.EOF
}

// read waits for the frame at r.at.
func (r *diskFrames) read() (packed.Frame, error) {
	i := r.slot(r.at)
	n, err := r.queue.Wait(i)
	size := int(r.h.frames[r.at].pages) * packed.Align
	if n < size {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return packed.Frame{}, fmt.Errorf("shards: %s: strip %d: %w", r.h.name, r.strip, err)
	}
	return r.h.decode((*r.bufs[i])[:size], r.strip, r.at)
}

// Close implements packed.Frames.
func (r *diskFrames) Close() error {
	r.queue.Close()
	for _, b := range r.bufs {
		if b != nil {
			hopBuffers.Put(b)
		}
	}
	r.bufs = nil
	hopOpen.Add(-1)
	return nil
}

// HopStream is a packed.Source of the whole graph's edges, read from the hop streams of all intervals, or from memory once they are
// resident.
type HopStream struct {
	files    []*HopFile
	first    []int // first strip of each file, then the end
	nodes    int64
	resident *mem.Array[byte]
}

// OpenHopStream opens the hop stream of every interval in the catalogue: of the edges as the dataset has them, if edges have directions.
func OpenHopStream(ctx context.Context, c *catalog.Catalog) (*HopStream, error) {
	return OpenHopStreamOf(ctx, c, catalog.KindHops)
}

// OpenHopStreamOf is [OpenHopStream] for a kind of hop streams.
func OpenHopStreamOf(ctx context.Context, c *catalog.Catalog, kind string) (*HopStream, error) {
	var files []*HopFile
	fail := func(err error) (*HopStream, error) {
		for _, f := range files {
			_ = f.c.Close()
		}
		return nil, err
	}
	for _, e := range c.Entries(kind) {
		r, err := c.Open(ctx, e)
		if err != nil {
			return fail(err)
		}
		f, err := OpenHops(r, e.Path)
		if err != nil {
			_ = r.Close()
			return fail(err)
		}
		files = append(files, f)
	}
	s, err := NewHopStream(files...)
	if err != nil {
		return fail(err)
	}
	return s, nil
}

// NewHopStream joins the hop streams of all intervals of a graph, in order. Closing it closes them.
func NewHopStream(files ...*HopFile) (*HopStream, error) {
	s := &HopStream{files: files, first: []int{0}}
	rows := int64(0)
	for i, f := range files {
		if f.meta.Lo != rows {
			return nil, fmt.Errorf("shards: %s starts at row %d, not %d: %w", f.name, f.meta.Lo, rows, seal.ErrCorrupt)
		}
		if f.meta.Weighted != files[0].meta.Weighted {
			return nil, fmt.Errorf("%s and %s: edges of one of them have weights, and those of the other have none: %w", files[0].name, f.name, seal.ErrCorrupt)
		}
		rows, s.nodes = f.meta.Hi, f.meta.NumNodes
		s.first = append(s.first, s.first[i]+f.strips())
	}
	if len(files) == 0 || rows != s.nodes {
		return nil, fmt.Errorf("shards: the hop streams end at row %d of %d: %w", rows, s.nodes, seal.ErrCorrupt)
	}
	return s, nil
}

// Bytes returns the size of the frames on disk, or in memory once resident.
func (s *HopStream) Bytes() int64 {
	var n int64
	for _, f := range s.files {
		n += f.bytes
	}
	return n
}

// RowsBytes returns the part of [HopStream.Bytes] for the frames of rows [lo, hi), whole strips.
func (s *HopStream) RowsBytes(lo, hi int64) (n int64) {
	s.eachFile(lo, hi, func(f *HopFile, first, last int) {
		for _, x := range f.frames[f.start[first]:f.start[last]] {
			n += int64(x.pages) * packed.Align
		}
	})
	return n
}

// eachFile calls do for each file with some of rows [lo, hi), and the strips of the file that have them.
func (s *HopStream) eachFile(lo, hi int64, do func(f *HopFile, first, last int)) {
	for i, f := range s.files {
		first, last := int(lo>>packed.StripShift)-s.first[i], packed.Strips(hi)-s.first[i]
		if first, last = max(first, 0), min(last, f.strips()); first < last {
			do(f, first, last)
		}
	}
}

// Load reads all frames into memory charged to b, on threads, so that later passes need no I/O.
func (s *HopStream) Load(ctx context.Context, b *mem.Budget, threads int) error {
	return s.LoadRows(ctx, b, 0, s.nodes, threads)
}

// LoadRows is [HopStream.Load] for the edges of rows [lo, hi), whole strips. It may be called once.
func (s *HopStream) LoadRows(ctx context.Context, b *mem.Budget, lo, hi int64, threads int) error {
	a, err := mem.Alloc[byte](b, s.RowsBytes(lo, hi), "resident hop stream")
	if err != nil {
		return err
	}
	rest := a.S
	s.eachFile(lo, hi, func(f *HopFile, first, last int) {
		if err == nil {
			rest, err = f.load(ctx, rest, first, last, threads)
		}
	})
	if err != nil {
		for _, f := range s.files {
			f.resident = residentHops{}
		}
		a.Free()
		return err
	}
	s.resident = a
	return nil
}

// load reads and checks the frames of strips [first, last) of a file, and returns the unused memory.
func (h *HopFile) load(ctx context.Context, to []byte, first, last, threads int) (rest []byte, err error) {
	base := h.start[first]
	frames := h.frames[base:h.start[last]]
	order := make([]int, len(frames)) // in the order of the file
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(frames[a].page, frames[b].page) })
	in := residentHops{first: first, last: last, page: make([]uint32, len(frames))}
	// Consecutive frames are read together.
	type piece struct{ from, to, size int64 }
	var pieces []piece
	pages := int64(0)
	for _, i := range order {
		f := frames[i]
		in.page[i] = uint32(pages)
		from, size := int64(f.page)*packed.Align, int64(f.pages)*packed.Align
		if n := len(pieces); n > 0 && pieces[n-1].from+pieces[n-1].size == from && pieces[n-1].size+size <= hopLoad {
			pieces[n-1].size += size
		} else {
			pieces = append(pieces, piece{from, pages * packed.Align, size})
		}
		pages += int64(f.pages)
	}
	in.frames, rest = to[:pages*packed.Align], to[pages*packed.Align:]
	if err := share.Each(threads, len(pieces), func(i int) error {
		p := pieces[i]
		if n, err := h.r.ReadAt(in.frames[p.to:p.to+p.size], p.from); int64(n) < p.size {
			return fmt.Errorf("shards: %s: %w", h.name, err)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := share.Each(threads, last-first, func(k int) error {
		strip := first + k
		for i := h.start[strip]; i < h.start[strip+1]; i++ {
			at := int64(in.page[i-base]) * packed.Align
			if _, err := h.decode(in.frames[at:at+int64(h.frames[i].pages)*packed.Align], strip, int(i)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	h.resident = in
	return rest, nil
}

// find returns the file that has a strip, and the number of the strip in it.
func (s *HopStream) find(strip int) (*HopFile, int) {
	next, _ := slices.BinarySearch(s.first, strip+1)
	return s.files[next-1], strip - s.first[next-1]
}

// Weighted reports whether edges have weights.
func (s *HopStream) Weighted() bool { return s.files[0].meta.Weighted }

// NumNodes implements packed.Source.
func (s *HopStream) NumNodes() int64 { return s.nodes }

// Strips implements packed.Source.
func (s *HopStream) Strips() int { return s.first[len(s.files)] }

// Edges implements packed.Source.
func (s *HopStream) Edges(strip int) int64 {
	f, i := s.find(strip)
	return f.edges(i)
}

// NumEdges returns the number of directed edges.
func (s *HopStream) NumEdges() int64 {
	var n int64
	for _, h := range s.files {
		for _, f := range h.frames {
			n += int64(f.edges)
		}
	}
	return n
}

// Open implements packed.Source.
func (s *HopStream) Open(ctx context.Context, strip int, lo, hi uint32) (packed.Frames, error) {
	f, i := s.find(strip)
	return f.open(ctx, i, lo, hi), nil
}

// Close closes the files and frees the memory. Passes must have ended.
func (s *HopStream) Close() {
	for _, f := range s.files {
		_ = f.c.Close()
		f.resident = residentHops{}
	}
	s.files = nil
	s.resident.Free()
}

// Resident reports whether Load or LoadRows has read frames into memory.
func (s *HopStream) Resident() bool { return s.resident != nil }
