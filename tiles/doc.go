// Package tiles stores a matrix of float32 in column tiles: one file for each interval
// of rows and panel of 16 columns. Hops take columns, and readers want rows; a tile
// serves both.
//
// # Model
//
// A [Matrix] has a number of rows for each interval, which may be fewer than the interval
// has nodes where only some are stored. Workers that share the rows of a matrix write
// parts of tiles, which [Matrix.Join] makes whole: some rows of a panel, or of one half of it ([Matrix.Of]). Where a tile or a part of one is
// committed it is left alone: with the same plan its bytes would be the same.
//
// # Format
//
// [shards.TilePath] and [shards.EncodeTile] have the name and the bytes of a tile. Parts
// have the tile's name and their rows behind it, and then the half of the panel: rows of 8 values. The catalogue's entries say which rows
// and columns a file holds, and whether its values are float32 or float16; [Features] is
// the matrix of a graph's features. A matrix may have rows of another form
// ([Layout.Encode]), which whoever writes it reads by itself ([Matrix.Pieces]).
//
// # Memory
//
// [Matrix.Read] takes, from the budget, a batch of rows, 4 bytes a value, and three pieces of
// it as it is stored, at most 4 MiB each unless a row of all panels is longer than 4 KiB:
// [Matrix.ReadBytes]. With several threads ([Matrix.On]) it takes a second batch where the
// budget has room for it. A [Group] holds the buffers of one file for each of its panels, and
// the rows of the last Put of each: callers write at most [Together] of them at a time.
//
// # Threads
//
// Reading, comparing checksums, decoding and encoding are divided by panels. Pieces are read
// and summed ahead, and while rows are visited those after them are read and decoded.
//
// # Determinism
//
// What is read is compared with the catalogue's checksum while it is read. Read returns
// an error at the end of a damaged tile: nothing that was made of its rows may be
// committed before.
package tiles
