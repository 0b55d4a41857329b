package train

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"ndls/internal/rng"
)

// sameCourse reports whether a history of FitEach, where epochs are validated briefly, equals that of FitRuns.
func sameCourse(brief, whole History) bool {
	return brief.Run == whole.Run && brief.Best == whole.Best && brief.Epochs[brief.Best] == whole.Epochs[whole.Best] &&
		slices.EqualFunc(brief.Epochs, whole.Epochs, func(a, b Epoch) bool { return a.TrainLoss == b.TrainLoss })
}

// noisy is a problem in which a share of the labels is wrong, so that epochs go up and down.
func noisy(n int64, width, classes int, wrong float64) Problem {
	p := clouds(n, width, classes, 64)
	for i := range p.Labels {
		if x := rng.Hash(9, uint64(i)); rng.Float64(x) < wrong {
			p.Labels[i] = int32(rng.Below(rng.Hash(x), uint64(classes)))
		}
		if i%3 == 0 {
			p.Splits[i] = Valid
		}
	}
	return p
}

// Epochs that are validated only until it is clear that they are not the best give the same models, the same best epoch
// and the same end.
func TestBriefValidation(t *testing.T) {
	for _, c := range []struct {
		wrong  float64
		rows   int64
		change func(*Options)
	}{
		{wrong: 0, rows: 300},
		{wrong: 0.3, rows: 900},
		{wrong: 1, rows: 500},
		{wrong: 0.3, rows: 3000, change: func(o *Options) { o.BatchSize = 64 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.Layers = 1 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.Layers, o.Patience = 3, 10 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.Layers, o.LayerNorm, o.Standardize = 3, true, true }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.LR, o.LayerNorm = 1e14, true }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.LR = 1e9 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.LR = 1e14 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.LR = 1e25 }},
		{wrong: 0.3, rows: 400, change: func(o *Options) { o.LR = 1e37 }},
	} {
		for _, threads := range []int{1, 3} {
			t.Run(fmt.Sprintf("%g wrong of %d, %d threads", c.wrong, c.rows, threads), func(t *testing.T) {
				o := quick()
				o.Runs, o.BatchSize = 2, 0
				if c.change != nil {
					c.change(&o)
				}
				p, res := noisy(c.rows, 6, 4, c.wrong), Resources{Budget: testBudget(t, 64<<20), Threads: threads}
				want, err := FitRuns(t.Context(), p, o, res)
				defer want.Free()
				if errors.Is(err, ErrDiverged) {
					err := FitEach(t.Context(), p, o, []int{0, 1}, res, func(*Model, History) error { return nil })
					if !errors.Is(err, ErrDiverged) {
						t.Fatalf("brief validation: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				err = FitEach(t.Context(), p, o, []int{0, 1}, res, func(m *Model, h History) error {
					if w := want.Histories[h.Run]; !sameCourse(h, w) || !slices.Equal(m.params, want.Models[h.Run].params) {
						t.Errorf("run %d: best epoch %d with %v, want %d with %v", h.Run, h.Best, h.ValidAccuracy(), w.Best, w.ValidAccuracy())
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// TestHardest orders rows by their ranks.
func TestHardest(t *testing.T) {
	h, err := newHardest(testBudget(t, 32<<20), 6)
	if err != nil {
		t.Fatal(err)
	}
	defer h.free()
	for row, logits := range [][]float32{{3, 1, 0}, {0, 9, 0}, {1, 1.1, 0}, {5, 5, 1}, {1e30, -1e30, 0}, {2, 0, 1.9}} {
		h.rank.S[row] = rankOf(logits, 0)
		if right := h.rank.S[row] > 0; right != (Argmax(logits) == 0) {
			t.Errorf("row %d is right: %v", row, right)
		}
	}
	h.sort()
	if want := []int64{1, 2, 3, 5, 0, 4}; !slices.Equal(h.order.S, want) {
		t.Errorf("order %v by ranks %v, want %v", h.order.S, h.rank.S, want)
	}
}
