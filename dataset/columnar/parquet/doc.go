// Package parquet reads the columns of Parquet files.
//
// # Model
//
// A [File] has columns, each of a [ndls/dataset/columnar.Type], and row groups. [File.Read] gives the
// rows of some columns in a row group. A column that is not read is not looked at: its type,
// compression and encoding may be of any kind.
//
// # Format
//
// Parquet 2.12, with data pages of both versions; the encodings PLAIN, RLE, RLE_DICTIONARY (and
// PLAIN_DICTIONARY), DELTA_BINARY_PACKED, DELTA_LENGTH_BYTE_ARRAY, DELTA_BYTE_ARRAY and
// BYTE_STREAM_SPLIT; all compressions but LZO. Checksums of pages are compared where there are
// any. Values of a leaf, lists of numbers, and vectors of Spark ML are read.
//
// # Memory
//
// For each column that is read a buffer of 256 KiB, a page of at most 128 MiB as it is stored and
// unpacked, and a dictionary of at most 128 MiB; 512 MiB for all columns of a row group. The footer,
// of at most 256 MiB, is read as a whole. No length that a file states is believed before it was
// compared with the bytes that are there. [File.Memory] estimates what a reader takes, by the
// header of one page.
//
// # Determinism
//
// Rows are the same each time.
//
// # Not supported
//
// Encryption, LZO, columns in files of their own, indexes, filters by statistics, and nested
// types but for lists and vectors of numbers and what lies in structs.
package parquet
