// Package arrow reads the columns of files and streams of Arrow.
//
// # Model
//
// A [File] has columns, each of a [ndls/dataset/columnar.Type], and record batches. [File.Read] gives
// the rows of some columns in a record batch. A column that is not read is not looked at.
//
// # Format
//
// Arrow IPC of the metadata versions V4 and V5, as a file or as a stream, whatever the name of the
// file; buffers as they are or packed with lz4 or zstd; dictionaries, those that are replaced or
// added to within a stream, too. Values, text with offsets and views, lists of numbers, and vectors
// of Spark ML are read.
//
// # Memory
//
// Buffers are read as streams: 64 KiB for each buffer of the columns that are read. Packed buffers of
// a record batch are unpacked as a whole if they have at most 32 MiB together; larger ones of up to 24
// are read at a time, each with a window of at most 8 MiB; more of them are unpacked as a whole, up to
// 512 MiB. [File.Memory] counts this. A dictionary of at most 4 Mi values and 64 MiB of text
// is held. Heads of messages, of at most 32 MiB, are read as a whole, and no length in them is
// believed before it was compared with the bytes that are there.
//
// # Determinism
//
// Rows are the same each time.
//
// # Not supported
//
// Big-endian files, Feather of version 1, list views, run-end encoding, unions, maps, and nested
// types but for lists and vectors of numbers and what lies in structs.
package arrow
