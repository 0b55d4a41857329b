package train

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"ndls/internal/mem"
	"ndls/shards"
)

// value returns a value as the model sees it.
func (p Problem) value(m *Model, row int64, column int) float64 {
	x := p.Source.(*table).value(row, column)
	if !m.standard {
		return float64(x)
	}
	return (float64(x) - float64(m.mean[column])) * float64(m.inverse[column])
}

// solvedDensely returns the weights of a ridge regression, a row for each value and one for the intercept, which has no penalty: gonum
// solves the normal equations with a column of ones, in float64.
func solvedDensely(t *testing.T, p Problem, m *Model, lambda float64) *mat.Dense {
	t.Helper()
	width := p.Source.Width()
	var x, y []float64
	for row, split := range p.Splits {
		if split != Train {
			continue
		}
		for j := range width {
			x = append(x, p.value(m, int64(row), j))
		}
		x = append(x, 1)
		label := make([]float64, p.Classes)
		label[p.Labels[row]] = 1
		y = append(y, label...)
	}
	rows := len(x) / (width + 1)
	left, right := mat.NewDense(rows, width+1, x), mat.NewDense(rows, p.Classes, y)
	var a mat.SymDense
	a.SymOuterK(1, left.T())
	for i := range width {
		a.SetSym(i, i, a.At(i, i)+lambda)
	}
	var b, w mat.Dense
	b.Mul(left.T(), right)
	var c mat.Cholesky
	if !c.Factorize(&a) {
		t.Fatal("the oracle is not positive definite")
	}
	if err := c.SolveTo(&w, &b); err != nil {
		t.Fatal(err)
	}
	return &w
}

func ridgeOptions() Options {
	o := usual()
	o.Ridge, o.Runs = true, 1
	return o
}

// TestRidgeEqualsADenseSolution tries more rows than values, fewer, and as many.
func TestRidgeEqualsADenseSolution(t *testing.T) {
	for _, c := range []struct {
		rows           int64
		width, classes int
	}{{500, 7, 2}, {500, 70, 5}, {90, 100, 3}, {100, 100, 4}, {40, 300, 3}, {30, 1, 2}} {
		for _, choose := range []string{ByMeasure, ByLoss} {
			t.Run(fmt.Sprint(c, choose), func(t *testing.T) {
				p, o := noisy(c.rows, c.width, c.classes, 0.2), ridgeOptions()
				o.Choose, o.Standardize = choose, choose == ByLoss
				r := mustFit(t, p, o, Resources{Budget: testBudget(t, 64<<20), Threads: 2})
				h, m := r.Histories[0], r.Models[0]
				if len(h.Epochs) != Penalties || h.Penalty <= 0 || h.Scale < 1 || m.layers() != 1 {
					t.Fatalf("%d penalties, λ %v, scale %v, %d layers", len(h.Epochs), h.Penalty, h.Scale, m.layers())
				}
				want := solvedDensely(t, p, m, h.Penalty)
				weights, biases := m.layer(m.params, 0)
				for i := range c.width + 1 {
					for k := range c.classes {
						got := biases[k]
						if i < c.width {
							got = weights[i*c.classes+k]
						}
						if math.Abs(float64(got)/h.Scale-want.At(i, k)) > 1e-5*max(1, math.Abs(want.At(i, k))) {
							t.Fatalf("weight %d of class %d is %v, want %v", i, k, float64(got)/h.Scale, want.At(i, k))
						}
					}
				}
				for i, e := range h.Epochs {
					best := h.Epochs[h.Best]
					if choose == ByLoss && (e.ValidLoss < best.ValidLoss || i < h.Best && e.ValidLoss == best.ValidLoss) ||
						choose == ByMeasure && (e.ValidMeasure > best.ValidMeasure || i < h.Best && e.ValidMeasure == best.ValidMeasure) {
						t.Errorf("penalty %d has %+v, and %d was kept with %+v", i, e, h.Best, best)
					}
				}
				if got := accuracy(t, p, r, Resources{Budget: testBudget(t, 64<<20)}, Valid); got != h.ValidAccuracy() {
					t.Errorf("the model has a validation accuracy of %v, its history says %v", got, h.ValidAccuracy())
				}
			})
		}
	}
}

// TestRidgeHasTheSameBits makes models with all kinds of resources.
func TestRidgeHasTheSameBits(t *testing.T) {
	for _, c := range []struct {
		rows        int64
		width       int
		ample, lean int64
	}{{40000, 100, 96 << 20, 13 << 20}, {900, 1400, 96 << 20, 23 << 20}} {
		p, o := noisy(c.rows, c.width, 3, 0.3), ridgeOptions()
		o.Standardize = c.rows < 1000
		var want *Result
		for _, x := range []struct {
			procs, threads int
			budget         int64
			kernel         string
		}{{1, 1, c.ample, ""}, {2, 2, c.ample, "go"}, {5, 3, c.lean, ""}, {5, 8, c.ample, ""}} {
			before := runtime.GOMAXPROCS(x.procs)
			b := testBudget(t, x.budget)
			got := mustFit(t, p, o, Resources{Budget: b, Threads: x.threads, Kernel: x.kernel})
			runtime.GOMAXPROCS(before)
			if want == nil {
				want = got
			}
			if streamed := b.Peak()-(b.Limit()-x.budget) < c.rows*9/10*int64(c.width)*4; c.rows > 1000 && streamed != (x.budget == c.lean) {
				t.Errorf("%+v: rows streamed: %v", x, streamed)
			}
			if !sameBits(got.Models[0].params, want.Models[0].params) || fmt.Sprint(got.Histories) != fmt.Sprint(want.Histories) {
				t.Errorf("%+v: another model", x)
			}
		}
	}
}

func TestRidgeNeedsNoValidationRows(t *testing.T) {
	p := clouds(200, 8, 4, 50)
	for i, split := range p.Splits {
		if split == Valid {
			p.Splits[i] = NoSplit
		}
	}
	res := Resources{Budget: testBudget(t, 32<<20)}
	r := mustFit(t, p, ridgeOptions(), res)
	if got := accuracy(t, p, r, res, Test); got != 1 || r.Histories[0].Scale != unvalidatedScale {
		t.Errorf("accuracy %v, scale %v", got, r.Histories[0].Scale)
	}
}

func TestRidgeOfEqualRows(t *testing.T) {
	p := clouds(60, 3, 3, 20)
	p.Source.(*table).value = func(int64, int) float32 { return 2 }
	r := mustFit(t, p, ridgeOptions(), Resources{Budget: testBudget(t, 32<<20)})
	if got := r.Histories[0].ValidAccuracy(); math.Abs(got-1.0/3) > 0.01 {
		t.Errorf("accuracy %v", got)
	}
}

func TestRidgeErrors(t *testing.T) {
	p := clouds(3000, 1400, 3, 500)
	if _, err := FitRuns(t.Context(), p, ridgeOptions(), Resources{Budget: testBudget(t, 12<<20)}); !errors.Is(err, mem.ErrBudget) ||
		!strings.Contains(err.Error(), "--model ridge") {
		t.Errorf("a small budget: %v", err)
	}
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		value := p.Source.(*table).value
		p.Source.(*table).value = func(row int64, column int) float32 {
			if row == 777 && column == 5 {
				return x
			}
			return value(row, column)
		}
		if _, err := FitRuns(t.Context(), p, ridgeOptions(), Resources{Budget: testBudget(t, 64<<20)}); !errors.Is(err, ErrDiverged) {
			t.Errorf("a value %v: %v", x, err)
		}
	}
}

// TestPlanOfRidge compares the planned memory with what is used.
func TestPlanOfRidge(t *testing.T) {
	for _, c := range []struct {
		rows  int64
		width int
		free  int64
	}{{40000, 200, 128 << 20}, {40000, 200, 40 << 20}, {600, 900, 64 << 20}} {
		p := clouds(c.rows, c.width, 3, int64(shards.BatchRows(c.width)))
		train, valid := newRowSet(p, Train).count, newRowSet(p, Valid).count
		b := testBudget(t, c.free)
		planned, _, _ := PlanFit(Shape{Rows: c.rows, Train: train, Valid: valid, Width: c.width, Classes: 3}, ridgeOptions(), 2, c.free)
		mustFit(t, p, ridgeOptions(), Resources{Budget: b, Threads: 2})
		if used := b.Peak() - (b.Limit() - c.free); used > planned || planned > c.free || float64(used) < 0.5*float64(planned) {
			t.Errorf("%+v: %d bytes planned, and %d used", c, planned, used)
		}
	}
}

// BenchmarkRidge solves for a matrix of so many rows.
func BenchmarkRidge(b *testing.B) {
	for _, n := range []int{256, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := symmetric{n: n, values: make([]float64, n*n), root: make([]float64, n)}
			threads := newThreadPool(2)
			defer threads.free()
			x := widen(numbers(1, 64*n))
			for b.Loop() {
				a.addRows(threads, x)
				if !a.factor(threads, float64(n)) {
					b.Fatal("not positive definite")
				}
			}
			flops := 64*float64(n)*float64(n) + float64(n)*float64(n)*float64(n)/3
			b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFlop/s")
		})
	}
}
