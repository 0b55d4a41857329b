// Package vfs is the one seam below every file operation of a run: what the program reads from or
// writes to a local disk, scratch files included, goes through an [FS].
//
// # Model
//
// An [FS] opens, makes, renames and removes files by path; a [File] reads and writes at offsets.
// The functions of this package, such as [OpenFile] and [Rename], find the file system of a path
// and call it. In a program that is the operating system's, always.
//
// A test can give a folder to another file system with [Mount]: one that fails the k-th operation,
// or one in memory that forgets what was never synced. Package vfstest has both. No code outside of
// tests calls Mount; package arch checks this.
//
// The path selects the file system because the program passes the path down already: from
// --run and --scratch through every stage to each scratch file. To pass an FS beside each path
// would change more than forty signatures in ten packages and give each of them a value that never
// differs in a program. A table by folder, unlike one default for the process, also lets tests in
// parallel use different file systems.
//
// [Probe] finds out which calls the file system of a folder does without. [PublishNew], [SyncDir],
// [Nameless] and [OpenFile] go the way that is left, so that their callers do not know of it.
//
// # Errors
//
// An error that tells of the disk and not of the caller is an [ErrDisk]; one that tells of a full
// disk or an exhausted quota is also an [ErrNoSpace]. Both are marks: the operating system's text
// stays.
//
// # Cost
//
// Without mounts an operation costs one atomic load and one call through an interface more than a
// call of package os. Asynchronous reads take the kernel's file descriptor from [File.Descriptor]
// and do not pass here at all.
//
// # Not supported
//
// Datasets of users, keys and configuration files: they are read, not written, and whoever reads
// them uses package os.
package vfs
