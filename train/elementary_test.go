package train

import (
	"math"
	"testing"

	"ndls/internal/rng"
)

func TestElementaryFunctions(t *testing.T) {
	check := func(name string, x, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance) {
			t.Errorf("%s(%v) = %v, want %v", name, x, got, want)
		}
	}
	for _, x := range []float64{1, math.Nextafter(1, 2), math.Nextafter(1, 0), 0.5, math.Sqrt2 / 2, 2, 7, 1e300, 1e-300} {
		check("log", x, log(x), math.Log(x), 1e-15*max(1, math.Abs(math.Log(x))))
	}
	for _, x := range []float64{0, 0.25, 0.5, 0.75, 1} {
		check("halfCosine", x, halfCosine(x), (1+math.Cos(math.Pi*x))/2, 1e-15)
	}
	for i := range uint64(10000) {
		x := rng.Float64(rng.Hash(1, i))
		check("log", 100*x+1e-9, log(100*x+1e-9), math.Log(100*x+1e-9), 1e-15*max(1, math.Abs(math.Log(100*x+1e-9))))
		check("halfCosine", x, halfCosine(x), (1+math.Cos(math.Pi*x))/2, 1e-15)
	}
}
