package hops

import "ndls/spmv"

// Blocks returns the number of blocks of l for this number of columns.
func Blocks(columns int, l spmv.Layout) int { return (columns + l.Columns - 1) / l.Columns }

// Work holds the expected work of passes, beside reading the edges.
type Work struct {
	Passes int
	// Disk is the largest size of all scratch files together. Read and Written are the bytes moved between them and memory.
	Disk, Read, Written int64
}

// MostBytes bounds estimated numbers of bytes: no run moves as many.
const MostBytes = 1 << 60

// Move adds bytes read and written, up to MostBytes each.
func (w *Work) Move(read, written int64) {
	w.Read, w.Written = min(w.Read+min(read, MostBytes), MostBytes), min(w.Written+min(written, MostBytes), MostBytes)
}

// Pass adds hops of a block of n rows. recurs says that they are steps of a recurrence.
func (w *Work) Pass(l spmv.Layout, n int64, hops int, recurs bool) {
	read, written := l.HopBytes(n)
	if recurs {
		read, written = l.RecurBytes(n)
	}
	w.Passes += hops
	for range hops {
		w.Move(read, written)
	}
}

// External adds reading and writing all rows of a block, if they are on disk.
func (w *Work) External(l spmv.Layout, n int64, reads, writes int64) {
	if l.Residency == spmv.External {
		whole := l.Disk(n) / int64(l.Residency)
		w.Move(reads*whole, writes*whole)
	}
}

// CopiedBytes returns the expected scratch space of copies of a stream of this size (see [Streams]) if [Graph.Room] does not bound them.
// Each has at most half the edges of the one before, and an edge takes at most 4 bytes where it took at least 3.
func CopiedBytes(edges int64) int64 { return edges + edges/3 }
