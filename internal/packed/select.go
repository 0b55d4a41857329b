package packed

import "encoding/binary"

// Into calls edge for each edge of the frame into a row of the strip that is marked, with its
// source and its row. It is [Frame.Visit] for a part of the edges.
func (f Frame) Into(marked *[StripRows]bool, edge func(src, row uint32)) {
	escape, src := Escape(f.Width), f.Src
	for i := 0; i < len(f.Words); i += f.Width {
		row, at, isEdge := word(f.Words[i:i+4], src, escape)
		if src = at; isEdge && marked[row] {
			edge(src, row)
		}
	}
}

// word takes a word apart, of which words has four bytes. It follows an edge or an escape up to
// source src, and is an edge into a row, or else an escape; at is the source that it leads to.
func word(words []byte, src, escape uint32) (row, at uint32, isEdge bool) {
	w := binary.LittleEndian.Uint32(words)
	row = w & rowMask
	diff := w >> RowBits & escape
	if diff == escape {
		return row, src + row*escape, false
	}
	return row, src + diff, true
}
