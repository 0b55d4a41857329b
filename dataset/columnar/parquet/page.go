package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"ndls/dataset/columnar"
	"ndls/dataset/graph"
	"ndls/internal/mem"
)

const (
	// maxPage is the largest page that is read into memory, and maxPacked the largest one as it
	// is stored: what is packed badly takes somewhat more.
	maxPage   = 128 << 20
	maxPacked = maxPage + maxPage/4
	// maxHead is the largest header of a page: it may have statistics in it.
	maxHead = 256 << 10
	// dictionaryHead is the number of bytes that writers of 2013 left out of the length of a
	// column.
	dictionaryHead = 100
)

// The kinds of pages.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

// head is the header of a page.
type head struct {
	kind         int
	size, stored int // of its bytes: unpacked, and in the file
	checksum     uint32
	hasChecksum  bool
	values       int
	encoding     int
	defEncoding  int // of levels
	repEncoding  int
	defSize      int // of levels in a page of the second version
	repSize      int
	isPlain      bool // its values are not packed
	known        bool
}

// readHead reads a header, and returns how many bytes it has.
func readHead(b []byte) (h head, n int, ok bool) {
	c := &compact{b: b}
	h.kind = -1
	c.fields(thriftStruct, func(id int16, t byte) bool {
		switch {
		case id == 1:
			h.kind = c.number(t)
		case id == 2:
			h.size = c.number(t)
		case id == 3:
			h.stored = c.number(t)
		case id == 4:
			h.checksum, h.hasChecksum = uint32(c.number(t)), true
		case id == 5 && h.kind == dataPage, id == 7 && h.kind == dictionaryPage:
			h.known = true
			c.fields(t, func(id int16, t byte) bool {
				switch {
				case id == 1:
					h.values = c.number(t)
				case id == 2:
					h.encoding = c.number(t)
				case id == 3 && h.kind == dataPage:
					h.defEncoding = c.number(t)
				case id == 4 && h.kind == dataPage:
					h.repEncoding = c.number(t)
				default:
					return false
				}
				return true
			})
		case id == 8 && h.kind == dataPageV2:
			h.known = true
			c.fields(t, func(id int16, t byte) bool {
				switch id {
				case 1:
					h.values = c.number(t)
				case 4:
					h.encoding = c.number(t)
				case 5:
					h.defSize = c.number(t)
				case 6:
					h.repSize = c.number(t)
				case 7:
					h.isPlain = t == thriftFalse
					return false
				default:
					return false
				}
				return true
			})
		default:
			return false
		}
		return true
	})
	return h, c.at, !c.bad
}

// pages reads the pages of a column in a row group.
type pages struct {
	in       *bufio.Reader
	left     int64 // bytes
	codec    int
	page     []byte
	dict     dictionary
	dictPage []byte
	hasDict  bool
	shared   *shared
}

// shared holds what the columns that are read at the same time share.
type shared struct {
	columnar.Room        // their pages
	packed        []byte // a page as it is stored, until it is unpacked
	buffer        int64  // size of the buffer between the file and each column
}

var errEncoding = errors.New("is encoded")

// next reads a page of data: its levels and values.
func (p *pages) next() (h head, rep, def, values []byte, err error) {
	for {
		if h, err = p.head(); err != nil {
			return h, nil, nil, nil, err
		}
		switch {
		case h.kind == dictionaryPage && !p.hasDict:
			if p.dictPage, err = p.body(&h, p.dictPage); err != nil {
				return h, nil, nil, nil, err
			}
			if h.encoding != plain && h.encoding != plainDictionary {
				return h, nil, nil, nil, fmt.Errorf("has a dictionary that %w as %s", errEncoding, encodingName(h.encoding))
			}
			p.hasDict = true
			if err := p.dict.set(p.dictPage, h.values, p.dict.size); err != nil {
				return h, nil, nil, nil, err
			}
			continue
		case h.kind == dictionaryPage:
			return h, nil, nil, nil, errors.New("a column has two dictionaries")
		case h.kind == dataPage || h.kind == dataPageV2:
			if p.page, err = p.body(&h, p.page); err != nil {
				return h, nil, nil, nil, err
			}
			values = p.page
			if h.kind == dataPageV2 {
				return h, values[:h.repSize], values[h.repSize : h.repSize+h.defSize], values[h.repSize+h.defSize:], nil
			}
			return h, nil, nil, values, nil
		}
		// Indexes, and what there may be one day, hold no values.
		if _, err := p.in.Discard(h.stored); err != nil {
			return h, nil, nil, nil, err
		}
	}
}

// head reads the header of the next page.
func (p *pages) head() (h head, err error) {
	for size := 512; ; size = min(8*size, maxHead) {
		b, err := p.in.Peek(size)
		h, n, ok := readHead(b)
		switch {
		case len(b) == 0:
			return h, io.ErrUnexpectedEOF
		case !ok && (err != nil || size == maxHead):
			if err == nil || err == io.EOF {
				err = errors.New("the header of a page is damaged")
			}
			return h, err
		case !ok:
			continue
		}
		_, _ = p.in.Discard(n)
		p.left -= int64(n)
		if isData := h.kind == dataPage || h.kind == dictionaryPage || h.kind == dataPageV2; h.kind < 0 || h.size < 0 || h.stored < 0 ||
			h.values < 0 || int64(h.stored) > p.left || isData && !h.known {
			return h, errors.New("the header of a page is damaged")
		}
		p.left -= int64(h.stored)
		return h, nil
	}
}

// tooLarge reports a page that is not read into memory.
type tooLarge int

func (size tooLarge) Error() string {
	return fmt.Sprintf("has a page of %s: write it with pages of at most %s (data_page_size in pyarrow, smaller row groups in DuckDB)", mem.Bytes(size), mem.Bytes(maxPage))
}

// body reads and unpacks what a page holds.
func (p *pages) body(h *head, to []byte) ([]byte, error) {
	levels := h.defSize + h.repSize
	switch {
	case h.size > maxPage || h.stored > maxPacked:
		return to, tooLarge(max(h.size, h.stored))
	case h.defSize < 0 || h.repSize < 0 || levels > h.stored || levels > h.size && h.stored > levels:
		return to, errLevels
	}
	h.size = max(h.size, levels)
	if p.codec == 0 || h.kind == dataPageV2 && h.isPlain {
		if err := p.charge(&to, h.stored); err != nil {
			return to, err
		}
		if _, err := io.ReadFull(p.in, to); err != nil {
			return to, err
		}
		if err := h.check(to); err != nil {
			return to, err
		}
		if h.kind != dataPageV2 && h.size < len(to) {
			to = to[:h.size]
		}
		return to, nil
	}
	if err := p.charge(&p.shared.packed, h.stored); err != nil {
		return to, err
	}
	if _, err := io.ReadFull(p.in, p.shared.packed); err != nil {
		return to, err
	}
	if err := h.check(p.shared.packed); err != nil {
		return to, err
	}
	if h.stored == levels { // nothing but nulls
		h.size = levels
	}
	if err := p.charge(&to, h.size); err != nil {
		return to, err
	}
	copy(to, p.shared.packed[:levels])
	if h.size == levels {
		return to, nil
	}
	return to, unpackers[p.codec].unpack(to[levels:], p.shared.packed[levels:])
}

// check compares the checksum of what is stored.
func (h *head) check(stored []byte) error {
	if h.hasChecksum && crc32.ChecksumIEEE(stored) != h.checksum {
		return errors.New("the checksum of a page differs")
	}
	return nil
}

// charge gives a buffer a length, and counts what it takes.
func (p *pages) charge(b *[]byte, size int) error {
	if size > cap(*b) {
		if p.shared.Held+int64(size-cap(*b)) > columnar.MaxHeld {
			return fmt.Errorf("has pages of which more than %s would be in memory with those of the other columns: write smaller pages or row groups, or lists in place of many columns", mem.Bytes(int64(columnar.MaxHeld)))
		}
	}
	return p.shared.Grow(b, size)
}

// unpacker is a compression.
type unpacker struct {
	name   string
	unpack func(to, from []byte) error // fills to; nil where it is not read
}

// unpackers are the compressions by their numbers.
var unpackers = [...]unpacker{
	{"UNCOMPRESSED", func([]byte, []byte) error { return nil }},
	{"SNAPPY", unsnappy},
	{"GZIP", func(to, from []byte) error {
		z, err := gzip.NewReader(bytes.NewReader(from))
		if err != nil {
			return err
		}
		return fill(to, z)
	}},
	{"LZO", nil},
	{"BROTLI", func(to, from []byte) error { return fill(to, brotli.NewReader(bytes.NewReader(from))) }},
	{"LZ4", unlz4Hadoop},
	{"ZSTD", unzstd},
	{"LZ4_RAW", unlz4},
}

var errUnpack = errors.New("a page does not unpack to the size that it states")

func fill(to []byte, r io.Reader) error {
	if _, err := io.ReadFull(r, to); err != nil {
		return fmt.Errorf("%w (%v)", errUnpack, err)
	}
	return nil
}

func unsnappy(to, from []byte) error {
	if n, err := snappy.DecodedLen(from); err != nil || n != len(to) {
		return errUnpack
	}
	_, err := snappy.Decode(to, from)
	return err
}

// zstds are decoders that are not in use.
var zstds = sync.Pool{New: func() any {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPage))
	if err != nil {
		return err
	}
	return z
}}

func unzstd(to, from []byte) error {
	z, ok := zstds.Get().(*zstd.Decoder)
	if !ok {
		return errUnpack
	}
	defer zstds.Put(z)
	got, err := z.DecodeAll(from, to[:0:len(to)])
	if err == nil && len(got) != len(to) {
		err = errUnpack
	}
	if err == nil && len(to) > 0 && &got[0] != &to[0] {
		copy(to, got)
	}
	return err
}

func unlz4(to, from []byte) error {
	n, err := lz4.UncompressBlock(from, to)
	if err == nil && n != len(to) {
		err = errUnpack
	}
	return err
}

// unlz4Hadoop unpacks what writers of old called LZ4: blocks with their lengths before them, as
// Hadoop writes them, or one block, or a frame.
func unlz4Hadoop(to, from []byte) error {
	rest, out := from, to
	for len(rest) >= 8 {
		size, stored := int(binary.BigEndian.Uint32(rest)), int(binary.BigEndian.Uint32(rest[4:]))
		if size > len(out) || stored > len(rest)-8 || unlz4(out[:size], rest[8:8+stored]) != nil {
			break
		}
		if rest, out = rest[8+stored:], out[size:]; len(rest) == 0 && len(out) == 0 {
			return nil
		}
	}
	if len(from) >= 4 && binary.LittleEndian.Uint32(from) == 0x184d2204 {
		return fill(to, lz4.NewReader(bytes.NewReader(from)))
	}
	return unlz4(to, from)
}

// levels are the levels of a page.
type levels struct {
	hybrid
	largest uint32
	// packed are levels as parquet-mr wrote them before 2013: the highest bit comes first.
	old []byte
	bit int
}

// begin takes the levels in front of a page of the first version and returns what follows
// them; or all of sized, in a page of the second version.
func (l *levels) begin(data, sized []byte, isSized bool, encoding, values int) (rest []byte, err error) {
	width := bits.Len32(l.largest)
	l.old = nil
	switch {
	case l.largest == 0:
		return data, nil
	case isSized:
		l.hybrid = newHybrid(sized, width)
		return data, nil
	case encoding == bitPacked:
		size := (values*width + 7) / 8
		if size > len(data) {
			return nil, errLevels
		}
		l.old, l.bit = data[:size], 0
		l.hybrid = hybrid{width: width}
		return data[size:], nil
	case encoding != runLengths:
		return nil, fmt.Errorf("has levels that are %w as %s", errEncoding, encodingName(encoding))
	case len(data) < 4 || int64(binary.LittleEndian.Uint32(data)) > int64(len(data)-4):
		return nil, errLevels
	}
	size := 4 + int(binary.LittleEndian.Uint32(data))
	l.hybrid = newHybrid(data[4:size], width)
	return data[size:], nil
}

// read reads levels.
func (l *levels) read(to []uint32) error {
	switch {
	case l.largest == 0:
		clear(to)
		return nil
	case l.old != nil:
		for i := range to {
			v := uint32(0)
			for range l.width {
				v = v<<1 | uint32(l.old[l.bit>>3]>>(7-l.bit&7)&1)
				l.bit++
			}
			to[i] = v
		}
	default:
		if l.hybrid.next(to) != nil {
			return errLevels
		}
	}
	for _, v := range to {
		if v > l.largest {
			return errLevels
		}
	}
	return nil
}

// full reports whether the next n levels are the largest one, and passes over them if so.
func (l *levels) full(n int) bool {
	return l.largest == 0 || l.old == nil && l.hybrid.all(l.largest, n)
}

// damaged is the error of a column that is not read to its end.
func damaged(name, column string, err error) error {
	var large tooLarge
	switch {
	case errors.As(err, &large), errors.Is(err, errEncoding):
		return graph.BadData(name, "column %q %v, which is not read", column, err)
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return graph.BadData(name, "column %q ends too early: the file is damaged, write it again", column)
	}
	return graph.Damaged(name, fmt.Errorf("column %q: %w: the file is damaged, write it again", column, err))
}
