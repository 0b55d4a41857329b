package source

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// unpackers unpack files by the end of their names.
var unpackers = map[string]func(*bufio.Reader) (io.ReadCloser, error){
	".gz": gunzip, ".zst": unzstd, ".xz": unxz, ".bz2": unbzip2, ".lz4": unlz4,
}

// gzipMagic begins every member of a gzip file.
const gzipMagic = "\x1f\x8b"

func gunzip(r *bufio.Reader) (io.ReadCloser, error) {
	if magic, err := r.Peek(2); err == nil && string(magic) != gzipMagic {
		return nil, errors.New("is not gzip data: rename it without .gz if it is not compressed")
	}
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipMembers{z, r}, nil
}

// gzipMembers reads the members of a gzip file one after the other, as if they
// were one. It tells a damaged member from other bytes behind the last one.
type gzipMembers struct {
	*gzip.Reader
	packed *bufio.Reader
}

func (g *gzipMembers) Read(p []byte) (int, error) {
	n, err := g.Reader.Read(p)
	if err != io.EOF {
		return n, err
	}
	switch magic, err := g.packed.Peek(2); {
	case len(magic) == 0:
		return n, err // io.EOF, or what keeps the file from being read
	case string(magic) != gzipMagic:
		return n, errors.New("other bytes follow the gzip data")
	}
	if err := g.Reset(g.packed); err != nil {
		return n, err
	}
	g.Multistream(false)
	return n, nil
}

func unzstd(r *bufio.Reader) (io.ReadCloser, error) {
	// A frame begins with one of two magic numbers; the first byte of the second has
	// any lower half.
	if magic, err := r.Peek(4); err == nil && string(magic) != "\x28\xb5\x2f\xfd" && string(magic[1:]) != "\x2a\x4d\x18" {
		return nil, errors.New("is not zstd data: rename it without .zst if it is not compressed")
	}
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil
}

// xzMagic begins an xz file.
const xzMagic = "\xfd7zXZ\x00"

func unxz(r *bufio.Reader) (io.ReadCloser, error) {
	if magic, err := r.Peek(len(xzMagic)); err == nil && string(magic) != xzMagic {
		return nil, errors.New("is not xz data: rename it without .xz if it is not compressed")
	}
	if size := xzDictionary(r); size > maxWindow {
		return nil, fmt.Errorf("needs an xz dictionary of %d MiB, at most %d MiB are used: unpack it (xz -d), or compress it again with xz -6", size>>20, maxWindow>>20)
	}
	packed := &xzEnd{r: r}
	z, err := xz.NewReader(packed)
	if err != nil {
		return nil, err
	}
	return io.NopCloser(&xzStreams{z, packed}), nil
}

// xzStreams reads the streams of an xz file. The library takes a file that is cut off
// behind a block for one that is complete.
type xzStreams struct {
	*xz.Reader
	packed *xzEnd
}

func (x *xzStreams) Read(p []byte) (int, error) {
	n, err := x.Reader.Read(p)
	if err == io.EOF && x.packed.last != [2]byte{'Y', 'Z'} {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// xzEnd retains the last two bytes before the padding of zeros: a stream ends in YZ.
type xzEnd struct {
	r    io.Reader
	last [2]byte
	raw  byte // the last byte, padding or not
}

func (e *xzEnd) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if b := bytes.TrimRight(p[:n], "\x00"); len(b) > 1 {
		e.last = [2]byte{b[len(b)-2], b[len(b)-1]}
	} else if len(b) == 1 {
		e.last = [2]byte{e.raw, b[0]}
	}
	if n > 0 {
		e.raw = p[n-1]
	}
	return n, err
}

// xzDictionary is the size of the dictionary that the first block of an xz file needs, 0
// where it has none. A block begins behind 12 bytes with its size in words, flags, two
// optional numbers, and its filters: number, size and properties.
func xzDictionary(r *bufio.Reader) int64 {
	const streamHeader = 12
	head, _ := r.Peek(streamHeader + 1)
	if len(head) <= streamHeader || head[streamHeader] == 0 {
		return 0
	}
	block, _ := r.Peek(streamHeader + 4*(int(head[streamHeader])+1))
	block = block[streamHeader:]
	if len(block) < 2 {
		return 0
	}
	flags, rest := block[1], block[2:]
	number := func() (v uint64) {
		for shift := 0; len(rest) > 0 && shift < 63; shift += 7 {
			c := rest[0]
			v, rest = v|uint64(c&0x7f)<<shift, rest[1:]
			if c < 0x80 {
				break
			}
		}
		return v
	}
	for _, given := range []byte{0x40, 0x80} {
		if flags&given != 0 {
			number()
		}
	}
	const lzma2 = 0x21
	for range flags&3 + 1 {
		id, size := number(), number()
		if size > uint64(len(rest)) {
			return 0
		}
		if id == lzma2 && size == 1 {
			if capacity, err := lzma.DecodeDictCap(rest[0]); err == nil {
				return capacity
			}
		}
		rest = rest[size:]
	}
	return 0
}

func unbzip2(r *bufio.Reader) (io.ReadCloser, error) {
	if magic, err := r.Peek(3); err == nil && string(magic) != "BZh" {
		return nil, errors.New("is not bzip2 data: rename it without .bz2 if it is not compressed")
	}
	return io.NopCloser(bzip2.NewReader(r)), nil
}

func isLZ4(magic []byte) bool {
	return string(magic) == "\x04\x22\x4d\x18" || len(magic) == 4 && string(magic[1:]) == "\x2a\x4d\x18"
}

func unlz4(r *bufio.Reader) (io.ReadCloser, error) {
	if magic, err := r.Peek(4); err == nil && !isLZ4(magic) {
		return nil, errors.New("is not an lz4 frame: rename it without .lz4 if it is not compressed, or pack it again with lz4")
	}
	f := &lz4Frames{packed: r}
	f.z = lz4.NewReader(f.begin())
	if err := f.z.Apply(lz4.ConcurrencyOption(1)); err != nil {
		return nil, err
	}
	return io.NopCloser(f), nil
}

// lz4Frames reads the frames of an lz4 file one after the other, as if they were one. The
// library takes a frame that is cut off behind a block for one that is complete.
type lz4Frames struct {
	z      *lz4.Reader
	packed *bufio.Reader
	end    *lz4End
}

// begin looks at the header of a frame: magic, and flags, of which bit 2 says that a
// checksum follows the end mark of 4 zeros.
func (f *lz4Frames) begin() *lz4End {
	f.end = &lz4End{r: f.packed, mark: -1}
	if head, err := f.packed.Peek(5); err == nil && head[0] == 4 {
		f.end.mark = 4
		if head[4]&4 != 0 {
			f.end.mark = 0
		}
	}
	return f.end
}

func (f *lz4Frames) Read(p []byte) (int, error) {
	n, err := f.z.Read(p)
	if err != io.EOF {
		return n, err
	}
	if !f.end.reached() {
		return n, io.ErrUnexpectedEOF
	}
	switch magic, err := f.packed.Peek(4); {
	case len(magic) == 0:
		return n, err // io.EOF, or what keeps the file from being read
	case !isLZ4(magic):
		return n, errors.New("other bytes follow the lz4 data")
	}
	f.z.Reset(f.begin())
	return n, nil
}

// lz4End retains the last eight bytes of a frame.
type lz4End struct {
	r    io.Reader
	last [8]byte
	mark int // where the end mark is in last, -1 in a frame that has none
}

func (e *lz4End) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if k := min(n, len(e.last)); k > 0 {
		copy(e.last[:], e.last[k:])
		copy(e.last[len(e.last)-k:], p[n-k:n])
	}
	return n, err
}

func (e *lz4End) reached() bool { return e.mark < 0 || [4]byte(e.last[e.mark:]) == [4]byte{} }
