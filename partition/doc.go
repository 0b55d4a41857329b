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
// # Pieces
//
// For several workers the same is done in steps ([Next]), each of which is cut into
// pieces that any worker can do ([Execute]). A piece leaves a run file (runfile.go):
// sorted keys with a checksum for each 32 KiB, and their first key, so that a later
// step finds any range of keys and reads that alone.
//
//	split    parts of the edge list     pairs of input ids, sorted, each once
//	merge    ranges of pairs            the same of all parts
//	order    one piece                  degrees, components; the node table
//	relabel  files of merge             both directions by node id, sorted
//	rows     intervals                  shard and hop stream
//	columns  granules                   feature tiles
//	whole    one piece                  the summary
//
// Split, merge and relabel can be cut at 1023 places each: parts of the input of
// equal length ([dataset.EdgeRange]), then of equal numbers of keys, taken from the
// files that the step before has left. The cut is in no file that stays. A list that
// can only be read from its beginning is one part. The first interval holds the
// nodes of highest degree, with most edges (39 % of papers100M's, of 7 intervals): rows
// takes no less time than it does, unless intervals are made smaller.
//
// A granule whose values are not exactly float16 is written as float32 at once;
// granules that were float16 by then are made again.
//
// # Format
//
// Committed in this order: shards ([EdgesPath]) and their hop streams
// ([HopPath]), the node table ([NodesPath]), tiles ([shards.TilePath] in
// graph/features), the summary ([shards.SummaryPath]). A run that finds the
// node table goes on with what is missing of the rest; one that finds less starts
// again. In pieces the node table comes before the shards, with a note of the
// kind [catalog.KindRun] that says so: only pieces go on with what they have left.
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
// In T pieces of each of split, merge and relabel, with W workers, a worker takes
// ([PieceMemory]), with buffers of 4 MiB or less for each of T files merged, and x/2048
// for the index of x bytes of run files:
//
//	split           sorting e/T keys
//	merge, rows     T buffers, 8e'/2048 or 16m/2048
//	order           17n + 4d, 8m/2048, input ids
//	relabel         4n, 8m/2048, input ids, sorting 2m/T keys
//	columns         as above, of ⌈f/16⌉/W tiles
//
// Sorting k keys takes 16k to 24k if it is in memory. Only order needs more with more
// nodes: of a graph that has no room for it on one worker there is no partition.
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
// In pieces the run directory holds at most the largest of, with e' ≤ e edges left
// by split (each once in its part; [PieceDisk]),
//
//	8e' + 8m                 merge
//	24m + 9n                 relabel
//	16m + 2m (s + 4) + 9n    rows
//
// and what is said above in the end: files that no step needs any more are removed
// after each. Scratch folders hold what the sort of a piece spills, which gives way to
// the piece's run file.
//
// # Traffic
//
// [PieceTraffic], beside what is spilled, in bytes:
//
//	read       8 (e' + 4m) + 2ms + 9n (T + W + 2); if n is not stated 8m + 9n (T + W + 1) more
//	written    8 (e' + 3m), and what is there in the end
//
// Shards are read again for hop streams, the node table by each task that relabels.
//
// # Determinism
//
// Committed bytes depend on the graph, the labels, the splits, the features and
// on IntervalBlocks, Normalize, Split and Seed. They do not depend on budget,
// threads, the order of the input, pieces or the number of resumptions; only the
// summary tells how often edges were repeated. The type of the tiles depends on
// the features alone.
//
// # Not supported
//
// Directed and weighted graphs, parallel edges, ids past [dataset.MaxID].
package partition
