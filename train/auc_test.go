package train

import (
	"math"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// TestAreas compares areas with a count of all pairs.
func TestAreas(t *testing.T) {
	const models, classes, rows = 3, 5, 200
	r := rng.New(7)
	type place struct {
		model, class int
		split        uint8
	}
	scores := map[place][2][]float32{}
	var all []Score
	for model := range models {
		for row := range rows {
			label, split := r.Intn(classes-1), Valid+uint8(r.Intn(2)) // no row has the last class
			for class := range classes {
				p := float32(r.Intn(9+40*model)) / 64 // many are equal
				all = append(all, NewScore(model, split, class, p, class == label))
				x := scores[place{model, class, split}]
				has := 0
				if class == label {
					has = 1
				}
				x[has] = append(x[has], p)
				scores[place{model, class, split}] = x
			}
			_ = row
		}
	}
	byKey(all)
	got := map[place]Area{}
	a := Areas{Done: func(x Area) { got[place{x.Model, x.Class, x.Split}] = x }}
	for i := 0; i < len(all); {
		n := 1
		for i+n < len(all) && all[i+n] == all[i] {
			n++
		}
		if err := a.Add(all[i], uint64(n)); err != nil {
			t.Fatal(err)
		}
		i += n
	}
	a.Finish()
	if len(got) != models*classes*2 {
		t.Fatalf("%d areas", len(got))
	}
	for p, x := range scores {
		right := 0.0
		for _, yes := range x[1] {
			for _, no := range x[0] {
				switch {
				case yes > no:
					right++
				case yes == no:
					right += 0.5
				}
			}
		}
		want := right / float64(len(x[0])*len(x[1]))
		if defined := len(x[1]) > 0; got[p].Defined != defined {
			t.Errorf("%v: defined is %v", p, got[p].Defined)
		} else if defined && got[p].AUC != want {
			t.Errorf("%v: %v, want %v", p, got[p].AUC, want)
		}
		precision := 0.0
		for _, yes := range x[1] {
			counts := [2]float64{}
			for has := range counts {
				for _, other := range x[has] {
					if other >= yes {
						counts[has]++
					}
				}
			}
			precision += counts[1] / (counts[0] + counts[1]) / float64(len(x[1]))
		}
		if got[p].Defined && math.Abs(got[p].Precision-precision) > 1e-12 {
			t.Errorf("%v: precision %v, want %v", p, got[p].Precision, precision)
		}
	}
	a = Areas{Done: func(Area) {}}
	if a.Add(2, 1) != nil || a.Add(4, 1) == nil {
		t.Error("scores in another order are taken")
	}
}

// TestMacroF1 compares figures with those that scikit-learn gives for the same rows:
// precision_recall_fscore_support and f1_score with average="macro".
func TestMacroF1(t *testing.T) {
	var tally, other Tally
	labels := []int32{0, 0, 0, 1, 1, 2, 2, 2, 2, -1}
	predicted := []int32{0, 1, 4, 1, 1, 2, 0, 2, 1, 3}
	splits := slices.Repeat([]uint8{Test}, len(labels))
	tally.Count(predicted[:4], labels[:4], splits)
	other.Count(predicted[4:], labels[4:], splits)
	tally.Merge(other)
	want := []struct{ precision, recall, f1 float64 }{
		{1. / 2, 1. / 3, 2. / 5}, {1. / 2, 1, 2. / 3}, {1, 1. / 2, 2. / 3}, {}, {0, 0, 0},
	}
	classes := tally.Classes[Test]
	if len(classes) != len(want) {
		t.Fatalf("%d classes", len(classes))
	}
	for c, w := range want {
		if math.Abs(classes[c].Precision()-w.precision)+math.Abs(classes[c].Recall()-w.recall)+math.Abs(classes[c].F1()-w.f1) > 1e-15 {
			t.Errorf("class %d: %v %v %v", c, classes[c].Precision(), classes[c].Recall(), classes[c].F1())
		}
	}
	if got, want := tally.MacroF1(Test), (2./5+2./3+2./3)/4; math.Abs(got-want) > 1e-15 {
		t.Errorf("macro F1 is %v, want %v", got, want)
	}
	if share, rows := tally.Accuracy(Test); rows != 9 || share != 5./9 {
		t.Errorf("accuracy %v of %d", share, rows)
	}
}
