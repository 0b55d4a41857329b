package extsort

import (
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"sort"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

// A run file is a sorted run that other processes read, from the middle too:
//
//	keys     8 bytes each, ascending, none twice
//	marks    of every block of blockKeys keys: its first key, the CRC-32C of its bytes
//	footer   runFooter
//
// All numbers are little-endian.
const (
	// runMagic ends a run file.
	runMagic    = 0x314e5552 // "RUN1"
	markBytes   = 16
	footerBytes = 32
)

// mark describes a block of a run file.
type mark struct {
	first uint64
	sum   uint32
	_     uint32
}

// runFooter ends a run file.
type runFooter struct {
	keys  int64
	notes [2]int64
	sum   uint32 // of marks and footer up to here
	magic uint32
}

// RunWriter writes a run file.
type RunWriter struct {
	w      io.Writer
	firsts []uint64 // of the blocks
	blockSums
}

// NewRunWriter starts a run file on w.
func NewRunWriter(w io.Writer) *RunWriter { return &RunWriter{w: w} }

// Write takes the next keys.
func (w *RunWriter) Write(keys []uint64) error {
	if _, err := w.w.Write(mem.AsBytes(keys)); err != nil {
		return err
	}
	for i := (blockKeys - w.keys%blockKeys) % blockKeys; i < int64(len(keys)); i += blockKeys {
		w.firsts = append(w.firsts, keys[i])
	}
	w.add(keys)
	return nil
}

// Close ends the file, with two numbers of the caller's own in its footer, and
// returns how many keys it holds. It does not close the underlying writer.
func (w *RunWriter) Close(notes [2]int64) (keys int64, err error) {
	marks := make([]mark, len(w.sums))
	for i := range marks {
		marks[i].first, marks[i].sum = w.firsts[i], w.sums[i]
	}
	if _, err := w.w.Write(mem.AsBytes(marks)); err != nil {
		return 0, err
	}
	footer := []runFooter{{keys: w.keys, notes: notes, magic: runMagic}}
	footer[0].sum = footerSum(marks, footer)
	_, err = w.w.Write(mem.AsBytes(footer))
	return w.keys, err
}

func footerSum(marks []mark, footer []runFooter) uint32 {
	sum := crc32.Checksum(mem.AsBytes(marks), seal.Castagnoli)
	return crc32.Update(sum, seal.Castagnoli, mem.AsBytes(footer)[:24])
}

// File is where a run file is read from.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// RunFile is an open run file.
type RunFile struct {
	runFooter
	path  string
	file  File
	marks *mem.Array[mark]
}

// Keys is how many keys the file holds.
func (r *RunFile) Keys() int64 { return r.keys }

// Notes are the two numbers that were given to [RunWriter.Close].
func (r *RunFile) Notes() [2]int64 { return r.notes }

// OpenRun reads the footer and the marks of a run file; path is for messages. It
// takes the file over if it succeeds.
func OpenRun(b *mem.Budget, file File, path string) (*RunFile, error) {
	r := &RunFile{path: path, file: file}
	footer := make([]runFooter, 1)
	at := file.Size() - footerBytes
	if at < 0 {
		return nil, r.corrupt("has %d bytes", file.Size())
	}
	if err := r.readAt(mem.AsBytes(footer), at); err != nil {
		return nil, err
	}
	r.runFooter = footer[0]
	if r.magic != runMagic || r.keys < 0 || r.keys > at/8 || at != 8*r.keys+markBytes*r.blocks() {
		return nil, r.corrupt("has %d bytes, and ends in %d keys", file.Size(), r.keys)
	}
	var err error
	if r.marks, err = mem.Alloc[mark](b, r.blocks(), "run index"); err != nil {
		return nil, err
	}
	if err = r.readAt(mem.AsBytes(r.marks.S), 8*r.keys); err == nil && footerSum(r.marks.S, footer) != r.sum {
		err = r.corrupt("its index has another checksum")
	}
	if err != nil {
		r.marks.Free()
		return nil, err
	}
	return r, nil
}

func (r *RunFile) blocks() int64 { return (r.keys + blockKeys - 1) / blockKeys }

func (r *RunFile) readAt(p []byte, off int64) error {
	if n, err := r.file.ReadAt(p, off); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	return nil
}

func (r *RunFile) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %s: run again with --resume=false: %w", r.path, fmt.Sprintf(format, args...), seal.ErrCorrupt)
}

// Close closes the file.
func (r *RunFile) Close() {
	_ = r.file.Close()
	r.marks.Free()
}

// section is the run of those keys of a run file that are in [lo, hi).
type section struct {
	*RunFile
	lo, hi     uint64
	block, end int64
}

// Section is the run of the keys in [lo, hi). Closing it closes the file.
func (r *RunFile) Section(lo, hi uint64) Run {
	s := &section{RunFile: r, lo: lo, hi: hi}
	s.block = max(r.firstBlock(func(first uint64) bool { return first > lo })-1, 0)
	s.end = r.firstBlock(func(first uint64) bool { return first >= hi })
	return s
}

// Keys implements Run.
func (s *section) Keys() int64 { return max(s.end-s.block, 0) * blockKeys }

// firstBlock is the first one whose first key is beyond something.
func (r *RunFile) firstBlock(beyond func(uint64) bool) int64 {
	return int64(sort.Search(len(r.marks.S), func(i int) bool { return beyond(r.marks.S[i].first) }))
}

// Fill implements Run.
func (s *section) Fill(keys []uint64) (int, error) {
	for s.block < s.end {
		n := min(int64(len(keys))/blockKeys, s.end-s.block)
		got := keys[:min(n*blockKeys, s.keys-s.block*blockKeys)]
		if err := s.readAt(mem.AsBytes(got), s.block*blockKeys*8); err != nil {
			return 0, err
		}
		for rest := got; len(rest) > 0; s.block++ {
			block := rest[:min(blockKeys, len(rest))]
			if crc32.Checksum(mem.AsBytes(block), seal.Castagnoli) != s.marks.S[s.block].sum {
				return 0, s.corrupt("block %d has another checksum", s.block)
			}
			rest = rest[len(block):]
		}
		last, _ := slices.BinarySearch(got, s.hi)
		first, _ := slices.BinarySearch(got[:last], s.lo)
		if n := copy(keys, got[first:last]); n > 0 {
			return n, nil
		}
	}
	return 0, io.EOF
}
