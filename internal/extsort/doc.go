// Package extsort sorts more numbers of 64 bits than fit into memory, and drops
// repeated ones. Its memory comes from a budget, and the order does not depend on
// that budget or on the number of threads.
//
// # Model
//
// An [Item] is a number, called a key, or a [Record]: a key with a value beside it. Records
// are in the order of keys, then of values. Equal records are kept as one, which counts them;
// records of one key with different values are all given. All code below is the same for both.
// What it says of keys holds for records.
//
// # Algorithm
//
// Threads fill a buffer of a [Sorter] with keys. All of them sort a full buffer in place by
// radix: by the highest digit until a bucket fits the cache, in blocks of keys of one bucket
// (deal.go), then by the lowest of the bits that tell random keys apart, and by insertion. If one
// buffer has no space for all keys, there are two: one is sorted and written to a scratch
// file, as a run, while the other is filled. What fits into one buffer is never written, and
// may stay in it to be sorted again by other keys ([Sorter.Again]).
//
// Runs are merged a chunk at a time: a range of keys that is so chosen, by the first keys of
// the blocks of all runs, that its blocks fit into memory. A goroutine reads the blocks, the
// threads merge a chunk each, and what they have merged is handed on in order, or in any
// order where that is enough. A block with keys of two chunks is read twice. A chunk is
// merged by a tree of pairs, without branches that depend on keys; both halves of what a pair
// gives are merged side by side. Where the budget has no memory for two blocks of each run,
// some runs are merged to longer ones first.
//
// # Format
//
// A [KeyFile] is a scratch file: keys of 8 bytes or records of 16 bytes, little-endian, in
// blocks. After each 255 blocks (170 of records) comes a page with their first keys and
// checksums. Only the process that wrote the file reads it. Its name is removed when it is
// complete, so that the space is free once the process ends, and the file shrinks while it is
// read where the file system can make holes.
//
// A [RunFile] is a sorted run that other processes read, from the middle too: the keys,
// then for each block of 4,096 keys its first key and its checksum, then a footer.
// runfile.go has the layout.
//
// Both find damage: a block whose checksum differs is an error, never a wrong key.
//
// # Memory
//
// For k keys, in bytes:
//
//	sorting in memory   9k ([Options.Bytes]): the keys, and an eighth or 512 KiB for each thread
//	sorting with runs   what is free, at least 49 KiB with one thread (Bytes of no keys)
//	merging             two blocks and a page of each run, or with t threads t + 2 times up to
//	                    16 MiB ([Options.MergeBytes]); the marks of run files, k/256
//	writing a run file  its marks, k/256
//
// A block has 4 KiB to 32 KiB, the longer the longer the runs are; those of run files have
// 32 KiB. Records take twice as much, and their marks k/170.
//
// # Not supported
//
// The key 2^64-1, which marks the end of a run; values that are negative or NaN.
package extsort
