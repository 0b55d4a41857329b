// Package dataset opens published graph data, and reads it as streams whose
// memory does not grow with the file.
//
// # Model
//
// [Open] takes a URI and gives a [Dataset]: a stream each of edges, feature
// rows, labels and split membership, by input id. Nothing is repaired:
// duplicates, self-loops and both directions of an edge pass as they are; an id
// out of range, a value that is not finite or an inconsistent matrix is
// refused with the file, the row or line, and what to do ([ErrData]). A URI that
// cannot be understood gives [ErrURI].
//
// # Format
//
// [Formats] has what users are told of each kind of URI, and of each file that a URI
// names; docs/formats.md is the same text. Which columns of a table are read is never
// guessed: names decide, or there is no other choice. [Notes] says what was read as
// what and what was ignored.
//
// A file with one row for each node states the number of nodes, like nodes=N:
// all ids must be below it.
//
// # Memory
//
// A stream holds a few buffers of up to 1 MiB, and one feature row; a Parquet
// column, a page of at most 16 MiB. zstd and xz need their window, at most 8 MiB, bzip2
// and lz4 up to 8 MiB. Descriptions of a dataset (metadata.json, metadata.yaml) have at
// most 8 MiB. Names
// of classes are kept (65,536 at most). The graph of a Planetoid set is read
// into memory: at most 8 MiB of pickle, which become 24 MiB.
//
// # Determinism
//
// Streams give the same items in the same order each time. The synthetic graph
// is a function of its options alone: edge i, row v and split v are computed
// from integer hashes, exact conversions, correctly rounded products, sums and
// square roots, without functions whose last bit differs between platforms.
//
// # Not supported
//
// Weights in data of edges of DGL and of GraphBolt, types of edges, graphs of several kinds of
// nodes, encrypted Parquet, big-endian arrays, matrices of features in Fortran order.
package dataset
