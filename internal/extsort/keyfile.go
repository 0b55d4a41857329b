package extsort

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"
	"unsafe"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/seal"
)

// A scratch file of keys is read by the process that writes it:
//
//	groups  as many blocks as marks fit on a page
//	page    after each group, on a page of its own: the marks of its blocks, and the CRC-32C
//	        of the page in the last 4 bytes
//
// Only the last group and its last block may be shorter.

const (
	// blockKeys is the number of keys of a run file that share a checksum, and the largest such
	// number of a scratch file.
	blockKeys = 1 << 12
	// minBlockKeys fill a page of direct I/O.
	minBlockKeys = 1 << 9
	// runBlocks is about how many blocks a run has at least, so that a part of a short
	// one can be read without much beside it.
	runBlocks = 1 << 10
	// pageBytes is the size of a page of marks.
	pageBytes = direct.Align
	// pageSum is the size of its checksum.
	pageSum = 4
)

// blockOf is the length of the blocks of runs with so many keys.
func blockOf(keys int64) int64 {
	return min(max(int64(1)<<bits.Len64(uint64(keys/runBlocks)), minBlockKeys), blockKeys)
}

// mark describes a block of keys.
type mark[T Item] struct {
	first T
	sum   uint32 // CRC-32C of its bytes
	_     uint32
}

// pageMarks returns the number of marks on a page.
func pageMarks[T Item]() int64 { return (pageBytes - pageSum) / int64(unsafe.Sizeof(mark[T]{})) }

// marksOn are the marks on a page.
func marksOn[T Item](page []byte) []mark[T] {
	return unsafe.Slice((*mark[T])(unsafe.Pointer(&page[0])), pageMarks[T]())
}

// sumOn is the checksum on a page, and sumOf the one that it should have.
func sumOn(page []byte) *uint32 { return (*uint32)(unsafe.Pointer(&page[pageBytes-pageSum])) }

func sumOf(page []byte) uint32 { return crc32.Checksum(page[:pageBytes-pageSum], seal.Castagnoli) }

// marker makes the marks of blocks of keys.
type marker[T Item] struct {
	block int64 // keys of a block
	keys  int64
	marks []mark[T] // those of the last blocks
}

// add takes the next keys. There is space for the marks of their blocks.
func (m *marker[T]) add(keys []T) {
	for len(keys) > 0 {
		if m.keys%m.block == 0 {
			m.marks = append(m.marks, mark[T]{first: keys[0]})
		}
		n := min(int64(len(keys)), m.block-m.keys%m.block)
		last := &m.marks[len(m.marks)-1]
		last.sum = crc32.Update(last.sum, seal.Castagnoli, mem.AsBytes(keys[:n]))
		m.keys += n
		keys = keys[n:]
	}
}

// KeyWriter writes a scratch file of keys. Several goroutines may write to it: then the
// order of their keys is any.
type KeyWriter[T Item] struct {
	mu   sync.Mutex
	f    *Spill
	page []byte // has the marks of the group that is written
	marker[T]
}

// CreateKeys starts a scratch file of keys.
func CreateKeys[T Item](s *Scratch) (*KeyWriter[T], error) { return createRun[T](s, blockKeys) }

// createRun starts a scratch file with blocks of so many keys.
func createRun[T Item](s *Scratch, block int64) (*KeyWriter[T], error) {
	f, err := s.Create()
	if err != nil {
		return nil, err
	}
	page := direct.AlignedBytes(pageBytes)
	return &KeyWriter[T]{f: f, page: page, marker: marker[T]{block: block, marks: marksOn[T](page)[:0]}}, nil
}

// Write appends keys.
func (w *KeyWriter[T]) Write(keys []T) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	group := w.block * pageMarks[T]()
	for len(keys) > 0 {
		n := min(int64(len(keys)), group-w.keys%group)
		w.add(keys[:n])
		if err := w.f.Write(mem.AsBytes(keys[:n])); err != nil {
			return err
		}
		if w.keys%group == 0 {
			if err := w.endGroup(); err != nil {
				return err
			}
		}
		keys = keys[n:]
	}
	return nil
}

// endGroup writes the marks of a group.
func (w *KeyWriter[T]) endGroup() error {
	clear(w.page[len(w.marks)*int(unsafe.Sizeof(mark[T]{})):])
	*sumOn(w.page) = sumOf(w.page)
	w.marks = w.marks[:0]
	return w.f.Write(w.page)
}

// Abort removes the file.
func (w *KeyWriter[T]) Abort() { w.f.Abort() }

// Finish ends the writing and opens the file for reading. It removes the file if it fails.
func (w *KeyWriter[T]) Finish() (*KeyFile[T], error) {
	if len(w.marks) > 0 {
		gap := make([]byte, -w.keys*width[T]()&(pageBytes-1)) // up to a page
		err := w.f.Write(gap)
		if err == nil {
			err = w.endGroup()
		}
		if err != nil {
			w.Abort()
			return nil, err
		}
	}
	f, err := w.f.Finish()
	if err != nil {
		return nil, err
	}
	return &KeyFile[T]{f: f, keys: w.keys, block: w.block}, nil
}

func (w *KeyWriter[T]) finishRun() (run[T], error) {
	r, err := w.Finish()
	if err != nil {
		return nil, err // a nil *KeyFile would be a run that is not nil
	}
	return r, nil
}

// KeyFile is a scratch file of keys. It is read once, and shrinks while it is.
type KeyFile[T Item] struct {
	f     *Spilled
	keys  int64
	block int64  // keys of a block
	page  []byte // has the marks of a group
	group int64  // that is on the page, -1 for none
}

// Keys returns the number of keys in the file.
func (r *KeyFile[T]) Keys() int64 { return r.keys }

// within implements run. A Sorter has no keys in its scratch files but those that it wants.
func (r *KeyFile[T]) within(T, T) int64 { return r.keys }

func (r *KeyFile[T]) blockKeys() int64 { return r.block }
func (r *KeyFile[T]) done(block int64) { r.f.Drop(r.offset(block)) }

// lend implements run.
func (r *KeyFile[T]) lend(page []byte) { r.page, r.group = page, -1 }

// offset returns the place where a block begins.
func (r *KeyFile[T]) offset(block int64) int64 {
	return block*r.block*width[T]() + block/pageMarks[T]()*pageBytes
}

// mark is the mark of a block.
func (r *KeyFile[T]) mark(block int64) (*mark[T], error) {
	n := pageMarks[T]()
	if group := block / n; group != r.group {
		r.group = -1
		first := group * n
		keys := min(n*r.block, r.keys-first*r.block)
		at := r.offset(first) + (keys*width[T]()+pageBytes-1)&^(pageBytes-1)
		if read, err := r.f.ReadAt(r.page, at); read < len(r.page) {
			return nil, r.f.ReadError(err)
		}
		if *sumOn(r.page) != sumOf(r.page) {
			return nil, r.damaged(at)
		}
		r.group = group
	}
	return &marksOn[T](r.page)[block%n], nil
}

// damaged is the error about bytes that were read.
func (r *KeyFile[T]) damaged(offset int64) error {
	return fmt.Errorf("read back the scratch file %s: the bytes from %d on are not those that were written: the disk is failing, choose another scratch folder: %w",
		r.f.Name(), offset, seal.ErrCorrupt)
}

// first implements run.
func (r *KeyFile[T]) first(block int64) (first T, err error) {
	m, err := r.mark(block)
	if err != nil {
		return first, err
	}
	return m.first, nil
}

// read implements run.
func (r *KeyFile[T]) read(keys []T, sums []uint32, block int64) error {
	for i := range sums {
		m, err := r.mark(block + int64(i))
		if err != nil {
			return err
		}
		sums[i] = m.sum
	}
	for len(keys) > 0 {
		blocks := pageMarks[T]() - block%pageMarks[T]() // that follow each other without marks between them
		raw := mem.AsBytes(keys[:min(int64(len(keys)), blocks*r.block)])
		if n, err := r.f.ReadAt(raw, r.offset(block)); n < len(raw) {
			return r.f.ReadError(err)
		}
		keys = keys[int64(len(raw))/width[T]():]
		block += blocks
	}
	return nil
}

// check implements run.
func (r *KeyFile[T]) check(keys []T, sums []uint32, block int64) error {
	if bad := firstDamaged(keys, sums, r.block); bad >= 0 {
		return r.damaged(r.offset(block + int64(bad)))
	}
	return nil
}

// Each calls visit for all keys in batches that may be overwritten, on so many threads at
// a time and in any order of batches, and closes the file.
func (r *KeyFile[T]) Each(ctx context.Context, threads int, visit func([]T) error) error {
	defer r.Close()
	return eachOf[T](ctx, threads, r, false, 0, blocksOf[T](r), visit)
}

// Close gives the disk space back.
func (r *KeyFile[T]) Close() { r.f.Close() }
