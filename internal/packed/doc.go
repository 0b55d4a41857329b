// Package packed defines the form in which a pass reads edges: one 32-bit word
// an edge, grouped in frames that are decoded independently of each other.
//
// # Format
//
// Destinations are cut into blocks of [BlockRows] rows. The edges of a block are
// sorted by (source, destination). A word holds
//
//	bits  0..19  destination row within the block
//	bits 20..31  source minus the source of the word before
//
// A difference of [Escape] or more does not fit: the field then holds Escape and
// the next word is the whole source id. A frame is one transfer of at most
// [FrameBytes] bytes, little-endian, padded with zeros to [Align]:
//
//	bytes  0..3   CRC-32C of the words
//	bytes  4..7   number of words, escapes' second words included
//	bytes  8..11  number of edges
//	bytes 12..15  source that the first word's difference is counted from
//	bytes 16..19  block
//	bytes 20..63  zero
//	bytes 64..    words
//
// A word and its escape's second word are never parted by the end of a frame.
//
// # Determinism
//
// The words are a function of the sorted edge list alone.
package packed
