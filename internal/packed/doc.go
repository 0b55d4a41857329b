// Package packed defines the form in which a pass reads edges: a word of 3 or 4 bytes
// an edge, grouped in frames that are decoded independently of each other.
//
// # Model
//
// Destinations are cut into blocks of [BlockRows] rows, what edge shards are
// sorted by and intervals are whole numbers of, and a block into [BlockStrips]
// strips of [StripRows] rows. A strip is the unit of accumulation of a pass: its
// rows of 64 bytes stay in the cache of a core while its edges, sorted by
// (source, destination), go by.
//
// # Format
//
// A word has 24 bits in a frame of narrow words, 32 in one of wide words, little-endian:
//
//	bits  0..14            destination row within the strip
//	bits 15..23, 15..31    source minus the source of the edge before
//
// All bits of the difference set ([Escape]) mark a skip: the word is no edge, but moves the
// source on by as many times Escape as it has for a row. Skips precede an edge whose
// difference does not fit, as many as it needs: one for a narrow difference of up to 2^24.
//
// The encoder writes narrow words. At the end of a frame it rewrites them as wide ones if
// those take fewer bytes: that is so where more than every third edge needs a skip.
//
// A frame is one transfer of at most [FrameBytes] bytes, little-endian, padded with zeros to
// [Align]. At least one byte of padding follows the words, because a word is read as the four
// bytes from where it starts:
//
//	bytes  0..3   CRC-32C of the header from byte 4 on, and of the words
//	bytes  4..7   number of words, skips included
//	bytes  8..11  number of edges
//	bytes 12..15  source that the first word's difference is counted from
//	bytes 16..19  strip
//	bytes 20..23  source of the last edge
//	bytes 24..27  bytes of a word
//	bytes 28..31  bytes of a weight: 4, or 0 in a graph without weights
//	bytes 32..63  zero
//	bytes 64..    words, then the weights
//
// In a graph with weights, the weight of each edge, a float32, stands behind the words, in
// the order of the edges. Skips have none. The checksum covers the weights too.
//
// An edge and its skips are never parted by the end of a frame.
//
// # Memory
//
// An [Encoder] holds two frames, a [BlockEncoder] one for each strip and one more. Where
// edges have weights, each also holds those of the edges of a frame, up to 4/7 of one.
//
// # Determinism
//
// The words and the weights are a function of the sorted edge list alone.
package packed
