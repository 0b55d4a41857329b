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
// Where the dataset says that edges have directions ([dataset.Info]), repetitions of one
// direction count once, and there are shards and hop streams of two kinds: of the edges, and of
// the reversed ones. The node table then has the out-degree of each node, and the degree is
// in-degree and out-degree together.
//
// Where a dataset has ids of any type ([dataset.Keyed]), its input ids below are numbers: the
// places of its ids in their order. The ids are sorted ([keysort]) and committed
// ([shards.IDsPath]) before anything else is done, and the node table has both.
//
// The graph may be a part of that of the dataset: the nodes of some splits, and the edges between
// them ([Options].Only). Nothing that the dataset says of another node counts. Input ids stay.
//
// A share of the edges may be dropped, and the features of a share of the nodes may become
// zeros, by hashes of the seed and input ids: of both ends of an edge, whatever its direction
// and however often it is there, and of a node. Nodes stay if all their edges are dropped.
// Training nodes with a label keep their features.
//
// Node ids are given by descending degree, equal degrees by ascending input id.
// Components are numbered in the order of their smallest node id.
//
// # Algorithm
//
// Every edge is a number of 64 bits (internal/extsort sorts those). It is sorted twice:
// as (smaller, larger) input id, or (source, destination) where edges have directions, to find
// repetitions and degrees, and, for both directions, as (block of the destination, source,
// destination) by node id, the order of a shard. The keys of reversed edges follow all others, as
// if they led to further nodes. Input ids are ranked in a bitmap with counts. Components grow by
// union-find while degrees are counted. This is done in steps ([Next]):
//
//	number   one piece                  input ids in order, where they have to be numbered
//	split    parts of the edge list     pairs of input ids, sorted, each once
//	merge    ranges of pairs            the same of all parts
//	count    files of merge             degrees and components, as far as these pairs tell
//	gather   ranges of input ids        the same of all pairs
//	order    one piece                  where the nodes of each degree begin
//	rank     ranges of input ids        the nodes of the ids, in order
//	components  one piece               numbers of components
//	nodes    row groups                 parts of the node table
//	relabel  files of merge             both directions by node id, sorted
//	rows     files of edges             shard, unless there are to be none, and hop stream; with
//	                                    directions, then those of the reversed edges; one piece
//	                                    more joins the parts of the node table
//	deal     parts of the features      their rows by interval of the nodes
//	tiles    panels of intervals        feature tiles, of what deal has left
//	columns  panels                     feature tiles, in place of deal and tiles where feature rows
//	                                    can only be read from the first on
//	whole    one piece                  the summary
//
// One worker does all steps in one task ([Run]), and counts degrees, finds components and writes the
// node table in order. Sorted keys pass from step to step in
// its memory and its scratch folder; the keys of one part need no merge. It writes the
// unique pairs by rank to scratch while it counts degrees, because it needs them again
// to relabel.
//
// Several workers share the steps: each step is cut into pieces that any worker can do
// ([Execute]). A piece leaves a run file in the run directory ([extsort.RunFile]), in
// which a later step finds any range of keys and reads that alone. Split, merge, count,
// gather, relabel and deal can be cut at 1023 places each: parts of the input of equal length
// ([dataset.EdgeRange]), then of equal numbers of keys, taken from the files that the
// step before has left. The cut is in no file that stays. A list that can only be read
// from its beginning is one part.
//
// A piece of count leaves a tally: of each node in its pairs the degree there, and the first node
// that it is connected to by them. Tallies add up, in any order: degrees are sums, and components are
// what any tally connects. A piece of gather adds up what all tallies say of a range of input ids. It
// leaves degrees and roots, how many nodes of the range have each degree, and the links: of the ids that more than one
// range may know, the first node that each is connected to. So order reads as many numbers as the
// ranges have degrees and links: it adds up where the nodes of each degree of each range begin, and joins the roots. With
// that, a piece of rank gives the ids of its range their nodes, and leaves all that the node table says of
// them in the order of the nodes; components numbers the components by their smallest node; and a piece of nodes
// reads what all files of rank have of its nodes, and writes them as row groups. Those are copied to one table
// in the end. Labels and splits are read by order, and sorted by input id.
//
// With weights, a piece of count also leaves its edges turned: by their larger end, then by their smaller one. The edges of a node
// in ascending order of their other ends are those of the turned ones that are its own, of one piece of count after the other, and then
// those of the pairs. So a piece of gather adds up the strengths of its range in the order in which one worker does, and leaves them with
// the degrees, for rank.
//
// What one task does alone are degrees, links, components and labels, and the copy of the node table, beside the
// first edges that are written.
//
// The nodes of highest degree come first, so that the first interval has most edges (39 % of
// papers100M's, of 7 intervals). The files of edges are therefore cut by edges: where an interval
// ends, and where a file would have more than 2^26 edges, or more than a 1,024th part of all,
// whichever is more. It then ends with a block, and where a block alone has more, with a strip of
// 2^15 rows. The cut follows from degrees alone. The keys of a block that is cut are in the order of
// its files. A task of the step rows has files of about a quarter of a worker's share.
//
// [Describe] does the steps up to order on a catalogue of its own, writes no pairs to scratch
// while it counts degrees, and reads the features without keeping them.
//
// A shard and its hop stream are written side by side from the same keys and committed
// together. [EnsureHops] makes a hop stream from its shard where it is missing: the same
// bytes. The trailer of a hop stream has the shard's checksum. With [Options].NoShards there are
// hop streams alone, whose trailers have no checksum of a shard.
//
// Feature rows come in any order. As many whole tiles as fit are placed in
// memory, and the features are read again for the next ones, up to four times in
// all; where that is not enough they are read once and scattered to cells (a range
// of rows of a few tiles) that fit one by one. Tiles are float16 until a value is
// not exactly one; then all are made again as float32. Where workers share the panels,
// one that is not exactly float16 is written as float32 at once; panels that were
// float16 by then are made again.
//
// Edges with weights are sorted as records ([extsort.Record]) by the same keys. The step split
// keeps all weights of a pair. Where the unique pairs are made, the rows of a pair must have one
// weight, or are added up in ascending order of weight ([dataset.Info]); one worker does that
// while it counts degrees. Strengths are float64 sums in ascending order of pairs by rank, and a
// column of the node table: where one worker does all steps, one thread at a time counts degrees in a graph with
// weights, while the others unite the rows of the pairs that come next.
//
// # Threads
//
// All threads read the edge list, each another part of it, sort, merge, unite the rows of pairs
// with weights, count degrees, join components, order nodes by degree, relabel, encode the pages of
// shards, and read and encode features.
// What one thread does at a time, and why:
//
//	packed text and archives  they can be read from the first byte on alone; features also
//	                          where they are a table
//	degrees with weights      of one worker: strengths are sums in the order of the pairs. Several
//	                          workers, and their threads, add them up by ranges of ids
//	numbering                 components by node: a pass over an array of n numbers, by one
//	                          worker; several share it but for components. Where degrees are
//	                          so large that counts of each for all threads are more than n
//	                          numbers, fewer threads order the nodes
//	node table                row groups follow each other; the columns of one are encoded
//	                          side by side
//	hop stream, checksums     the order of frames, and a SHA-256, follow from all bytes
//	                          before; done beside the encoding of pages
//
// Of Parquet a row group is a part, of text, arrays and generated graphs any rows are.
// Where a part of the input is bad it is read again on one thread, so that the error
// names the first bad row, whatever the threads.
//
// A random split ranks the nodes of each class by a hash of seed and input id. The
// summary warns of classes that it leaves without validation or test nodes; a split that
// leaves none in any class is refused.
//
// # Format
//
// Committed in this order, but that several workers write the node table and shards at the same
// time: the node table ([NodesPath]), shards ([EdgesPath]) with
// their hop streams ([HopPath]), with directions those of the reversed edges ([ReversedPath],
// [ReversedHopPath]), tiles ([shards.TilePath] in graph/features), the summary
// ([shards.SummaryPath]). A file of the kind [catalog.KindRun] is committed with the node
// table: it has what later steps must know, and is removed in the end. Whoever goes on
// with a partition, one worker or several, makes what is missing; sorted keys that are
// gone with a worker's scratch folder are made again, the node table is not.
//
// # Memory
//
// For n nodes with input ids below u, e rows of edges, m of them unique, largest degree
// d and f features, of W workers, each worker takes in T pieces of each of split, merge
// and relabel (T is 1 for one worker, which then needs no marks and no merge buffers), in
// bytes ([Memory]):
//
//	input ids   u/8 + u/128 + 512 KiB, if n is not stated; less where ids leave gaps
//	            of 2^15 and more
//	            a part of a graph adds the same for all its ids, and n, to split, order and
//	            columns; to draw its splits, 8 for each labelled node and 16 for each drawn one
//	split       sorting e/T keys, reading; one worker also the input ids
//	merge       T buffers, 8e'/2048 of marks
//	count       8n, 8(m/T + 2n)/2048 of marks, input ids; of a piece with fewer than n/8 pairs
//	            8 for each of their nodes, and input ids
//	gather      8n, or 8 for each node of a range of ids and each that one of them is connected to
//	            and their input ids, if n is not stated or the range has less than an eighth; 8(m + n)/2048 of marks
//	order       8 for each link and its input ids, of which there are at most n; then 9 and 16 for
//	            each labelled node, and 4d; a random split adds 16 for each node that is drawn. Of one
//	            worker 17n + 4d, 8m/2048 of marks, input ids
//	rank        37 for each node of a lot, at least 256 of them, 12 for each degree of the range, and
//	            input ids, if n is not stated
//	components  16 for each that has edges, of 2^22 at a time
//	nodes       25 for each row of a row group at least, of as many as a task has; 8 more where
//	            ids are numbered; and n/512 of index on the heap
//	            where rows are bags of a few words, --normalize auto keeps 2^16 edges and the
//	            lengths of their ends on the heap for a moment: some 8 MiB, beside the budget
//	relabel     4n, 8m/2048 of marks, input ids, sorting 2m/T keys
//	rows        T buffers, 16m/2048 of marks
//	columns     4n + n/8, n/8 more to blank features, input ids, reading, and of float16
//	            32n for each tile made at a time, of float32 64n
//	number      three quarters of what is free, at least 2 MiB; of that what ids need
//	            ([keysort.Touched])
//
// Directions take 4n more in count, gather and order, and 4 for each node in rank and nodes. With weights, sorting k edges takes 32k, T buffers are twice
// as large, and marks take three halves of that; count sorts m/T edges before it adds up, gather has marks of 2m edges, and strengths take 8 more for each
// node in gather, rank and nodes, and of one worker in order. Where one worker has no
// memory for sorted pairs beside what order takes, it writes them to a scratch file first.
//
// Ids that are numbered take 19n and up to 24 MiB more in split and columns, and while order reads
// labels and splits ([inputid.TableBytes]); then 2n, and what is free for ids as they are written
// in order of node. Here e' ≤ e pairs are left by split, and there are at least 64 KiB for each of
// T files merged; with t threads up to t + 2 times 16 MiB, and half of what is free
// ([extsort.MergeBytes]). Sorting k keys takes 16k if it is in memory. Reading takes 8 MiB for each
// thread but the first one, and there are fewer of them where that is more than an eighth of what
// is free. A graph of whose nodes one worker cannot hold the numbers, 4n in relabel and columns and 8n in
// count, has no partition.
//
// Heap that does not grow with the input is below 20 MB with two threads, without what
// shards holds. For each other thread 512 KiB are set aside, of up to an eighth of what is
// free beyond 16 MiB.
//
// # Disk
//
// Scratch files shrink while they are read, where the file system can make holes. With
// one worker, run directory and scratch hold at most the largest of, in bytes ([Disk]),
//
//	8e and 16m + 9n  sorted runs, if they do not fit into memory
//	8m               unique edges, while they are relabelled
//	2m (s + 4) + 9n  the graph: shards with s from 4.3 to 7, or 0 without shards, hop streams,
//	                 node table
//
// and with several workers the run directory holds
//
//	8e' + 8m                 merge
//	8m + 16(m + 2n)          count and gather, at most
//	8m + 41n                 rank, and 8m + 34n nodes
//	24m + 9n                 relabel
//	16m + 2m (s + 4) + 18n   rows
//
// With weights 8m, 16m and 24m above are twice as much where edges are sorted, s + 4 is s + 12, and 9n is 17n: an edge is a
// record of 16 bytes while edges are sorted, and its weight takes 4 bytes in a shard and in a hop
// stream. Count and gather then have 16m of turned edges more, and 16n of strengths, rank 24n.
//
// and in the end the graph and 32n ⌈f/16⌉ (float16) or 64n ⌈f/16⌉ for tiles; where
// features are spilled, 4n ⌈f/64⌉ more. Files that no step needs any more are removed
// after each step. What the sort of a piece spills gives way to the piece's run file. Where ids
// are numbered, the table of ids takes about 0.6 of their bytes and of 4n, and the node table as
// much and 3n more.
//
// # Traffic
//
// [Traffic], beside what is spilled, in bytes: what is there in the end is written; the table of ids is read four times, and five times with
// features. One worker writes and reads 8m of scratch. Several
// workers also
//
//	read       8 (e' + 4m) + 9n (T + W); if n is not stated 8m + 9n (T + W) more
//	write      8 (e' + 3m)
//	read       16(t + n), twice if n is not stated, where t, at most m + n and at most Tn, is how many nodes tallies have
//	write      16t + 16n
//	read       25n + 9n, and write as much, for rank and nodes
//
// and with weights 16 in place of 8 in the first two lines, and 17n. They read 48m of pairs and turned edges more, and write 16m; strengths take
// 16n between gather and rank, and 8n more in rank's records.
//
// # Determinism
//
// Committed bytes depend on the graph, the labels, the splits, the features and
// on IntervalBlocks, NoShards, Normalize, Split, Only, DropEdges, BlankFeatures and Seed. They do not
// depend on budget, threads, the order of the input, pieces or the number of resumptions; only the
// summary tells how often edges were repeated. The type of the tiles depends on
// the features alone.
//
// # Not supported
//
// Edges with directions and weights, parallel edges, ids past [dataset.MaxID], more than 2^31
// nodes of a graph with directions.
package partition
