package train

import (
	"math"
	"testing"
)

func TestTally(t *testing.T) {
	var tally Tally
	tally.Add(nil, nil, nil)
	tally.Add([]float32{0.6, 0.4, 0.1, 0.9, 0.5, 0.5, 0.2, 0.8},
		[]int32{0, 0, 0, -1}, []uint8{Train, Train, Test, Test})
	tally.Add([]float32{0.1, 0.9}, []int32{1}, []uint8{Test})
	for split, want := range map[uint8]struct {
		share float64
		rows  int64
	}{Train: {0.5, 2}, Test: {1, 2}, Valid: {0, 0}, NoSplit: {0, 0}} {
		if share, rows := tally.Accuracy(split); share != want.share || rows != want.rows {
			t.Errorf("split %d: %v of %d rows, want %v", split, share, rows, want)
		}
	}
}

func TestArgmax(t *testing.T) {
	for want, p := range [][]float32{{0.5, 0.5, 0}, {0.1, 0.8, 0.1}, {0, 0.4, 0.6}} {
		if got := Argmax(p); got != int32(want) {
			t.Errorf("Argmax(%v) = %d, want %d", p, got, want)
		}
	}
}

func TestSummarize(t *testing.T) {
	for _, c := range []struct {
		name string
		x    []float64
		want Stat
	}{
		{"none", nil, Stat{}},
		{"one", []float64{0.8}, Stat{0.8, 0}},
		{"sample deviation", []float64{2, 4, 4, 4, 5, 5, 7, 9}, Stat{5, math.Sqrt(32.0 / 7)}},
	} {
		got := Summarize(c.x)
		if math.Abs(got.Mean-c.want.Mean) > 1e-15 || math.Abs(got.Std-c.want.Std) > 1e-15 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
