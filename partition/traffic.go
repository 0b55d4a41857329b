package partition

import (
	"ndls/internal/direct"
	"ndls/shards"
)

// HopBytes and NodeBytes are the sizes of the hop streams and of the node table.
func HopBytes(c Counts) int64  { return 2 * c.Edges * hopEdge }
func NodeBytes(c Counts) int64 { return nodeRow * c.Nodes }

// Traffic is what Run with a budget of so many bytes reads from and writes to the
// run directory and scratch files. What it reads of the dataset is not counted.
func Traffic(c Counts, budget int64) (read, written int64) {
	m := c.Edges
	_, final := PeakDisk(c, budget)
	scratch := 8 * m // the unique edges
	if keys, buffer := c.rowSort(budget); keys > buffer {
		scratch += 8 * keys
	}
	if keys, buffer := c.pairSort(budget); keys > buffer {
		scratch += 8 * keys
	}
	if lot, spilled := c.tilesAtATime(budget); spilled {
		scratch += lot
	}
	// Shards and node table are read once more.
	c.Features = 0
	_, graph := PeakDisk(c, budget)
	return scratch + graph - HopBytes(c), final + scratch
}

// UsedMemory is how much of what Run takes of a budget it touches: sort buffers
// are only filled as far as there are keys.
func UsedMemory(c Counts, budget int64) int64 {
	used := max(c.touched(c.rowSort(budget)), 8*c.Nodes+c.touched(c.pairSort(budget)), 17*c.Nodes)
	if c.Features > 0 {
		used = max(used, 4*c.Nodes+c.Nodes/8+c.touchedTiles(budget))
	}
	return c.ids() + used
}

// touched is what sorting so many keys in buffers of so many touches.
func (c Counts) touched(keys, buffer int64) int64 {
	if keys <= buffer {
		return 8 * 2 * keys
	}
	third := (c.options(0, false).buffers() - 2) * min(buffer, keys-buffer)
	return 8 * (2*buffer + third)
}

// touchedTiles is what making tiles touches.
func (c Counts) touchedTiles(budget int64) int64 {
	lot, spilled := c.tilesAtATime(budget)
	if spilled {
		// Half is for chunks that are filled, then for cells that are put together.
		return min(lot, (budget-c.ids()-4*c.Nodes)/2)
	}
	return lot
}

// rowSort and pairSort are the numbers of keys of the two sorts, and how many of
// them a buffer has room for.
func (c Counts) rowSort(budget int64) (keys, buffer int64) {
	return c.Rows, c.options(c.Rows+c.Rows/8, !c.StatedNodes).bufferKeys(budget - c.ids())
}

func (c Counts) pairSort(budget int64) (keys, buffer int64) {
	return 2 * c.Edges, c.options(2*c.Edges, false).bufferKeys(budget - c.ids() - 8*c.Nodes)
}

// tilesAtATime is the size of the tiles that are made from one reading of the
// features, and whether they are spilled.
func (c Counts) tilesAtATime(budget int64) (bytes int64, spilled bool) {
	granules := granulesOf(c.Features)
	if granules == 0 {
		return 0, false
	}
	free := budget - c.ids() - 4*c.Nodes - c.Nodes/8
	bytes = c.Nodes * int64(tileLot(free, c.Nodes, granules, c.Half)) * int64(shards.TileRowBytes(c.Half))
	return bytes, bytes+direct.Align > free
}
