// Package chebyshev writes powers as sums of Chebyshev's polynomials.
//
//	x^k = Σ_j c_kj T_j(x)
//
// c_kj is the probability that a walk of k steps ±1 ends at distance j from where it began. It is not negative, Σ_j c_kj is 1, c_kj is 0
// if j > k or if one of k and j is even and the other odd, and nearly all of it is at j ≤ 3√k (Sachdeva and Vishnoi 2014, theorem 3.3).
package chebyshev

// Coefficients goes through c_kj for all k, one j after the other.
type Coefficients struct {
	j int
	// c holds c_kj for k = 0, 1, …, of the even and of the odd j seen last.
	c [2][]float64
}

// New returns the coefficients of the powers 0 to n-1 at j = 0.
func New(n int) *Coefficients {
	x := &Coefficients{c: [2][]float64{make([]float64, n), make([]float64, n)}}
	for k := range n {
		switch first := x.c[k%2]; {
		case k < 2:
			first[k] = 1
		case k%2 == 0:
			first[k] = first[k-2] * float64(k-1) / float64(k)
		default:
			first[k] = first[k-2] * float64(k) / float64(k+1)
		}
	}
	return x
}

// Next goes on to the next j.
func (x *Coefficients) Next() {
	x.j++
	if x.j < 2 {
		return
	}
	c, j := x.c[x.j%2], x.j-2
	for k := x.j % 2; k < len(c); k += 2 {
		if j == 0 {
			c[k] *= 2
		}
		c[k] *= float64(k-j) / float64(k+j+2) // 0 where k < j+2
		if k < x.j {
			c[k] = 0
		}
	}
}

// Degree returns j.
func (x *Coefficients) Degree() int { return x.j }

// At returns c_kj.
func (x *Coefficients) At(k int) float64 {
	if k%2 != x.j%2 {
		return 0
	}
	return x.c[k%2][k]
}

// Degree returns the least J for which Σ_{j>J} c_kj is at most tolerance.
func Degree(k int, tolerance float64) int {
	x, left := New(k+1), 1.0
	for left -= x.At(k); left > tolerance && x.j < k; left -= x.At(k) {
		x.Next()
	}
	return x.j
}
