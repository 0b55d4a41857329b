package extsort

import (
	"hash/crc32"
	"sort"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

// run is a list of ascending items, none twice, in a file. Its blocks are read in any
// order. One goroutine at a time calls first and read, after lend.
type run[T Item] interface {
	// Keys returns the number of keys.
	Keys() int64
	// within returns an upper bound of the number of keys in [lo, hi).
	within(lo, hi T) int64
	// blockKeys returns the number of keys of each block except the last one.
	blockKeys() int64
	// lend gives a page of memory to the run, for what it reads about its blocks. The run
	// uses it until it is lent another one.
	lend(page []byte)
	// first is the smallest item of a block.
	first(block int64) (T, error)
	// read fills keys with those from the beginning of a block on, and sums with the
	// checksums of their blocks. check compares them, on any goroutine.
	read(keys []T, sums []uint32, block int64) error
	check(keys []T, sums []uint32, block int64) error
	// done says that blocks before this one will not be read any more.
	done(block int64)
	Close()
}

// blocksOf returns the number of blocks of a run.
func blocksOf[T Item](r run[T]) int64 { return blocksFor(r.Keys(), r.blockKeys()) }

// blocksFor returns the number of blocks that so many keys fill.
func blocksFor(keys, block int64) int64 { return (keys + block - 1) / block }

// firstBlock is the first block of a run that begins with an item or a larger one.
func firstBlock[T Item](r run[T], item T) (int64, error) {
	switch item {
	case least[T](0):
		return 0, nil
	case least[T](End):
		return blocksOf(r), nil
	}
	var failed error
	block := sort.Search(int(blocksOf(r)), func(b int) bool {
		first, err := r.first(int64(b))
		if err != nil {
			failed = err
		}
		return !less(&first, &item)
	})
	return int64(block), failed
}

// firstOf is the place of the first of some items in order that is not below another one.
func firstOf[T Item](items []T, item T) int {
	return sort.Search(len(items), func(i int) bool { return !less(&items[i], &item) })
}

// firstDamaged is the first of the blocks of some keys that has another checksum than it should,
// -1 if there is none.
func firstDamaged[T Item](keys []T, sums []uint32, block int64) int {
	for i, sum := range sums {
		n := min(int64(len(keys)), block)
		if crc32.Checksum(mem.AsBytes(keys[:n]), seal.Castagnoli) != sum {
			return i
		}
		keys = keys[n:]
	}
	return -1
}
