// Package ogb reads a downloaded graph of the Open Graph Benchmark (Hu et al., NeurIPS 2020):
// its arrays (raw/data.npz), or its tables of compressed text.
//
// # Memory
//
// Files are streamed. The names of classes are kept.
//
// # Not supported
//
// Datasets of several graphs, several kinds of nodes, features of edges.
package ogb
