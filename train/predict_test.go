package train

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/seal"
)

// randomModel returns a model with random weights.
func randomModel(t testing.TB, b *mem.Budget, seed uint64, dims ...int) *Model {
	t.Helper()
	return randomOf(t, b, seed, form{dims: dims})
}

// randomOf returns a model of a form with random parameters.
func randomOf(t testing.TB, b *mem.Budget, seed uint64, f form) *Model {
	t.Helper()
	m, err := newModel(b, f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	copy(m.memory.S, numbers(seed, len(m.memory.S)))
	return m
}

func TestPredictEqualsTheFormula(t *testing.T) {
	b := testBudget(t, 64<<20)
	for _, norm := range []bool{false, true} {
		predictEqualsTheFormula(t, b, form{[]int{7, 5, 6, 3}, norm, norm, Classify})
	}
}

func predictEqualsTheFormula(t *testing.T, b *mem.Budget, f form) {
	models := []*Model{randomOf(t, b, 1, f), randomOf(t, b, 2, f)}
	values := numbers(3, 10_000*7)
	src := &table{width: 7, chunks: []int64{1, 300, 5000, 4096, 603}, value: func(row int64, column int) float32 { return values[row*7+int64(column)] }}
	var single [][]float32
	for _, threads := range []int{0, 1, 3} {
		all := make([][]float32, 2)
		next, turn := int64(0), 0
		err := Predict(t.Context(), src, models, Resources{Budget: b, Threads: threads}, func(first int64, ids []int64, run int, p []float32) error {
			if first != next || run != turn || len(ids) > PredictRows || len(p) != 3*len(ids) || ids[0] != 1000+first || ids[len(ids)-1] != 999+first+int64(len(ids)) {
				t.Fatalf("rows from %d of run %d with %d ids and %d values, want row %d of run %d", first, run, len(ids), len(p), next, turn)
			}
			all[run] = append(all[run], p...)
			if turn = 1 - turn; turn == 0 {
				next += int64(len(ids))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if next != src.NumRows() {
			t.Fatalf("%d of %d rows", next, src.NumRows())
		}
		if single == nil {
			single = all
		}
		if !slices.EqualFunc(all, single, sameBits) {
			t.Errorf("%d threads change the bits", threads)
		}
	}
	for run, m := range models {
		for row := range 10_000 {
			p := single[run][row*3 : row*3+3]
			for label := range p {
				// The loss of one row is −log p.
				loss := reference(f, widen(m.params), entered(m, values[row*7:row*7+7]), []int32{int32(label)}, [][]float64{ones(7), ones(5), ones(6)})
				if math.Abs(float64(p[label])-math.Exp(-loss)) > 1e-5 {
					t.Fatalf("run %d row %d: p[%d] = %v, want %v", run, row, label, p[label], math.Exp(-loss))
				}
			}
		}
	}
}

func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }

func TestPredictFailures(t *testing.T) {
	b := testBudget(t, 64<<20)
	notFinite := int64(7000)
	src := &table{width: 4, chunks: []int64{5000, 5000}, value: func(row int64, column int) float32 {
		if row == notFinite {
			return float32(math.NaN())
		}
		return 1
	}}
	ignore := func(int64, []int64, int, []float32) error { return nil }
	m := randomModel(t, b, 1, 4, 3)
	if err := Predict(t.Context(), src, []*Model{m}, Resources{Budget: b, Threads: 2}, ignore); err == nil || !strings.Contains(err.Error(), "row 7000 ") {
		t.Errorf("a row that is not finite: %v", err)
	}
	notFinite = -1 // threads read ahead: with two failures either may be reported
	src.broken = func(chunk int) bool { return chunk == 1 }
	if err := Predict(t.Context(), src, []*Model{m}, Resources{Budget: b}, ignore); !errors.Is(err, errBroken) {
		t.Errorf("a chunk that cannot be read: %v", err)
	}
	src.broken = nil
	stop := errors.New("stop")
	if err := Predict(t.Context(), src, []*Model{m}, Resources{Budget: b}, func(int64, []int64, int, []float32) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of emit: %v", err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Predict(cancelled, src, []*Model{m}, Resources{Budget: b}, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := Predict(t.Context(), src, nil, Resources{Budget: b}, ignore); err == nil {
		t.Error("no model is accepted")
	}
	for name, models := range map[string][]*Model{
		"another width":        {randomModel(t, b, 1, 5, 3)},
		"models of two shapes": {m, randomModel(t, b, 1, 4, 2)},
	} {
		if err := Predict(t.Context(), src, models, Resources{Budget: b}, ignore); !errors.Is(err, seal.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Predict(t.Context(), src, []*Model{m}, Resources{Budget: testBudget(t, 90<<10)}, ignore); !errors.Is(err, mem.ErrBudget) {
		t.Errorf("a tiny budget: %v", err)
	}
}
