// Package planetoid reads citation graphs in the form in which Planetoid (Yang, Cohen and
// Salakhutdinov, ICML 2016) publishes Cora, Citeseer and Pubmed: files of pickled matrices, a
// dict of lists of neighbours, and a list of test nodes.
//
// # Memory
//
// The dict of neighbours is read into memory, the matrices are streamed; a bit is kept for each
// test node.
//
// # Not supported
//
// Graphs of more than 16,777,216 nodes.
package planetoid
