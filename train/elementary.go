package train

import "math"

// The functions of package math are a few units in the last place away from
// each other on processors with and without fused multiply-add, and so would be
// the weights. These use single operations only, each rounded once.

const (
	// ln2Hi has 20 trailing zero bits: its product with an exponent is exact.
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
)

// horner evaluates Σ c[i] x^i.
func horner(x float64, c []float64) float64 {
	sum := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		sum = float64(sum*x) + c[i]
	}
	return sum
}

// series lists n coefficients, each made from its predecessor.
func series(n int, first float64, next func(i int, last float64) float64) []float64 {
	c := []float64{first}
	for i := 1; i < n; i++ {
		c = append(c, next(i, c[i-1]))
	}
	return c
}

var (
	atanhSeries = series(12, 1, func(i int, _ float64) float64 { return 1 / float64(2*i+1) })
	cosSeries   = series(12, 1, func(i int, last float64) float64 { return -last / float64(2*i*(2*i-1)) })
)

// log returns ln x for positive finite x, within 1e-15 of its value or, near 1,
// of 1.
func log(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1)
	atanh := float64(s * horner(float64(s*s), atanhSeries))
	return float64(float64(e)*ln2Hi) + (2*atanh + float64(float64(e)*ln2Lo))
}

// halfCosine returns (1 + cos πt)/2 for t in [0, 1]: from 1 down to 0.
func halfCosine(t float64) float64 {
	half := float64(t * (math.Pi / 2))
	c := horner(float64(half*half), cosSeries)
	return float64(c * c)
}
