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
	"ndls/steps"
)

// Counts holds the counts from which the cost of a partition is computed.
type Counts struct {
	Nodes int64
	// Rows is the length of the edge list. Edges is the number of edges without self-loops and repetitions.
	Rows, Edges int64
	// StatedNodes says that the dataset states the number of nodes.
	StatedNodes bool
	// Features is the width of the feature rows, 0 for none. Half says that all values are exactly float16.
	Features int
	Half     bool
	// RowMemory is the memory of a reader of feature rows in bytes ([dataset.Info]).
	RowMemory int64
	// EdgeMemory is the memory of a reader of edges in bytes ([dataset.Info]).
	EdgeMemory int64
	// Weighted says that edges have weights.
	Weighted bool
	// Directed says that edges have directions. Edges then counts directed edges, and there are shards and hop streams of them and of the
	// reversed edges.
	Directed bool
	// NoShards says that only hop streams are written.
	NoShards bool
	// IDs is the size of all input ids if they are numbered ([IDCounts]), 0 if they are numbers already. NodeTable says that they come from
	// a table of nodes, which lists each once.
	IDs       int64
	NodeTable bool
	// Part says that the graph is restricted to the nodes of some splits.
	Part bool
	// Blanks says that the features of some nodes are blanked.
	Blanks  bool
	Threads int
}

// IDBytes estimates Counts.IDs of an imported graph.
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

// nodeRow is the number of bytes of a node in the node table; strengthRow and outDegreeRow are the sizes of its strength and out-degree.
const (
	nodeRow      = 9
	strengthRow  = 8
	outDegreeRow = 2
)

// hopEdge returns the bytes of a directed edge in a hop stream: a narrow word if the sources of a strip lie close together, a wide one if
// they lie far apart. The curve fits measurements at degree 28 with 1.7 million to 1.8 thousand million nodes (docs/decisions/0004).
func hopEdge(n, m int64) float64 {
	gap := float64(n) * float64(packed.Strips(n)) / float64(max(2*m, 1)) // between the sources of two consecutive edges
	return packed.Narrow + (packed.Wide-packed.Narrow)/(1+math.Pow(349/gap, 1.76))
}

// shardEdge returns the bytes of a directed edge in a shard, a curve through measurements at degree 28. Destinations take 4; sources take
// less if more edges of a block share one. The result grows from 4.3 with 0.4 million nodes to 7 with 100 million.
func shardEdge(n, m int64) float64 {
	block := float64(2*m) * float64(min(n, BlockRows)) / float64(n)
	gap := math.Pow(float64(n)/max(block, 1), 0.8) // between the sources of two consecutive edges
	return 4 + 4*gap/(gap+0.9)
}

// HopBytes returns the size of the hop streams.
func HopBytes(c Counts) int64 {
	return int64(2 * float64(c.Edges) * (hopEdge(c.Nodes, c.density()) + float64(c.weightBytes())))
}

// density returns the number of edges without directions that lie as close in a hop stream or in a shard.
func (c Counts) density() int64 {
	if c.Directed {
		return c.Edges / 2
	}
	return c.Edges
}

// weightBytes returns the bytes of a weight in a hop stream and in a shard.
func (c Counts) weightBytes() int64 {
	if c.Weighted {
		return packed.WeightBytes
	}
	return 0
}

// record returns the bytes of an edge while edges are sorted.
func (c Counts) record() int64 {
	if c.Weighted {
		return 16
	}
	return 8
}

// NodeBytes returns the size of the node table.
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
	// idShare is the compressed share of sorted ids with their lengths. 10 million ids of 21 bytes, mostly digits of a hash, took 0.58.
	idShare = 0.6
	// numberRow is the number of bytes of an id's number in the node table.
	numberRow = 3
)

// idsBytes returns the size of the table of ids.
func (c Counts) idsBytes() int64 {
	if c.IDs == 0 {
		return 0
	}
	return int64(idShare * float64(c.IDs+4*c.Nodes))
}

// idScans returns how often the table of ids is read: to find numbers while edges, then labels and splits, then features are read, and
// twice to write the node table.
func (c Counts) idScans() int64 {
	if c.Features > 0 {
		return 5
	}
	return 4
}

// graphBytes returns the size of shards, hop streams, node table and table of ids.
func (c Counts) graphBytes() int64 { return c.shardBytes() + HopBytes(c) + NodeBytes(c) + c.idsBytes() }

// shardBytes returns the size of the shards.
func (c Counts) shardBytes() int64 {
	if c.NoShards {
		return 0
	}
	return int64(2 * float64(c.Edges) * (shardEdge(c.Nodes, c.density()) + float64(c.weightBytes())))
}

// tileBytes returns the size of all feature tiles.
func (c Counts) tileBytes() int64 {
	return c.Nodes * int64(packed.Panels(c.Features)) * int64(shards.TileRowBytes(c.Half))
}

// allTilesBytes returns the memory that one worker takes to make all feature tiles while it sorts and writes edges.
func (c Counts) allTilesBytes() int64 {
	return allTilesBytes(c.Nodes, packed.Panels(c.Features), c.RowMemory)
}

// minSpill is enough memory to spill features in chunks of a good size for a disk.
const minSpill = 16 << 20

// leastSpill returns the least memory for spilling wide features: a chunk for each interval, and an eighth more for reserves.
func (c Counts) leastSpill() int64 {
	file := cells{nodes: c.Nodes, interval: DefaultIntervalBlocks * BlockRows, panels: packed.Panels(c.Features), half: c.Half}
	file.rows = file.interval
	return file.count() * file.chunk(0) * 9 / 8
}

// numberedBytes returns the memory for finding the numbers of ids while the dataset is read, with free bytes available.
func (c Counts) numberedBytes(free int64) int64 {
	if c.IDs == 0 {
		return 0
	}
	table := inputid.TableBytes(c.Nodes)
	return table + heldForTables(max(free-table, 0))
}

// writesIDs returns the memory of ids while the node table is written, with free bytes available.
func (c Counts) writesIDs(free int64) int64 {
	if c.IDs == 0 {
		return 0
	}
	lengths := 2 * c.Nodes
	return lengths + min(int64(sortShare*float64(max(free-lengths, 0))), c.IDs+4*c.Nodes)
}

// idSetBytes returns the size of the map of input ids, without gaps.
func (c Counts) idSetBytes() int64 {
	if c.StatedNodes {
		return 0
	}
	return c.Nodes/8 + c.Nodes/128 + 4<<(32-chunkShift)
}

// members returns the memory that holds which nodes belong to a part of the graph.
func (c Counts) members() int64 {
	if !c.Part {
		return 0
	}
	c.StatedNodes = false
	return c.idSetBytes() + c.Nodes
}

// columnsOf returns the graph with the features of one task of the step Columns.
func (c Counts) columnsOf(workers int) Counts {
	panels := packed.Panels(c.Features)
	c.Features = min(c.Features, int(partOf(int64(panels), max(min(workers, panels), 1)))*packed.PanelColumns)
	return c
}

// heldForTiles returns the memory in use while tiles are made, without the tiles.
func (c Counts) heldForTiles(budget int64) int64 {
	held := c.idSetBytes() + 4*c.Nodes + c.members()
	held += c.numberedBytes(budget-held) + c.Nodes/8
	if c.Blanks {
		held += c.Nodes / 8
	}
	return held + readersBytes(c.Threads, budget-held, c.RowMemory)
}

// tilesFree returns the memory that a budget leaves for tiles.
func (c Counts) tilesFree(budget int64) int64 { return budget - c.heldForTiles(budget) }

// tilesAtATime returns the size of the tiles that are made from one reading of the features, and whether they are spilled.
func (c Counts) tilesAtATime(budget int64) (bytes int64, spilled bool) {
	panels := packed.Panels(c.Features)
	if panels == 0 {
		return 0, false
	}
	free := c.tilesFree(budget)
	bytes = c.Nodes * int64(tileLot(free, c.Nodes, panels, c.Half)) * int64(shards.TileRowBytes(c.Half))
	return bytes, bytes+direct.Align > free
}

// touchedTiles returns the memory that making tiles uses.
func (c Counts) touchedTiles(budget int64) int64 {
	lot, spilled := c.tilesAtATime(budget)
	if spilled {
		// One half is for chunks being filled, then for cells being assembled.
		return min(lot, c.tilesFree(budget)/2)
	}
	return lot
}

// dealtBytes returns the size of the files of the step Deal.
func (c Counts) dealtBytes() int64 { return c.tileBytes() + numberBytes*c.Nodes }

// dealing returns the memory of one of these workers while it reads a part of the features, or makes tiles from the parts that all have
// read, whichever is more.
func (c Counts) dealing(workers int, budget int64) int64 {
	panels, row := packed.Panels(c.Features), int64(shards.TileRowBytes(c.Half))
	held, interval, tasks := c.heldForTiles(budget), min(DefaultIntervalBlocks*BlockRows, c.Nodes), steps.Tasks(workers)
	file := cells{nodes: c.Nodes, interval: interval, rows: interval, panels: panels, half: c.Half}
	filling := file.count() * file.chunk(max(budget-held, 0)/2)
	together := min(panels, tileGroup, int(partOf(int64(panels)*partOf(c.Nodes, int(interval)), tasks)))
	page := min(int64(together)*(panelChunk+panelChunk/row*numberBytes), partOf(c.dealtBytes(), tasks))
	tiles := interval*int64(together)*row + interval/8
	return max(held+min(filling, partOf(c.dealtBytes(), tasks)), min(tiles+min(int64(c.Threads+1)*page, budget/4), budget))
}

// partOf returns the size of one of n parts, rounded up.
func partOf(of int64, n int) int64 { return (of + int64(n) - 1) / int64(n) }

// sorts describes the two sorts of a partition: the number of keys in each sort of a task, its options, and the memory that the task holds
// beside it.
type sorts struct {
	pairs, edges         int64
	byPairs, byEdges     extsort.Options
	heldPairs, heldEdges int64
	index                int64 // memory of the index of the run files with unique pairs
	// pairsSpill and edgesSpill say that sorted items are written to scratch files. pairsStay says that one worker keeps pairs sorted in
	// memory, of pairsBytes, during the step Order, and pairsKept that it keeps them, by rank, until the step Rows.
	// tilesBeside says that it makes the feature tiles meanwhile.
	pairsSpill, edgesSpill, pairsStay, pairsKept, tilesBeside bool
	pairsBytes                                                int64
}

func (c Counts) sorts(workers int, budget int64) (s sorts) {
	tasks := steps.Tasks(workers)
	s.pairs, s.edges = partOf(c.Rows, tasks), partOf(2*c.Edges, tasks)
	alone := tasks == 1
	if alone && !c.StatedNodes { // input ids are noted while reading
		s.heldPairs = c.idSetBytes()
	}
	s.heldPairs += c.members()
	s.heldPairs += c.numberedBytes(budget - s.heldPairs)
	s.heldPairs += readersBytes(c.Threads, budget-s.heldPairs, c.EdgeMemory)
	s.byPairs = sortOptions(s.pairs+s.pairs/8, c.Threads, alone && !c.StatedNodes)
	s.byEdges = sortOptions(s.edges, c.Threads, false)
	s.byPairs.Width, s.byEdges.Width = c.record(), c.record()
	if !alone {
		s.index = s.byPairs.IndexBytes(c.Edges)
	}
	s.heldEdges = c.idSetBytes() + 4*c.Nodes + s.index
	s.pairsSpill = s.byPairs.Spills(s.pairs, budget-s.heldPairs)
	s.edgesSpill = s.byEdges.Spills(s.edges, budget-s.heldEdges)
	s.pairsBytes = c.record() * s.pairs
	s.pairsStay = alone && !s.pairsSpill
	if c.Weighted && s.pairsStay {
		nodes := int64(-1)
		if c.StatedNodes {
			nodes = c.Nodes
		}
		s.pairsStay = budget-c.noted()-c.record()*s.byPairs.Want >= orderBytes(nodes, s.pairs)
	}
	if s.pairsStay && !c.Weighted {
		tally := 8 * c.Nodes
		if c.Directed {
			tally += 4 * c.Nodes
		}
		held := c.noted() + c.members() + c.record()*s.byPairs.Want + tally
		s.pairsKept = keepsPairs(budget-held-c.RowMemory, c.Nodes, s.pairs, c.Threads)
		s.tilesBeside = s.pairsKept && c.Features > 0 && c.IDs == 0 &&
			tilesBeside(budget-s.heldEdges-c.members()-c.record()*s.byPairs.Want, c.allTilesBytes(), c.Edges, c.Threads)
	}
	return s
}

// noted returns the memory of the input ids that are noted while edges are read.
func (c Counts) noted() int64 {
	if c.StatedNodes {
		return 0
	}
	return c.idSetBytes()
}

// unsorted estimates the number of keys that the step Split leaves: it finds only repetitions within the same part of the list.
func (c Counts) unsorted(workers int) int64 {
	return c.Rows - (c.Rows-c.Edges)/int64(steps.Tasks(workers))
}

// rankedBytes returns the size of the files of the step Rank, without components.
func (c Counts) rankedBytes() int64 { return (recordBytes+1)*c.Nodes + c.strengthsBytes() }

// strengthsBytes returns the size of the strengths of all nodes. Gather leaves each strength as two numbers.
func (c Counts) strengthsBytes() int64 {
	if !c.Weighted {
		return 0
	}
	return strengthRow * c.Nodes
}

// turnedBytes returns the size of the turned edges that the step Count leaves.
func (c Counts) turnedBytes() int64 {
	if !c.Weighted {
		return 0
	}
	return c.record() * c.Edges
}

// tallies bounds the number of degrees, and of components, in the files of the step Count: each node is in one tally per piece in which it
// is an end of an edge.
func (c Counts) tallies(workers int) int64 {
	if tasks := steps.Tasks(workers); tasks > 1 {
		return min(int64(tasks)*c.Nodes, c.Edges+c.Nodes)
	}
	return 0
}

// turns returns the number of edges that a piece of Count turns, and the memory of the open run files beside them.
func (c Counts) turns(workers int, s sorts) (edges, held int64) {
	edges = partOf(c.Edges, steps.Tasks(workers))
	return edges, 2 * s.byPairs.IndexBytes(edges)
}

// Memory returns the largest number of bytes of a budget that a worker uses in a partition by this number of workers, and the smallest
// budget with which it can execute every step. Arrays by degree are left out.
func Memory(c Counts, workers int, budget int64) (used, least int64) {
	heap := threadsBytes(c.Threads, budget)
	budget -= heap
	n, s, tasks := c.Nodes, c.sorts(workers, budget), steps.Tasks(workers)
	order := c.idSetBytes() + 17*n + s.index + c.members()
	if c.Directed {
		order += 4 * n // out-degrees
	}
	order += c.strengthsBytes() + c.RowMemory
	if tasks > 1 {
		// Roots of ranges, or labels while they are sorted.
		order = c.idSetBytes() + c.members() + c.RowMemory + max(8*n, 9*n+s.byPairs.Bytes(min(n, sortedKnown)))
	}
	used = max(
		s.heldPairs+s.byPairs.Touched(s.pairs, budget-s.heldPairs),
		order+max(c.numberedBytes(budget-order), c.writesIDs(budget-order)),
		s.heldEdges+s.byEdges.Touched(s.edges, budget-s.heldEdges))
	least = max(s.heldEdges+s.byEdges.Bytes(0), order+max(c.numberedBytes(0), c.writesIDs(0)))
	if tasks > 1 {
		group := min(n, shards.IDs{}.GroupRows())
		rank := c.idSetBytes() + min(partOf(n, tasks)*rankedRow(1, c.Directed, c.Weighted), (budget-c.idSetBytes())*7/8)
		nodes := min(max(partOf(n, workers), group)*partRow(1, c.Directed, c.Weighted, c.IDs > 0), budget*7/8)
		used, least = max(used, rank, nodes), max(least, group*partRow(1, c.Directed, c.Weighted, c.IDs > 0))
	}
	if s.pairsStay && (c.Weighted || s.pairsKept) {
		used = max(used, order+s.pairsBytes)
	}
	if s.pairsKept {
		again := s.heldEdges + max(s.byEdges.Bytes(s.edges), s.pairsBytes)
		if s.tilesBeside {
			again += c.tileBytes() + c.allTilesBytes()/8
		}
		used = max(used, again)
	}
	if c.IDs > 0 {
		among := 1 // if ids are those that occur, each thread may find all of them
		if c.NodeTable {
			among = max(c.Threads, 1)
		}
		used = max(used, keysort.Touched(partOf(n, among), partOf(c.IDs, among), int64(sortShare*float64(budget)), c.Threads))
		least = max(least, keysort.LeastBytes*4/3, c.numberedBytes(0)+s.byPairs.Bytes(0))
	}
	if t := c.tallies(workers); t > 0 {
		counting := c.idSetBytes() + 8*n + s.byPairs.IndexBytes(n) + s.byPairs.IndexBytes(partOf(max(t, c.Edges), tasks))
		if c.Directed {
			counting += 4 * n
		}
		if c.Weighted {
			// While strengths are added up, all files of pairs and of turned edges are open.
			counting = max(counting, c.idSetBytes()+8*n+c.strengthsBytes()+2*s.byPairs.IndexBytes(c.Edges))
			part, held := c.turns(workers, s)
			used, least = max(used, held+s.byPairs.Touched(part, budget-held)), max(least, held+s.byPairs.Bytes(0))
		}
		all := s.byPairs.IndexBytes(t) // while the range is cut
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
		merge(2*c.Edges, min(2*c.Edges, max(FileEdges(2*c.Edges), 2*c.Edges/int64(steps.WeightedTasks*workers))), 0)
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

// Disk returns the largest number of bytes that the run directory and the scratch folder of one worker hold at any time of a partition by
// this number of workers with this budget, and the final size of the run directory. A spilled sort of a piece is at most as large as the
// run file that replaces it.
func Disk(c Counts, workers int, budget int64) (peak, final int64) {
	record := c.record()
	m, s := c.Edges, c.sorts(workers, budget)
	graph := c.graphBytes()
	final = graph + c.tileBytes()
	peak = final
	if !s.pairsKept {
		peak = max(peak, record*m) // the unique edges
	}
	if steps.Tasks(workers) > 1 {
		peak = max(peak, record*(c.unsorted(workers)+m), 3*record*m+NodeBytes(c), 2*record*m+graph,
			record*m+c.turnedBytes()+16*(c.tallies(workers)+c.Nodes)+2*c.strengthsBytes())
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
			peak = max(peak, final+numberBytes*c.Nodes)
		}
	}
	return peak, final
}

// Traffic returns the bytes that all of these workers with this budget read from and write to the run directory and scratch files. It does
// not count reading the dataset.
func Traffic(c Counts, workers int, budget int64) (read, written int64) {
	m, s, tasks, table := c.Edges, c.sorts(workers, budget), int64(steps.Tasks(workers)), NodeBytes(c)
	_, final := Disk(c, workers, budget)
	again := int64(1) // readings of the files that name nodes
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
			// Pairs are turned, and read again with the turned ones to add up strengths.
			read += 3*c.turnedBytes() + 2*c.strengthsBytes()
			written += c.turnedBytes() + 2*c.strengthsBytes()
			if edges, held := c.turns(workers, s); c.Weighted && s.byPairs.Spills(edges, budget-held) {
				scratch += c.turnedBytes()
			}
		}
	} else if !s.pairsKept {
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
