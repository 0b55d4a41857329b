package group

import "math"

// ReadShare is the share of the rows of others that a worker is expected to read, of a graph with so
// many nodes and edges, counted in both directions, whose rows so many workers share: those that edges
// into its own rows come from.
func ReadShare(nodes, edges int64, workers int) float64 {
	return 1 - math.Exp(-float64(edges)/(float64(workers)*float64(max(nodes, 1))))
}

// listsPay is the share of rows that are read below which they are sent alone: to find, choose and
// place them takes time too, and some sums wait until all have come ([Way.HopSeconds]).
const listsPay = 0.75

// ListsPay reports whether workers send each other the rows alone that are read.
func ListsPay(nodes, edges int64, workers int) bool {
	return workers > 1 && ReadShare(nodes, edges, workers) < listsPay
}

// ListsBytes is the memory for the lists of a worker that has so many of all rows.
func ListsBytes(rows, nodes int64, workers int) int64 {
	return (nodes+31)/32*4 + int64(workers)*((rows+31)/32*4) + 2*4096
}
