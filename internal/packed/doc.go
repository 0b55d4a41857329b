// Package packed defines the form in which a pass reads edges: one 32-bit word
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
// A word holds
//
//	bits  0..14  destination row within the strip
//	bits 15..31  source minus the source of the word before
//
// A difference of [Escape] or more does not fit: the field then holds Escape and
// the next word is the whole source id. A frame is one transfer of at most
// [FrameBytes] bytes, little-endian, padded with zeros to [Align]:
//
//	bytes  0..3   CRC-32C of the words
//	bytes  4..7   number of words, escapes' second words included
//	bytes  8..11  number of edges
//	bytes 12..15  source that the first word's difference is counted from
//	bytes 16..19  strip
//	bytes 20..23  source of the last edge
//	bytes 24..63  zero
//	bytes 64..    words
//
// A word and its escape's second word are never parted by the end of a frame.
//
// # Memory
//
// An [Encoder] holds one frame.
//
// # Determinism
//
// The words are a function of the sorted edge list alone.
package packed
