// Package extsort sorts more numbers of 64 bits than fit into memory, and drops
// repeated ones. Its memory comes from a budget, and the order does not depend on
// that budget or on the number of threads.
//
// # Algorithm
//
// A [Sorter] fills a buffer with keys. A full buffer is sorted by radix, from the
// highest digit until a bucket fits the cache, then from the lowest, and written to
// a scratch file as a sorted run while the next buffer is filled. Runs are merged by
// a tree of losers; where the budget has no memory for a buffer of each run, some
// are merged to longer runs first. What fits into one buffer is never written.
//
// # Format
//
// A [KeyFile] is a scratch file: keys of 8 bytes, little-endian. The checksums of
// its blocks stay in the memory of the process that wrote it, because no other one
// reads it. Its name is removed when it is complete, so that the space is free once
// the process ends, and the file shrinks while it is read where the file system can
// make holes.
//
// A [RunFile] is a sorted run that other processes read, from the middle too: the
// keys, then for each block of 32 KiB its first key and its checksum, then a footer.
// runfile.go has the layout.
//
// Both find damage: a block whose checksum differs is an error, never a wrong key.
//
// # Memory
//
// For k keys, in bytes:
//
//	sorting in memory   16k on one thread, 24k on more ([Options.Bytes])
//	sorting with runs   what is free, at least 64 KiB to 96 KiB; 4 bytes of heap for 32 KiB
//	merging             64 KiB to 4 MiB a run ([MergeBytes]); the marks of run files, k/256
//
// # Not supported
//
// The key 2^64-1, which marks the end of a run; values beside the keys.
package extsort
