// Package memmap reads the papers of two datasets of a hundred million nodes and more,
// whose arrays are published as files to be mapped into memory: MAG240M of the Open Graph
// Benchmark (Hu et al., 2021), and IGB (Khatua et al., KDD 2023).
//
// # Format
//
// MAG240M has .npy files: paper_node_feat.npy is float16, a row for each paper. IGB has
// .npy files for its small sizes; in the large and full size, features and labels are
// numbers without a header, in files that are named .npy all the same.
//
// # Memory
//
// Features are streamed at the width at which they are stored: buffers of about 256 KiB,
// whatever the size of the files.
//
// # Not supported
//
// Authors, institutions and the other kinds of nodes of both datasets.
package memmap
