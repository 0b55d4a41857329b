package train

// The rows of a step are cut into pieces, evenly: 2^k of them, as few as have at most pieceRows rows each, but no more
// than mostPieces. The gradient of a piece receives its rows in their order, from zero on. The gradients of pieces are
// the leaves of a binary tree, whose other nodes are the sums of two: pieces 0 and 1, 2 and 3, then these two, and so on. The
// gradient of the step is its root, and so are its losses. All three numbers decide the bits of models.
const (
	pieceRows  = 192
	mostPieces = 64
	// pieceUnit is of which number of rows all pieces but the last are multiples: whole tiles of every kernel.
	pieceUnit = 12
)

// pieces are those of a step of some rows.
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

// at is the first row of piece i, or the number of rows.
func (p pieces) at(i int) int64 {
	tiles := (p.rows + pieceUnit - 1) / pieceUnit
	return min(tiles*int64(i)/int64(p.count)*pieceUnit, p.rows)
}

// A node is a node of the tree: the sum of the gradients of some pieces, a power of two of them.
type node struct{ first, pieces int }

// join ends a row of nodes, in the order of their pieces, whose last one is complete: as long as the last two are the
// two sides of a node, they become that one.
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

// nodesOf are the largest nodes that pieces [lo, hi) give, and the largest number of nodes that there are while one
// piece after the other is added.
func nodesOf(lo, hi int) (nodes []node, most int) {
	for i := lo; i < hi; i++ {
		nodes = append(nodes, node{i, 1})
		most = max(most, len(nodes))
		nodes = join(nodes)
	}
	return nodes, most
}

// adding is how far the pieces of a step have come that one worker has: piece after piece, row after row.
type adding struct {
	pieces
	piece int   // to which the next row belongs
	row   int64 // of the step, the next one
	nodes []node
	terms []term // of the last microbatch
}

// begin begins a step, before one of its pieces.
func (a *adding) begin(p pieces, first int) {
	a.pieces, a.piece, a.row, a.nodes = p, first, p.at(first), a.nodes[:0]
}

// A term is rows [lo, hi) of a microbatch, all of one piece, whose gradient is added to a sum, or, if it is fresh, to zeros in its place. Then
// the last sum is added to that before it, and that one is the last, as often as joins says.
type term struct {
	lo, hi, sum int
	fresh       bool
	joins       int
}

// take is how many of so many rows that follow a microbatch of at most so many rows takes: whole pieces, or part of one.
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

// next are the terms of the next n rows, until it is called again.
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
