package extsort

import (
	"sort"
	"sync"
)

// run is a list of ascending keys, none twice, in a file. Its blocks are read in any
// order.
type run interface {
	// Keys is how many keys there are.
	Keys() int64
	// blockKeys is how many keys each block has, but for the last one.
	blockKeys() int64
	// first is the smallest key of a block.
	first(block int64) uint64
	// read fills keys with those from the beginning of a block on, and check compares
	// them with the checksums of their blocks. read is called by one goroutine at a time.
	read(keys []uint64, block int64) error
	check(keys []uint64, block int64) error
	// done says that blocks before this one will not be read any more.
	done(block int64)
	Close()
}

// blocksOf is how many blocks a run has.
func blocksOf(r run) int64 { return (r.Keys() + r.blockKeys() - 1) / r.blockKeys() }

// firstBlock is the first block of a run that begins with key or a larger one.
func firstBlock(r run, key uint64) int64 {
	return int64(sort.Search(int(blocksOf(r)), func(b int) bool { return r.first(int64(b)) >= key }))
}

// batches are buffers for a batch of keys.
var batches = sync.Pool{New: func() any { b := make([]uint64, BatchKeys); return &b }}
