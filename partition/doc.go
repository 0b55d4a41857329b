// Package partition turns a dataset into what passes read: the edges of every
// interval in their order, the node table and the feature tiles. It needs no
// more memory than it is given, and writes the same bytes whatever that is.
//
// # Model
//
// The nodes are the ids 0..n-1 where the dataset states n, else every id that
// occurs, also one that has nothing but a self-loop, a label, a split or a
// feature row. Edges are undirected: self-loops are dropped and repetitions, in
// either direction, count once; the summary has the number of both.
//
// Node ids are given by descending degree, equal degrees by ascending input id.
// Components are numbered in the order of their smallest node id.
//
// # Algorithm
//
// Every edge is a number of 64 bits, sorted by radix in buffers that share the
// budget; what does not fit is spilled as sorted runs and merged by a tree of
// losers. It happens twice: as (smaller, larger) input id, to find repetitions
// and degrees, and, for both directions, as (block of the destination, source,
// destination) by node id, the order of a shard. Input ids are ranked in a bitmap
// with counts. Components grow by union-find while the second sort reads.
//
// Feature rows come in any order. They are placed in memory if all fit, else
// scattered to cells (a range of rows of a few tiles) that fit one by one.
//
// A random split ranks the nodes of each class by a hash of seed and input id.
//
// # Format
//
// Committed in this order: shards ([EdgesPath]) and their hop streams
// ([HopPath]), the node table ([NodesPath]), tiles ([shards.TilePath] in
// graph/features), the summary ([shards.SummaryPath]). A run that finds the
// node table goes on with what is missing of the rest; one that finds less starts
// again.
//
// # Memory
//
// For n nodes with input ids below u, m edges, largest degree d and f features,
// in bytes, beside sort and merge buffers or feature cells, which take what is
// free:
//
//	input ids       u/8 + u/128 + 512 KiB, throughout, if n is not stated; less
//	                where ids leave gaps of 2^15 and more
//	relabelling     8n + 4d
//	shards          8n + 4d
//	node table      17n + 4d; a random split adds 16 (T+V) for each class
//	feature tiles   4n + n/8, in memory if another 64 n ⌈f/16⌉ fit
//	summary         8n
//
// Heap that does not grow with the input is below 20 MB, without what shards
// holds. Scratch space is at most 8 for an input edge and 8m, then 24m, then
// 4n ⌈f/64⌉ + 64 n ⌈f/16⌉ where features do not fit; merges of merges double it.
//
// # Determinism
//
// Committed bytes depend on the graph, the labels, the splits, the features and
// on IntervalBlocks, Normalize, Split and Seed. They do not depend on budget,
// threads, the order of the input or the number of resumptions; only the
// summary tells how often edges were repeated.
//
// # Not supported
//
// Directed and weighted graphs, parallel edges, ids past [dataset.MaxID].
package partition
