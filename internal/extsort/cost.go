package extsort

import "ndls/internal/direct"

// buffers returns the length and the number of the buffers, with so many bytes free: one if it has space for all keys that are wanted.
func (o Options) buffers(free int64) (size int64, n int) {
	free -= min(free/4, o.Leave)
	// fits is the length of n buffers that leave space for the help of helpKeys.
	fits := func(n int64) int64 {
		keys := (free - (n+1)*direct.Align) / o.width() // each array ends on a page
		return min(8*keys/(8*n+1), (keys-fewKeys*int64(max(o.Threads, 1)))/n)
	}
	if o.Want > 0 && o.Want <= fits(1) {
		return max(o.Want, minSortKeys), 1
	}
	return max(fits(2)*o.width()&^(direct.Align-1)/o.width(), minSortKeys), 2
}

// width is the size of an item in bytes.
func (o Options) width() int64 { return max(o.Width, 8) }

// Bytes is the memory to sort so many keys without a file; of no keys, the least
// with which keys can be sorted at all.
func (o Options) Bytes(keys int64) int64 {
	keys = max(keys, 2*minSortKeys)
	return o.width()*(keys+helpKeys(keys, max(o.Threads, 1))) + 3*direct.Align
}

// Spills reports whether so many keys are written to files, with so many bytes free.
func (o Options) Spills(keys, free int64) bool {
	size, _ := o.buffers(free)
	return keys > size
}

// Touched returns the memory that is used to sort so many keys with so many bytes free: buffers are
// filled only as far as there are keys.
func (o Options) Touched(keys, free int64) int64 {
	size, n := o.buffers(free)
	return o.width() * (min(keys, int64(n)*size) + helpKeys(size, max(o.Threads, 1)))
}

// maxChunk is the most keys that a merger has of all runs in a chunk, unless the runs are
// very many.
const maxChunk = 1 << 20

// layout says in what portions a merger works.
type layout struct {
	runs    int
	width   int64 // bytes of an item
	block   int64 // keys of a block
	blocks  int64 // of a chunk, of all runs together
	chunks  int
	threads int  // that merge: none where the caller does it, chunk after chunk
	out     bool // chunks have a second array for their keys in order
}

// layoutOf fits a merger of runs with so many keys into so many free bytes. ok reports
// whether that can be done: each chunk needs two blocks of each run. Few keys are cut into
// enough chunks for all threads.
func layoutOf(free int64, runs int, block, keys int64, threads int, ordered bool, width int64) (l layout, ok bool) {
	free -= int64(runs) * pageBytes
	l = layout{runs: runs, width: width, block: block, threads: threads, chunks: threads + 2, out: ordered}
	if fit := free / width / l.with(2*int64(runs)).chunkKeys(); fit < int64(l.chunks) {
		l.chunks = int(fit)
	}
	if l.chunks < 2 {
		l = layout{runs: runs, width: width, block: block, chunks: 1} // the caller merges, chunk after chunk
	}
	l.threads = min(l.threads, l.chunks-1)
	// Half of what is free is enough for long chunks, and the heap of those who use the keys
	// has the rest. The gaps between the blocks of runs do not grow with the blocks.
	each := free/2/width/int64(l.chunks) - l.with(0).chunkKeys()
	perBlock := block
	if l.out {
		perBlock *= 2
	}
	enough := keys/block/int64(4*max(threads, 1)) + 2*int64(runs)
	l = l.with(max(min(each/perBlock, maxChunk/block, enough), 2*int64(runs)))
	return l, free/width >= int64(l.chunks)*l.chunkKeys()
}

func (l layout) with(blocks int64) layout {
	l.blocks = blocks
	return l
}

// inKeys is the length of a chunk's array of blocks, which begin on pages, and outKeys
// that of its keys in order.
func (l layout) inKeys() int64 { return l.blocks*l.block + int64(l.runs)*minBlockKeys }

func (l layout) outKeys() int64 {
	if l.out {
		return l.blocks * l.block
	}
	return 0
}

func (l layout) chunkKeys() int64 { return l.inKeys() + l.outKeys() }

// bytes is the memory of all chunks, and of the pages for the marks of runs.
func (l layout) bytes() int64 { return l.width*int64(l.chunks)*l.chunkKeys() + int64(l.runs)*pageBytes }

// IndexBytes is the memory for the marks of a run file with so many keys, while it is written
// and while it is open.
func (o Options) IndexBytes(keys int64) int64 {
	return blocksFor(keys, blockKeys) * (o.width() + markBytes)
}

// MergeBytes returns the memory that is used to merge so many keys of run files in order, with so
// many bytes free, and the least that is enough.
func (o Options) MergeBytes(free int64, runs int, keys int64) (used, least int64) {
	l, _ := layoutOf(free, runs, blockKeys, keys, o.Threads, true, o.width())
	smallest := layout{runs: runs, width: o.width(), block: blockKeys, chunks: 1, blocks: 2 * int64(runs)}
	return l.bytes(), smallest.bytes()
}
