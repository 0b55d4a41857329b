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
// feature tiles in each read, files of rows in the first one, other files in a read of their own. The ids are read and
// sorted, which gives every row its place. Places are filled range by range: as many rows
// as fit the budget, one sequential read of the artifact for each range. Edges likewise,
// by ranges of u: from shards, or from hop streams where a run has no shards, with the same bytes. Before, they are
// read once to count those of each u.
//
// # Parts
//
// A part ([Options].Part) is a range of places: of r rows, part i of N has those from r(i-1)/N to
// r·i/N. Of m edges it has all of each u whose first edge, counted in the order of the export, is
// in such a range of m: so the edges of a u are in one part, and where one u has more than m/N a
// part may be empty. Nobody needs to know of other parts.
//
// The rows of a range of ids are scattered over the files, whose rows are in order of node: with
// ids in no order, one in N of any N rows that follow each other. A part reads what the whole
// reads, but for the ranges that are not its own: all ids, and all rows once for each time that
// rows of its range fit the budget. An artifact of k times the memory for its rows is read k times
// by the whole, and max(1, k/N) times by each of N parts, so that N parts read max(k, N) times in
// all. Edges are read twice more, to verify and to count them, by each part. docs/decisions/0003
// has what was measured.
//
// # Memory
//
// 16·rows bytes while sorting ids, then 4·rows and what is free of the budget; for features
// 4·nodes more, and up to 8 MiB of what is free for rows of tiles; for edges 16·nodes and
// what is free, and where ids are numbered, before that 8·nodes and all ids; where a run has no
// shards, 16 MiB more. A part takes what the whole takes, but not more than its rows for rows.
//
// # Determinism
//
// The bytes depend on the artifact and the format alone.
package export
