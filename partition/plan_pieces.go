package partition

import "ndls/shards"

// Crew is workers that do a partition in pieces.
type Crew struct {
	Workers int
	// Tasks are into how many split, merge and relabel are cut each.
	Tasks int
}

// tasksOfWorker is enough for workers of different speed, and few files to merge.
const tasksOfWorker = 2

// NewCrew cuts for so many workers.
func NewCrew(workers int) Crew {
	return Crew{Workers: workers, Tasks: tasksOfWorker * max(workers, 1)}
}

// mergeBlock is how many bytes of run files have one mark.
const mergeBlock = 8 * runBlock

func indexOf(keys int64) int64 { return keys / runBlock * markBytes }

// share is one of n parts.
func share(of int64, n int) int64 { return (of + int64(n) - 1) / int64(n) }

// split is about how many keys the step leaves: repetitions are found in the part of
// the list where they are.
func (c Counts) split(k Crew) int64 { return c.Rows - (c.Rows-c.Edges)/int64(k.Tasks) }

// columnsOf is the graph with the features of a task of columns.
func (c Counts) columnsOf(k Crew) Counts {
	granules := granulesOf(c.Features)
	c.Features = min(c.Features, int(share(int64(granules), max(min(k.Workers, granules), 1)))*tileColumns)
	return c
}

// PieceMemory is how much a worker touches at most of a budget of so many bytes in a
// partition by a crew, and the smallest budget with which one worker can do any piece.
// Arrays by degree are left out.
func PieceMemory(c Counts, k Crew, budget int64) (used, least int64) {
	n, ids := c.Nodes, c.ids()
	merged := func(keys int64) (used, least int64) { // from the files of all tasks
		index := indexOf(keys)
		part := share(share(keys, k.Tasks), k.Tasks)
		return index + int64(k.Tasks)*min(runBuffer(budget-index, k.Tasks), 8*part+mergeBlock), index + int64(k.Tasks)*minRunBuffer
	}
	sorted := func(keys, held int64) int64 {
		return held + c.touched(keys, c.options(keys, false).bufferKeys(budget-held))
	}
	merge, leastMerge := merged(c.split(k))
	rows, leastRows := merged(2 * c.Edges)
	order := ids + 17*n + indexOf(c.Edges)
	relabel := ids + 4*n + indexOf(c.Edges)
	used = max(sorted(share(c.Rows, k.Tasks), 0), merge, order, sorted(share(2*c.Edges, k.Tasks), relabel), rows, ids+8*n)
	least = max(c.sorting(0)+relabel, order, leastMerge, leastRows)
	if c = c.columnsOf(k); c.Features > 0 {
		tiles := ids + 4*n + n/8
		used = max(used, tiles+c.touchedTiles(budget))
		least = max(least, tiles+min(n*int64(granulesOf(c.Features)*shards.TileRowBytes(c.Half)), minSpill))
	}
	return used, least
}

// PieceDisk is the largest number of bytes that the run directory holds at any time of
// a partition by a crew, with the scratch folder of one worker, and what it holds in the
// end. What the sort of a piece spills is not more than the run file that it gives way to.
func PieceDisk(c Counts, k Crew, budget int64) (peak, final int64) {
	m, table := c.Edges, NodeBytes(c)
	bare := c
	bare.Features = 0
	_, graph := PeakDisk(bare, budget)
	_, final = PeakDisk(c, budget)
	peak = max(8*(c.split(k)+m), 24*m+table, 16*m+graph, final)
	if own := c.columnsOf(k); own.Features > 0 {
		if _, spilled := own.tilesAtATime(budget); spilled {
			groups := int64(granulesOf(own.Features)+tileGroup-1) / tileGroup
			peak = max(peak, final+4*c.Nodes*groups)
		}
	}
	return peak, final
}

// PieceTraffic is what all workers of a crew with budgets of so many bytes read from
// and write to the run directory and scratch files. What they read of the dataset is not
// counted.
func PieceTraffic(c Counts, k Crew, budget int64) (read, written int64) {
	m, table := c.Edges, NodeBytes(c)
	tables, pairs := int64(1), int64(1) // how often they are read where they are
	if !c.StatedNodes {
		tables, pairs = 2, 2
	}
	bare := c
	bare.Features = 0
	_, graph := PeakDisk(bare, budget)
	_, final := PeakDisk(c, budget)
	runs := 8 * (c.split(k) + m + 2*m)
	read = 8*(c.split(k)+pairs*m+m+2*m) + graph - HopBytes(c) - table // shards are read for their hop streams
	read += (int64(k.Tasks)*tables + tables + 1) * table              // relabel, whole
	written = runs + final

	scratch := int64(0)
	if keys := share(c.Rows, k.Tasks); keys > c.options(keys+keys/8, false).bufferKeys(budget) {
		scratch += 8 * c.split(k)
	}
	if keys := share(2*m, k.Tasks); keys > c.options(keys, false).bufferKeys(budget-c.ids()-4*c.Nodes-indexOf(m)) {
		scratch += 16 * m
	}
	if own := c.columnsOf(k); own.Features > 0 {
		tasks := share(int64(granulesOf(c.Features)), granulesOf(own.Features))
		read += tasks * tables * table
		if bytes, spilled := own.tilesAtATime(budget); spilled {
			scratch += tasks * bytes
		}
	}
	return read + scratch, written + scratch
}
