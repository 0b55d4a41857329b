package extsort

import "sort"

// run is a list of ascending items, none twice, in a file. Its blocks are read in any
// order.
type run[T Item] interface {
	// Keys is how many keys there are.
	Keys() int64
	// blockKeys is how many keys each block has, but for the last one.
	blockKeys() int64
	// first is the smallest item of a block.
	first(block int64) T
	// read fills keys with those from the beginning of a block on, and check compares
	// them with the checksums of their blocks. read is called by one goroutine at a time.
	read(keys []T, block int64) error
	check(keys []T, block int64) error
	// done says that blocks before this one will not be read any more.
	done(block int64)
	Close()
}

// blocksOf is how many blocks a run has.
func blocksOf[T Item](r run[T]) int64 { return (r.Keys() + r.blockKeys() - 1) / r.blockKeys() }

// firstBlock is the first block of a run that begins with an item or a larger one.
func firstBlock[T Item](r run[T], item T) int64 {
	return int64(sort.Search(int(blocksOf(r)), func(b int) bool {
		first := r.first(int64(b))
		return !less(&first, &item)
	}))
}

// firstOf is the place of the first of some items in order that is not below another one.
func firstOf[T Item](items []T, item T) int {
	return sort.Search(len(items), func(i int) bool { return !less(&items[i], &item) })
}
