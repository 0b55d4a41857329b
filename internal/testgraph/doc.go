// Package testgraph holds what tests compare with: small graphs of known shape,
// a dense float64 oracle of the paper's definitions, and the way to the
// published data sets.
//
// # Memory
//
// The oracle keeps n × n float64 matrices on the heap; it is for graphs of a
// few thousand nodes.
package testgraph
