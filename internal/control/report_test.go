package control_test

import (
	"math"
	"testing"

	"ndls/internal/control"
)

func TestSpreadOf(t *testing.T) {
	for _, c := range []struct {
		name      string
		x         []float64
		mean, std float64
	}{
		{"none", nil, 0, 0},
		{"one", []float64{0.8}, 0.8, 0},
		{"sample deviation", []float64{2, 4, 4, 4, 5, 5, 7, 9}, 5, math.Sqrt(32.0 / 7)},
	} {
		got := control.SpreadOf(c.x, 1)
		if math.Abs(got.Mean-c.mean) > 1e-15 || math.Abs(got.Std-c.std) > 1e-15 {
			t.Errorf("%s: %+v, want %v and %v", c.name, got, c.mean, c.std)
		}
	}
}
