package elementary

import (
	"hash/fnv"
	"math"
	"testing"

	"ndls/internal/rng"
)

// TestNearMath compares with package math.
func TestNearMath(t *testing.T) {
	check := func(name string, x, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
		}
	}
	checkLog := func(x float64) { check("Log", x, Log(x), math.Log(x), 1e-15*max(1, math.Abs(math.Log(x)))) }
	checkExp := func(x float64) { check("Exp", x, Exp(x), math.Exp(x), 2e-15*math.Exp(x)) }
	checkPow := func(x, y float64) {
		check("Pow", x, Pow(x, y), math.Pow(x, y), 4e-15*max(1, math.Abs(y*math.Log(x)))*math.Pow(x, y))
	}
	for _, x := range []float64{1, math.Nextafter(1, 2), math.Nextafter(1, 0), 0.5, math.Sqrt2 / 2, 2, 7, 1e300, 1e-300} {
		checkLog(x)
		checkPow(x, 0.3)
		checkPow(x, -0.7)
	}
	for _, x := range []float64{0, 1, -1, 0.3, -0.3, 700, 709.4, 709.6, 709.78, -700, -707.9, 1e-20, math.Ln2, math.Ln2 / 2, -math.Ln2 / 2} {
		checkExp(x)
	}
	for _, x := range []float64{0, 0.25, 0.5, 0.75, 1} {
		check("HalfCosine", x, HalfCosine(x), (1+math.Cos(math.Pi*x))/2, 1e-15)
	}
	for i := range uint64(10000) {
		x := rng.Float64(rng.Hash(1, i))
		checkLog(100*x + 1e-9)
		checkExp(1400*x - 700)
		checkPow(1e9*x, 2*x-1)
		check("HalfCosine", x, HalfCosine(x), (1+math.Cos(math.Pi*x))/2, 1e-15)
	}
}

// TestLimits has arguments at and beyond the limits.
func TestLimits(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{Exp(0), 1},
		{Exp(-709), 0},
		{Exp(math.Inf(-1)), 0},
		{Exp(710), math.Inf(1)},
		{Exp(math.Inf(1)), math.Inf(1)},
		{Log(1), 0},
		{Pow(1, 0.3), 1},
		{Pow(5, 0), 1},
		{Pow(5, 1), 5},
		{Pow(4, 0.5), 2},
		{Pow(4, -0.5), 0.5},
		{Pow(4, -1), 0.25},
		{Pow(0, 0.3), 0},
		{Pow(0, -0.3), math.Inf(1)},
	} {
		if c.got != c.want {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
	if x := Exp(math.NaN()); x == x {
		t.Errorf("e to the power of no number is %v", x)
	}
}

// TestBits has the same bits on every processor.
func TestBits(t *testing.T) {
	sum := fnv.New64a()
	add := func(x float64) {
		bits := math.Float64bits(x)
		for range 8 {
			_, _ = sum.Write([]byte{byte(bits)})
			bits >>= 8
		}
	}
	for i := range uint64(10000) {
		x := rng.Float64(rng.Hash(2, i))
		add(Exp(1400*x - 700))
		add(Log(1e6 * x))
		add(Pow(1e6*x, 0.3))
		add(HalfCosine(x))
	}
	if got, want := sum.Sum64(), uint64(0x1006ae116c3ca234); got != want {
		t.Errorf("the hash of the results is %#x, want %#x", got, want)
	}
}
