// Package dgl reads the chunked graph format of DGL (dispatch_data.py, GraphStorm's
// GSPartition): metadata.json and files of edges and of data of nodes.
//
// # Memory
//
// metadata.json is held, at most 8 MiB. Files are streamed one after the other.
//
// # Not supported
//
// Several kinds of nodes at once, data of edges, and data of nodes in other forms
// than CSV, NumPy and Parquet.
package dgl
