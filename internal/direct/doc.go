// Package direct reads and writes files without leaving them in the page cache,
// so that a memory budget that counts page cache holds.
//
// # Model
//
// Files are opened with O_DIRECT where the file system allows it; the transfers
// are aligned here, callers may use any offset and length. Where O_DIRECT is
// refused, when a file is opened or with a transfer, transfers are buffered from then on, and
// the pages are dropped afterwards.
//
// # Memory
//
// A [File] holds one buffer of [BufferSize] bytes during an unaligned ReadAt, a
// [Reader] [Ahead]+1 of them, a [Writer] two, as far as it fills them. Buffers come from a common pool.
//
// # Not supported
//
// Systems other than Linux.
package direct
