package lsi

import (
	"math"
	"sync"

	"ndls/internal/chebyshev"
	"ndls/internal/elementary"
	"ndls/internal/packed"
	"ndls/spmv"
)

const (
	// plainHops is the least number of hops that are made one by one before [Options.Tolerance] cuts short. Further ones are multiples of
	// plainStep.
	plainHops, plainStep = window, 16
	// fewOpen is the share of edges into open rows up to which rows that stand are looked for after more than plainHops hops.
	fewOpen = 1. / 256
	// laterPlain bounds the number of further hops that are made one by one until rows that stand are left out. The products of a node
	// begin with as many squared lengths.
	laterPlain = 8
	// mostHops bounds Kmax where polynomials replace hops. The weights of all hops are then a few MiB.
	mostHops = 1 << 12
	// addedError is the part of the tolerance by which rows that stand for polynomials may add to what is left out.
	addedError = 0x1p-6
)

// openShare bounds the nodes whose hops after plainHops are made of polynomials: one of so many. Rows are kept of each of them, and added
// in memory, so that graphs with more of them, such as Cora and web graphs, are faster hop by hop. Tests change it.
var openShare int64 = 5

// series says how hops after one of them are made of Chebyshev's polynomials of the rows then. Hops are so much alike that few sums of
// polynomials, the basis, make all of them:
//
//	B_q = Σ_j u_qj T_j    Z^(from+h) = Σ_q r_hq B_q
//
// Even hops have even polynomials only, and odd hops odd ones, so each parity has a basis of its own. The squared length of a row
// after each hop follows from the products of the rows B_q with each other. Products add up over columns.
type series struct {
	from   int // the hop before
	hops   int // after it, up to Kmax
	degree int // passes
	// basis holds, by parity and q, the weights u of T_parity, T_parity+2, …
	basis [2][][]float32
	// parts holds, for each hop, the weights r of the basis of its parity.
	parts [][]float64
	// off holds, for each hop, the largest share of the row at from by which its row is off.
	off []float64
}

// series returns the polynomials by which the options replace hops after one of them. Its degree is 0 if they replace none.
func (o Options) series(from int) *series {
	if !(o.Tolerance > 0) || o.Kmax-from < 2 || o.Kmax > mostHops {
		return &series{}
	}
	key := seriesKey{from, o.Kmax - from, o.Tolerance}
	if s, ok := knownSeries.Load(key); ok {
		return s.(*series)
	}
	s, _ := knownSeries.LoadOrStore(key, newSeries(from, key.hops, key.tolerance))
	return s.(*series)
}

// most returns those after plainHops, which are the most that there can be.
func (o Options) most() *series { return o.series(plainHops) }

type seriesKey struct {
	from, hops int
	tolerance  float64
}

// knownSeries has the series that this process has asked for: plans ask for the same one many times.
var knownSeries sync.Map

func newSeries(from, hops int, tolerance float64) *series {
	s := &series{from: from, hops: hops, degree: chebyshev.Degree(hops, tolerance)}
	if s.degree < 1 || s.degree >= hops {
		return &series{}
	}
	left := make([][]float64, hops+1) // of each hop, what the basis so far does not make
	s.parts, s.off = make([][]float64, hops+1), make([]float64, hops+1)
	for h := range left {
		left[h], s.off[h] = make([]float64, (s.degree-h%2)/2+1), 1
	}
	for x := chebyshev.New(hops + 1); x.Degree() <= s.degree; x.Next() {
		for h := x.Degree() % 2; h <= hops; h += 2 {
			left[h][x.Degree()/2] = x.At(h)
			s.off[h] -= x.At(h)
		}
	}
	for parity := range s.basis {
		for s.extend(parity, left, tolerance*addedError) { //nolint:revive // extend does the work
		}
	}
	for h, weights := range left {
		s.off[h] = max(s.off[h], 0)
		if h <= s.degree {
			s.off[h] = 0 // no polynomial is left out
		}
		for _, x := range weights {
			s.off[h] += math.Abs(x)
		}
	}
	return s
}

// extend adds the hop to the basis of a parity of which most is left, with length 1, and takes its part away from all hops. It reports
// false if no hop has more left than limit.
func (s *series) extend(parity int, left [][]float64, limit float64) bool {
	most, largest := 0, 0.0
	for h := parity; h <= s.hops; h += 2 {
		if square := dot(left[h], left[h]); square > largest {
			most, largest = h, square
		}
	}
	length := math.Sqrt(largest)
	if length <= limit {
		return false
	}
	u, weights := make([]float64, len(left[most])), make([]float32, len(left[most]))
	for j, x := range left[most] {
		u[j] = x / length
		weights[j] = float32(u[j])
	}
	for h := parity; h <= s.hops; h += 2 {
		part := 0.0
		for range 2 { // the second time takes away what rounding left
			x := dot(u, left[h])
			part += x
			for j := range u {
				left[h][j] -= float64(x * u[j])
			}
		}
		s.parts[h] = append(s.parts[h], part)
	}
	s.basis[parity] = append(s.basis[parity], weights)
	return true
}

const (
	// halfError, over the root of the number of columns, and floatError bound by how much rounding of float16 and of float32 rows changes a
	// distance, as a share of the distance before polynomials. TestPolynomialsAreOff measures them.
	halfError, floatError = 0x1p-6, 0x1p-20
)

// rounding returns that share for rows of so many panels of a probe.
func rounding(p spmv.Precision, panels int) float64 {
	if p == spmv.Float16 {
		return halfError / math.Sqrt(float64(panels*packed.PanelColumns))
	}
	return floatError
}

// dot returns the product of two rows, in the same order on every processor.
func dot(a, b []float64) (sum float64) {
	for i, x := range a {
		sum += float64(x * b[i])
	}
	return sum
}

// basisRows returns the number of rows of both bases.
func (s *series) basisRows() int { return len(s.basis[0]) + len(s.basis[1]) }

// products returns the number of values of a node: its squared lengths after up to laterPlain hops, -1 or less for those that are not made,
// then the products of even rows, then of odd ones, each with itself and the rows before it.
func (s *series) products() int {
	even, odd := len(s.basis[0]), len(s.basis[1])
	return laterPlain + even*(even+1)/2 + odd*(odd+1)/2
}

// plain returns the squared lengths of the row of a node after the hops that are made one by one, from its products.
func plain(products []float64) []float64 {
	n := 0
	for n < laterPlain && products[n] >= 0 {
		n++
	}
	return products[:n]
}

// square returns the squared length of the row of a node h hops after the last one that is made by itself, from the node's products.
func (s *series) square(h int, products []float64) (sum float64) {
	products = products[laterPlain:]
	if h%2 == 1 {
		even := len(s.basis[0])
		products = products[even*(even+1)/2:]
	}
	for a, part := range s.parts[h] {
		before := products[:a+1]
		products = products[a+1:]
		x := 0.0
		for b, y := range before[:a] {
			x += float64(y * s.parts[h][b])
		}
		sum += float64(part * (float64(2*x) + float64(before[a]*part)))
	}
	return max(sum, 0)
}

// PlainHops is the least number of hops after which the options replace hops by polynomials if that pays, 0 if they never do.
func (o Options) PlainHops() int {
	if o.most().degree == 0 {
		return 0
	}
	return plainHops
}

// NextPlain returns the next number of hops after which polynomials may replace the others, Kmax if they never do.
func (o Options) NextPlain(from int) int {
	switch {
	case o.PlainHops() == 0:
		return o.Kmax
	case from < plainHops:
		return plainHops
	default:
		return min((from/plainStep+1)*plainStep, o.Kmax)
	}
}

// Few reports whether polynomials make the hops after one of them, of a graph with so many nodes, if K of so many nodes is unknown one hop
// before, and of so many then.
//
// First, it is one of the hops of NextPlain. Second, these nodes are at most one of openShare. Third, more hops are expected than passes
// ([MoreThan]). The answer depends on nothing else, so that all ways to compute a table have the same.
func (o Options) Few(from int, nodes, before, left int64) bool {
	if from < plainHops || o.NextPlain(from-1) != from || left == 0 || left > nodes/openShare {
		return false
	}
	passes := o.series(from).degree
	return passes > 0 && MoreThan(passes, before, left)
}

// MoreThan reports whether at least so many hops are expected until K of all nodes is known, if K of so many was unknown one hop before and
// of so many is now: that their number goes on to fall by the same factor with each hop.
func MoreThan(hops int, before, left int64) bool {
	return elementary.Log(float64(left)) >= float64(hops)*elementary.Log(float64(before)/float64(left))
}

// MostOpen returns the largest number of nodes, of a range of n rows of a graph with so many nodes, of which polynomials make hops.
func MostOpen(n, nodes int64) int64 { return min(n, nodes/openShare) }

// FewPasses returns the number of passes that make the hops after PlainHops.
func (o Options) FewPasses() int { return o.most().degree }

// Products returns how many float64 values stand for the hops after one of them, of a node and panel.
func (o Options) Products(from int) int { return o.series(from).products() }

// addProducts adds the products of the rows of the bases of a node to its products. rows holds 16 values of each row, those of the even
// basis first.
func (s *series) addProducts(products []float64, rows []float64) {
	products = products[laterPlain:]
	for _, basis := range s.basis {
		for a := range basis {
			last := (*[packed.PanelColumns]float64)(rows[a*packed.PanelColumns:])
			out := products[:a+1]
			for b := range out {
				out[b] += product(last, (*[packed.PanelColumns]float64)(rows[b*packed.PanelColumns:]))
			}
			products = products[a+1:]
		}
		rows = rows[len(basis)*packed.PanelColumns:]
	}
}

// product returns Σ a_c b_c: four sums of every fourth column, which are added in pairs.
func product(a, b *[packed.PanelColumns]float64) float64 {
	s0 := float64(a[0]*b[0]) + float64(a[4]*b[4]) + float64(a[8]*b[8]) + float64(a[12]*b[12])
	s1 := float64(a[1]*b[1]) + float64(a[5]*b[5]) + float64(a[9]*b[9]) + float64(a[13]*b[13])
	s2 := float64(a[2]*b[2]) + float64(a[6]*b[6]) + float64(a[10]*b[10]) + float64(a[14]*b[14])
	s3 := float64(a[3]*b[3]) + float64(a[7]*b[7]) + float64(a[11]*b[11]) + float64(a[15]*b[15])
	return (s0 + s1) + (s2 + s3)
}
