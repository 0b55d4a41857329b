package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
	"ndls/internal/elementary"
)

// Rows of features are divided by their L1 norms where that helps a network, which depends on
// what rows are. In a bag of words the number of words differs from row to row, and mostly says
// little; the norm takes it out. But the length of a row that is spread over n entries becomes
// 1/√n by it: with hundreds of entries the inputs of a network are so small that it does not learn
// in the epochs it has. Elsewhere, in embeddings and in measured numbers, the length of a row
// is information. So auto divides by norms if rows look like bags of a few words: no value is
// negative, most are zero, and a row is spread over few entries. Of such rows it asks the nodes
// that train and validate whether their lengths tell classes apart. If they do, rows stay as they are.

const (
	// normSample is how many rows, from the first on, decide whether rows are bags of a few words,
	// lengthSample how many are searched for nodes that train or validate.
	normSample   = 1 << 12
	lengthSample = 1 << 20
	// mostFilled is the largest share of entries that are not zero, mostSpread the largest
	// mean number of entries that a row is spread over, in a bag of a few words.
	mostFilled = 0.5
	mostSpread = 100
	// mostTold is the largest share of the variance of log Σ|x| that may lie between classes. It
	// takes fewest rows of each class, on average, to tell.
	mostTold = 0.05
	fewest   = 10
)

// classOf says whether the node of an id counts, and of what class it is; noLabel stands for
// nodes without one, and for those whose label must not be looked at.
type classOf func(id uint32) (class int32, counts bool)

// rowKind is what rows of features are like.
type rowKind struct {
	rows     int
	negative bool
	// filled is the share of entries that are not zero.
	filled float64
	// spread is the mean of (Σ|x|)² / Σx² over the rows that are not zero: the number of
	// entries of a row whose entries are alike.
	spread float64
	// told is the share of the variance of log Σ|x| that lies between classes (ω²), 0 where too
	// few rows have a class, or where it does not matter.
	told float64
}

// lookAtRows reads the first rows of features of the nodes that count.
func lookAtRows(ctx context.Context, ds dataset.Dataset, of classOf) (k rowKind, err error) {
	r, err := ds.Features(ctx)
	if err != nil {
		return k, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	entries, spread := 0.0, 0.0
	width := math.Max(float64(ds.Info().NumFeatures), 1)
	var lengths lengthsOf
	for rows := 0; rows < lengthSample && (rows < normSample || k.bag()) && ctx.Err() == nil; {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return k, err
		}
		class, counts := of(row.ID)
		if !counts {
			continue
		}
		sum, squares, filled := 0.0, 0.0, 0
		for _, values := range [][]float32{row.Dense, row.Values} {
			for _, x := range values {
				if x != 0 {
					filled++
				}
				k.negative = k.negative || x < 0 && rows < normSample
				sum += math.Abs(float64(x))
				squares += float64(float64(x) * float64(x))
			}
		}
		if rows++; rows <= normSample {
			k.rows = rows
			entries += float64(filled)
			if squares > 0 {
				k.spread += (sum*sum/squares - k.spread) / (spread + 1)
				spread++
			}
			k.filled = entries / (float64(k.rows) * width)
		}
		if class != noLabel && sum > 0 {
			lengths.add(class, elementary.Log(sum))
		}
	}
	if k.bag() {
		k.told = lengths.told()
	}
	return k, ctx.Err()
}

// lengthsOf adds up numbers by class.
type lengthsOf struct {
	sums    []float64
	counts  []float64
	squares float64
}

func (l *lengthsOf) add(class int32, x float64) {
	for int(class) >= len(l.sums) {
		l.sums, l.counts = append(l.sums, 0), append(l.counts, 0)
	}
	l.sums[class] += x
	l.counts[class]++
	l.squares += float64(x * x)
}

// told is ω², the share of the variance that lies between classes, without what lies between
// them by chance (Hays, Statistics, 1963). It is 0 where there are too few numbers.
func (l *lengthsOf) told() float64 {
	var n, sum, between, classes float64
	for c, count := range l.counts {
		if count == 0 {
			continue
		}
		classes++
		n += count
		sum += l.sums[c]
		between += float64(l.sums[c] * l.sums[c] / count)
	}
	if classes < 2 || n < fewest*classes {
		return 0
	}
	mean := float64(sum * sum / n)
	all := l.squares - mean
	between -= mean
	within := (all - between) / (n - classes)
	if all <= 0 {
		return 0
	}
	return max((between-float64((classes-1)*within))/(all+within), 0)
}

// bag says whether rows look like bags of a few words.
func (k rowKind) bag() bool {
	return !k.negative && k.filled <= mostFilled && k.spread <= mostSpread
}

// l1 says whether rows are divided by their L1 norms.
func (k rowKind) l1() bool { return k.bag() && k.told <= mostTold }

// String says what was chosen, and why.
func (k rowKind) String() string {
	choice, sign := NormalizeNone, "none is negative"
	if k.l1() {
		choice = NormalizeL1
	}
	if k.negative {
		sign = "some are negative"
	}
	text := fmt.Sprintf("auto chose %s: of the first %d feature rows, %.3g %% of the values are not zero, %s, and a row is spread over %.3g of them", choice, k.rows, 100*k.filled, sign, k.spread)
	if k.bag() && !k.l1() {
		text += fmt.Sprintf("; but the lengths of rows tell classes apart: of their variance, %.3g %% lie between classes", 100*k.told)
	}
	return text
}

// Normalizes says whether Options.Normalize has rows of features of a dataset divided by the sum
// of their absolute values. Where the option leaves it open, the rows decide, and choice
// says why. classes has the class of each node, by id; it may be nil.
func Normalizes(ctx context.Context, option string, ds dataset.Dataset, classes []int32) (l1 bool, choice string, err error) {
	return normalizes(ctx, option, ds, func(id uint32) (int32, bool) {
		if int64(id) < int64(len(classes)) {
			return classes[id], true
		}
		return noLabel, true
	})
}

func normalizes(ctx context.Context, option string, ds dataset.Dataset, of classOf) (l1 bool, choice string, err error) {
	if option != "" && option != NormalizeAuto {
		return option == NormalizeL1, "", nil
	}
	k, err := lookAtRows(ctx, ds, of)
	return k.l1(), k.String(), err
}

// knownClass is the class of the node of an id if the node trains or validates.
func (j *job) knownClass(labels []int32, splits []uint8) classOf {
	return func(id uint32) (class int32, counts bool) {
		if !j.holds(id) {
			return noLabel, false
		}
		rank, ok := j.ids.rank(id)
		if !ok {
			return noLabel, true
		}
		node := j.nodeOf.S[rank]
		switch dataset.Split(splits[node]) {
		case dataset.Train, dataset.Valid:
			return labels[node], true
		}
		return noLabel, true
	}
}
