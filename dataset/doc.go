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
// The forms of a URI; percent-encoding is undone in paths.
//
//   - karate: Zachary's karate club, built in; the classes are the two factions.
//   - synthetic:nodes=100000,edges=1000000,features=64,classes=8,seed=1 and
//     homophily=0.8 (share of edges inside a class), train=0.1, valid=0.1
//     (shares of the nodes, the rest is test), noise=1 (of the features); these
//     are the defaults. A degree-corrected community graph: the number of nodes
//     of degree d falls like d^-3, edges is the number of rows drawn, self-loops
//     and repetitions included. A feature row is the mean of its class plus
//     noise. [Generate] writes it to files.
//   - papers100m:scale=1/256,seed=1: a graph of the shape of ogbn-papers100M at a
//     scale of 1 or 1/N, N up to 4096: fields of near ids that share a class and
//     cite each other, famous papers cited by all, 128 features that are float16
//     numbers, 1.4 % of the nodes labelled. [Generate] writes it as ogb: files.
//   - planetoid:DIR/cora reads DIR/ind.cora.x, y, tx, ty, allx, ally, graph and
//     test.index (Yang, Cohen and Salakhutdinov, ICML 2016), Python pickles of
//     protocol 2 to 4. Ids that test.index leaves out are nodes with a row of
//     zeros, no label and no split. allx and tx may be missing if the features
//     are left out.
//   - npz:FILE reads the layouts of gnn-benchmark (adj_data, adj_indices,
//     adj_indptr, adj_shape, attr_…, labels), of SparseGraph (adj_matrix.data …)
//     and of pickled SciPy matrices (adj_matrix, node_attr or attr_matrix,
//     node_label). Every stored entry of the adjacency matrix is an edge.
//   - ogb:DIR reads the folder of a node property dataset of the Open Graph
//     Benchmark: raw/data.npz and raw/node-label.npz, or raw/*.csv.gz, and the one
//     folder in split/. Datasets of one graph and one task are read; classes are
//     0 to the largest label.
//   - edges:FILE?features=F&labels=L#COLUMN&splits=S&nodes=N&directed=true reads
//     files side by side, below.
//
// Files of edges: may be packed as .gz, .zst, or as the only file of a .zip.
//
//   - Edges: text of two ids a line, separated by blanks, tabs, commas or
//     semicolons, with # or % comments (SNAP) or a header (columns src and dst,
//     source and target, id_1 and id_2, from and to, node_1 and node_2, u and v,
//     or else the first two; others are passed over); Parquet, two integer
//     columns; .npy of shape (2, m) or (m, 2), where (2, 2) is read as the first;
//     .npz with the array edge_index; .u32 (or .bin) and .u64, not packed, of
//     nothing but pairs of little-endian numbers of so many bits.
//   - Features: text of an id and its values a line; .npy of shape (nodes,
//     features), row i for node i; .json, an object of node id to the list of
//     the features that are 1; Parquet, an integer column id and a list column
//     or one column for each feature.
//   - Labels: text with an id column (named id or node, or else the first) and a
//     label column: COLUMN, or the first of label, class, target, page_type,
//     community, faction and y, or the only other one; text of one label a line;
//     .npy vector. Classes are sorted by number if all are integers, otherwise by
//     their bytes. Nothing, NaN or -1 is no label.
//   - Splits: the same with train, valid (val, validation) and test, or 1, 2 and
//     3; nothing, none, 0 or -1 is no split.
//
// A file with one row for each node states the number of nodes, like nodes=N:
// all ids must be below it.
//
// # Memory
//
// A stream holds a few buffers of up to 1 MiB, and one feature row; a Parquet
// column, a page of at most 16 MiB. zstd needs its window, at most 8 MiB. Names
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
// Edge weights and types, MatrixMarket, adjacency lists, Parquet with DELTA
// encodings (the reader of arrow v14 decodes them to wrong values), big-endian
// and Fortran-order arrays.
package dataset
