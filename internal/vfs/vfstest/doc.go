// Package vfstest has file systems for tests: [Faults] fails operations of another one, [Lacking]
// refuses calls as FAT, network file systems and many of FUSE do, [Mem] keeps files in memory and
// knows what a power failure would leave of them, and [Moved] shows another one under another name.
//
// # Model
//
// A test mounts a Mem at a folder that need not exist, with [ndls/internal/vfs.Mount], and gives
// paths below it to the code under test. [Mem.Clone] is the disk after the death of the process:
// all that was written is there, because the kernel still has it. [Mem.CrashClone] is the disk
// after a power failure: a name is there if its folder was synced since the name was given, a file
// has the bytes of its last sync. Of all else a random share may be there as well: POSIX allows
// that.
//
// [Faults] counts operations and can fail the k-th one, or the k-th and all later ones, as if the
// process had died just before it: whoever still runs changes nothing more.
//
// # Not supported
//
// Symbolic links, permissions, and the time of last access. Closing a file is no operation: it
// never fails.
package vfstest
