package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
	"ndls/dataset/prepare"
	"ndls/internal/elementary"
)

// Features are divided by the L1 norms of their rows if that helps a network, which depends on the rows. In a bag of words the number of
// words mostly says little, and the norm removes it. But a row that is spread over n entries then has length 1/√n; with hundreds of entries
// the inputs of a network are too small to learn from in the given epochs. In embeddings and measured numbers, the length is information.
// So auto divides by norms if rows look like bags of a few words: no value is negative, most are zero, and a row is spread over few
// entries. If neighbours share their lengths, the length says something about a node, and rows stay as they are.

const (
	// normSample is the number of first rows that decide whether rows are bags of a few words; edgeSample is the number of first edges that
	// decide whether neighbours share their lengths.
	normSample = 1 << 12
	edgeSample = 1 << 16
	// In a bag of a few words, mostFilled is the largest share of entries that are not zero, and mostSpread the largest mean number of
	// entries over which a row is spread.
	mostFilled = 0.5
	mostSpread = 100
	// mostShared is the largest correlation of log Σ|x| at the ends of edges, measured on fewestEdges or more.
	mostShared  = 1.0 / 6
	fewestEdges = 100
	// Columns with other units than the rest have nearly all of a row: of its entries beyond the first, it is spread over leastSpread or
	// less. Of normally distributed numbers with the same deviation that share is 0.6.
	leastSpread = 0.1
)

// rowKind describes rows of features.
type rowKind struct {
	rows     int
	columns  int
	negative bool
	// filled is the share of entries that are not zero.
	filled float64
	// spread is the mean of (Σ|x|)² / Σx² over the rows that are not zero: the number of entries of a row if they are equal.
	spread float64
	// shared is the correlation of log Σ|x| at the ends of edges; 0 if rows are not bags of a few words, or with too few edges.
	shared float64
}

// lookAtRows reads the first feature rows of the nodes that belong to the graph.
func lookAtRows(ctx context.Context, ds dataset.Dataset, holds func(id uint32) bool) (k rowKind, err error) {
	entries, spread := 0, 0
	if err := someRows(ctx, ds, func(row dataset.FeatureRow) bool {
		if !holds(row.ID) {
			return true
		}
		k.rows++
		sum, squares := 0.0, 0.0
		for _, values := range [][]float32{row.Dense, row.Values} {
			for _, x := range values {
				if x != 0 {
					entries++
				}
				k.negative = k.negative || x < 0
				sum += math.Abs(float64(x))
				squares += float64(float64(x) * float64(x))
			}
		}
		if squares > 0 {
			k.spread += sum * sum / squares
			spread++
		}
		return k.rows < normSample
	}); err != nil {
		return k, err
	}
	k.columns = ds.Info().NumFeatures
	k.filled = float64(entries) / math.Max(float64(k.rows)*float64(k.columns), 1)
	k.spread /= math.Max(float64(spread), 1)
	if k.bag() {
		k.shared, err = sharedLengths(ctx, ds, holds)
	}
	return k, err
}

// someRows visits rows of features until visit returns false.
func someRows(ctx context.Context, ds dataset.Dataset, visit func(row dataset.FeatureRow) bool) error {
	r, err := ds.Features(ctx, dataset.Whole)
	if err != nil {
		return err
	}
	return eachRow(ctx, r, nil, func(int64) error {
		row, err := r.Next()
		if err == nil && !visit(row) {
			err = io.EOF
		}
		return err
	})
}

// errEnough ends a visit of edges.
var errEnough = errors.New("enough edges")

// sharedLengths returns the correlation of log Σ|x| at the two ends of an edge, over the first edges between nodes of the graph.
func sharedLengths(ctx context.Context, ds dataset.Dataset, holds func(id uint32) bool) (float64, error) {
	var edges []dataset.Edge
	lengths := map[uint32]float64{}
	if err := dataset.EachEdges(ctx, ds, func(batch []dataset.Edge) error {
		for _, e := range batch {
			if e.U == e.V || !holds(e.U) || !holds(e.V) {
				continue
			}
			edges = append(edges, e)
			lengths[e.U], lengths[e.V] = 0, 0
			if len(edges) == edgeSample {
				return errEnough
			}
		}
		return nil
	}); err != nil && !errors.Is(err, errEnough) {
		return 0, err
	}
	left := len(lengths)
	if err := someRows(ctx, ds, func(row dataset.FeatureRow) bool {
		if _, wanted := lengths[row.ID]; wanted {
			sum := 0.0
			for _, values := range [][]float32{row.Dense, row.Values} {
				for _, x := range values {
					sum += math.Abs(float64(x))
				}
			}
			lengths[row.ID] = sum
			left--
		}
		return left > 0
	}); err != nil {
		return 0, err
	}
	var n, sum, squares, products float64
	for _, e := range edges {
		u, v := lengths[e.U], lengths[e.V]
		if u == 0 || v == 0 {
			continue
		}
		u, v = elementary.Log(u), elementary.Log(v)
		n += 2
		sum += u + v
		squares += float64(u*u) + float64(v*v)
		products += float64(u * v)
	}
	mean := sum / math.Max(n, 1)
	variance := squares - float64(sum*mean)
	if n < 2*fewestEdges || variance <= 0 {
		return 0, nil
	}
	return (float64(2*products) - float64(sum*mean)) / variance, nil
}

// bag reports whether rows look like bags of a few words.
func (k rowKind) bag() bool {
	return !k.negative && k.filled <= mostFilled && k.spread <= mostSpread
}

// uneven reports whether few of the columns decide what rows are: most entries are not zero, and nearly all of a row is in a few of them.
func (k rowKind) uneven() bool {
	return k.filled > mostFilled && k.columns > 2 && k.spread-1 <= leastSpread*(float64(k.filled*float64(k.columns))-1)
}

// l1 reports whether rows are divided by their L1 norms.
func (k rowKind) l1() bool { return k.bag() && k.shared <= mostShared }

// String returns the choice and its reasons.
func (k rowKind) String() string {
	choice, sign := NormalizeNone, "none is negative"
	if k.l1() {
		choice = NormalizeL1
	}
	if k.negative {
		sign = "some are negative"
	}
	text := fmt.Sprintf("auto chose %s: of the first %d feature rows, %.3g %% of the values are not zero, %s, and a row is spread over %.3g of them", choice, k.rows, 100*k.filled, sign, k.spread)
	if k.bag() {
		text += fmt.Sprintf("; the lengths of neighbours correlate by %.2f", k.shared)
	} else if k.uneven() {
		text += "; if a few columns have larger units than the others, give all the same scale (--normalize quantile), or --input-norm standard"
	}
	return text
}

// Normalizes reports whether Options.Normalize divides the feature rows of a dataset with these columns by the sum of their absolute
// values. If the option leaves it open, the first rows and edges decide, and choice gives the reasons.
func Normalizes(ctx context.Context, option string, ds dataset.Dataset, c *prepare.Columns) (l1 bool, choice string, err error) {
	return normalizes(ctx, option, ds, c, func(uint32) bool { return true })
}

// normalizes is [Normalizes] for the nodes for which holds returns true.
func normalizes(ctx context.Context, option string, ds dataset.Dataset, c *prepare.Columns, holds func(id uint32) bool) (
	l1 bool, choice string, err error,
) {
	switch {
	case option != "" && option != NormalizeAuto:
		return option == NormalizeL1, "", nil
	case c != nil:
		return false, "auto chose none: columns of the table are filled or are categories", nil
	}
	k, err := lookAtRows(ctx, ds, holds)
	return k.l1(), k.String(), err
}
