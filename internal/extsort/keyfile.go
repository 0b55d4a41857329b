package extsort

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/bits"
	"sync"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

const (
	// blockKeys is how many keys of a run file share a checksum, and at most those of
	// a scratch file.
	blockKeys = 1 << 12
	// minBlockKeys fill a page of direct I/O.
	minBlockKeys = 1 << 9
	// runBlocks is about how many blocks a run has at least, so that a part of a short
	// one can be read without much beside it.
	runBlocks = 1 << 10
)

// blockOf is the length of the blocks of runs with so many keys.
func blockOf(keys int64) int64 {
	return min(max(int64(1)<<bits.Len64(uint64(keys/runBlocks)), minBlockKeys), blockKeys)
}

// blockSums gathers the checksums of blocks of keys, and their first keys.
type blockSums[T Item] struct {
	block  int64 // keys of a block
	sums   []uint32
	firsts []T
	keys   int64
}

// add takes the next keys.
func (b *blockSums[T]) add(keys []T) {
	for len(keys) > 0 {
		if b.keys%b.block == 0 {
			b.sums = append(b.sums, 0)
			b.firsts = append(b.firsts, keys[0])
		}
		n := min(int64(len(keys)), b.block-b.keys%b.block)
		last := &b.sums[len(b.sums)-1]
		*last = crc32.Update(*last, seal.Castagnoli, mem.AsBytes(keys[:n]))
		b.keys += n
		keys = keys[n:]
	}
}

// KeyWriter writes a scratch file of keys. Several goroutines may write to it: then the
// order of their keys is any.
type KeyWriter[T Item] struct {
	mu sync.Mutex
	f  *Spill
	blockSums[T]
}

// CreateKeys starts a scratch file of keys.
func CreateKeys[T Item](s *Scratch) (*KeyWriter[T], error) { return createRun[T](s, blockKeys) }

// createRun starts a scratch file with blocks of so many keys.
func createRun[T Item](s *Scratch, block int64) (*KeyWriter[T], error) {
	f, err := s.Create()
	if err != nil {
		return nil, err
	}
	return &KeyWriter[T]{f: f, blockSums: blockSums[T]{block: block}}, nil
}

// Write appends keys.
func (w *KeyWriter[T]) Write(keys []T) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(keys)
	return w.f.Write(mem.AsBytes(keys))
}

// Abort removes the file.
func (w *KeyWriter[T]) Abort() { w.f.Abort() }

// Finish ends the writing and opens the file for reading.
func (w *KeyWriter[T]) Finish() (*KeyFile[T], error) {
	f, err := w.f.Finish()
	if err != nil {
		return nil, err
	}
	return &KeyFile[T]{f: f, blockSums: w.blockSums}, nil
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
	f *Spilled
	blockSums[T]
}

// Keys is how many keys the file holds.
func (r *KeyFile[T]) Keys() int64 { return r.keys }

func (r *KeyFile[T]) blockKeys() int64    { return r.block }
func (r *KeyFile[T]) first(block int64) T { return r.firsts[block] }
func (r *KeyFile[T]) done(block int64)    { r.f.Drop(r.offset(block)) }

// offset is where a block begins.
func (r *KeyFile[T]) offset(block int64) int64 { return block * r.block * width[T]() }

// read implements run.
func (r *KeyFile[T]) read(keys []T, block int64) error {
	raw := mem.AsBytes(keys)
	if n, err := r.f.ReadAt(raw, r.offset(block)); n < len(raw) {
		return r.f.ReadError(err)
	}
	return nil
}

// check implements run.
func (r *KeyFile[T]) check(keys []T, block int64) error {
	for ; len(keys) > 0; block++ {
		n := min(int64(len(keys)), r.block)
		if crc32.Checksum(mem.AsBytes(keys[:n]), seal.Castagnoli) != r.sums[block] {
			return fmt.Errorf("read back the scratch file %s: the bytes from %d on are not those that were written: the disk is failing, choose another scratch folder: %w",
				r.f.Name(), r.offset(block), seal.ErrCorrupt)
		}
		keys = keys[n:]
	}
	return nil
}

// Each calls visit for all keys in batches that may be overwritten, on so many threads at
// a time and in any order of batches, and closes the file.
func (r *KeyFile[T]) Each(ctx context.Context, threads int, visit func([]T) error) error {
	defer r.Close()
	return eachOf[T](ctx, threads, r, false, visit)
}

// InOrder is Each in the order in which the keys were written, by one goroutine at a time.
func (r *KeyFile[T]) InOrder(ctx context.Context, threads int, visit func([]T) error) error {
	defer r.Close()
	return eachOf[T](ctx, threads, r, true, visit)
}

// Close gives the disk space back.
func (r *KeyFile[T]) Close() { r.f.Close() }
