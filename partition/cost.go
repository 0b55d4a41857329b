package partition

import (
	"math"

	"ndls/internal/direct"
	"ndls/internal/extsort"
	"ndls/internal/packed"
	"ndls/shards"
)

// Counts is what the cost of a partition is worked out from.
type Counts struct {
	Nodes int64
	// Rows is the length of the edge list, Edges what is left of it without
	// self-loops and repetitions.
	Rows, Edges int64
	// StatedNodes says that the dataset states the number of nodes.
	StatedNodes bool
	// Features is the width of the feature rows, 0 for none, and Half whether all
	// values are exactly float16.
	Features int
	Half     bool
	Threads  int
}

// nodeRow is the bytes of a node in the node table.
const nodeRow = 9

// hopEdge is the bytes of a directed edge in a hop stream: those of a narrow word where the
// sources of a strip lie close together, those of a wide one where they are far apart. The
// curve runs through what edges of degree 28 take with 1.7 million to 1.8 thousand million
// nodes (docs/decisions/0005).
func hopEdge(n, m int64) float64 {
	gap := float64(n) * float64(packed.Strips(n)) / float64(max(2*m, 1)) // of the sources of two edges that follow each other
	return packed.Narrow + (packed.Wide-packed.Narrow)/(1+math.Pow(349/gap, 1.76))
}

// shardEdge is the bytes of a directed edge in a shard, a curve through what was
// measured at degree 28: destinations take 4, sources the less the more edges of
// a block share one. From 4.3 with 0.4 million nodes to 7 with 100 million.
func shardEdge(n, m int64) float64 {
	block := float64(2*m) * float64(min(n, BlockRows)) / float64(n)
	gap := math.Pow(float64(n)/max(block, 1), 0.8) // of the sources of two edges that follow each other
	return 4 + 4*gap/(gap+0.9)
}

// HopBytes and NodeBytes are the sizes of the hop streams and of the node table.
func HopBytes(c Counts) int64  { return int64(2 * float64(c.Edges) * hopEdge(c.Nodes, c.Edges)) }
func NodeBytes(c Counts) int64 { return nodeRow * c.Nodes }

// graphBytes is the size of shards, hop streams and node table.
func (c Counts) graphBytes() int64 {
	return int64(2*float64(c.Edges)*(shardEdge(c.Nodes, c.Edges)+hopEdge(c.Nodes, c.Edges))) + NodeBytes(c)
}

// tileBytes is the size of all feature tiles.
func (c Counts) tileBytes() int64 {
	return c.Nodes * int64(packed.Panels(c.Features)) * int64(shards.TileRowBytes(c.Half))
}

// minSpill is enough to spill features in chunks that a disk likes.
const minSpill = 16 << 20

// readerBytes is set aside for each thread that reads the input, but for the first one: the
// buffers of two columns of a file and a page of each.
const readerBytes = 8 << 20

// readers is how many threads read the input, with so many bytes free: all, if that takes
// not more than an eighth.
func readers(threads int, free int64) int {
	return int(min(int64(max(threads, 1)), 1+max(free, 0)/8/readerBytes))
}

// readersBytes is what they take of the budget.
func readersBytes(threads int, free int64) int64 {
	return int64(readers(threads, free)-1) * readerBytes
}

// threadBytes is set aside for the heap of each thread but the first two.
const threadBytes = 512 << 10

// threadsBytes is what threads take of the budget, with so many bytes free: not more than an
// eighth of what is beyond 16 MiB.
func threadsBytes(threads int, free int64) int64 {
	return min(int64(max(threads-2, 0))*threadBytes, max(free-16<<20, 0)/8)
}

// ids is the map of input ids, without gaps.
func (c Counts) ids() int64 {
	if c.StatedNodes {
		return 0
	}
	return c.Nodes/8 + c.Nodes/128 + 4<<(32-chunkShift)
}

// columnsOf is the graph with the features of one task of the step Columns.
func (c Counts) columnsOf(workers int) Counts {
	panels := packed.Panels(c.Features)
	c.Features = min(c.Features, int(share(int64(panels), max(min(workers, panels), 1)))*packed.PanelColumns)
	return c
}

// heldForTiles is the memory that is in use while tiles are made, without the tiles.
func (c Counts) heldForTiles(budget int64) int64 {
	held := c.ids() + 4*c.Nodes + c.Nodes/8
	return held + readersBytes(c.Threads, budget-held)
}

// tilesFree is what is left for tiles of so much memory.
func (c Counts) tilesFree(budget int64) int64 { return budget - c.heldForTiles(budget) }

// tilesAtATime is the size of the tiles that are made from one reading of the
// features, and whether they are spilled.
func (c Counts) tilesAtATime(budget int64) (bytes int64, spilled bool) {
	panels := packed.Panels(c.Features)
	if panels == 0 {
		return 0, false
	}
	free := c.tilesFree(budget)
	bytes = c.Nodes * int64(tileLot(free, c.Nodes, panels, c.Half)) * int64(shards.TileRowBytes(c.Half))
	return bytes, bytes+direct.Align > free
}

// touchedTiles is what making tiles uses.
func (c Counts) touchedTiles(budget int64) int64 {
	lot, spilled := c.tilesAtATime(budget)
	if spilled {
		// Half is for chunks that are filled, then for cells that are put together.
		return min(lot, c.tilesFree(budget)/2)
	}
	return lot
}

// share is one of n parts.
func share(of int64, n int) int64 { return (of + int64(n) - 1) / int64(n) }

// sorts are the two sorts of a partition by so many workers: how many keys each sort
// of a task has, what it may use, and what the task holds beside them.
type sorts struct {
	pairs, edges         int64
	byPairs, byEdges     extsort.Options
	heldPairs, heldEdges int64
	index                int64 // of the run files with unique pairs
}

func (c Counts) sorts(workers int, budget int64) (s sorts) {
	tasks := Tasks(workers)
	s.pairs, s.edges = share(c.Rows, tasks), share(2*c.Edges, tasks)
	alone := tasks == 1
	if alone && !c.StatedNodes { // input ids are noted on the way
		s.heldPairs = c.ids()
	}
	s.heldPairs += readersBytes(c.Threads, budget-s.heldPairs)
	if !alone {
		s.index = extsort.IndexBytes(c.Edges)
	}
	s.heldEdges = c.ids() + 4*c.Nodes + s.index
	s.byPairs = sortOptions(s.pairs+s.pairs/8, c.Threads, alone && !c.StatedNodes)
	s.byEdges = sortOptions(s.edges, c.Threads, false)
	return s
}

// unsorted is about how many keys the step Split leaves: repetitions are found in the
// part of the list where they are.
func (c Counts) unsorted(workers int) int64 {
	return c.Rows - (c.Rows-c.Edges)/int64(Tasks(workers))
}

// Memory is how much a worker uses at most of a budget of so many bytes in a partition
// by so many workers, and the smallest budget with which one of them can do any step.
// Arrays by degree are left out.
func Memory(c Counts, workers int, budget int64) (used, least int64) {
	heap := threadsBytes(c.Threads, budget)
	budget -= heap
	n, s, tasks := c.Nodes, c.sorts(workers, budget), Tasks(workers)
	order := c.ids() + 17*n + s.index
	used = max(
		s.heldPairs+s.byPairs.Touched(s.pairs, budget-s.heldPairs), order,
		s.heldEdges+s.byEdges.Touched(s.edges, budget-s.heldEdges))
	least = max(s.heldEdges+s.byEdges.Bytes(0), order)
	if tasks > 1 {
		merge := func(all, keys int64) {
			index := extsort.IndexBytes(all)
			merging, leastMerging := extsort.MergeBytes(budget-index, tasks, keys, c.Threads)
			used, least = max(used, index+merging), max(least, index+leastMerging)
		}
		merge(c.unsorted(workers), share(c.unsorted(workers), tasks))
		merge(2*c.Edges, 2*c.Edges) // the first interval may have most edges
	}
	if c = c.columnsOf(workers); c.Features > 0 {
		used = max(used, c.heldForTiles(budget)+c.touchedTiles(budget))
		least = max(least, c.heldForTiles(0)+min(c.tileBytes(), minSpill))
	}
	return used + heap, least + int64(max(c.Threads-2, 0))*threadBytes
}

// Disk is the largest number of bytes that the run directory and the scratch folder of
// one worker hold at any time of a partition by so many workers with budgets of so many
// bytes, and what the run directory holds in the end. What the sort of a piece spills is
// not more than the run file that it gives way to.
func Disk(c Counts, workers int, budget int64) (peak, final int64) {
	m, s := c.Edges, c.sorts(workers, budget)
	graph := c.graphBytes()
	final = graph + c.tileBytes()
	peak = max(final, 8*m) // the unique edges
	if Tasks(workers) > 1 {
		peak = max(peak, 8*(c.unsorted(workers)+m), 24*m+NodeBytes(c), 16*m+graph)
	} else {
		if s.byPairs.Spills(s.pairs, budget-s.heldPairs) {
			peak = max(peak, 8*s.pairs)
		}
		if s.byEdges.Spills(s.edges, budget-s.heldEdges) {
			peak = max(peak, 8*s.edges+NodeBytes(c))
		}
	}
	if own := c.columnsOf(workers); own.Features > 0 {
		if _, spilled := own.tilesAtATime(budget); spilled {
			groups := int64(packed.Panels(own.Features)+tileGroup-1) / tileGroup
			peak = max(peak, final+4*c.Nodes*groups)
		}
	}
	return peak, final
}

// Traffic is what all of so many workers with budgets of so many bytes read from and
// write to the run directory and scratch files. What they read of the dataset is not
// counted.
func Traffic(c Counts, workers int, budget int64) (read, written int64) {
	m, s, tasks, table := c.Edges, c.sorts(workers, budget), int64(Tasks(workers)), NodeBytes(c)
	_, final := Disk(c, workers, budget)
	again := int64(1) // how often what names nodes is read where it is
	if !c.StatedNodes {
		again = 2
	}
	scratch := int64(0)
	if s.byPairs.Spills(s.pairs, budget-s.heldPairs) {
		scratch += 8 * min(c.Rows, c.unsorted(workers))
	}
	if s.byEdges.Spills(s.edges, budget-s.heldEdges) {
		scratch += 16 * m
	}
	read, written = table, final // the summary reads the table
	if tasks > 1 {
		read += 8*(c.unsorted(workers)+again*m+m+2*m) + tasks*again*table
		written += 8 * (c.unsorted(workers) + m + 2*m)
	} else {
		scratch += 8 * m // the unique edges
	}
	if own := c.columnsOf(workers); own.Features > 0 {
		columns := share(int64(packed.Panels(c.Features)), packed.Panels(own.Features))
		if tasks > 1 {
			read += columns * again * table
		}
		if bytes, spilled := own.tilesAtATime(budget); spilled {
			scratch += columns * bytes
		}
	}
	return read + scratch, written + scratch
}
