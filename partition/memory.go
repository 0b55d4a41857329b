package partition

import (
	"ndls/internal/direct"
	"ndls/internal/extsort"
	"ndls/shards"
)

// readerBytes is reserved for each thread that reads the input, except the first: the buffers of two columns of a file and a page of each.
const readerBytes = 8 << 20

// readers returns the number of threads that read the input, of these with free bytes available. Each holds so many bytes, beside
// readerBytes for all but the first.
func readers(threads int, free, held int64) int {
	return int(min(int64(max(threads, 1)), 1+max(free-held, 0)/8/(readerBytes+held)))
}

// readersBytes returns the memory of the threads that read the input.
func readersBytes(threads int, free, held int64) int64 {
	return held + int64(readers(threads, free, held)-1)*(readerBytes+held)
}

// threadsBytes returns the memory reserved for threads with free bytes available: at most an eighth of the bytes beyond 16 MiB.
func threadsBytes(threads int, free int64) int64 {
	return min(int64(max(threads-2, 0))*threadBytes, max(free-16<<20, 0)/8)
}

// threadBytes is reserved for the heap of each thread except the first two.
const threadBytes = 512 << 10

// orderBytes returns enough memory for one worker to order the nodes of a graph with weights. If nodes is negative, it assumes as many
// nodes as the pairs can have.
func orderBytes(nodes, pairs int64) int64 {
	if nodes < 0 {
		nodes = 2 * pairs
	}
	return (17+8)*nodes + 4*pairs + 1<<20
}

// keepsPairs reports whether one worker, with so many bytes free beside the pairs once there is a tally, orders the nodes and then sorts
// both directions of the pairs in memory, in which the pairs stay meanwhile.
func keepsPairs(free, nodes, pairs int64, threads int) bool {
	return free >= 13*nodes+1<<20 && sortsAgain(free-4*nodes, pairs, threads)
}

// sortsAgain reports whether the memory of pairs, lengthened by at most so many free bytes, is enough to sort both directions of them.
func sortsAgain(free, pairs int64, threads int) bool {
	return !sortOptions(2*pairs, threads, false).Spills(2*pairs, free+8*pairs)
}

// allTilesBytes returns enough memory to make all feature tiles at a time, whatever the type of their values: the tiles, two bits for
// each node, and what readers take of the rest.
func allTilesBytes(nodes int64, panels int, rowMemory int64) int64 {
	return (nodes*int64(panels*shards.TileRowBytes(false)) + nodes/4 + rowMemory + 4*direct.Align) / 7 * 8
}

// tilesBeside reports whether so many bytes, free beside pairs, hold all feature tiles and, with the memory of the pairs, both directions
// of them while these are sorted.
func tilesBeside(free, tiles, pairs int64, threads int) bool {
	return free >= tiles && sortsAgain(free-tiles, pairs, threads)
}

const (
	// tileGroup is the number of tiles that are written at a time; each holds buffers for direct I/O.
	tileGroup = 4
	// maxScans bounds how often features are read if not all tiles fit in memory. Reading again costs about half as much as spilling, which
	// writes features to scratch and reads them back, in larger rows and out of order.
	maxScans = 4
	// featureBatch is the number of bytes of feature rows that a thread reads at a time.
	featureBatch = 1 << 18
)

// tileLot returns the number of tiles that are made from one reading of the features: all if they must be spilled.
func tileLot(free, n int64, panels int, half bool) int {
	fit := int(min(free/(n*int64(shards.TileRowBytes(half))+direct.Align), int64(panels)))
	if fit == 0 || fit*maxScans < panels {
		return panels
	}
	scans := (panels + fit - 1) / fit
	return (panels + scans - 1) / scans
}

// sortOptions returns the options of a sort of want keys, 0 if unknown. notes says that input ids are noted while keys are added.
func sortOptions(want int64, threads int, notes bool) extsort.Options {
	o := extsort.Options{Want: want, Threads: threads}
	if notes {
		o.Leave = growth
	}
	return o
}

// growth is the memory that the map of all input ids may take while keys are added.
const growth = 544 << 20

// heldForTables returns the memory reserved for the heap of reading ids and tables, with free bytes available.
func heldForTables(free int64) int64 { return min(24<<20, free/8) }

// sortShare is the share of free memory that sorting ids takes.
const sortShare = 0.75

// sortedKnown is the number of pairs that are sorted in memory; more are spilled.
const sortedKnown = 1 << 22

// rankedRow returns the memory for a node of a lot.
func rankedRow(splits int, directed, weighted bool) int64 {
	return int64(9*4+splits) + furtherRow(directed, weighted)
}

// partRow returns the memory for a row of the node table; keyed says that its ids are numbered.
func partRow(splits int, directed, weighted, keyed bool) int64 {
	row := int64(6*4+splits) + furtherRow(directed, weighted)
	if keyed {
		row += 8
	}
	return row
}

// strengthBytes is the size of a strength, a float64.
const strengthBytes = 8

// furtherRow returns the additional memory for a node in a graph with directions or with weights.
func furtherRow(directed, weighted bool) (bytes int64) {
	if directed {
		bytes += 4
	}
	if weighted {
		bytes += strengthBytes
	}
	return bytes
}
