package train

import (
	"bytes"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/stat"

	"ndls/internal/rng"
)

// answered is a problem of rows of 4 values with three numbers each, of which some are not known: the first two say how two values compare,
// as labels, or are multiples of a value far from 0; the third is noise, which rows cannot tell.
func answered(n int64, task Task) Problem {
	p := clouds(n, 4, 2, 64)
	p.Classes = 3
	p.Source.(*table).value = func(row int64, column int) float32 {
		return float32(rng.Float64(rng.Hash(8, uint64(row), uint64(column)))) - 0.5
	}
	x := p.Source.(*table).value
	for row := range n {
		numbers := [3]float32{x(row, 0) - x(row, 1), x(row, 2), float32(rng.Float64(rng.Hash(9, uint64(row)))) - 0.5}
		for k, y := range numbers {
			switch {
			case rng.Below(rng.Hash(10, uint64(row), uint64(k)), 9) == 0:
				y = float32(math.NaN())
			case task == Label && y > 0:
				y = 1
			case task == Label:
				y = 0
			default:
				y = 1000 + 30*y
			}
			p.Answers = append(p.Answers, y)
		}
		p.Labels[row], p.Splits[row] = 0, Train+uint8(rng.Below(rng.Hash(5, uint64(row)), 3))
	}
	return p
}

// TestGradientsOfTasks compares gradients of the loss of a row with its differences.
func TestGradientsOfTasks(t *testing.T) {
	for _, task := range []Task{Label, Regress} {
		p := answered(40, task)
		o := quick()
		o.Task = task
		tr := newTrainer(t, p, o)
		for row := range int64(40) {
			z := make([]float32, 3)
			for k := range z {
				z[k] = float32(6*rng.Float64(rng.Hash(4, uint64(row), uint64(k))) - 3)
			}
			got := slices.Clone(z)
			loss := tr.lossOf(got, tr.problem.answersOf(row), 0.5)
			if again := tr.lossOf(z, tr.problem.answersOf(row), 0); again != loss {
				t.Errorf("task %d: loss %v, and %v without gradient", task, loss, again)
			}
			for k := range z {
				const step = 1.0 / 128
				at := func(d float32) float64 {
					moved := slices.Clone(z)
					moved[k] += d
					return tr.lossOf(moved, tr.problem.answersOf(row), 0)
				}
				if want := 0.5 * (at(step) - at(-step)) / (2 * step); math.Abs(float64(got[k])-want) > 1e-4 {
					t.Errorf("task %d, row %d: slope %v of output %d, want %v", task, row, got[k], k, want)
				}
			}
		}
	}
}

// TestTasks trains each task with each of its measures. The kept weights have the best measure of all epochs, which equals that of the
// predictions; what rows tell is learned, and streamed rows give the same bytes.
func TestTasks(t *testing.T) {
	for _, task := range []Task{Label, Regress} {
		p := answered(3000, task)
		for _, measure := range task.Measures() {
			o := quick()
			o.Task, o.Measure, o.Epochs, o.Dropout, o.InputDropout, o.BatchSize = task, measure, 30, 0, 0, 256
			r := mustFit(t, p, o, Resources{Budget: testBudget(t, 64<<20), Threads: 2})
			h := r.Histories[0]
			best := h.Epochs[h.Best]
			for i, e := range h.Epochs {
				if e.ValidMeasure > best.ValidMeasure {
					t.Errorf("task %d, %s: epoch %d has %v, the kept one %v", task, measure, i, e.ValidMeasure, best.ValidMeasure)
				}
			}
			var tally Tally
			var scores []Score
			if err := Predict(t.Context(), p.Source, r.Models, Resources{Budget: testBudget(t, 64<<20)}, func(first int64, ids []int64, _ int, out []float32) error {
				answers := p.Answers[3*first:][:len(out)]
				tally.AddAnswers(task, out, answers, p.Splits[first:first+int64(len(ids))])
				for i, y := range answers {
					if task == Label && y == y && p.Splits[int(first)+i/3] == Valid {
						scores = append(scores, NewScore(0, Valid, i%3, out[i], y > 0))
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			byKey(scores)
			var area, precision float64
			a := Areas{Done: func(x Area) { area, precision = area+x.AUC/3, precision+x.Precision/3 }}
			for _, s := range scores {
				if err := a.Add(s, 1); err != nil {
					t.Fatal(err)
				}
			}
			a.Finish()
			accuracy, _ := tally.Accuracy(Valid)
			r2, _ := tally.Determination(Valid)
			want := map[string]float64{AUC: area, Precision: precision, MacroF1: tally.MacroF1(Valid), Accuracy: accuracy, Determination: r2}[measure]
			if math.Abs(best.ValidMeasure-want) > 1e-5 {
				t.Errorf("task %d, %s: kept with %v, the predictions have %v", task, measure, best.ValidMeasure, want)
			}
			if task == Label && area < 0.8 || task == Regress && r2 < 0.6 {
				t.Errorf("task %d: area %v, R² %v", task, area, r2)
			}
			mae, _ := tally.MeanError(Valid)
			if task == Regress && (mae < 1 || mae > 6) { // the noise of the third number alone has 7.5
				t.Errorf("mean error %v", mae)
			}
			streamed := mustFit(t, p, o, Resources{Budget: testBudget(t, least(p, o)), Threads: 1})
			if !bytes.Equal(saved(t, streamed.Models[0]), saved(t, r.Models[0])) {
				t.Errorf("task %d, %s: streamed rows give another model", task, measure)
			}
		}
	}
}

// least is a budget in which rows do not stay in memory.
func least(p Problem, o Options) int64 {
	s := Shape{Rows: p.Source.NumRows(), Width: p.Source.Width(), Classes: p.Classes}
	for _, split := range p.Splits {
		switch split {
		case Train:
			s.Train++
		case Valid:
			s.Valid++
		}
	}
	_, bytes, _ := PlanFit(s, o, 1, 0)
	return bytes
}

// TestNumberTallies compares sums over parts with sums over all rows.
func TestNumberTallies(t *testing.T) {
	draw := func(i, k uint64) float64 { return 1e6 + rng.Float64(rng.Hash(i, k)) }
	var parts NumberTally
	n, mean := 900, 0.0
	for part := range 3 {
		var one NumberTally
		for i := part * 300; i < (part+1)*300; i++ {
			one.add(draw(uint64(i), 1), draw(uint64(i), 2))
			mean += draw(uint64(i), 1) / float64(n)
		}
		parts.merge(one)
	}
	squares, wrong, off := 0.0, 0.0, 0.0
	for i := range n {
		y, z := draw(uint64(i), 1), draw(uint64(i), 2)
		squares, wrong, off = squares+(y-mean)*(y-mean), wrong+(y-z)*(y-z), off+math.Abs(y-z)
	}
	if parts.Rows != int64(n) || math.Abs(parts.Squares-squares) > 1e-4 || math.Abs(parts.SquaredErrors-wrong) > 1e-9 || math.Abs(parts.Errors-off) > 1e-9 {
		t.Errorf("%+v, want %v, %v and %v", parts, squares, wrong, off)
	}
}

// Means and deviations come from the training rows that have a number, whatever the threads.
func TestScalesAcrossThreads(t *testing.T) {
	const rows, numbers = 3*rowsTogether + 17, 2
	p := Problem{Answers: make([]float32, rows*numbers), Classes: numbers, Splits: make([]uint8, rows)}
	r := rand.New(rand.NewPCG(1, 2))
	var known [numbers][]float64
	for row := range rows {
		p.Splits[row] = uint8(r.IntN(3))
		for k := range numbers {
			y := float32(100 + r.NormFloat64()*float64(k+1))
			if r.IntN(10) == 0 {
				y = float32(math.NaN())
			} else if p.Splits[row] == Train {
				known[k] = append(known[k], float64(y))
			}
			p.Answers[row*numbers+k] = y
		}
	}
	var first scales
	for _, threads := range []pool{1, 2, 5} {
		f := &fitting{problem: p, options: Options{Task: Regress}, budget: testBudget(t, 1<<20)}
		defer func() { f.scales.free() }()
		c := newThreadPool(threads)
		if err := f.measureAnswers(c); err != nil {
			t.Fatal(err)
		}
		c.free()
		for k := range numbers {
			mean, deviation := stat.PopMeanStdDev(known[k], nil)
			if math.Abs(f.scales.mean.S[k]-mean) > 1e-9 || math.Abs(f.scales.deviation.S[k]-deviation) > 1e-9 {
				t.Errorf("number %d has mean %v and deviation %v, not %v and %v", k, f.scales.mean.S[k], f.scales.deviation.S[k], mean, deviation)
			}
			if threads == 1 {
				first = f.scales
			} else if f.scales.mean.S[k] != first.mean.S[k] || f.scales.deviation.S[k] != first.deviation.S[k] {
				t.Errorf("%d threads change the mean or deviation of number %d", threads, k)
			}
		}
	}
}
