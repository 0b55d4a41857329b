package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// TestAreaOf compares the area of packed probabilities with that of [Areas], which counts with numbers of any size.
func TestAreaOf(t *testing.T) {
	r := rng.New(3)
	for _, rows := range []int{0, 1, 2, 7, 500} {
		for _, levels := range []int{1, 2, 9, 1 << 20} {
			keys, scores := make([]uint32, rows), make([]Score, rows)
			for i := range keys {
				p, has := float32(r.Intn(levels))/float32(levels), r.Intn(4) == 0
				keys[i] = math.Float32bits(p) << 1
				if has {
					keys[i] |= 1
				}
				scores[i] = NewScore(0, Valid, 0, p, has)
			}
			byKey(scores)
			want := Area{}
			a := Areas{Done: func(x Area) { want = x }}
			for _, s := range scores {
				if err := a.Add(s, 1); err != nil {
					t.Fatal(err)
				}
			}
			a.Finish()
			got := areaOf(keys)
			if !want.Defined && got != -1 || want.Defined && math.Abs(got-want.AUC) > 1e-15 {
				t.Errorf("%d rows of %d levels have area %v, want %v (%v)", rows, levels, got, want.AUC, want.Defined)
			}
			if got := precisionOf(append(keys, noScore)); !want.Defined && got != -1 || want.Defined && math.Abs(got-want.Precision) > 1e-12 {
				t.Errorf("%d rows of %d levels have precision %v, want %v (%v)", rows, levels, got, want.Precision, want.Defined)
			}
		}
	}
}

// byKey sorts scores as their readers want them.
func byKey(scores []Score) {
	slices.SortFunc(scores, func(a, b Score) int { return cmp.Compare(a.Key(), b.Key()) })
}

// lopsided is a problem with two classes, of which the second has a fifth of the rows, is hard to tell, and is never the more
// probable one: accuracy stays at the share of the first.
func lopsided(n int64) Problem {
	p := clouds(n, 4, 2, 64)
	p.Source.(*table).value = func(row int64, column int) float32 {
		noise := rng.Float64(rng.Hash(uint64(row)<<20+uint64(column))) - 0.5
		if column == 0 && row%5 == 0 {
			return float32(noise + 0.3)
		}
		return float32(noise)
	}
	for i := range p.Labels {
		p.Labels[i], p.Splits[i] = 0, Train+uint8(rng.Below(rng.Hash(5, uint64(i)), 3))
		if i%5 == 0 {
			p.Labels[i] = 1
		}
	}
	return p
}

// TestMeasureDecides has each measure choose the epoch: it is the best of all by that measure, of equals the one with the lowest
// loss, and its weights are kept. Where accuracy stays the same, the lowest loss decides.
func TestMeasureDecides(t *testing.T) {
	p := lopsided(3000)
	res := Resources{Budget: testBudget(t, 64<<20), Threads: 2}
	for _, measure := range []string{"", Accuracy, MacroF1, AUC} {
		t.Run(measure, func(t *testing.T) {
			o := quick()
			o.Measure, o.Epochs, o.LR = measure, 40, 0.003
			r := mustFit(t, p, o, res)
			h := r.Histories[0]
			for i, e := range h.Epochs {
				best := h.Epochs[h.Best]
				if e.ValidMeasure > best.ValidMeasure || e.ValidMeasure == best.ValidMeasure && (e.ValidLoss < best.ValidLoss || e.ValidLoss == best.ValidLoss && i < h.Best) {
					t.Errorf("epoch %d has %v and loss %v, and epoch %d with %v and %v was kept", i, e.ValidMeasure, e.ValidLoss, h.Best, best.ValidMeasure, best.ValidLoss)
				}
				if (measure == "" || measure == Accuracy) && e.ValidMeasure != e.ValidAccuracy {
					t.Errorf("epoch %d is measured as %v, and its accuracy is %v", i, e.ValidMeasure, e.ValidAccuracy)
				}
			}
			// The kept values equal those of Predict.
			tally, areas := Tally{}, map[int]float64{}
			var scores []Score
			loss, rows := 0.0, 0
			if err := Predict(t.Context(), p.Source, r.Models[:1], res, func(first int64, ids []int64, _ int, soft []float32) error {
				tally.Add(soft, p.Labels[first:first+int64(len(ids))], p.Splits[first:first+int64(len(ids))])
				for i := range ids {
					if row := int(first) + i; p.Splits[row] == Valid {
						label := p.Labels[row]
						scores = append(scores, NewScore(0, Valid, 1, soft[2*i+1], label == 1))
						loss, rows = loss-math.Log(float64(soft[2*i+int(label)])), rows+1
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			byKey(scores)
			a := Areas{Done: func(x Area) { areas[x.Class] = x.AUC }}
			for _, s := range scores {
				_ = a.Add(s, 1)
			}
			a.Finish()
			accuracy, _ := tally.Accuracy(Valid)
			want := map[string]float64{"": accuracy, Accuracy: accuracy, MacroF1: tally.MacroF1(Valid), AUC: areas[1]}[measure]
			best := h.Epochs[h.Best]
			if math.Abs(best.ValidMeasure-want) > 1e-12 || math.Abs(best.ValidLoss-loss/float64(rows)) > 1e-6 {
				t.Errorf("the weights kept have %v and loss %v, want %v and %v", best.ValidMeasure, best.ValidLoss, want, loss/float64(rows))
			}
			first := slices.IndexFunc(h.Epochs, func(e Epoch) bool { return e.ValidMeasure == best.ValidMeasure })
			if h.Best == 0 || measure == "" && first == h.Best {
				t.Errorf("the weights of epoch %d were kept, and %d was the first that was as good: the problem does not show what ties do", h.Best, first)
			}
			if measure == AUC && want < 0.55 {
				t.Errorf("AUC is %v", want)
			}
		})
	}
}

// TestMeasureBits has the measures give the same models, by FitEach too, with any threads and with rows in memory or streamed.
func TestMeasureBits(t *testing.T) {
	p := noisy(2000, 6, 5, 0.4)
	for _, measure := range []string{Accuracy, MacroF1, AUC} {
		o := quick()
		o.Measure, o.Epochs, o.Patience, o.Runs = measure, 12, 4, 2
		want, course := one(t, p, o, []int{0, 1})
		for _, c := range []struct {
			threads int
			memory  int64
		}{{1, 6 << 20}, {3, 64 << 20}} {
			t.Run(fmt.Sprint(measure, c), func(t *testing.T) {
				var models [][]byte
				var histories []History
				if err := FitEach(t.Context(), p, o, []int{0, 1}, Resources{Budget: testBudget(t, c.memory), Threads: c.threads}, func(m *Model, h History) error {
					models, histories = append(models, saved(t, m)), append(histories, h)
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if histories[0].Run == 1 {
					slices.Reverse(models)
					slices.Reverse(histories)
				}
				compare(t, measure, models, want, histories, course)
			})
		}
	}
}
