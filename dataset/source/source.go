package source

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zstd"

	"ndls/dataset/graph"
	"ndls/internal/direct"
)

const (
	// BufferSize is the size of the buffer between a file and its parser.
	BufferSize = 256 << 10
	// maxWindow is the largest zstd window: what zstd -19 uses. It is held in memory.
	maxWindow = 8 << 20
)

// File is an open file, on a disk of this machine or elsewhere.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
	Name() string
}

// Files holds the open files of a dataset, and what there is to say of them.
type Files struct {
	opened  []openedFile
	adopted []io.Closer
	notes   []graph.Note
	sums    *Sums // nil for none
}

// openedFile is an open file; version belongs to a file that is not of this machine.
type openedFile struct {
	File
	version string
}

// Adopt closes something with the files, such as the store of files that are not of this
// machine.
func (fs *Files) Adopt(c io.Closer) { fs.adopted = append(fs.adopted, c) }

// AdoptFile takes over an open file that is not of this machine. version changes when the
// file is replaced.
func (fs *Files) AdoptFile(f File, version string) {
	fs.opened = append(fs.opened, openedFile{f, version})
}

func (fs *Files) OpenFile(path string) (File, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	summed := &summedFile{File: f}
	fs.opened = append(fs.opened, openedFile{File: summed})
	return summed, fs.sumUp(summed)
}

func (fs *Files) Close() error {
	var errs []error
	for _, f := range fs.opened {
		errs = append(errs, f.Close())
	}
	for _, c := range slices.Backward(fs.adopted) {
		errs = append(errs, c.Close())
	}
	fs.opened, fs.adopted = nil, nil
	return errors.Join(errs...)
}

// Bytes is the size of all files.
func (fs *Files) Bytes() int64 {
	var n int64
	for _, f := range fs.opened {
		n += f.Size()
	}
	return n
}

// Source is a sequence of bytes that can be read any number of times: a file or
// a member of a zip archive, as it is or unpacked on the way.
type Source struct {
	Name     string // for messages
	File     File
	Off, End int64 // where the stored bytes lie
	Unpack   func(*bufio.Reader) (io.ReadCloser, error)
	Size     int64 // unpacked, -1 if unknown
	Checksum *uint32
	Encoding *Encoding // of text, nil for UTF-8
	files    *Files
}

// Note adds a note to those of the dataset.
func (s *Source) Note(n graph.Note) {
	if s.files != nil {
		s.files.Note(n)
	}
}

// In has the notes of a source go to a dataset.
func (s *Source) In(fs *Files) *Source {
	s.files = fs
	return s
}

// Cuttable reports whether the text of the source can be read from the middle.
func (s *Source) Cuttable() bool { return s.Unpack == nil && s.Checksum == nil && s.Encoding == nil }

// Packed reports whether files whose names end so are unpacked: .gz and others.
func Packed(ext string) bool { return unpackers[ext] != nil || ext == ".zip" }

// Open opens a file for reading, unpacked if its name ends in .gz, .zst, .xz,
// .bz2, .lz4 or .zip. It returns the extension that says what is inside.
func (fs *Files) Open(name string) (*Source, string, error) {
	f, err := fs.OpenFile(name)
	if err != nil {
		return nil, "", err
	}
	s, ext, err := Of(f, name)
	if err == nil {
		s.In(fs)
	}
	return s, ext, err
}

// Of is the source of an open file, as Files.Open says.
func Of(f File, name string) (*Source, string, error) {
	if err := notEmpty(f, name); err != nil {
		return nil, "", err
	}
	s := &Source{Name: name, File: f, End: f.Size(), Size: f.Size()}
	ext := strings.ToLower(filepath.Ext(name))
	inner := strings.ToLower(filepath.Ext(strings.TrimSuffix(name, filepath.Ext(name))))
	switch ext {
	case ".zip":
		members, err := ZipMembers(f, name)
		if err != nil {
			return nil, "", err
		}
		if len(members) != 1 {
			return nil, "", graph.BadData(name, "holds %d files: unpack it and name the one that is meant", len(members))
		}
		s, err := ZipSource(f, name, members[0])
		return s, strings.ToLower(path.Ext(members[0].Name)), err
	}
	if unpack, packed := unpackers[ext]; packed {
		s.Unpack, s.Size = unpack, -1
		return s, inner, nil
	}
	return s, ext, nil
}

// notEmpty refuses a file without bytes, but for lines of JSON, of which there may be none.
func notEmpty(f File, name string) error {
	ext := strings.ToLower(filepath.Ext(name))
	if f.Size() == 0 && ext != ".jsonl" && ext != ".ndjson" {
		return graph.BadData(name, "is empty (0 bytes): write it again, or leave it out")
	}
	return nil
}

// refuseHead refuses a file of another known format.
func refuseHead(f File, name string) error {
	head := make([]byte, min(Sniffed, f.Size()))
	n, _ := f.ReadAt(head, 0)
	if bytes.HasPrefix(head[:n], []byte("PK\x03\x04")) {
		return nil // a zip archive that is damaged
	}
	return RefuseKnown(name, head[:n])
}

// ZipSource is a member of an archive; entry is its part of the directory.
func ZipSource(f File, archive string, entry *zip.File) (*Source, error) {
	name := archive + " member " + entry.Name
	off, err := entry.DataOffset()
	if err != nil {
		return nil, graph.Damaged(name, err)
	}
	s := &Source{
		Name: name, File: f, Off: off, End: off + int64(entry.CompressedSize64),
		Size: int64(entry.UncompressedSize64), Checksum: &entry.CRC32,
	}
	if s.End < s.Off || s.End > f.Size() || s.Size < 0 {
		return nil, graph.BadData(name, "lies outside of the file: it is truncated, fetch it again")
	}
	switch {
	case entry.Flags&1 != 0:
		return nil, graph.BadData(name, "is encrypted: unpack it first")
	case entry.Method == zip.Deflate:
		s.Unpack = func(r *bufio.Reader) (io.ReadCloser, error) { return flate.NewReader(r), nil }
	case entry.Method != zip.Store:
		return nil, graph.BadData(name, "uses compression method %d: pack it again with deflate", entry.Method)
	}
	return s, nil
}

// Open reads from byte off of the unpacked form. Whoever reads a member of an
// archive from its header to its end has checked its checksum.
func (s *Source) Open(ctx context.Context, off int64) (*Stream, error) {
	st := &Stream{ctx: ctx, source: s, Check: s.Checksum != nil}
	start, skipped := s.Off, off
	if s.Unpack == nil && (s.Checksum == nil || off > BufferSize) {
		start, skipped, st.Check = min(s.Off+off, s.End), 0, false
	}
	st.raw = direct.NewReader(s.File, start, s.End)
	st.r = st.raw
	if s.Unpack != nil {
		unpacked, err := s.Unpack(bufio.NewReaderSize(st.raw, 64<<10))
		if err != nil {
			return nil, errors.Join(graph.Damaged(s.Name, err), st.raw.Close())
		}
		st.r, st.unpacked = unpacked, unpacked
	}
	if err := Skip(st, skipped); err != nil {
		return nil, errors.Join(graph.Damaged(s.Name, err), st.Close())
	}
	return st, nil
}

// Stream reads a source front to back.
type Stream struct {
	ctx      context.Context
	source   *Source
	r        io.Reader
	raw      *direct.Reader
	unpacked io.Closer
	Check    bool
	crc      uint32
	read     int64
}

func (s *Stream) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.Read(p)
	if s.Check {
		s.crc = crc32.Update(s.crc, crc32.IEEETable, p[:n])
		s.read += int64(n)
	}
	switch {
	case err == io.EOF && s.Check && (s.read != s.source.Size || s.crc != *s.source.Checksum):
		err = graph.BadData(s.source.Name, "its checksum differs: it is damaged, fetch it again")
	case errors.Is(err, zstd.ErrWindowSizeExceeded) || errors.Is(err, zstd.ErrDecoderSizeExceeded):
		err = graph.BadData(s.source.Name, "needs a zstd window of more than %d MiB: compress it again without --long or --ultra", maxWindow>>20)
	case err != nil && err != io.EOF && err != io.ErrUnexpectedEOF && s.unpacked != nil:
		err = graph.Damaged(s.source.Name, fmt.Errorf("%w: it is damaged, fetch it again, or unpack it and pack it again", err))
	case err != nil && err != io.EOF:
		err = graph.Damaged(s.source.Name, err)
	}
	return n, err
}

func (s *Stream) Close() error {
	if s.unpacked != nil {
		_ = s.unpacked.Close() // It releases memory; what was wrong with the data, Read has said.
	}
	return s.raw.Close()
}

// Skip reads n bytes, or all there are if n is negative.
func Skip(r io.Reader, n int64) error {
	if n < 0 {
		_, err := io.Copy(io.Discard, r)
		return err
	}
	_, err := io.CopyN(io.Discard, r, n)
	return err
}
