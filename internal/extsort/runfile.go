package extsort

import (
	"fmt"
	"hash/crc32"
	"io"

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
	w io.Writer
	blockSums
}

// NewRunWriter starts a run file on w.
func NewRunWriter(w io.Writer) *RunWriter {
	return &RunWriter{w: w, blockSums: blockSums{block: blockKeys}}
}

// Write takes the next keys.
func (w *RunWriter) Write(keys []uint64) error {
	if _, err := w.w.Write(mem.AsBytes(keys)); err != nil {
		return err
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

func (r *RunFile) blocks() int64 { return blocksOf(r) }

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

func (r *RunFile) blockKeys() int64         { return blockKeys }
func (r *RunFile) first(block int64) uint64 { return r.marks.S[block].first }
func (r *RunFile) done(int64)               {}

// read implements run.
func (r *RunFile) read(keys []uint64, block int64) error {
	return r.readAt(mem.AsBytes(keys), block*blockKeys*8)
}

// check implements run.
func (r *RunFile) check(keys []uint64, block int64) error {
	for ; len(keys) > 0; block++ {
		n := min(blockKeys, len(keys))
		if crc32.Checksum(mem.AsBytes(keys[:n]), seal.Castagnoli) != r.marks.S[block].sum {
			return r.corrupt("block %d has another checksum", block)
		}
		keys = keys[n:]
	}
	return nil
}
