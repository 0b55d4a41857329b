// Package partition turns a dataset into what passes read: the edges of every interval in their order, the node table and the feature
// tiles. It works within the memory that it is given, and writes the same bytes whatever that is.
//
// # Model
//
// The nodes are the ids 0..n-1 if the dataset states n, else every id that occurs, even with nothing but a self-loop, a label, a split or a
// feature row. Edges are undirected: self-loops are dropped, and repetitions in either direction count once; the summary counts both. With
// directions ([dataset.Info]), repetitions of one direction count once, there are shards and hop streams of the edges and of the reversed
// edges, and the node table has the out-degree beside the degree, which adds both directions.
//
// Ids of any type ([dataset.Keyed]) are sorted ([keysort]) and committed ([shards.IDsPath]) first. Below, an id's place in that order is
// its input id. [Options].Only restricts the graph to the nodes of some splits and the edges between them. DropEdges and BlankFeatures act
// on shares of the edges and nodes, by hashes of the seed and input ids; nodes stay, and training nodes with a label keep their features.
//
// Node ids follow descending degree, then ascending input id. Components are numbered in the order of their smallest node id.
//
// # Steps
//
// Every edge is a key of 64 bits ([extsort]). It is sorted twice: as (smaller, larger) input id, or (source, destination) with directions,
// to find repetitions and degrees; then, in both directions, as (block of the destination, source, destination) by node id, the order of a
// shard. Keys of reversed edges follow all others. The steps ([Next]) are
//
//	number   one piece                  input ids in order, if they have to be numbered
//	fit      one piece                  means, ranks and categories of columns, if features need them
//	split    parts of the edge list     pairs of input ids, sorted, each once
//	merge    ranges of pairs            the unique pairs of all parts
//	count    files of merge             tallies: degrees, and the first node connected to each node
//	gather   ranges of input ids        sums of all tallies; nodes per degree; links between ranges
//	order    one piece                  where the nodes of each degree begin; roots, labels, splits
//	rank     ranges of input ids        the nodes of the ids, in order
//	components  one piece               numbers of components
//	nodes    row groups                 parts of the node table
//	relabel  files of merge             both directions by node id, sorted
//	rows     files of edges             shard, unless there are none, and hop stream; then those of
//	                                    the reversed edges; one more piece joins the node table
//	deal     parts of the features      their rows by interval of the nodes
//	tiles    panels of intervals        feature tiles, from what deal left
//	columns  panels                     the same, if feature rows can only be read from the first
//	whole    one piece                  the summary
//
// One worker executes all steps in one task ([Run]): the step order then counts degrees and writes the node table, and sorted keys stay in
// memory and in the scratch folder. Where there is memory, columns is done beside relabel and rows. Several workers share the pieces of a
// step ([Execute]). A piece leaves a run file ([extsort.RunFile]) in the run directory, in which a later step finds and reads any range of
// keys. Split, merge, count, gather, relabel and deal have up to 1,024 pieces: parts of the input ([dataset.Share]), then ranges with
// equal numbers of keys. A list that can only be read from its beginning is one part.
//
// Files of edges end where an interval ends, and where they would have more than 2^26 edges or a 1,024th of all, whichever is more: at a
// block, or at a strip of 2^15 rows if a block alone has more. [EnsureHops] makes a missing hop stream from its shard, with the same bytes.
//
// Edges with weights are sorted as records ([extsort.Record]). The rows of a pair must have one weight, or are added up in ascending order
// of weight. Strengths are float64 sums in ascending order of pairs by rank; count also leaves its edges by their larger end, so that
// gather adds in this order. As many feature tiles as fit are filled in memory, and the features are read up to four times; else the rows
// are read once and scattered to scratch. Tiles are float16 until a value is not exactly one; then all are float32.
//
// # Threads
//
// All threads read parts of the input, sort, merge, count, relabel and encode. A bad part is read again on one thread, so that the error
// names the first bad row. Packed text, archives and tables of features are read by one thread, from the first byte on. One worker adds
// strengths on one thread. Hop streams and SHA-256 run in order, beside the encoding of pages. Serial work of several workers: merging
// degree counts, joining links, numbering components, reading labels. Copying the node table overlaps with the first edge files.
//
// # Format
//
// Committed in this order, except that several workers write the node table and shards at the same time, and one worker tiles and shards:
// the node table ([NodesPath]), shards ([EdgesPath]) with their hop streams ([HopPath]), those of the reversed edges ([ReversedPath],
// [ReversedHopPath]), tiles ([shards.TilePath] in graph/features, or in graph/unfilled if the caller fills them: [FillNeighbours]), the
// summary ([shards.SummaryPath]). The trailer of a hop stream has the checksum of its shard; with [Options].NoShards it has none. Files of
// the kind [catalog.KindRun] are removed when no later step reads them.
//
// # Memory
//
// n nodes with input ids below u, e rows of edges, m of them unique, e' pairs left by split, largest degree d, f features, t threads, W
// workers. Each worker does T pieces of each of split, merge and relabel; T is 1 for one worker, which needs no marks and no merge buffers.
// In bytes ([Memory]):
//
//	input ids   u/8 + u/128 + 512 KiB, if n is not stated; less if ids leave gaps of 2^15 and more; a
//	            part of a graph adds as much for all its ids, and n, to split, order and columns
//	split       sorting e/T keys, reading; one worker also the input ids
//	merge       T buffers, 8e'/2048 of marks
//	count       8n, 8(m/T + 2n)/2048 of marks, input ids; 8 per own node of a piece with fewer than n/8 pairs
//	gather      8n, or 8 per node of the range and each connected one and their input ids, if n is not
//	            stated or the range has less than an eighth; 8(m + n)/2048 of marks
//	order       8 per link, at most n, and its input ids; then 9 and 16 per labelled node, and 4d; a random
//	            split adds 16 per drawn node. One worker: 17n + 4d, 8m/2048 of marks, input ids
//	rank        37 per node of a lot, of 256 or more; 12 per degree of the range; input ids if n is not stated
//	components  16 per component with edges, for 2^22 at a time
//	nodes       25 per row of a row group or more; 8 more if ids are numbered; n/512 of index on the heap
//	relabel     4n, 8m/2048 of marks, input ids, sorting 2m/T keys
//	rows        T buffers, 16m/2048 of marks
//	columns     4n + n/8, n/8 more to blank features, input ids, reading; 32n (float16) or 64n per tile at a time
//	deal        as columns, with chunks in place of tiles: at most 4 MiB per panel and interval, or half of
//	            what is free
//	tiles       32 or 64 for each row of an interval and each of up to 4 panels, or what is free, with t + 1
//	            chunks of these panels, at most a quarter of what is free
//	number      three quarters of what is free, at least 2 MiB ([keysort.Touched])
//
// Directions add 4n to count, gather and order, and 4 per node to rank and nodes. Weights: sorting k edges takes 18k, buffers double, marks
// take 3/2; count sorts m/T edges first, gather has marks of 2m edges; 8 more per node in gather, rank, nodes and one worker's order.
// Numbered ids: 19n and up to 24 MiB more in split, columns and order ([inputid.TableBytes]). Sorting k keys in memory takes 9k. One
// worker keeps sorted pairs in memory, 8e, in which relabel sorts both directions, 18m in all, if order and relabel fit there. If another
// 73n⌈f/16⌉ is free, it takes that meanwhile for the feature tiles, and uses as much as they are long. Merge buffers
// take at least 64 KiB per file, up to t + 2 times 16 MiB, and at most half of what is free ([extsort.MergeBytes]). Reading takes 8
// MiB for each thread but the first, at most an eighth of what is free; each thread also takes what [dataset.Info] says of edges
// (EdgeMemory), or of rows of features (RowMemory, which order takes too). The heap is below 20 MB with two threads, and some 8 MiB more
// for --normalize auto; each further thread reserves 512 KiB.
//
// # Disk and traffic
//
// Run directory and scratch files hold at most, in bytes ([Disk]; [Traffic] counts reads and writes):
//
//	one worker       the largest of 8e and 16m + 9n (sorted runs, if they do not fit in memory), 8m (unique
//	                 edges, unless they stay in memory), and 2m(s + 4) + 9n (the graph; s is 4.3 to 7
//	                 with shards, else 0)
//	several workers  merge 8e' + 8m; count and gather 8m + 16(m + 2n); rank 8m + 41n; nodes 8m + 34n;
//	                 relabel 24m + 9n; rows 16m + 2m(s + 4) + 18n
//	tiles            32n⌈f/16⌉ (float16) or 64n⌈f/16⌉; for a time as much again and 4n, if features
//	                 are spilled or dealt
//	weights          8m, 16m, 24m double; s + 12 for s + 4; 17n for 9n; turned edges 16m, strengths 16n more
//	table of ids     about 0.6 of the bytes of the ids and of 4n; the node table as much and 3n more
//
// # Determinism
//
// Committed bytes depend on the graph, the labels, the splits, the features and on IntervalBlocks, NoShards, Normalize, Fill, Columns,
// Split, Splits, LabelsPerClass, Only, DropEdges, BlankFeatures and Seed. They do not depend on budget, threads, the order of the input,
// pieces or resumptions; only the summary tells how often edges were repeated. The type of the tiles depends on the features alone.
//
// # Not supported
//
// Edges with directions and weights, parallel edges, ids past [dataset.MaxID], more than 2^31 nodes with directions, graphs whose node
// numbers (4n, and 8n in count) do not fit in one worker's memory.
package partition
