package prepare

import (
	"context"
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"ndls/dataset/graph"
	"ndls/internal/elementary"
	"ndls/internal/mem"
)

// MostPoints is the largest number of quantiles of a column.
const MostPoints = 1000

// ranks holds quantiles of a column.
type ranks struct {
	// Count is the number of values of the column. Points holds values in ascending order: those of the ranks that rankOf returns.
	Count  int64     `json:"count"`
	Points []float32 `json:"points"`
}

// numPoints returns the number of quantiles of a column with this number of values.
func numPoints(count int64) int { return int(min(count, MostPoints)) }

// rankOf returns the rank of a quantile, counted from 0.
func rankOf(point int, count int64) int64 {
	if count <= MostPoints {
		return int64(point)
	}
	return int64(point) * (count - 1) / (MostPoints - 1)
}

// at returns the share of the values below a quantile.
func (r *ranks) at(point int) float64 {
	return float64(rankOf(point, r.Count)) / float64(max(r.Count-1, 1))
}

// share returns the share of a number among the values of the column.
func (r *ranks) share(x float32) float64 {
	first, found := slices.BinarySearch(r.Points, x)
	switch {
	case len(r.Points) < 2:
		return 0.5
	case first == len(r.Points):
		return 1
	case !found && first == 0:
		return 0
	case found:
		last := first + sort.Search(len(r.Points)-first, func(i int) bool { return r.Points[first+i] > x }) - 1
		return (r.at(first) + r.at(last)) / 2
	}
	lo, hi := float64(r.Points[first-1]), float64(r.Points[first])
	from := r.at(first - 1)
	return from + float64((float64(x)-lo)/(hi-lo)*(r.at(first)-from))
}

// Coefficients of Wichura's algorithm AS 241 (1988) for the quantiles of the normal distribution.
var (
	centre = [2][]float64{
		{
			3.3871328727963666080e0, 1.3314166789178437745e+2, 1.9715909503065514427e+3, 1.3731693765509461125e+4,
			4.5921953931549871457e+4, 6.7265770927008700853e+4, 3.3430575583588128105e+4, 2.5090809287301226727e+3,
		},
		{
			1, 4.2313330701600911252e+1, 6.8718700749205790830e+2, 5.3941960214247511077e+3,
			2.1213794301586595867e+4, 3.9307895800092710610e+4, 2.8729085735721942674e+4, 5.2264952788528545610e+3,
		},
	}
	tail = [2][]float64{
		{
			1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
			1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
		},
		{
			1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
			1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
		},
	}
)

// leastShare bounds shares, whose quantiles would be infinite at 0 and 1.
const leastShare = 1e-7

// normal returns Φ⁻¹ of a share.
func normal(share float64) float64 {
	share = min(max(share, leastShare), 1-leastShare)
	q := share - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return float64(q*polynomial(centre[0], r)) / polynomial(centre[1], r)
	}
	r := math.Sqrt(-elementary.Log(min(share, 1-share))) - 1.6
	return math.Copysign(polynomial(tail[0], r)/polynomial(tail[1], r), q)
}

// polynomial returns Σ c[i] x^i.
func polynomial(c []float64, x float64) (y float64) {
	for _, a := range slices.Backward(c) {
		y = float64(y*x) + a
	}
	return y
}

// keyOf returns a key that orders numbers by value.
func keyOf(x float32) uint32 {
	if x == 0 {
		x = 0 // -0 is 0
	}
	key := math.Float32bits(x)
	if key>>31 != 0 {
		return ^key
	}
	return key | 1<<31
}

// numberOf returns the number of a key.
func numberOf(key uint32) float32 {
	if key>>31 != 0 {
		return math.Float32frombits(key &^ (1 << 31))
	}
	return math.Float32frombits(^key)
}

// digits lists the bits of a key that each reading counts, from the upper ones on.
var digits = []uint{16, 8, 8}

// search finds the quantiles of a column: each reading counts the next digit of the keys that begin like one of the quantiles.
type search struct {
	column int
	count  int64
	known  uint     // bits of keys that are known
	keys   []uint32 // of the quantiles, as far as they are known
	below  []int64  // for each quantile, the number of values that begin like it and are below it in rank
	starts []uint32 // different keys, in ascending order
	counts *mem.Array[uint32]
}

func newSearch(column int, count int64) *search {
	s := &search{column: column, count: count, starts: []uint32{0}}
	s.keys, s.below = make([]uint32, numPoints(count)), make([]int64, numPoints(count))
	for i := range s.below {
		s.below[i] = rankOf(i, count)
	}
	return s
}

// bytes returns the memory for the counters of the next digit.
func (s *search) bytes(bits uint) int64 { return int64(len(s.starts)) << bits * 4 }

// see counts a number. Several goroutines may call it.
func (s *search) see(x float32, bits uint) {
	key := keyOf(x)
	at, found := 0, true
	if s.known > 0 {
		at, found = slices.BinarySearch(s.starts, key>>(32-s.known))
	}
	if found {
		digit := key >> (32 - s.known - bits) & (1<<bits - 1)
		atomic.AddUint32(&s.counts.S[uint32(at)<<bits|digit], 1)
	}
}

// settle adds the digit that was counted to the keys of the quantiles, which are in ascending order.
func (s *search) settle(bits uint) {
	at, digit, passed := 0, uint32(0), int64(0)
	next := s.starts[:0:0]
	for i, key := range s.keys {
		for s.starts[at] != key {
			at, digit, passed = at+1, 0, 0
		}
		for s.below[i]-passed >= int64(s.counts.S[uint32(at)<<bits|digit]) {
			passed += int64(s.counts.S[uint32(at)<<bits|digit])
			digit++
		}
		s.keys[i], s.below[i] = key<<bits|digit, s.below[i]-passed
		if len(next) == 0 || next[len(next)-1] != s.keys[i] {
			next = append(next, s.keys[i])
		}
	}
	s.starts, s.known = next, s.known+bits
	s.counts.Free()
}

// rank finds the quantiles of columns with these numbers of values, 0 for a column without quantiles.
func rank(ctx context.Context, b *mem.Budget, counts []int64, rows Rows) ([]ranks, error) {
	found := make([]ranks, len(counts))
	var all []*search
	for column, count := range counts {
		if found[column] = (ranks{Count: count}); count > 0 {
			all = append(all, newSearch(column, count))
		}
	}
	for _, bits := range digits {
		for first := 0; first < len(all); {
			end, free := first, b.Free()/2
			for ; end < len(all) && (end == first || all[end].bytes(bits) <= free); end++ {
				free -= all[end].bytes(bits)
			}
			if err := countDigit(ctx, b, all[first:end], bits, rows); err != nil {
				return nil, err
			}
			first = end
		}
	}
	for _, s := range all {
		for _, key := range s.keys {
			found[s.column].Points = append(found[s.column].Points, numberOf(key))
		}
	}
	return found, nil
}

// Readings returns how often Fit reads the rows of a dataset with so many columns, within free bytes.
func Readings(o Options, columns int, free int64) (n int64) {
	if columns == 0 {
		return 0
	}
	n = 1
	if o.Transform != Quantile {
		return n
	}
	for i, bits := range digits {
		starts := int64(1)
		if i > 0 {
			starts = MostPoints
		}
		together := max(free/2/(starts<<bits*4), 1) // columns whose counters fit
		n += (int64(columns) + together - 1) / together
	}
	if o.Fill {
		n++
	}
	return n
}

// countDigit reads the rows once for some columns.
func countDigit(ctx context.Context, b *mem.Budget, some []*search, bits uint, rows Rows) (err error) {
	defer func() {
		for _, s := range some {
			s.counts.Free()
		}
	}()
	for _, s := range some {
		if s.counts, err = mem.Alloc[uint32](b, s.bytes(bits)/4, "quantiles of features"); err != nil {
			return err
		}
	}
	if err := rows(ctx, func() Visit {
		return func(f graph.FeatureRow, _ func() string) error {
			for _, s := range some {
				if x := f.Dense[s.column]; x == x { // not missing
					s.see(x, bits)
				}
			}
			return nil
		}
	}); err != nil {
		return err
	}
	for _, s := range some {
		s.settle(bits)
	}
	return nil
}
