package hops

import (
	"ndls/internal/packed"
	"ndls/spmv"
)

const (
	// BatchValues bounds the values of hop 0 that are read at a time, those of two
	// batches together. ReadBytes is the memory for them and for what is read of tiles.
	BatchValues = 1 << 19
	ReadBytes   = 4*BatchValues + 3*4*BatchValues/2 + 2*4096

	// residentShare is the part of the free budget that packed edges may take up
	// to be read once instead of in every pass.
	residentShare = 4
	// usefulBytes is the width of a row at which a pass does the most columns a
	// second: one cache line an edge. Edges that are read from disk are worth
	// twice that, since a pass over cache lines is faster than the disk.
	usefulBytes = 64
)

// Resident says whether a worker with so many free bytes holds packed edges of so many
// bytes in memory.
func Resident(edges, free int64) bool { return edges <= free/residentShare }

// SafeFree is the least number of free bytes with which need bytes fit, whether or not
// Resident then puts edges of that size beside them.
func SafeFree(edges, need int64) int64 {
	if edges <= need/(residentShare-1) {
		return need + edges
	}
	return need
}

// SafeShare is SafeFree where a worker has some of the rows, and any part of the edges.
func SafeShare(edges, need int64) int64 { return need + min(edges, need/(residentShare-1)) }

// Capacity is what column blocks have to fit.
type Capacity struct {
	Nodes, Components int64
	// Others are the rows that other workers have beside Nodes. The width is
	// then Asked, which is the same for all of them. Listed says that they send the rows alone that are read,
	// Pair that there is one of them alone.
	Others       int64
	Listed, Pair bool
	// Free is what the budget has left, beside edges that are Resident.
	Free      int64
	Resident  bool
	Threads   int
	Precision spmv.Precision
	// Columns are to be propagated, Asked at a time, or as many as are best if
	// that is 0. Asked is half a panel only where others have rows.
	Columns, Asked int
}

// Useful is r for no more columns than are of use at a time: wider rows only leave
// the cache. A strip that several threads share is cut into slices of columns.
// [Capacity.Side] says where blocks are run side by side instead.
func (c Capacity) Useful() Capacity {
	columns := usefulBytes / int(c.Precision.Bytes())
	if !c.Resident {
		columns *= 2
	}
	columns *= max(c.Threads/packed.Strips(c.Nodes), 1)
	c.Columns = min(c.Columns, columns)
	return c
}

// mostTeams bounds how many blocks are run side by side: each has files open while its columns are written.
const mostTeams = 8

// Side is how many blocks are best run side by side, by teams of threads. It is one where each thread
// has a strip, else as many as can have threads to themselves. There are no more of them than blocks.
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

// Team is r for one of so many teams: its share of the memory and of the columns, and as many threads as the largest of
// them has.
func (c Capacity) Team(teams int) Capacity {
	panels := packed.Panels(c.Columns)
	c.Free /= int64(teams)
	c.Threads = (c.Threads + teams - 1) / teams
	c.Columns = (panels + teams - 1) / teams * packed.PanelColumns
	return c
}

// Agreed is r for the width that all who share the rows of a graph will take, panels or half a panel; 0
// where they have not agreed on one yet: then it is a panel.
func (c Capacity) Agreed(columns int) Capacity {
	if c.Asked = columns; columns != packed.HalfPanel {
		c.Asked = max(columns, packed.PanelColumns)
	}
	return c
}

// Layout lays a column block out. beside is what a block of some layout needs
// beside its rows, need what it takes with that. Where nothing fits, they are
// those of the smallest layout, and the error wraps mem.ErrBudget.
func (c Capacity) Layout(beside func(spmv.Layout) int64) (l spmv.Layout, need int64, err error) {
	least := packed.PanelColumns
	if c.Asked > 0 {
		c.Columns = min(c.Asked, c.Columns)
		least = c.Columns
	}
	if c.Others > 0 {
		if c.Asked != packed.HalfPanel {
			least = packed.Panels(least) * packed.PanelColumns
		}
		l, err = spmv.PlanShared(c.Nodes, c.Nodes+c.Others, spmv.Others{Listed: c.Listed, Pair: c.Pair}, least, c.Precision, c.Free, c.Threads, beside)
		return l, l.Memory(c.Nodes, c.Threads) + beside(l), err
	}
	l, err = spmv.PlanLayout(c.Nodes, least, c.Columns, c.Precision, c.Free, c.Threads, beside)
	return l, l.Memory(c.Nodes, c.Threads) + beside(l), err
}
