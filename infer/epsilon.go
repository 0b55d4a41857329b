package infer

import (
	"context"
	"math"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/share"
	"ndls/shards"
)

// threshold is the distance in feature space below which a new node has settled: that of the
// run, where the run has measured K in the same way, and else the one that fits the K of the
// run best on a sample of old nodes.
func (r *run) threshold(ctx context.Context, sample []uint32, m *means) (float64, error) {
	if r.sameMeasure() {
		return r.plan.LSI.Epsilon, nil
	}
	last := r.hops.last()
	k, total := make([]int, 0, len(sample)), 0
	if err := shards.VisitK(ctx, r.cat, r.cat.Entries(catalog.KindLSI), r.readers(), func(node int64, of int32, _ bool) {
		if len(k) < len(sample) && int64(sample[len(k)]) == node {
			k = append(k, min(int(of), last))
			total += k[len(k)-1]
		}
	}); err != nil {
		return 0, err
	}
	// least[i][k] is the smallest distance of node i up to hop k: K is the first hop at which
	// it is below the threshold.
	least := make([][]float64, len(sample))
	w := r.hops.width()
	if err := share.Each(r.threads, len(sample), func(i int) error {
		rows := make([]float32, (last+1)*w)
		if err := r.hops.row(sample[i], rows); err != nil {
			return err
		}
		d := r.degree1(sample[i])
		scale(rows, elementary.Pow(d, -r.plan.LSI.R))
		at := int(m.of(r, sample[i]))
		up, smallest := elementary.Pow(d, r.plan.LSI.R), math.Inf(1)
		for hop := range last + 1 {
			smallest = min(smallest, up*distance(rows[hop*w:][:w], m.rows.S[at*w:][:w]))
			least[i] = append(least[i], smallest)
		}
		return nil
	}); err != nil {
		return 0, err
	}
	return fitting(least, total), nil
}

// sameMeasure reports whether the run has found K from distances of its features as they are
// stored.
func (r *run) sameMeasure() bool {
	return strings.HasPrefix(r.plan.LSI.Mode, "feature") && r.summary.Normalized
}

// fitting is the threshold with which the sum of K comes nearest to total. It lies half-way, by
// ratio, between two distances. least has the distances of a node, which do not rise; K is the
// first hop at which the distance is below the threshold, and the last hop where none is.
func fitting(least [][]float64, total int) float64 {
	var all []float64
	for _, d := range least {
		all = append(all, d[:len(d)-1]...) // below the last one or not, K is the last hop
	}
	all = slices.DeleteFunc(all, func(d float64) bool { return !(d > 0) })
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return math.SmallestNonzeroFloat64
	}
	// Threshold i is above the i smallest distances.
	at := func(i int) float64 {
		switch {
		case i == 0:
			return all[0] / 2
		case i == len(all):
			return all[i-1] * 2
		}
		return math.Sqrt(all[i-1]) * math.Sqrt(all[i])
	}
	sum := func(i int) (n int) {
		epsilon := at(i)
		for _, d := range least {
			k, _ := slices.BinarySearchFunc(d[:len(d)-1], epsilon, func(d, e float64) int {
				if d >= e {
					return -1
				}
				return 1
			})
			n += k
		}
		return n
	}
	// The sum of K falls as the threshold rises.
	lo, hi := 0, len(all) // sum(hi) is the least
	for lo < hi {
		mid := (lo + hi) / 2
		if sum(mid) <= total {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	if lo > 0 && total-sum(lo) > sum(lo-1)-total {
		lo--
	}
	return at(lo)
}
