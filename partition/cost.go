package partition

import (
	"math"

	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/keysort"
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
	// Weighted says that edges have weights.
	Weighted bool
	// Directed says that edges have directions: Edges counts them, and there are shards and
	// hop streams of them and of the reversed ones.
	Directed bool
	// NoShards says that there are hop streams alone.
	NoShards bool
	// IDs is the size of all input ids where they are numbered ([IDCounts]), 0 where they
	// are numbers already. NodeTable says that they are those of a table of nodes, each of
	// which comes once.
	IDs       int64
	NodeTable bool
	// Part says that the graph is that of some splits.
	Part bool
	// Blanks says that the features of some nodes are blanked.
	Blanks  bool
	Threads int
}

// IDBytes is about what Counts.IDs is of a graph that was imported.
func IDBytes(cat *catalog.Catalog, s shards.Summary) int64 {
	e, ok := cat.Lookup(shards.IDsPath)
	switch {
	case !ok || s.IDs == "":
		return 0
	case s.IDs != inputid.String.Name():
		return 8 * s.Nodes
	}
	return max(int64(float64(e.Bytes)/idShare)-4*s.Nodes, s.Nodes)
}

// nodeRow is the bytes of a node in the node table, strengthRow what its strength takes there, and
// outDegreeRow its out-degree.
const (
	nodeRow      = 9
	strengthRow  = 8
	outDegreeRow = 2
)

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
func HopBytes(c Counts) int64 {
	return int64(2 * float64(c.Edges) * (hopEdge(c.Nodes, c.density()) + float64(c.weight())))
}

// density is the number of edges without directions that lie as close in a hop stream or in a
// shard.
func (c Counts) density() int64 {
	if c.Directed {
		return c.Edges / 2
	}
	return c.Edges
}

// weight is the bytes of a weight in a hop stream and in a shard.
func (c Counts) weight() int64 {
	if c.Weighted {
		return packed.WeightBytes
	}
	return 0
}

// record is how many bytes stand for an edge while edges are sorted.
func (c Counts) record() int64 {
	if c.Weighted {
		return 16
	}
	return 8
}

func NodeBytes(c Counts) int64 {
	bytes := nodeRow * c.Nodes
	if c.Weighted {
		bytes += strengthRow * c.Nodes
	}
	if c.Directed {
		bytes += outDegreeRow * c.Nodes
	}
	if c.IDs > 0 {
		bytes += c.idsBytes() + numberRow*c.Nodes
	}
	return bytes
}

const (
	// idShare is what is left of ids in order when they are compressed, each with its length:
	// 10 million ids of 21 bytes, most of them digits of a hash, took 0.58.
	idShare = 0.6
	// numberRow is the bytes of the number of an id in the node table.
	numberRow = 3
)

// idsBytes is the size of the table of ids.
func (c Counts) idsBytes() int64 {
	if c.IDs == 0 {
		return 0
	}
	return int64(idShare * float64(c.IDs+4*c.Nodes))
}

// idScans is how often the table of ids is read: to find numbers while edges, then labels and
// splits, then features are read; and twice to write the node table.
func (c Counts) idScans() int64 {
	if c.Features > 0 {
		return 5
	}
	return 4
}

// graphBytes is the size of shards, hop streams, node table and table of ids.
func (c Counts) graphBytes() int64 { return c.shardBytes() + HopBytes(c) + NodeBytes(c) + c.idsBytes() }

// shardBytes is the size of the shards.
func (c Counts) shardBytes() int64 {
	if c.NoShards {
		return 0
	}
	return int64(2 * float64(c.Edges) * (shardEdge(c.Nodes, c.density()) + float64(c.weight())))
}

// tileBytes is the size of all feature tiles.
func (c Counts) tileBytes() int64 {
	return c.Nodes * int64(packed.Panels(c.Features)) * int64(shards.TileRowBytes(c.Half))
}

// minSpill is enough to spill features in chunks that a disk likes.
const minSpill = 16 << 20

// leastSpill is the memory that wide features need at least to be spilled: a page for each four
// tiles of an interval, and an eighth more for what is not handed out.
func (c Counts) leastSpill() int64 {
	intervals := partOf(c.Nodes, DefaultIntervalBlocks*BlockRows)
	return intervals * partOf(int64(packed.Panels(c.Features)), tileGroup) * minChunk * 9 / 8
}

// readerBytes is set aside for each thread that reads the input, but for the first one: the
// buffers of two columns of a file and a page of each.
const readerBytes = 8 << 20

// numbers is the memory with which the numbers of ids are found while the dataset is read,
// with so many bytes free.
func (c Counts) numbers(free int64) int64 {
	if c.IDs == 0 {
		return 0
	}
	table := inputid.TableBytes(c.Nodes)
	return table + heldForTables(max(free-table, 0))
}

// writesIDs is the memory that ids take while the node table is written, with so many bytes
// free.
func (c Counts) writesIDs(free int64) int64 {
	if c.IDs == 0 {
		return 0
	}
	lengths := 2 * c.Nodes
	return lengths + min(int64(sortShare*float64(max(free-lengths, 0))), c.IDs+4*c.Nodes)
}

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

// members is the memory that says which nodes belong to a part of the graph.
func (c Counts) members() int64 {
	if !c.Part {
		return 0
	}
	c.StatedNodes = false
	return c.ids() + c.Nodes
}

// columnsOf is the graph with the features of one task of the step Columns.
func (c Counts) columnsOf(workers int) Counts {
	panels := packed.Panels(c.Features)
	c.Features = min(c.Features, int(partOf(int64(panels), max(min(workers, panels), 1)))*packed.PanelColumns)
	return c
}

// heldForTiles is the memory that is in use while tiles are made, without the tiles.
func (c Counts) heldForTiles(budget int64) int64 {
	held := c.ids() + 4*c.Nodes + c.members()
	held += c.numbers(budget-held) + c.Nodes/8
	if c.Blanks {
		held += c.Nodes / 8
	}
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

// dealtBytes is the size of what the step Deal leaves.
func (c Counts) dealtBytes() int64 { return c.tileBytes() + numberBytes*c.Nodes }

// dealing is the memory with which one of so many workers reads a part of the features, and with which it makes tiles
// of what all have read.
func (c Counts) dealing(workers int, budget int64) int64 {
	panels, row := packed.Panels(c.Features), int64(shards.TileRowBytes(c.Half))
	held := c.heldForTiles(budget)
	lot := min(partOf(c.Nodes, Tasks(workers)), mostDealt) * dealtRow(panels, row)
	interval := min(DefaultIntervalBlocks*BlockRows, c.Nodes)
	together := min(panels, tileGroup, int(partOf(int64(panels)*partOf(c.Nodes, int(interval)), Tasks(workers))))
	tiles := interval*int64(together)*row + interval/8 + int64(readers(c.Threads, budget))*(readerBytes+numberBytes*min(interval, mostDealt))
	return max(held+min(lot, max(budget-held, 0)), min(tiles, budget))
}

// partOf is one of n parts.
func partOf(of int64, n int) int64 { return (of + int64(n) - 1) / int64(n) }

// sorts are the two sorts of a partition by so many workers: how many keys each sort
// of a task has, what it may use, and what the task holds beside them.
type sorts struct {
	pairs, edges         int64
	byPairs, byEdges     extsort.Options
	heldPairs, heldEdges int64
	index                int64 // of the run files with unique pairs
	// pairsSpill and edgesSpill say that what is sorted is written to scratch files. pairsStay
	// says that one worker has sorted pairs in memory, of pairsBytes, while it does the step Order.
	pairsSpill, edgesSpill, pairsStay bool
	pairsBytes                        int64
}

func (c Counts) sorts(workers int, budget int64) (s sorts) {
	tasks := Tasks(workers)
	s.pairs, s.edges = partOf(c.Rows, tasks), partOf(2*c.Edges, tasks)
	alone := tasks == 1
	if alone && !c.StatedNodes { // input ids are noted on the way
		s.heldPairs = c.ids()
	}
	s.heldPairs += c.members()
	s.heldPairs += c.numbers(budget - s.heldPairs)
	s.heldPairs += readersBytes(c.Threads, budget-s.heldPairs)
	s.byPairs = sortOptions(s.pairs+s.pairs/8, c.Threads, alone && !c.StatedNodes)
	s.byEdges = sortOptions(s.edges, c.Threads, false)
	s.byPairs.Width, s.byEdges.Width = c.record(), c.record()
	if !alone {
		s.index = s.byPairs.IndexBytes(c.Edges)
	}
	s.heldEdges = c.ids() + 4*c.Nodes + s.index
	s.pairsSpill = s.byPairs.Spills(s.pairs, budget-s.heldPairs)
	s.edgesSpill = s.byEdges.Spills(s.edges, budget-s.heldEdges)
	s.pairsBytes = s.byPairs.Touched(s.pairs, budget-s.heldPairs) / 2 // of the buffer with the result
	s.pairsStay = alone && !s.pairsSpill
	if c.Weighted && s.pairsStay {
		nodes := int64(-1)
		if c.StatedNodes {
			nodes = c.Nodes
		}
		s.pairsStay = budget-c.noted()-s.byPairs.Bytes(s.byPairs.Want)/2 >= orderBytes(nodes, s.pairs)
	}
	return s
}

// noted is the memory of the input ids that are noted while edges are read.
func (c Counts) noted() int64 {
	if c.StatedNodes {
		return 0
	}
	return c.ids()
}

// unsorted is about how many keys the step Split leaves: repetitions are found in the
// part of the list where they are.
func (c Counts) unsorted(workers int) int64 {
	return c.Rows - (c.Rows-c.Edges)/int64(Tasks(workers))
}

// rankedBytes is what the step Rank leaves, but for components.
func (c Counts) rankedBytes() int64 { return (recordBytes+1)*c.Nodes + c.strengthsBytes() }

// strengthsBytes is the size of the strengths of all nodes, of which Gather leaves the halves of each as two numbers.
func (c Counts) strengthsBytes() int64 {
	if !c.Weighted {
		return 0
	}
	return strengthRow * c.Nodes
}

// turnedBytes is what the step Count leaves of turned edges.
func (c Counts) turnedBytes() int64 {
	if !c.Weighted {
		return 0
	}
	return c.record() * c.Edges
}

// tallies is how many numbers the step Count leaves of degrees, and of components, at most: each
// node is in one tally for each piece in which it is one end of an edge.
func (c Counts) tallies(workers int) int64 {
	if tasks := Tasks(workers); tasks > 1 {
		return min(int64(tasks)*c.Nodes, c.Edges+c.Nodes)
	}
	return 0
}

// turns is how many edges a piece of Count turns, and what is held beside them: where they are in run files.
func (c Counts) turns(workers int, s sorts) (edges, held int64) {
	edges = partOf(c.Edges, Tasks(workers))
	return edges, 2 * s.byPairs.IndexBytes(edges)
}

// Memory is how much a worker uses at most of a budget of so many bytes in a partition
// by so many workers, and the smallest budget with which one of them can do any step.
// Arrays by degree are left out.
func Memory(c Counts, workers int, budget int64) (used, least int64) {
	heap := threadsBytes(c.Threads, budget)
	budget -= heap
	n, s, tasks := c.Nodes, c.sorts(workers, budget), Tasks(workers)
	order := c.ids() + 17*n + s.index + c.members()
	if c.Directed {
		order += 4 * n // out-degrees
	}
	order += c.strengthsBytes()
	if tasks > 1 {
		// Roots of ranges, or labels, which are sorted.
		order = c.ids() + c.members() + max(8*n, 9*n+s.byPairs.Bytes(min(n, sortedKnown)))
	}
	used = max(
		s.heldPairs+s.byPairs.Touched(s.pairs, budget-s.heldPairs),
		order+max(c.numbers(budget-order), c.writesIDs(budget-order)),
		s.heldEdges+s.byEdges.Touched(s.edges, budget-s.heldEdges))
	least = max(s.heldEdges+s.byEdges.Bytes(0), order+max(c.numbers(0), c.writesIDs(0)))
	if tasks > 1 {
		group := min(n, shards.IDs{}.GroupRows())
		rank := c.ids() + min(partOf(n, tasks)*rankedRow(1, c.Directed, c.Weighted), (budget-c.ids())*7/8)
		nodes := min(max(partOf(n, workers), group)*partRow(1, c.Directed, c.Weighted, c.IDs > 0), budget*7/8)
		used, least = max(used, rank, nodes), max(least, group*partRow(1, c.Directed, c.Weighted, c.IDs > 0))
	}
	if c.Weighted && s.pairsStay {
		used = max(used, order+s.pairsBytes)
	}
	if c.IDs > 0 {
		among := 1 // where ids are those that occur, each thread may come across all of them
		if c.NodeTable {
			among = max(c.Threads, 1)
		}
		used = max(used, keysort.Touched(partOf(n, among), partOf(c.IDs, among), int64(sortShare*float64(budget)), c.Threads))
		least = max(least, keysort.LeastBytes*4/3, c.numbers(0)+s.byPairs.Bytes(0))
	}
	if t := c.tallies(workers); t > 0 {
		counting := c.ids() + 8*n + s.byPairs.IndexBytes(n) + s.byPairs.IndexBytes(partOf(max(t, c.Edges), tasks))
		if c.Directed {
			counting += 4 * n
		}
		if c.Weighted {
			// While strengths are added up, all pairs are open, and all turned ones.
			counting = max(counting, c.ids()+8*n+c.strengthsBytes()+2*s.byPairs.IndexBytes(c.Edges))
			part, held := c.turns(workers, s)
			used, least = max(used, held+s.byPairs.Touched(part, budget-held)), max(least, held+s.byPairs.Bytes(0))
		}
		all := s.byPairs.IndexBytes(t) // while it is cut
		used, least = max(used, all, counting), max(least, all, counting)
	}
	if tasks > 1 {
		merge := func(all, keys, written int64) {
			index := s.byPairs.IndexBytes(all) + s.byPairs.IndexBytes(written)
			merging, leastMerging := s.byPairs.MergeBytes(budget-index, tasks, keys)
			used, least = max(used, index+merging), max(least, index+leastMerging)
		}
		part := partOf(c.unsorted(workers), tasks)
		merge(c.unsorted(workers), part, part)
		merge(2*c.Edges, min(2*c.Edges, max(FileEdges(2*c.Edges), 2*c.Edges/int64(weightedTasks*workers))), 0)
	}
	if c.Features > 0 && tasks > 1 {
		used = max(used, c.dealing(workers, budget))
	}
	if c = c.columnsOf(workers); c.Features > 0 {
		used = max(used, c.heldForTiles(budget)+c.touchedTiles(budget))
		least = max(least, c.heldForTiles(0)+min(c.tileBytes(), max(minSpill, c.leastSpill())))
	}
	return used + heap, least + int64(max(c.Threads-2, 0))*threadBytes
}

// Disk is the largest number of bytes that the run directory and the scratch folder of
// one worker hold at any time of a partition by so many workers with budgets of so many
// bytes, and what the run directory holds in the end. What the sort of a piece spills is
// not more than the run file that it gives way to.
func Disk(c Counts, workers int, budget int64) (peak, final int64) {
	record := c.record()
	m, s := c.Edges, c.sorts(workers, budget)
	graph := c.graphBytes()
	final = graph + c.tileBytes()
	peak = max(final, record*m) // the unique edges
	if Tasks(workers) > 1 {
		peak = max(peak, record*(c.unsorted(workers)+m), 3*record*m+NodeBytes(c), 2*record*m+graph, record*m+c.turnedBytes()+16*(c.tallies(workers)+c.Nodes)+2*c.strengthsBytes())
		peak = max(peak, record*m+16*c.Nodes+2*c.strengthsBytes()+c.rankedBytes(), 2*record*m+graph+NodeBytes(c))
		if c.Features > 0 {
			peak = max(peak, final+c.dealtBytes())
		}
	} else {
		if !s.pairsStay {
			peak = max(peak, record*s.pairs)
		}
		if s.edgesSpill {
			peak = max(peak, record*s.edges+NodeBytes(c))
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
	scratch, record := int64(0), c.record()
	if s.pairsSpill || tasks == 1 && !s.pairsStay {
		scratch += record * min(c.Rows, c.unsorted(workers))
	}
	if s.edgesSpill {
		scratch += 2 * record * m
	}
	read, written = c.idScans()*c.idsBytes(), final
	if tasks > 1 {
		read += record*(c.unsorted(workers)+again*m+m+2*m) + tasks*again*table
		written += record * (c.unsorted(workers) + m + 2*m)
		if t := c.tallies(workers); t > 0 {
			read += 16*again*(t+c.Nodes) + c.rankedBytes() + table
			written += 8*(2*t+2*c.Nodes) + c.rankedBytes() + table
			// Pairs are turned, and read again with the turned ones to add strengths up.
			read += 3*c.turnedBytes() + 2*c.strengthsBytes()
			written += c.turnedBytes() + 2*c.strengthsBytes()
			if edges, held := c.turns(workers, s); c.Weighted && s.byPairs.Spills(edges, budget-held) {
				scratch += c.turnedBytes()
			}
		}
	} else {
		scratch += record * m // the unique edges
	}
	if own := c.columnsOf(workers); own.Features > 0 {
		columns := partOf(int64(packed.Panels(c.Features)), packed.Panels(own.Features))
		if tasks > 1 {
			read += tasks*again*table + c.dealtBytes()
			written += c.dealtBytes()
		} else if bytes, spilled := own.tilesAtATime(budget); spilled {
			scratch += columns * bytes
		}
	}
	return read + scratch, written + scratch
}
