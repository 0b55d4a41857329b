// Package shards reads and writes the formats of a run directory: edges, tables, rows and tiles. A reader returns what was written, or an
// error, never something else.
//
// Package catalog lists the files. A file exists when its entry does; the catalogue commits and removes files.
//
// # Format
//
// Edge shards, the node table and the K table are Parquet: required columns, PLAIN, snappy, no dictionary, no statistics, row groups of
// 2^20 edges and 2^18 table rows. An edge shard holds src and dst (uint32) and, in a graph with weights, weight (float32), of the edges
// whose destination is in one range of rows, sorted by (block of dst, src, dst). Its metadata has the bounds of the range. Features, hops
// and probabilities are Arrow IPC files, uncompressed, with every buffer aligned to 64 bytes; a file of hops has a list for each hop. Tiles
// are raw float32 or float16, see [TilePath]. Hop streams are frames of package packed with an index. The catalogue is Parquet, one row per
// file.
//
// Parquet and Arrow files carry a seal between data and footer, where other readers ignore it: a CRC-32C for every row group or record
// batch and one for the footer. Readers check a sum before they decode the bytes under it. Whole files have a SHA-256 in the catalogue.
//
// # Memory
//
// An edge writer holds one compressed column of a row group, at most 4.7 MiB, an [EdgePage] 1.1 MiB, and an edge reader one compressed row
// group, at most 8.1 MiB. With weights they hold half as much again, and the writer two columns. A table writer holds 65,536 rows and one
// compressed row group, at most 7.5 MiB. A table reader holds one row group, compressed and decoded, at most 13 MiB, for each of its
// [Readers]. A row writer copies float16 batches and batches that are not a multiple of 64 bytes; a row reader reads straight into the
// caller's slices.
//
// A hop stream writer holds a frame for each strip of a block and one more, 8.25 MiB, with weights up to 13 MiB, and 20 bytes per frame. An
// open hop stream holds 24 bytes per frame (about 1 MB for 3.2 billion edges), and 5 frames, 1.25 MiB, for each strip that is being read: 4
// reads are in progress while the pass works on the fifth.
//
// # Determinism
//
// The same rows give the same bytes, however calls divide them, except that each call of [RowWriter.Write] is a record batch.
//
// # Not supported
//
// Two programs that write to one run directory. Files of other programs are refused with the reason. DELTA encodings are refused because
// the Parquet library returns wrong values for them from the second page on.
package shards
