package dataset

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"ndls/internal/direct"
)

const (
	// bufferSize is the size of the buffer between a file and its parser.
	bufferSize = 256 << 10
	// maxWindow is the largest zstd window: what zstd -19 uses. It is held in memory.
	maxWindow = 8 << 20
)

// files holds the open files of a dataset, and what there is to say of them.
type files struct {
	opened []*direct.File
	notes  []Note
}

func (fs *files) open(path string) (*direct.File, error) {
	f, err := direct.Open(path)
	if err != nil {
		return nil, err
	}
	fs.opened = append(fs.opened, f)
	return f, nil
}

func (fs *files) Close() error {
	var errs []error
	for _, f := range fs.opened {
		errs = append(errs, f.Close())
	}
	fs.opened = nil
	return errors.Join(errs...)
}

// bytes is the size of all files.
func (fs *files) bytes() int64 {
	var n int64
	for _, f := range fs.opened {
		n += f.Size()
	}
	return n
}

// source is a sequence of bytes that can be read any number of times: a file or
// a member of a zip archive, as it is or unpacked on the way.
type source struct {
	name     string // for messages
	file     *direct.File
	off, end int64 // where the stored bytes lie
	unpack   func(*bufio.Reader) (io.ReadCloser, error)
	size     int64 // unpacked, -1 if unknown
	checksum *uint32
}

// openSource opens a file for reading, unpacked if its name ends in .gz, .zst or
// .zip. It returns the extension that says what is inside.
func (fs *files) openSource(name string) (*source, string, error) {
	f, err := fs.open(name)
	if err != nil {
		return nil, "", err
	}
	s := &source{name: name, file: f, end: f.Size(), size: f.Size()}
	ext := strings.ToLower(filepath.Ext(name))
	inner := strings.ToLower(filepath.Ext(strings.TrimSuffix(name, filepath.Ext(name))))
	switch ext {
	case ".gz":
		s.unpack, s.size = gunzip, -1
		return s, inner, nil
	case ".zst":
		s.unpack, s.size = unzstd, -1
		return s, inner, nil
	case ".zip":
		members, err := zipMembers(f, name)
		if err != nil {
			return nil, "", err
		}
		if len(members) != 1 {
			return nil, "", badData(name, "holds %d files: unpack it and name the one that is meant", len(members))
		}
		s, err := zipSource(f, name, members[0])
		return s, strings.ToLower(path.Ext(members[0].Name)), err
	}
	return s, ext, nil
}

// zipMembers lists the files of an archive.
func zipMembers(f *direct.File, name string) ([]*zip.File, error) {
	z, err := zip.NewReader(f, f.Size())
	if err != nil {
		return nil, damaged(name, fmt.Errorf("%w: it is damaged or no zip archive, fetch it again", err))
	}
	var members []*zip.File
	for _, m := range z.File {
		if !strings.HasSuffix(m.Name, "/") {
			members = append(members, m)
		}
	}
	return members, nil
}

// zipSource is a member of an archive; entry is its part of the directory.
func zipSource(f *direct.File, archive string, entry *zip.File) (*source, error) {
	name := archive + " member " + entry.Name
	off, err := entry.DataOffset()
	if err != nil {
		return nil, damaged(name, err)
	}
	s := &source{
		name: name, file: f, off: off, end: off + int64(entry.CompressedSize64),
		size: int64(entry.UncompressedSize64), checksum: &entry.CRC32,
	}
	if s.end < s.off || s.end > f.Size() || s.size < 0 {
		return nil, badData(name, "lies outside of the file: it is truncated, fetch it again")
	}
	switch {
	case entry.Flags&1 != 0:
		return nil, badData(name, "is encrypted: unpack it first")
	case entry.Method == zip.Deflate:
		s.unpack = func(r *bufio.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil }
	case entry.Method != zip.Store:
		return nil, badData(name, "uses compression method %d: pack it again with deflate", entry.Method)
	}
	return s, nil
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
// were one. It knows a damaged member from other bytes behind the last one.
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

// open reads from byte off of the unpacked form. Whoever reads a member of an
// archive from its header to its end has checked its checksum.
func (s *source) open(ctx context.Context, off int64) (*stream, error) {
	st := &stream{ctx: ctx, source: s, check: s.checksum != nil}
	start, skipped := s.off, off
	if s.unpack == nil && (s.checksum == nil || off > bufferSize) {
		start, skipped, st.check = min(s.off+off, s.end), 0, false
	}
	st.raw = direct.NewReader(s.file, start, s.end)
	st.r = st.raw
	if s.unpack != nil {
		unpacked, err := s.unpack(bufio.NewReaderSize(st.raw, 64<<10))
		if err != nil {
			return nil, errors.Join(damaged(s.name, err), st.raw.Close())
		}
		st.r, st.unpacked = unpacked, unpacked
	}
	if err := skip(st, skipped); err != nil {
		return nil, errors.Join(damaged(s.name, err), st.Close())
	}
	return st, nil
}

// stream reads a source front to back.
type stream struct {
	ctx      context.Context
	source   *source
	r        io.Reader
	raw      *direct.Reader
	unpacked io.Closer
	check    bool
	crc      uint32
	read     int64
}

func (s *stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	if s.check {
		s.crc = crc32.Update(s.crc, crc32.IEEETable, p[:n])
		s.read += int64(n)
	}
	switch {
	case err == io.EOF && s.check && (s.read != s.source.size || s.crc != *s.source.checksum):
		err = badData(s.source.name, "its checksum differs: it is damaged, fetch it again")
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = badData(s.source.name, "needs a zstd window of more than %d MiB: compress it again without --long or --ultra", maxWindow>>20)
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF && s.unpacked != nil:
		err = damaged(s.source.name, fmt.Errorf("%w: it is damaged, fetch it again, or unpack it and pack it again", err))
	case err != nil && err != io.EOF:
		err = damaged(s.source.name, err)
	}
	return n, err
}

func (s *stream) Close() error {
	if s.unpacked != nil {
		_ = s.unpacked.Close() // It releases memory; what was wrong with the data, Read has said.
	}
	return s.raw.Close()
}

// skipMark skips the byte order mark that some editors write.
func skipMark(r io.Reader) io.Reader {
	b := bufio.NewReaderSize(r, 64<<10)
	if first, err := b.Peek(3); err == nil && string(first) == "\xef\xbb\xbf" {
		_, _ = b.Discard(3)
	}
	return b
}

// skip reads n bytes, or all there are if n is negative.
func skip(r io.Reader, n int64) error {
	if n < 0 {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}
