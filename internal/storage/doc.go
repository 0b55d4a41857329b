// Package storage is the one seam through which run directories are read and
// written, and guarantees that a file is seen whole, durable and under its name,
// or not at all.
//
// # Model
//
// A [Store] holds files by name. [Store.Create] starts an attempt, which has no
// name that a reader could meet; [Writer.Commit] makes its bytes durable and
// publishes them in one atomic step. Files are never changed, only replaced.
//
// [Local] is a folder: an attempt is name.<16 hex digits>.tmp beside the file,
// and commit is fsync, rename, fsync of the folder. [Mem] has the same contract
// in memory. [Faulty] fails one operation of another store, [Counting] counts
// the bytes that pass. Package storagetest is the contract as tests.
//
// # Memory
//
// A Local writer holds two direct-I/O buffers and two hash buffers, about 2.5
// MiB; a reader what package direct says.
//
// # Not supported
//
// Changing files in place, links, and names that leave the store.
package storage
