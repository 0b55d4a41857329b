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
// budget, highest digit first until a bucket fits the cache; what does not fit is
// spilled as sorted runs and merged by a tree of losers. It happens twice: as
// (smaller, larger) input id, to find repetitions and degrees, and, for both
// directions, as (block of the destination, source, destination) by node id, the
// order of a shard. Input ids are ranked in a bitmap with counts. Components grow
// by union-find while the second sort reads.
//
// Feature rows come in any order. As many whole tiles as fit are placed in
// memory, and the features are read again for the next ones, up to four times in
// all; where that is not enough they are read once and scattered to cells (a range
// of rows of a few tiles) that fit one by one. Tiles are float16 until a value is
// not exactly one; then all are made again as float32.
//
// On two threads, reading or generating is ahead of sorting, merging ahead of
// writing, and the hop stream of an interval is packed while the next shard is
// written.
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
//	shards          8n + 4d, between sorting and writing 12n + 4d
//	node table      17n + 4d; a random split adds 16 (T+V) for each class
//	feature tiles   4n + n/8, and of float16 32n for each tile made at a time,
//	                of float32 64n
//	summary         8n
//
// Heap that does not grow with the input is below 20 MB, without what shards
// holds. [PeakMemory] works this out.
//
// # Disk
//
// Scratch files shrink while they are read, where the file system can make holes.
// For e input edges, m of them unique, run directory and scratch hold at most
// the largest of, in bytes,
//
//	8e and 16m       sorted runs, if they do not fit into memory
//	8m               unique edges, while they are relabelled
//	2m (s + 4) + 9n  the graph: shards with s from 4.3 to 7, see [PeakDisk]
//	                 for the curve, hop streams, node table
//
// and in the end the graph and 32n ⌈f/16⌉ (float16) or 64n ⌈f/16⌉ for tiles; where
// features are spilled, 4n ⌈f/64⌉ more.
//
// # Determinism
//
// Committed bytes depend on the graph, the labels, the splits, the features and
// on IntervalBlocks, Normalize, Split and Seed. They do not depend on budget,
// threads, the order of the input or the number of resumptions; only the
// summary tells how often edges were repeated. The type of the tiles depends on
// the features alone.
//
// # Not supported
//
// Directed and weighted graphs, parallel edges, ids past [dataset.MaxID].
package partition
