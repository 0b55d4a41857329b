package arrow

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"ndls/dataset/columnar"
	"ndls/internal/mem"
)

// extent is the place of a buffer, from the beginning of the file.
type extent struct{ at, size int64 }

// placed is a field with what a record batch says of it.
type placed struct {
	node         *node
	rows, nulls  int64
	validity     extent
	buffers      []extent // but for the validity
	data         []extent // of views
	children     []*placed
	isDictionary bool // its values are in a dictionary
}

// layout goes over the fields of a record batch in the order of their buffers.
type layout struct {
	t              table
	body           int64 // where it begins
	bodySize       int64
	nodes, buffers int // where the vectors are
	nodesLeft      int
	buffersLeft    int
	counts         int // of the buffers of views
	countsLeft     int
	codec          int // -1 for none
	version        int
}

// The compressions of buffers.
const (
	noCodec   = -1
	lz4Codec  = 0
	zstdCodec = 1
)

var errLayout = errors.New("its buffers do not fit its columns")

// lay reads what a record batch says of its buffers.
func lay(t table, b block, version int) (layout, error) {
	l := layout{t: t, body: b.at + int64(b.metadata), bodySize: b.body, codec: noCodec, version: version}
	l.nodes, l.nodesLeft = t.vector(1, 16)
	l.buffers, l.buffersLeft = t.vector(2, 16)
	l.counts, l.countsLeft = t.vector(4, 8)
	if c, ok := t.inner(3); ok {
		if l.codec = c.i8(0); l.codec > zstdCodec || c.i8(1) != 0 {
			return l, fmt.Errorf("its buffers are compressed in a way that is not read (%d)", l.codec)
		}
	}
	if t.of.bad {
		return l, errMessage
	}
	return l, nil
}

func (l *layout) buffer() extent {
	if l.buffersLeft--; l.buffersLeft < 0 {
		l.t.of.bad = true
		return extent{}
	}
	e := extent{l.t.of.i64(l.buffers), l.t.of.i64(l.buffers + 8)}
	l.buffers += 16
	if e.at < 0 || e.size < 0 || e.size > l.bodySize || e.at > l.bodySize-e.size {
		l.t.of.bad = true
		return extent{}
	}
	e.at += l.body
	return e
}

// place finds the buffers of a field. values places what a dictionary holds.
func (l *layout) place(n *node, values bool) *placed {
	p := &placed{node: n, isDictionary: n.hasDictionary && !values}
	if l.nodesLeft--; l.nodesLeft < 0 || l.t.of.bad {
		l.t.of.bad = true
		return p
	}
	p.rows, p.nulls = l.t.of.i64(l.nodes), l.t.of.i64(l.nodes+8)
	l.nodes += 16
	if p.rows < 0 || p.rows > maxRows {
		l.t.of.bad = true
	}
	var buffers int
	children := n.children
	switch id := n.id; {
	case p.isDictionary:
		buffers, children = 1, nil
	case id == typeNull || id == typeRunEnds:
		return l.below(p, children)
	case id == typeUnion:
		if l.version < 4 {
			l.buffer()
		}
		for range 1 + n.mode { // type ids, and offsets of dense ones
			l.buffer()
		}
		return l.below(p, children)
	case id == typeUTF8 || id == typeBinary || id == typeLargeUTF8 || id == typeLargeBinary || id == typeListView || id == typeLargeListView:
		buffers = 2
	case id == typeFixedList || id == typeStruct:
	default:
		buffers = 1
	}
	p.validity = l.buffer()
	for range buffers {
		p.buffers = append(p.buffers, l.buffer())
	}
	if !p.isDictionary && (n.id == typeUTF8View || n.id == typeBinaryView) {
		if l.countsLeft--; l.countsLeft < 0 {
			l.t.of.bad = true
			return p
		}
		count := l.t.of.i64(l.counts)
		l.counts += 8
		if count < 0 || count > int64(l.buffersLeft) {
			l.t.of.bad = true
			return p
		}
		for range count {
			p.data = append(p.data, l.buffer())
		}
	}
	return l.below(p, children)
}

func (l *layout) below(p *placed, children []*node) *placed {
	for _, c := range children {
		if l.t.of.bad {
			break
		}
		p.children = append(p.children, l.place(c, false))
	}
	return p
}

// each visits the buffers of a field and of those in it.
func (p *placed) each(visit func(e extent, isData bool)) {
	if p.nulls != 0 {
		visit(p.validity, false)
	}
	for _, e := range p.buffers {
		visit(e, false)
	}
	for _, e := range p.data {
		visit(e, true)
	}
	for _, c := range p.children {
		c.each(visit)
	}
}

const (
	// maxUnpacked is the size up to which the buffers of a record batch are unpacked as a whole. Larger
	// ones are unpacked as they are read, if they are at most maxStreams.
	maxUnpacked = 32 << 20
	maxStreams  = 24
	// window is the largest window of zstd that is read.
	window = 8 << 20
	// bufferSize is the size of the buffer before a stream.
	bufferSize = 64 << 10
)

// opener opens the buffers of a record batch.
type opener struct {
	f       *File
	codec   int
	inWhole bool
	room    columnar.Room // of what is unpacked as a whole
	closers []func()
}

// prepare decides how buffers are unpacked, and returns how many bytes they take at a time, at most.
func (o *opener) prepare(columns []*placed) (held int64, err error) {
	if o.inWhole = true; o.codec == noCodec {
		return 0, nil
	}
	total, views, windows, streams := int64(0), int64(0), int64(0), 0
	for _, p := range columns {
		p.each(func(e extent, isData bool) {
			size, failed := o.unpackedSize(e)
			if failed != nil {
				err = failed
				return
			}
			if total += size; isData {
				views += size
			} else if e.size > 0 {
				streams++
				windows += min(size, window)
			}
		})
	}
	if err != nil {
		return 0, err
	}
	o.inWhole = total <= maxUnpacked || views > maxUnpacked || streams > maxStreams
	switch {
	case total < 0 || o.inWhole && total > columnar.MaxHeld:
		return 0, tooLarge(total)
	case o.inWhole:
		return total, nil
	}
	return views + windows, nil
}

type tooLarge int64

func (n tooLarge) Error() string {
	return fmt.Sprintf("unpacks to %s: write batches of at most %s, or without compression", mem.Bytes(n), mem.Bytes(int64(columnar.MaxHeld)))
}

// unpackedSize is the size of a buffer, as it states.
func (o *opener) unpackedSize(e extent) (int64, error) {
	if o.codec == noCodec || e.size == 0 {
		return e.size, nil
	}
	var head [8]byte
	if e.size < int64(len(head)) {
		return 0, errLayout
	}
	if err := o.f.read(head[:], e.at); err != nil {
		return 0, err
	}
	size := int64(binary.LittleEndian.Uint64(head[:]))
	if size == -1 {
		return e.size - int64(len(head)), nil
	}
	if size < 0 || size > 1<<46 {
		return 0, errLayout
	}
	return size, nil
}

// open reads a buffer from its beginning on.
func (o *opener) open(e extent) (*stream, error) {
	section := func(e extent) io.Reader {
		return bufio.NewReaderSize(io.NewSectionReader(o.f.src.File, o.f.src.Off+e.at, e.size), int(min(bufferSize, max(e.size, 16))))
	}
	if o.codec == noCodec || e.size == 0 {
		return &stream{r: section(e)}, nil
	}
	size, err := o.unpackedSize(e)
	if err != nil {
		return nil, err
	}
	var head [8]byte
	if err := o.f.read(head[:], e.at); err != nil {
		return nil, err
	}
	rest := extent{e.at + 8, e.size - 8}
	if int64(binary.LittleEndian.Uint64(head[:])) == -1 {
		return &stream{r: section(rest)}, nil
	}
	var r io.Reader
	if o.codec == lz4Codec {
		r = lz4.NewReader(section(rest))
	} else {
		z, err := zstd.NewReader(section(rest), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
		if err != nil {
			return nil, err
		}
		o.closers = append(o.closers, z.Close)
		r = z
	}
	if !o.inWhole {
		return &stream{r: bufio.NewReaderSize(r, bufferSize)}, nil
	}
	var b []byte
	if err := o.room.Grow(&b, int(size)); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, fmt.Errorf("a buffer does not unpack: %w", err)
	}
	o.close()
	return &stream{r: bytes.NewReader(b), whole: b}, nil
}

func (o *opener) close() {
	for _, c := range o.closers {
		c()
	}
	o.closers = nil
}

// stream reads a buffer front to back.
type stream struct {
	r     io.Reader
	whole []byte // all of it, where it is in memory
	got   []byte
}

// next reads n bytes, which are valid until the next call.
func (s *stream) next(n int) ([]byte, error) {
	if cap(s.got) < n {
		s.got = make([]byte, n)
	}
	s.got = s.got[:n]
	_, err := io.ReadFull(s.r, s.got)
	return s.got, err
}

// skip passes over n bytes.
func (s *stream) skip(n int64) error {
	for n > 0 {
		some := min(n, bufferSize)
		if _, err := s.next(int(some)); err != nil {
			return err
		}
		n -= some
	}
	return nil
}

// bitStream reads bits.
type bitStream struct {
	s    *stream
	last byte
	left int // bits of last
}

// next appends n bits.
func (b *bitStream) next(to []bool, n int) ([]bool, error) {
	for ; n > 0 && b.left > 0; n-- {
		to = append(to, b.last&1 == 1)
		b.last >>= 1
		b.left--
	}
	bytes, err := b.s.next((n + 7) / 8)
	if err != nil {
		return to, err
	}
	for i := range n {
		to = append(to, bytes[i>>3]>>(i&7)&1 == 1)
	}
	if n&7 > 0 {
		b.last, b.left = bytes[len(bytes)-1]>>(n&7), 8-n&7
	}
	return to, nil
}

// viewData reads the text that views point to.
type viewData struct {
	o       *opener
	extents []extent
	whole   [][]byte
	window  []byte
	of      int
	at      int64
}

func (d *viewData) get(of int, at, size int64) ([]byte, error) {
	if of < 0 || of >= len(d.extents) || at < 0 {
		return nil, errLayout
	}
	e := d.extents[of]
	if d.o.codec != noCodec {
		if d.whole == nil {
			d.whole = make([][]byte, len(d.extents))
		}
		if d.whole[of] == nil {
			n, err := d.o.unpackedSize(e)
			if err != nil {
				return nil, err
			}
			s, err := d.o.open(e)
			if err != nil {
				return nil, err
			}
			if d.whole[of] = s.whole; s.whole == nil {
				b, err := s.next(int(n))
				if err != nil {
					return nil, err
				}
				d.whole[of] = b
			}
		}
		if at > int64(len(d.whole[of]))-size {
			return nil, errLayout
		}
		return d.whole[of][at : at+size], nil
	}
	if size > columnar.MaxText || at > e.size-size {
		return nil, errLayout
	}
	if d.of != of || at < d.at || at+size > d.at+int64(len(d.window)) || d.window == nil {
		n := min(max(size, bufferSize), e.size-at)
		if int64(cap(d.window)) < n {
			d.window = make([]byte, n)
		}
		d.window = d.window[:n]
		if err := d.o.f.read(d.window, e.at+at); err != nil {
			return nil, err
		}
		d.of, d.at = of, at
	}
	return d.window[at-d.at : at-d.at+size], nil
}
