package elementary

import "math"

const (
	// ln2Hi has 20 trailing zero bits: its product with an exponent is exact.
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	// least is the bound below which the powers of two of Exp stop being normal numbers, most the
	// bound above which its result exceeds all numbers.
	least = -708
	most  = 709.782712893384
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
	expSeries   = [14]float64(series(14, 1, func(i int, last float64) float64 { return last / float64(i) }))
	atanhSeries = series(12, 1, func(i int, _ float64) float64 { return 1 / float64(2*i+1) })
	cosSeries   = series(12, 1, func(i int, last float64) float64 { return -last / float64(2*i*(2*i-1)) })
)

// Exp returns e^x within 1e-15 of its value, and 0 below e^-708.
func Exp(x float64) float64 {
	switch {
	case x < least:
		return 0
	case x > most:
		return math.Inf(1)
	case x != x:
		return x
	}
	n := math.Floor(math.FMA(x, math.Log2E, 0.5))
	r := math.FMA(-n, ln2Lo, math.FMA(-n, ln2Hi, x))
	y := expSeries[len(expSeries)-1]
	for i := len(expSeries) - 2; i >= 0; i-- {
		y = math.FMA(y, r, expSeries[i])
	}
	return 2 * y * math.Float64frombits(uint64(1022+int64(n))<<52) // 2^n itself may be too large
}

// Log returns ln x for positive finite x, within 1e-15 of its value or, near 1,
// of 1.
func Log(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1)
	atanh := float64(s * horner(float64(s*s), atanhSeries))
	return float64(float64(e)*ln2Hi) + (2*atanh + float64(float64(e)*ln2Lo))
}

// Pow returns x^y for finite x ≥ 0 and finite y, within 2e-15·max(1, |y ln x|) of its value. Powers
// of 1, and those with the exponents 0, 1, -1, 0.5 and -0.5, are the nearest number, or the
// inverse of the nearest one.
func Pow(x, y float64) float64 {
	switch y {
	case 0:
		return 1
	case 1:
		return x
	case -1:
		return 1 / x
	case 0.5:
		return math.Sqrt(x)
	case -0.5:
		return 1 / math.Sqrt(x)
	}
	if x == 0 {
		if y < 0 {
			return math.Inf(1)
		}
		return 0
	}
	return Exp(y * Log(x))
}

// HalfCosine returns (1 + cos πt)/2 for t in [0, 1]: from 1 down to 0.
func HalfCosine(t float64) float64 {
	half := float64(t * (math.Pi / 2))
	c := horner(float64(half*half), cosSeries)
	return float64(c * c)
}
