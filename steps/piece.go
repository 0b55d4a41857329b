package steps

// Piece is the range [First, Last) of the pieces of a step.
type Piece struct{ First, Last int }

// Unit returns the piece that has the number i alone.
func Unit(i int) Piece { return Piece{i, i + 1} }

// Units returns n pieces of length 1.
func Units(n int) []Piece {
	all := make([]Piece, n)
	for i := range all {
		all[i] = Unit(i)
	}
	return all
}

// Split divides a piece into at most n parts of about equal length.
func (p Piece) Split(n int) []Piece {
	n = min(n, p.Last-p.First)
	parts := make([]Piece, n)
	for i := range parts {
		parts[i] = Piece{p.First + (p.Last-p.First)*i/n, p.First + (p.Last-p.First)*(i+1)/n}
	}
	return parts
}

// In reports whether p lies in one of these pieces, which are in order.
func (p Piece) In(there []Piece) bool { return len(Uncovered(there, []Piece{p})) == 0 }

// Uncovered returns the wanted pieces that lie in none of the present pieces. Both lists are in order.
func Uncovered(there, wanted []Piece) (left []Piece) {
	for _, p := range wanted {
		for len(there) > 0 && there[0].Last <= p.First {
			there = there[1:]
		}
		if len(there) == 0 || there[0].First > p.First {
			left = append(left, p)
		}
	}
	return left
}
