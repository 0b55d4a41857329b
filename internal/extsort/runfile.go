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
//	items    keys of 8 bytes or records of 16 bytes, ascending, none twice
//	marks    of every block of blockKeys items: its first item, the CRC-32C of its bytes
//	footer   runFooter
//
// All numbers are little-endian.
const (
	// keysMagic ends a run file of keys, recordsMagic one of records.
	keysMagic    = 0x314e5552 // "RUN1"
	recordsMagic = 0x31434552 // "REC1"
	// markBytes is the size of a mark beside its item.
	markBytes   = 8
	footerBytes = 32
)

// runFooter ends a run file.
type runFooter struct {
	keys  int64
	notes [2]int64
	sum   uint32 // of marks and footer up to here
	magic uint32
}

// magicOf ends a run file of such items.
func magicOf[T Item]() uint32 {
	if wide[T]() {
		return recordsMagic
	}
	return keysMagic
}

// RunWriter writes a run file.
type RunWriter[T Item] struct {
	w     io.Writer
	array *mem.Array[mark[T]]
	most  int64
	marker[T]
}

// NewRunWriter starts a run file of at most so many keys on w. The marks of their blocks are in
// memory of the budget until [RunWriter.Free].
func NewRunWriter[T Item](b *mem.Budget, w io.Writer, most int64) (*RunWriter[T], error) {
	marks, err := mem.Alloc[mark[T]](b, blocksFor(most, blockKeys), "run index")
	if err != nil {
		return nil, err
	}
	return &RunWriter[T]{w: w, array: marks, most: most, marker: marker[T]{block: blockKeys, marks: marks.S[:0]}}, nil
}

// Write takes the next keys.
func (w *RunWriter[T]) Write(keys []T) error {
	if w.keys+int64(len(keys)) > w.most {
		return fmt.Errorf("extsort: a run file of more keys than the %d that it has space for", w.most)
	}
	if _, err := w.w.Write(mem.AsBytes(keys)); err != nil {
		return err
	}
	w.add(keys)
	return nil
}

// Close ends the file, with two numbers of the caller's own in its footer, and
// returns how many keys it holds. It does not close the underlying writer.
func (w *RunWriter[T]) Close(notes [2]int64) (keys int64, err error) {
	if _, err := w.w.Write(mem.AsBytes(w.marks)); err != nil {
		return 0, err
	}
	footer := []runFooter{{keys: w.keys, notes: notes, magic: magicOf[T]()}}
	footer[0].sum = footerSum(w.marks, footer)
	_, err = w.w.Write(mem.AsBytes(footer))
	return w.keys, err
}

// Free gives the memory back. Nothing may be written any more.
func (w *RunWriter[T]) Free() { w.array.Free() }

func footerSum[T Item](marks []mark[T], footer []runFooter) uint32 {
	sum := crc32.Checksum(mem.AsBytes(marks), seal.Castagnoli)
	return crc32.Update(sum, seal.Castagnoli, mem.AsBytes(footer)[:24])
}

// File is the source of a run file.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
}

// RunFile is an open run file.
type RunFile[T Item] struct {
	runFooter
	path  string
	file  File
	marks *mem.Array[mark[T]]
}

// Keys returns the number of keys in the file.
func (r *RunFile[T]) Keys() int64 { return r.keys }

// Notes are the two numbers that were given to [RunWriter.Close].
func (r *RunFile[T]) Notes() [2]int64 { return r.notes }

// OpenRun reads the footer and the marks of a run file; path is for messages. It
// takes the file over if it succeeds.
func OpenRun[T Item](b *mem.Budget, file File, path string) (*RunFile[T], error) {
	r := &RunFile[T]{path: path, file: file}
	footer := make([]runFooter, 1)
	at := file.Size() - footerBytes
	if at < 0 {
		return nil, r.corrupt("has %d bytes", file.Size())
	}
	if err := r.readAt(mem.AsBytes(footer), at); err != nil {
		return nil, err
	}
	r.runFooter = footer[0]
	size := width[T]()
	if r.magic != magicOf[T]() || r.keys < 0 || r.keys > at/size || at != size*r.keys+(size+markBytes)*r.blocks() {
		return nil, r.corrupt("has %d bytes, and ends in %d keys", file.Size(), r.keys)
	}
	var err error
	if r.marks, err = mem.Alloc[mark[T]](b, r.blocks(), "run index"); err != nil {
		return nil, err
	}
	if err = r.readAt(mem.AsBytes(r.marks.S), size*r.keys); err == nil && footerSum(r.marks.S, footer) != r.sum {
		err = r.corrupt("its index has another checksum")
	}
	if err != nil {
		r.marks.Free()
		return nil, err
	}
	return r, nil
}

func (r *RunFile[T]) blocks() int64 { return blocksOf[T](r) }

func (r *RunFile[T]) readAt(p []byte, off int64) error {
	if len(p) == 0 {
		return nil // a file without keys has no index
	}
	if n, err := r.file.ReadAt(p, off); n < len(p) {
		if err == nil || err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return fmt.Errorf("read %s: %w", r.path, err)
	}
	return nil
}

func (r *RunFile[T]) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %s: run again with --resume=false: %w", r.path, fmt.Sprintf(format, args...), seal.ErrCorrupt)
}

// Close closes the file.
func (r *RunFile[T]) Close() {
	_ = r.file.Close()
	r.marks.Free()
}

// within implements run: the keys of the blocks that may have some in the range.
func (r *RunFile[T]) within(lo, hi T) int64 {
	first, _ := firstBlock[T](r, lo) // reads nothing
	last, _ := firstBlock[T](r, hi)
	first = max(first-1, 0)
	return max(min(last*blockKeys, r.keys)-first*blockKeys, 0)
}

func (r *RunFile[T]) blockKeys() int64             { return blockKeys }
func (r *RunFile[T]) lend([]byte)                  {}
func (r *RunFile[T]) first(block int64) (T, error) { return r.marks.S[block].first, nil }
func (r *RunFile[T]) done(int64)                   {}

// read implements run.
func (r *RunFile[T]) read(keys []T, sums []uint32, block int64) error {
	for i := range sums {
		sums[i] = r.marks.S[block+int64(i)].sum
	}
	return r.readAt(mem.AsBytes(keys), block*blockKeys*width[T]())
}

// check implements run.
func (r *RunFile[T]) check(keys []T, sums []uint32, block int64) error {
	if bad := firstDamaged(keys, sums, blockKeys); bad >= 0 {
		return r.corrupt("block %d has another checksum", block+int64(bad))
	}
	return nil
}
