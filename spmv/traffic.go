package spmv

import (
	"sync/atomic"

	"ndls/internal/packed"
)

var addedEdges, readRows, readWords atomic.Int64

// Traffic counts what passes have read, wherever it came from.
type Traffic struct {
	// Edges are directed edges, Words the bytes of their packed words, Rows those of the rows of their sources.
	Edges, Words, Rows int64
}

// Since returns what has been read since an earlier moment.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.Edges - before.Edges, t.Words - before.Words, t.Rows - before.Rows}
}

// TrafficSoFar returns what the passes of this process have read so far.
func TrafficSoFar() Traffic { return Traffic{addedEdges.Load(), readWords.Load(), readRows.Load()} }

// count adds a frame to what [TrafficSoFar] tells. Threads that share a strip add the same edges: those of the first
// columns count.
func (a Addition) count(f packed.Frame) {
	edges, width := int64(f.Edges), int64(4)
	if a.Rows.H != nil {
		width = 2
	}
	if a.Col == 0 {
		addedEdges.Add(edges)
	}
	readWords.Add(int64(len(f.Words)))
	readRows.Add(edges * int64(a.Cols) * width)
}
