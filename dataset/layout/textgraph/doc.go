// Package textgraph reads edges from the text forms in which programs for matrices and
// for graphs exchange them: MatrixMarket, METIS, DIMACS and adjacency lists.
//
// # Model
//
// A reader looks at the header of a [source.Source], and gives a [List]: the number of
// nodes that the header states, and a stream of edges. Where a form numbers nodes from 1,
// node i is input id i-1. The counts in the header are compared with what the file holds.
//
// # Memory
//
// One line, at most 16 MiB: the neighbours of a node in METIS files and adjacency lists.
package textgraph
