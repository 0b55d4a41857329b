// Package keysort sorts more strings of bytes than fit into memory, and counts repeated
// ones. Its memory comes from a budget, and what it gives does not depend on that budget
// or on the number of goroutines.
//
// # Algorithm
//
// Each [Adder] belongs to one goroutine. It keeps each key once, with the number of times it
// came, in a hash table. The table grows with the keys, so that it stays in the cache as long
// as it can, and keys are looked up many at a time, so that memory is fetched for all at the
// same time. When its memory is full it sorts the keys and writes them to a scratch file, a
// run, and begins again. [Sorter.Each] merges the runs, and the keys that are in memory, by a
// heap of runs. Keys are compared from the first byte on which those of a run differ, eight
// bytes at a time.
//
// Package extsort sorts keys of one width: by radix, with threads that share one buffer, and cut
// into ranges by the first keys of blocks. None of that can be done with strings. They come
// repeatedly, and most of them are found in the hash table before they are sorted at all.
//
// # Format
//
// A run is a sequence of keys: length and count as variable-length integers, then the
// bytes. Each block of 64 KiB ends with a checksum of the bytes before it: a damaged block is
// an error, never a wrong key.
//
// # Memory
//
// Adders share what [New] is given. A key takes its length and 45 bytes or less; while
// runs are merged, each has a buffer of 64 KiB, or less where that is more than is free.
//
// # Not supported
//
// Keys of more than 65,535 bytes.
package keysort
