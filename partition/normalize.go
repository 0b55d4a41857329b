package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
)

// Rows of features are divided by their L1 norms where that helps a network, which depends on
// what rows are. In a bag of words the number of words differs from row to row, and says little;
// the norm takes it out. But the length of a row that is spread over n entries becomes
// 1/√n by it: with hundreds of entries the inputs of a network are so small that it does not learn
// in the epochs it has. Elsewhere, in embeddings and in measured numbers, the length of a row
// is information. So auto divides by norms if rows look like bags of a few words: no value is
// negative, most are zero, and a row is spread over few entries.

const (
	// normSample is how many rows, from the first on, decide on the normalisation.
	normSample = 4096
	// mostFilled is the largest share of entries that are not zero, mostSpread the largest
	// mean number of entries that a row is spread over, in a bag of a few words.
	mostFilled = 0.5
	mostSpread = 100
)

// rowKind is what the first rows of features are like.
type rowKind struct {
	rows     int
	negative bool
	// filled is the share of entries that are not zero.
	filled float64
	// spread is the mean of (Σ|x|)² / Σx² over the rows that are not zero: the number of
	// entries of a row whose entries are alike.
	spread float64
}

// lookAtRows reads the first rows of features of the nodes that count.
func lookAtRows(ctx context.Context, ds dataset.Dataset, holds func(id uint32) bool) (k rowKind, err error) {
	r, err := ds.Features(ctx)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	entries, spread := 0, 0
	for k.rows < normSample && ctx.Err() == nil {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return k, err
		}
		if !holds(row.ID) {
			continue
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
	}
	k.filled = float64(entries) / math.Max(float64(k.rows)*float64(ds.Info().NumFeatures), 1)
	k.spread /= math.Max(float64(spread), 1)
	return k, ctx.Err()
}

// l1 says whether rows are divided by their L1 norms.
func (k rowKind) l1() bool {
	return !k.negative && k.filled <= mostFilled && k.spread <= mostSpread
}

// String says what was chosen, and why.
func (k rowKind) String() string {
	choice, sign := NormalizeNone, "none is negative"
	if k.l1() {
		choice = NormalizeL1
	}
	if k.negative {
		sign = "some are negative"
	}
	return fmt.Sprintf("auto chose %s: of the first %d feature rows, %.3g %% of the values are not zero, %s, and a row is spread over %.3g of them", choice, k.rows, 100*k.filled, sign, k.spread)
}

// Normalizes says whether Options.Normalize has rows of features of a dataset divided by the sum
// of their absolute values. Where the option leaves it open, the first rows decide, and choice
// says why.
func Normalizes(ctx context.Context, option string, ds dataset.Dataset) (l1 bool, choice string, err error) {
	return normalizes(ctx, option, ds, func(uint32) bool { return true })
}

// normalizes is [Normalizes] of the nodes that holds tells.
func normalizes(ctx context.Context, option string, ds dataset.Dataset, holds func(id uint32) bool) (l1 bool, choice string, err error) {
	if option != "" && option != NormalizeAuto {
		return option == NormalizeL1, "", nil
	}
	k, err := lookAtRows(ctx, ds, holds)
	return k.l1(), k.String(), err
}
