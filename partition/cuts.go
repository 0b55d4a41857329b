package partition

import "ndls/internal/packed"

// fileEdges is the number of edges that a file may have in any graph. Tests make it smaller.
var fileEdges int64 = 1 << 26

// mostFiles is the approximate largest number of files of edges.
const mostFiles = 1 << 10

// FileEdges returns the largest number of edges in a file, of `all` edges: 2^26, or a 1,024th part if that is more. A file of a single
// strip may have more.
func FileEdges(all int64) int64 { return max(fileEdges, all/mostFiles) }

// cuts lists the first row of each file of edges, then the number of nodes. A file has the rows of an interval unless they have too many
// edges; else it has some of its blocks, or some strips of a block that alone has too many. So all files take about as long to make, and
// their content depends on the graph alone.
type cuts []int64

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

// files returns the number of files.
func (c cuts) files() int { return max(len(c)-1, 0) }

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
