package graph

import (
	"fmt"
	"math"
	"strconv"
)

// ParseWeight reads the weight of an edge; problem is "" or says what is wrong with it.
func ParseWeight(text string) (w float32, problem string) {
	if text == "" {
		return 0, "the weight is missing: give each edge one, or leave weight= out"
	}
	v, ok := Number([]byte(text), 64)
	if !ok {
		if v, err := strconv.ParseFloat(text, 64); err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			return Weight(v)
		}
		return 0, "the weight " + Shorten([]byte(text)) + " is no number: weights are decimal numbers above 0, such as 0.5 or 1e-3"
	}
	return Weight(v)
}

// Weight is a number as the weight of an edge; problem is "" or says what is wrong with it.
func Weight(v float64) (w float32, problem string) {
	w = float32(v)
	text := strconv.FormatFloat(v, 'g', -1, 64)
	switch {
	case math.IsNaN(v):
		return 0, "the weight is NaN: correct it, or remove the edge"
	case v <= 0:
		return 0, "the weight is " + text + ": weights are above 0; remove edges of weight 0, and edges between nodes that repel each other"
	case math.IsInf(float64(w), 0):
		return 0, "the weight is " + text + ": weights are finite float32 numbers, up to 3.4e38; scale all weights down"
	case w == 0:
		return 0, "the weight is " + text + ": the smallest float32 is 1.4e-45; scale all weights up"
	}
	return w, ""
}

// NoWeight is the error for a URI with weight= where a file has no weights; why says what it
// has.
func NoWeight(where, why string) error {
	return BadData(where, "%s: leave weight= out of the URI", why)
}

// CheckRepeated checks the key repeated= of a URI, which says what becomes of the weights of
// rows that repeat an edge; weight is the column of weights.
func CheckRepeated(repeated, weight string) error {
	switch {
	case repeated != "" && repeated != "sum":
		return BadURI("repeated=%s: repeated=sum adds up the weights of rows that repeat an edge; leave it out where all rows of an edge have the same weight", repeated)
	case repeated != "" && weight == "":
		return BadURI("repeated=sum adds up weights: name their column with weight=")
	}
	return nil
}

// EdgeRows holds what the rows of one edge, in either direction, state of its weight.
type EdgeRows struct {
	// N is the number of rows.
	N           int64
	least, most float32
	sum         float64
}

// Add takes the weight of a row. The weights of an edge come in ascending order.
func (r *EdgeRows) Add(weight float32) {
	if r.N == 0 {
		r.least = weight
	}
	r.N++
	r.most = weight
	r.sum += float64(weight)
}

// Weight is the weight of the edge: the one that all rows have, or, with add, their sum. problem
// is "" or says what is wrong with it.
func (r EdgeRows) Weight(add bool) (weight float32, problem string) {
	if !add {
		if r.least != r.most {
			return 0, fmt.Sprintf("of its %d rows, in either direction, one has weight %v and another one %v: "+
				"write repeated=sum in the URI to add up the weights of such rows, or give the edge one weight", r.N, r.least, r.most)
		}
		return r.least, ""
	}
	sum := float32(r.sum)
	if math.IsInf(float64(sum), 0) {
		return 0, "its weights add up to more than 3.4e38, the largest float32: scale all weights down before the import"
	}
	return sum, ""
}
