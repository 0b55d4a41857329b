package partition

import (
	"math/bits"

	"ndls/internal/extsort"
	"ndls/internal/packed"
)

// cuts lists the first row of each file of edges, then the number of nodes. A file has the rows of an interval unless they have too many
// edges; else it has some of its blocks, or some strips of a block that alone has too many. So all files take about as long to make, and
// their content depends on the graph alone.
type cuts []int64

// files returns the number of files.
func (c cuts) files() int { return max(len(c)-1, 0) }

// cutEdges cuts a graph of these nodes into intervals of intervalRows rows. edges holds the number of edges into each strip. reversed says
// that the reversed edges have files, too.
func cutEdges(nodes, intervalRows int64, edges []int64, reversed bool) cuts {
	all := int64(0)
	for _, e := range edges {
		all += e
	}
	groups := 1 << (64 - keyBits(nodes))
	if reversed {
		groups /= 2
	}
	// Keys have room for 4,096 groups in the largest graph, which has as many blocks.
	for most := FileEdges(all); ; most *= 2 {
		c := cutAt(nodes, intervalRows, edges, most)
		if most >= all || len(newEdgeKeys(c).base) <= groups {
			return c
		}
	}
}

// cutAt cuts so that a file has at most `most` edges, unless a single strip has more.
func cutAt(nodes, intervalRows int64, edges []int64, most int64) (c cuts) {
	file := int64(0) // edges in the last file
	for row := int64(0); row < nodes; row += BlockRows {
		strips := edges[row>>packed.StripShift:]
		strips = strips[:min(len(strips), packed.BlockStrips)]
		block := int64(0)
		for _, e := range strips {
			block += e
		}
		if row%intervalRows == 0 || file+block > most {
			c, file = append(c, row), 0
		}
		if block <= most {
			file += block
			continue
		}
		for i, e := range strips {
			if file > 0 && file+e > most {
				c, file = append(c, row+int64(i)<<packed.StripShift), 0
			}
			file += e
		}
		file = most + 1 // the last file takes no other block
	}
	return append(c, nodes)
}

// stripEdges counts the edges at the nodes of each strip; nodes of degree d end before ends[d].
func stripEdges(nodes int64, ends []uint32) []int64 {
	edges := make([]int64, packed.Strips(nodes)) // at most 1 MiB
	node := int64(0)
	for degree := len(ends) - 1; degree >= 0; degree-- {
		for end := int64(ends[degree]); node < end; {
			next := min(end, (node>>packed.StripShift+1)<<packed.StripShift)
			edges[node>>packed.StripShift] += (next - node) * int64(degree)
			node = next
		}
	}
	return edges
}

// fileEdges is the number of edges that a file may have in any graph. Tests make it smaller.
var fileEdges int64 = 1 << 26

// mostFiles is the approximate largest number of files of edges.
const mostFiles = 1 << 10

// FileEdges returns the largest number of edges in a file, of `all` edges: 2^26, or a 1,024th part if that is more. A file of a single
// strip may have more.
func FileEdges(all int64) int64 { return max(fileEdges, all/mostFiles) }

const (
	rowBits = packed.BlockShift
	rowMask = BlockRows - 1
)

// edgeKeys orders the directed edges of a graph by (group of dst, src, dst). A group is a block, or the part of a block in one file of
// edges ([cuts]). The groups of reversed edges follow all others. No bit is unused between group and src, so that a digit of a radix sort
// separates as many keys as it can. No key equals extsort.End, because node ids end at dataset.MaxID.
type edgeKeys struct {
	shift  uint     // number of bits below the group
	groups []uint16 // by strip; at most 256 KiB
	base   []uint32 // by group, the first row of its block
}

// keyBits returns the number of bits of a key below the group, in a graph of this number of nodes.
func keyBits(nodes int64) uint { return uint(rowBits + bits.Len64(uint64(nodes-1))) }

// newEdgeKeys returns the keys of a graph with these cuts.
func newEdgeKeys(c cuts) *edgeKeys {
	nodes := c[len(c)-1]
	k := &edgeKeys{shift: keyBits(nodes), groups: make([]uint16, packed.Strips(nodes))}
	for strip := range k.groups {
		row := int64(strip) << packed.StripShift
		if row == c[0] {
			c = c[1:]
			k.base = append(k.base, uint32(row&^rowMask))
		} else if row&rowMask == 0 {
			k.base = append(k.base, uint32(row))
		}
		k.groups[strip] = uint16(len(k.base) - 1)
	}
	return k
}

func (k *edgeKeys) of(src, dst uint32) uint64 {
	return uint64(k.groups[dst>>packed.StripShift])<<(k.shift&63) | uint64(src)<<rowBits | uint64(dst&rowMask)
}

// reversedOffset returns the difference between the key of a reversed edge and that of the same edge not reversed.
func (k *edgeKeys) reversedOffset() uint64 { return uint64(len(k.base)) << (k.shift & 63) }

// edge returns the edge of a key, reversed or not.
func (k *edgeKeys) edge(key uint64) (src, dst uint32) {
	group := int(key >> (k.shift & 63))
	if group >= len(k.base) {
		group -= len(k.base)
	}
	return uint32(key & (1<<(k.shift&63) - 1) >> rowBits), k.base[group] | uint32(key&rowMask)
}

// first returns the smallest key of edges into a row that begins a group, or of the end of all rows; with reversed, of reversed edges. It
// is extsort.End if no larger key exists.
func (k *edgeKeys) first(row int64, reversed bool) uint64 {
	group := uint64(len(k.base))
	if strip := row >> packed.StripShift; strip < int64(len(k.groups)) && row&(packed.StripRows-1) == 0 {
		group = uint64(k.groups[strip])
	}
	if reversed {
		group += uint64(len(k.base))
	}
	if group >= 1<<(64-k.shift) {
		return extsort.End
	}
	return group << k.shift
}
