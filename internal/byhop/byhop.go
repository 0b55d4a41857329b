// Package byhop adds up what the passes of each hop took.
package byhop

import "slices"

// Most is the number of hops with an entry of their own; the last of them stands for all that
// follow.
const Most = 250

// Hop holds the cost of the passes of a hop. Edges are directed; edges that were read to write a
// smaller copy of them count too.
type Hop struct {
	Hop     int     `json:"hop"`
	Passes  int     `json:"passes"`
	Edges   int64   `json:"edges_streamed"`
	Seconds float64 `json:"seconds"`
	// Words are the bytes of packed edges that passes have read, Rows those of the rows of their sources, from disk or
	// from memory.
	Words int64 `json:"edge_bytes,omitempty"`
	Rows  int64 `json:"row_bytes,omitempty"`
	// Read and Written are the bytes of the run directory and of scratch files that were read and written meanwhile.
	Read    int64 `json:"bytes_read,omitempty"`
	Written int64 `json:"bytes_written,omitempty"`
}

// List has an entry for each hop, in ascending order of hop.
type List []Hop

// Add adds passes to those of the same hops.
func (l *List) Add(hops ...Hop) {
	for _, h := range hops {
		h.Hop = min(h.Hop, Most)
		i, there := slices.BinarySearchFunc(*l, h.Hop, func(x Hop, hop int) int { return x.Hop - hop })
		if !there {
			*l = slices.Insert(*l, i, Hop{Hop: h.Hop})
		}
		x := &(*l)[i]
		x.Passes += h.Passes
		x.Edges += h.Edges
		x.Seconds += h.Seconds
		x.Words += h.Words
		x.Rows += h.Rows
		x.Read += h.Read
		x.Written += h.Written
	}
}
