// Package export writes any artifact of a run as one file, its rows in
// ascending order of input id, within the memory budget.
//
// # Model
//
// An artifact is a table whose first column is the input id. Inside a run its
// rows are in order of node; [Run] brings them into order of id.
//
// # Format
//
// csv has a header line, and a column NAME_0, NAME_1, … for each value of a list. Of hops, each is
// a list, named hop_K. parquet and arrow (IPC file) hold lists as fixed-size lists. npy holds
// features, smoothed and soft-labels as a float32 matrix, whose row i belongs to the i-th smallest
// id, hops as a float32 array of shape (rows, hops, values), edges as an int64 matrix of shape
// (edges, 2), and the other artifacts as a structured array with a field a column. Values of
// float16 artifacts become float32. Edges are input ids u < v, each undirected edge once, ordered
// by u, then v.
//
// # Algorithm
//
// Ids are sorted on all threads, and so are the edges of each node, and pages of Parquet, text and
// checksums are made on all. One thread visits edges and rows, in the order of the files.
//
// Every file of the artifact is compared with its checksum before its rows are written:
// feature tiles in each read, other files in a read of their own. The ids are read and
// sorted, which gives every row its place. Places are filled range by range: as many rows
// as fit the budget, one sequential read of the artifact for each range. Edges likewise,
// by ranges of u: from shards, or from hop streams where a run has no shards, with the same bytes.
//
// # Memory
//
// 16·rows bytes while sorting ids, then 4·rows and what is free of the budget; for features
// 4·nodes more, and up to 8 MiB of what is free for rows of tiles; for edges 16·nodes and
// what is free, and where ids are numbered, before that 8·nodes and all ids; where a run has no
// shards, 16 MiB more.
//
// # Determinism
//
// The bytes depend on the artifact and the format alone.
package export
