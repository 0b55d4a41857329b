package partition

import "ndls/internal/packed"

// fileEdges is how many edges a file may have in any graph. Tests make it smaller.
var fileEdges int64 = 1 << 26

// mostFiles is into about how many files the edges are cut, at most.
const mostFiles = 1 << 10

// FileEdges is how many edges a file of the edges has at most, of so many edges in all, unless a
// strip alone has more: 2^26, or a 1,024th part.
func FileEdges(all int64) int64 { return max(fileEdges, all/mostFiles) }

// cuts are the rows where the files of the edges begin, then the number of nodes. A file has the
// rows of an interval, if these do not have too many edges; else it has some of its blocks; and of
// a block that alone has too many it has some strips. So it takes about as long to make one file as
// another, and what is in a file depends on the graph alone.
type cuts []int64

// cutEdges cuts a graph of so many nodes in intervals of so many rows. edges counts the edges into
// each strip. reversed says that there are files of the reversed edges, too.
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

// cutAt cuts so that files have at most so many edges, as far as a strip has not more.
func cutAt(nodes, intervalRows int64, edges []int64, most int64) (c cuts) {
	file := int64(0) // edges of the last file
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
		file = most + 1 // no other block belongs to the last file
	}
	return append(c, nodes)
}

// files is how many there are.
func (c cuts) files() int { return max(len(c)-1, 0) }

// stripEdges counts the edges at the nodes of each strip, where nodes of degree d end before
// ends[d].
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

// cutEdges sets Cuts and Edges. Nodes of degree d end before ends[d].
func (o *ordered) cutEdges(intervalRows int64, ends []uint32) {
	strips := stripEdges(o.Nodes, ends)
	o.Cuts = cutEdges(o.Nodes, intervalRows, strips, o.Directed)
	o.Edges = make([]int64, o.Cuts.files())
	for i := range o.Edges {
		for _, e := range strips[o.Cuts[i]>>packed.StripShift : packed.Strips(o.Cuts[i+1])] {
			o.Edges[i] += e
		}
	}
}
