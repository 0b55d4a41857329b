package hops

import (
	"ndls/internal/packed"
	"ndls/spmv"
)

const (
	// BatchValues bounds the values of hop 0 that two batches hold together while they are read. ReadBytes is the memory for them and for
	// the tiles that are read.
	BatchValues = 1 << 19
	ReadBytes   = 4*BatchValues + 3*4*BatchValues/2 + 2*4096

	// residentShare is the part of the free budget that packed edges may use to be read once instead of in every pass.
	residentShare = 4
	// usefulBytes is the width of a row at which a pass computes the most columns per second: one cache line per edge. Edges read from disk
	// justify twice that, because a pass over cache lines is faster than the disk.
	usefulBytes = 64
)

// Resident reports whether a worker with free bytes holds packed edges of this size in memory.
func Resident(edges, free int64) bool { return edges <= free/residentShare }

// SafeFree returns the least number of free bytes with which need bytes fit, whether or not Resident then places edges of that size beside
// them.
func SafeFree(edges, need int64) int64 {
	if edges <= need/(residentShare-1) {
		return need + edges
	}
	return need
}

// SafeShare is SafeFree for a worker with some of the rows and any part of the edges.
func SafeShare(edges, need int64) int64 { return need + min(edges, need/(residentShare-1)) }

// Capacity holds the limits that column blocks have to fit.
type Capacity struct {
	Nodes, Components int64
	// Others is the number of rows of other workers, beside Nodes. The width is then Asked, the same for all of them. Listed says that they
	// send only the rows that are read; Pair says that there is one other worker.
	Others       int64
	Listed, Pair bool
	// Free is the free budget, beside edges that are Resident.
	Free      int64
	Resident  bool
	Threads   int
	Precision spmv.Precision
	// Columns is the number of columns to propagate, Asked at a time, or the best number if Asked is 0.
	Columns, Asked int
}

// Useful returns c with no more columns than are useful at a time: wider rows only leave the cache. A strip that several threads share is
// cut into slices of columns. [Capacity.Side] decides whether blocks run side by side instead.
func (c Capacity) Useful() Capacity {
	columns := usefulBytes / int(c.Precision.Bytes())
	if !c.Resident {
		columns *= 2
	}
	columns *= max(c.Threads/packed.Strips(c.Nodes), 1)
	c.Columns = min(c.Columns, columns)
	return c
}

// mostTeams bounds the number of blocks that run side by side: each has open files while its columns are written.
const mostTeams = 8

// Side returns the best number of blocks that teams of threads run side by side. It is 1 if each thread has a strip, else the number of
// teams that have threads for themselves, but at most the number of blocks.
func (c Capacity) Side() int {
	if c.Others > 0 {
		return 1
	}
	one := c
	one.Threads = 1
	width := max(one.Useful().Columns/packed.PanelColumns, 1)
	if c.Asked > 0 {
		width = max(min(width, c.Asked/packed.PanelColumns), 1)
	}
	blocks := (packed.Panels(c.Columns) + width - 1) / width
	return max(min(c.Threads/max(packed.Strips(c.Nodes), 1), blocks, mostTeams), 1)
}

// Team returns c for one of these teams: its share of the memory and of the columns, and the number of threads of the largest team.
func (c Capacity) Team(teams int) Capacity {
	panels := packed.Panels(c.Columns)
	c.Free /= int64(teams)
	c.Threads = (c.Threads + teams - 1) / teams
	c.Columns = (panels + teams - 1) / teams * packed.PanelColumns
	return c
}

// Agreed returns c for the width on which all workers that share the rows of a graph agreed. 0 means that they have not agreed yet;
// the width is then a panel.
func (c Capacity) Agreed(columns int) Capacity {
	c.Asked = max(columns, packed.PanelColumns)
	return c
}

// Layout lays out a column block. beside returns the bytes that a block of a layout needs beside its rows; need is the memory of the block
// with them. If nothing fits, l and need describe the smallest layout, and the error wraps mem.ErrBudget.
func (c Capacity) Layout(beside func(spmv.Layout) int64) (l spmv.Layout, need int64, err error) {
	least := packed.PanelColumns
	if c.Asked > 0 {
		c.Columns = min(c.Asked, c.Columns)
		least = c.Columns
	}
	if c.Others > 0 {
		least = packed.Panels(least) * packed.PanelColumns
		l, err = spmv.PlanShared(c.Nodes, c.Nodes+c.Others, spmv.Others{Listed: c.Listed, Pair: c.Pair}, least, c.Precision, c.Free,
			c.Threads, beside)
		return l, l.Memory(c.Nodes, c.Threads) + beside(l), err
	}
	l, err = spmv.PlanLayout(c.Nodes, least, c.Columns, c.Precision, c.Free, c.Threads, beside)
	return l, l.Memory(c.Nodes, c.Threads) + beside(l), err
}
