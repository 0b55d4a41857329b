// Package shards keeps what a run directory holds: the catalogue of committed
// files and the formats of edges, tables and rows. It guarantees that a file
// that a catalogue lists is there and whole, and that a reader gives what was
// written, or an error, never something else.
//
// # Model
//
// A file exists when its entry does. [Catalog.Create] starts an attempt,
// [Catalog.Commit] makes the bytes of one or more files durable and then lists
// them all in one atomic rewrite of catalog.parquet. [Catalog.Remove] goes the
// other way round: entries first. Between the two steps of either, a crash
// leaves files that no entry names; [Catalog.Orphans] finds them.
//
// # Format
//
// Edge shards, the node table and the K table are Parquet: required columns,
// PLAIN, snappy, no dictionary, no statistics, row groups of 2^20 edges and 2^18
// table rows. An edge shard holds src and dst (uint32), and in a graph with weights weight
// (float32), of the edges whose
// destination is in one range of rows, sorted by (block of dst, src, dst), and the
// range's bounds in its metadata. Features, hops and probabilities leave as Arrow
// IPC files, uncompressed, every buffer 64-byte aligned; a file of hops has a list for each. Tiles are raw float32 or
// float16, see [TilePath]; hop streams are the frames of package packed with an
// index. The catalogue is Parquet, one row for each file. Runs, which pass between
// the tasks of a partition, are a format of package partition.
//
// Parquet and Arrow files carry a seal between data and footer, where other
// readers do not look: a CRC-32C for every row group or record batch and one for
// the footer. Readers here check a sum before they decode what it covers.
// Whole files have a SHA-256 in the catalogue.
//
// # Memory
//
// An edge writer holds one column of a row group, compressed, at most 4.7 MiB, an
// [EdgePage] 1.1 MiB, an edge reader one
// compressed row group, at most 8.1 MiB; with weights, half as much again, and the writer two
// columns; a table writer 65,536 rows and one compressed
// row group, at most 7.5 MiB, and a table reader one row group, compressed and decoded, at most 13 MiB, for each of
// its [Readers]. A row writer copies float16 batches and batches
// that are no multiple of 64 bytes; a row reader reads straight into the
// caller's slices. The catalogue is in memory whole, about 300 bytes a file.
//
// A hop stream writer holds a frame for each strip of a block and one more, 8.25 MiB, with
// weights up to 13 MiB, and 20 bytes a frame; an open hop stream 24 bytes a frame (about 1 MB for 3.2 billion
// edges), and 5 frames, 1.25 MiB, for each strip that is being read: 4 reads are
// under way while the pass works on the fifth.
//
// # Determinism
//
// The same rows give the same bytes, however they are divided among calls,
// except that a call of [RowWriter.Write] is a record batch.
//
// # Not supported
//
// Two programs that write to one run directory; files of other programs, except
// to refuse them with the reason. DELTA encodings are refused because the
// Parquet library returns wrong values for them from the second page on.
package shards
