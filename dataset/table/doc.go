// Package table reads graphs from tables of Parquet, CSV, Arrow and JSON lines, each of them in any
// number of files, with ids of any type.
//
// # Model
//
// A table is a list of files with the columns that are asked for, by name. Its rows follow its
// files in order: as they are listed, or in order of their paths, by bytes, below a folder, a
// pattern or a prefix of a bucket. One table has the edges. Another one may have the nodes, with
// their features, labels and splits; labels and splits may have tables of their own.
//
// The ids of all tables have one type ([ndls/internal/inputid.Type]). Columns of Parquet and Arrow
// state it. Where all ids are text of CSV or numbers of JSON, all of them are read to find the
// narrowest type. Ids have to be numbered before the graph can be read
// ([ndls/dataset/graph.Keyed]). In a [Numbered] table ids are the numbers of nodes, or row i belongs to node i: edges:
// and the layouts of published data have such tables. Their text may be a list of numbers, with comments, and with
// blanks between columns ([Text]).
//
// # Memory
//
// For each column that is read what [ndls/dataset/columnar/parquet] or
// [ndls/dataset/columnar/arrow] holds; of text a line of at most 16 MiB, and 1,024 rows or 1 MiB
// and a row. Names of classes are kept.
//
// # Algorithm
//
// A table is read in units: row groups of Parquet, record batches of Arrow, parts of text. Text is
// cut at line ends outside of quotes, which are found by the number of quotes before them: a pass
// over the file counts these, before a part of it is read for the first time. Each line of a list is a row: it is cut
// at any line end, without such a pass, and its ids are read as numbers at once.
//
// # Determinism
//
// Streams give the same rows in the same order each time. What is read of a table does not depend
// on how its rows are spread over files.
//
// # Not supported
//
// Nodes and edges of several types.
package table
