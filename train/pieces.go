package train

// The rows of a step are cut evenly into pieces: 2^k of them, with the smallest k for which a piece
// has at most pieceRows rows, but no more than mostPieces. The gradient of a piece adds its rows in
// their order, from zero on. The gradients of pieces are the leaves of a binary tree, whose other
// nodes are the sums of two: pieces 0 and 1, 2 and 3, then these two, and so on. The root is the
// gradient of the step. Losses are added by the same tree. All three constants decide the bits of
// models.
const (
	pieceRows  = 192
	mostPieces = 64
	// pieceUnit is the unit of pieces: all pieces but the last have a multiple of so many rows,
	// which are whole tiles of every kernel.
	pieceUnit = 12
)

// pieces holds the cut of a step of some rows.
type pieces struct {
	rows  int64
	count int
}

func cutStep(rows int64) pieces {
	p := pieces{rows, 1}
	for p.count < mostPieces && rows > pieceRows*int64(p.count) {
		p.count *= 2
	}
	return p
}

// at returns the first row of piece i, or the number of rows.
func (p pieces) at(i int) int64 {
	tiles := (p.rows + pieceUnit - 1) / pieceUnit
	return min(tiles*int64(i)/int64(p.count)*pieceUnit, p.rows)
}

// A node is a node of the tree: the sum of the gradients of some pieces, a power of two of them.
type node struct{ first, pieces int }

// join ends a row of nodes, in the order of their pieces, whose last one is complete: as long as
// the last two are the two sides of a node, that node replaces them.
func join(nodes []node) []node {
	for n := len(nodes); n > 1; n-- {
		left, right := nodes[n-2], nodes[n-1]
		if left.pieces != right.pieces || left.first%(2*left.pieces) != 0 || left.first+left.pieces != right.first {
			break
		}
		nodes = append(nodes[:n-2], node{left.first, 2 * left.pieces})
	}
	return nodes
}

// nodesOf returns the largest nodes that pieces [lo, hi) form, and the largest number of nodes that
// exist while one piece after the other is added.
func nodesOf(lo, hi int) (nodes []node, most int) {
	for i := lo; i < hi; i++ {
		nodes = append(nodes, node{i, 1})
		most = max(most, len(nodes))
		nodes = join(nodes)
	}
	return nodes, most
}

// adding tracks the pieces of a step that one worker adds up: piece after piece, row after row.
type adding struct {
	pieces
	piece int   // piece of the next row
	row   int64 // next row of the step
	nodes []node
	terms []term // of the last microbatch
}

// begin begins a step before one of its pieces.
func (a *adding) begin(p pieces, first int) {
	a.pieces, a.piece, a.row, a.nodes = p, first, p.at(first), a.nodes[:0]
}

// A term is a range of rows [lo, hi) of a microbatch, all of one piece. Its gradient is added to a
// sum, or to zeros in place of the sum if fresh is set. Then the last sum is added to the one
// before it, which becomes the last, as often as joins says.
type term struct {
	lo, hi, sum int
	fresh       bool
	joins       int
}

// take returns the number of the following rows, of a microbatch of at most so many, that it takes:
// whole pieces, or part of one.
func (a *adding) take(rows, most int) int {
	limit, whole := int64(min(rows, most)), 0
	for i := a.piece + 1; i <= a.count && a.at(i)-a.row <= limit; i++ {
		whole = int(a.at(i) - a.row)
	}
	if whole > 0 {
		return whole
	}
	rest := min(rows, int(a.at(a.piece+1)-a.row))
	return min(units(units(rest, units(rest, most)), takenRows)*takenRows, rest, most)
}

// next returns the terms of the next n rows. They are valid until the next call.
func (a *adding) next(n int) []term {
	a.terms = a.terms[:0]
	for at := 0; at < n; {
		x := term{lo: at, fresh: a.row == a.at(a.piece)}
		if x.fresh {
			a.nodes = append(a.nodes, node{a.piece, 1})
		}
		x.sum = len(a.nodes) - 1
		end := a.at(a.piece + 1)
		x.hi = at + int(min(int64(n-at), end-a.row))
		a.row += int64(x.hi - at)
		if at = x.hi; a.row == end {
			a.nodes = join(a.nodes)
			a.piece++
			x.joins = x.sum + 1 - len(a.nodes)
		}
		a.terms = append(a.terms, x)
	}
	return a.terms
}
