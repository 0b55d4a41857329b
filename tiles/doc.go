// Package tiles stores a matrix of float32 in column tiles: one file per interval of rows and panel of 16 columns. Hops read columns, and
// other readers read rows; a tile serves both.
//
// # Model
//
// A [Matrix] has a number of rows for each interval, at most the nodes of the interval, because a matrix may store only some of them.
// Workers that share the rows of a matrix write parts of tiles: some rows of a panel. [Matrix.Join] joins them. A committed tile or part is
// never written again: with the same plan its bytes would be the same.
//
// # Format
//
// [shards.TilePath] and [shards.EncodeTile] define the name and the bytes of a tile. The name of a part is the name of the tile, followed
// by its rows. The entries of the catalogue say which rows and columns a file holds, and whether its values are float32 or float16.
// [Features] is the matrix of a graph's features. A matrix may store rows in another form ([Layout.Encode]), which its writer decodes
// ([Matrix.Pieces]).
//
// # Memory
//
// [Matrix.Read] uses, from the budget, a batch of rows at 4 bytes a value, and three stored pieces, each at most 4 MiB unless a row of all
// panels is longer than 4 KiB: [Matrix.ReadBytes]. With several threads ([Matrix.On]) it uses a second batch if the budget has room. A
// [Group] holds the buffers of one file per panel, and the rows of the last Put of each: callers write at most [Together] panels at a time.
//
// # Threads
//
// Threads divide reading, checksums, decoding and encoding by panel. Pieces are read and summed ahead; while rows are visited, the rows
// after them are read and decoded.
//
// # Determinism
//
// Reading compares the bytes with the catalogue's checksum. Read returns an error at the end of a damaged tile; results made from its rows
// must not be committed before.
package tiles
