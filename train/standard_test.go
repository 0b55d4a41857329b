package train

import (
	"math"
	"testing"
)

// TestColumnsAreStandardised compares means and deviations with those of float64 code, of rows in memory and of streamed rows.
func TestColumnsAreStandardised(t *testing.T) {
	const width = 40
	p := clouds(110_000, width, 3, 4000)
	value := p.Source.(*table).value
	p.Source.(*table).value = func(row int64, column int) float32 {
		switch {
		case column == 3:
			return 0.1 // whose sum is rounded
		case column == 4:
			return 0
		case column == 5 && p.Splits[row] != Train:
			return float32(math.NaN()) // nobody looks at it before the validation
		case column == 5:
			return 7e5
		}
		return 1000*float32(column) + value(row, column)
	}
	o := quick()
	o.Standardize = true
	var want []float32
	for i, budget := range []int64{64 << 20, 15 << 20} {
		f, err := newFitting(p, o, Resources{Budget: testBudget(t, budget)})
		if err != nil {
			t.Fatal(err)
		}
		defer f.free()
		if err := f.load(t.Context(), pool(1+2*i)); err != nil {
			t.Fatal(err)
		}
		if (f.train.values == nil) != (budget < 64<<20) {
			t.Errorf("%d bytes: the rows are in memory: %v", budget, f.train.values != nil)
		}
		if want == nil {
			want = f.statistics.S
		}
		if !sameBits(f.statistics.S, want) {
			t.Error("streamed rows have other means or deviations")
		}
	}
	for column := range width {
		mean, variance, n := 0.0, 0.0, 0.0
		for row, split := range p.Splits {
			if split == Train {
				mean, n = mean+float64(p.Source.(*table).value(int64(row), column)), n+1
			}
		}
		mean /= n
		for row, split := range p.Splits {
			if d := float64(p.Source.(*table).value(int64(row), column)) - mean; split == Train {
				variance += d * d / n
			}
		}
		inverse := 1 / math.Sqrt(variance)
		if 3 <= column && column <= 5 {
			inverse = 0
		}
		if math.Abs(float64(want[column])-mean) > 1e-6*mean || math.Abs(float64(want[width+column])-inverse) > 1e-6*inverse {
			t.Errorf("column %d has mean %v and inverse deviation %v, want %v and %v", column, want[column], want[width+column], mean, inverse)
		}
	}
}

// TestStandardisedColumnsHaveNoUnit multiplies columns by powers of two, and moves nothing else: predictions are the same.
func TestStandardisedColumnsHaveNoUnit(t *testing.T) {
	for _, ridge := range []bool{false, true} {
		o, res := quick(), Resources{Budget: testBudget(t, 32<<20), Threads: 2}
		o.Standardize, o.Ridge, o.Epochs = true, ridge, 20
		p := noisy(300, 6, 3, 0.1)
		want := mustFit(t, p, o, res)
		value := p.Source.(*table).value
		p.Source.(*table).value = func(row int64, column int) float32 {
			return float32(math.Ldexp(float64(value(row, column)), 3*column-8))
		}
		got := mustFit(t, p, o, res)
		if !sameBits(got.Models[0].params, want.Models[0].params) || got.Histories[0].Epochs[got.Histories[0].Best] != want.Histories[0].Epochs[want.Histories[0].Best] {
			t.Errorf("ridge %v: another model", ridge)
		}
	}
}
