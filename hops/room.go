package hops

import (
	"ndls/internal/packed"
	"ndls/spmv"
)

const (
	// BatchValues bounds the values of hop 0 that are read at a time; ReadBytes is
	// the memory for them and for a tile's part of them.
	BatchValues = 1 << 18
	ReadBytes   = 2*4*BatchValues + 2*4096

	// residentShare is the part of the free budget that packed edges may take up
	// to be read once instead of in every pass.
	residentShare = 4
	// usefulBytes is the width of a row at which a pass does the most columns a
	// second: one cache line an edge. Edges that are read from disk are worth
	// twice that, since a pass over cache lines is faster than the disk.
	usefulBytes = 64
)

// Resident says whether packed edges of so many bytes are to be kept in memory,
// with so many bytes free.
func Resident(edges, free int64) bool { return edges <= free/residentShare }

// SafeFree is the number of free bytes from which on need bytes fit, whether or
// not edges of that size are then kept in memory beside them.
func SafeFree(edges, need int64) int64 {
	if edges <= need/(residentShare-1) {
		return need + edges
	}
	return need
}

// Room is what column blocks are laid out for.
type Room struct {
	Nodes, Components int64
	// Others are the rows that other workers have beside Nodes. The width is
	// then Asked, which is the same for all of them.
	Others int64
	// Free is what the budget has left, beside edges that are Resident.
	Free      int64
	Resident  bool
	Threads   int
	Precision spmv.Precision
	// Columns are to be propagated, Asked at a time, or as many as are best if
	// that is 0.
	Columns, Asked int
}

// Useful is r for no more columns than are of use at a time: wider rows only leave
// the cache. A strip that several threads share is cut into slices of columns.
func (r Room) Useful() Room {
	columns := usefulBytes / int(r.Precision.Bytes())
	if !r.Resident {
		columns *= 2
	}
	columns *= max(r.Threads/packed.Strips(r.Nodes), 1)
	r.Columns = min(r.Columns, columns)
	return r
}

// Agreed is r for the width that all who share the rows of a graph will take, 0
// where they have not agreed on one yet: then it is the least.
func (r Room) Agreed(columns int) Room {
	r.Asked = max(columns, spmv.Granule)
	return r
}

// Layout lays a column block out. beside is what a block of some layout needs
// beside its rows, need what it takes with that. Where nothing fits, they are
// those of the smallest layout, and the error wraps mem.ErrBudget.
func (r Room) Layout(beside func(spmv.Layout) int64) (l spmv.Layout, need int64, err error) {
	least := spmv.Granule
	if r.Asked > 0 {
		r.Columns = min(r.Asked, r.Columns)
		least = r.Columns
	}
	if r.Others > 0 {
		l, err = spmv.PlanShared(r.Nodes, r.Nodes+r.Others, least, r.Precision, r.Free, r.Threads, beside)
		return l, l.Memory(r.Nodes, r.Threads) + beside(l), err
	}
	l, err = spmv.PlanLayout(r.Nodes, least, r.Columns, r.Precision, r.Free, r.Threads, beside)
	return l, l.Memory(r.Nodes, r.Threads) + beside(l), err
}

// Blocks is the number of blocks of l that some columns make.
func Blocks(columns int, l spmv.Layout) int { return (columns + l.Columns - 1) / l.Columns }

// Work is what passes are expected to take, beside reading the edges.
type Work struct {
	Passes int
	// Disk is the largest size of all scratch files together, Read and Written
	// what is moved between them and memory.
	Disk, Read, Written int64
}

// MostBytes is where counting bytes ends: nobody waits for them.
const MostBytes = 1 << 60

// Move adds bytes read and written, up to MostBytes each.
func (w *Work) Move(read, written int64) {
	w.Read, w.Written = min(w.Read+min(read, MostBytes), MostBytes), min(w.Written+min(written, MostBytes), MostBytes)
}

// Pass adds hops of a block of n rows.
func (w *Work) Pass(l spmv.Layout, n int64, hops int) {
	read, written := l.HopBytes(n)
	w.Passes += hops
	for range hops {
		w.Move(read, written)
	}
}

// External adds reading and writing all rows of a block, if they are on disk.
func (w *Work) External(l spmv.Layout, n int64, reads, writes int64) {
	if l.Place == spmv.External {
		whole := l.Disk(n) / int64(l.Place)
		w.Move(reads*whole, writes*whole)
	}
}

// ShrunkBytes is what streams written anew for fewer rows are expected to take of
// scratch space, for a stream of so many bytes: two are there for a while, the
// second made from the first, of which a stream is seldom more than 0.6.
func ShrunkBytes(edges int64) int64 { return edges }
