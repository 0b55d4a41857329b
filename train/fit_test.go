package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/testkit"
)

// clouds is a problem of well separated classes: rows lie around a corner of
// their own, every tenth is for validation and every tenth for testing.
func clouds(n int64, width, classes int, chunk int64) Problem {
	p := Problem{
		Classes: classes, Labels: make([]int32, n), Splits: make([]uint8, n),
		Source: &table{width: width, chunks: evenly(n, chunk), value: func(row int64, column int) float32 {
			noise := 0.4 * (rng.Float64(rng.Hash(uint64(row)<<20+uint64(column))) - 0.5)
			if column%classes == int(row)%classes {
				return float32(1 + noise)
			}
			return float32(noise)
		}},
	}
	for i := range p.Labels {
		p.Labels[i] = int32(i % classes)
		switch i / classes % 10 {
		case 0:
			p.Splits[i] = Valid
		case 1:
			p.Splits[i] = Test
		default:
			p.Splits[i] = Train
		}
	}
	return p
}

// quick are options that learn toys fast.
func quick() Options {
	o := usual()
	o.Hidden, o.Epochs, o.Patience, o.Runs, o.Seed = 16, 60, 0, 1, 1
	o.Dropout, o.InputDropout = 0.1, 0.1
	return o
}

// mustFit trains and hands out the result until the test ends.
func mustFit(t *testing.T, p Problem, o Options, res Resources) *Result {
	t.Helper()
	r, err := FitRuns(t.Context(), p, o, res)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Free)
	return r
}

// accuracy counts the predictions of the first model.
func accuracy(t *testing.T, p Problem, r *Result, res Resources, split uint8) float64 {
	t.Helper()
	var tally Tally
	err := Predict(t.Context(), p.Source, r.Models[:1], res, func(first int64, ids []int64, _ int, probability []float32) error {
		end := first + int64(len(ids))
		tally.Add(probability, p.Labels[first:end], p.Splits[first:end])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	share, _ := tally.Accuracy(split)
	return share
}

func TestLearnsSeparableClasses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Options)
	}{
		{"full batch", func(o *Options) { o.BatchSize = 0 }},
		{"minibatches", func(o *Options) { o.BatchSize = 50 }},
		{"one layer", func(o *Options) { o.Layers, o.LR = 1, 0.1 }},
		{"four layers", func(o *Options) { o.Layers = 4 }},
		{"normalised", func(o *Options) { o.Layers, o.LayerNorm, o.BatchSize = 3, true, 100 }},
		{"cosine", func(o *Options) { o.Schedule, o.BatchSize = Cosine, 100 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := quick()
			c.change(&o)
			p, res := clouds(900, 12, 4, 250), Resources{Budget: testBudget(t, 32<<20)}
			r := mustFit(t, p, o, res)
			if got := r.Histories[0].ValidAccuracy(); got != 1 {
				t.Errorf("validation accuracy %v", got)
			}
			for _, split := range []uint8{Train, Valid, Test} {
				if got := accuracy(t, p, r, res, split); got != 1 {
					t.Errorf("accuracy %v in split %d", got, split)
				}
			}
		})
	}
}

func TestLearnsXOR(t *testing.T) {
	p := Problem{
		Source: &table{width: 2, chunks: []int64{4}, value: func(row int64, column int) float32 { return float32(row >> column & 1) }},
		Labels: []int32{0, 1, 1, 0}, Splits: []uint8{Train, Train, Train, Train}, Classes: 2,
	}
	o, res := quick(), Resources{Budget: testBudget(t, 32<<20)}
	o.Layers, o.Dropout, o.InputDropout, o.WeightDecay, o.Epochs = 3, 0, 0, 0, 300
	r := mustFit(t, p, o, res)
	if got := accuracy(t, p, r, res, Train); got != 1 {
		t.Errorf("accuracy %v", got)
	}
	h := r.Histories[0]
	if h.Best != o.Epochs-1 || len(h.Epochs) != o.Epochs {
		t.Errorf("without validation rows epoch %d of %d was kept, want the last of %d", h.Best, len(h.Epochs), o.Epochs)
	}
	if last := h.Epochs[h.Best].TrainLoss; last > 0.01 {
		t.Errorf("the loss is still %v", last)
	}
}

// TestSameBits trains under all kinds of resources.
func TestSameBits(t *testing.T) {
	// 12800 training rows of 512 values: windows of 8192 rows, blocks of 1024.
	const n, width = 16000, 512
	for _, c := range []struct {
		batch int
		norm  bool
	}{{0, false}, {1500, false}, {1500, true}} {
		batch := c.batch
		t.Run(fmt.Sprintf("batch %d, normalised %v", batch, c.norm), func(t *testing.T) {
			if testing.Short() && batch == 0 {
				t.Skip("-short: minibatches share what the whole batch shares")
			}
			p := clouds(n, width, 3, 2000)
			o := quick()
			o.BatchSize, o.Runs, o.Epochs, o.Layers, o.Hidden, o.LayerNorm, o.Standardize = batch, 2, 2, 3, 20, c.norm, c.norm
			const ample, tight = 128 << 20, 24 << 20
			var want, inMemory *Result
			for _, c := range []struct {
				name    string
				procs   int
				threads int
				budget  int64
			}{
				{"the reference", 1, 1, ample},
				{"two threads", 2, 2, ample},
				{"more threads than runs", 5, 8, ample},
				{"streamed", 2, 1, tight},
				{"streamed on two threads", 5, 2, tight},
			} {
				before := runtime.GOMAXPROCS(c.procs)
				b := testBudget(t, c.budget)
				got := mustFit(t, p, o, Resources{Budget: b, Threads: c.threads})
				runtime.GOMAXPROCS(before)
				if streamed := b.Peak()-(b.Limit()-c.budget) < n*8/10*width*4; streamed != strings.HasPrefix(c.name, "streamed") {
					t.Fatalf("%s: rows streamed: %v", c.name, streamed)
				}
				if want == nil {
					want, inMemory = got, got
					if sameBits(want.Models[0].params, want.Models[1].params) {
						t.Error("two runs gave the same model")
					}
				}
				for run, m := range got.Models {
					if !sameBits(m.params, want.Models[run].params) {
						t.Errorf("%s: other weights in run %d", c.name, run)
					}
					if !slices.Equal(got.Histories[run].Epochs, want.Histories[run].Epochs) {
						t.Errorf("%s: another history of run %d", c.name, run)
					}
				}
			}
			one, err := fit(t.Context(), p, o, []int{1}, Resources{Budget: testBudget(t, ample)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer one.Free()
			if !sameBits(one.Models[0].params, inMemory.Models[1].params) || one.Histories[0].Run != 1 {
				t.Error("run 1 on its own is another model")
			}
		})
	}
}

func TestTestRowsDoNotCount(t *testing.T) {
	res := Resources{Budget: testBudget(t, 32<<20)}
	p := clouds(500, 8, 4, 100)
	want := mustFit(t, p, quick(), res)
	source := *p.Source.(*table)
	value := source.value
	source.value = func(row int64, column int) float32 {
		if p.Splits[row] == Test {
			return float32(math.NaN())
		}
		return value(row, column)
	}
	p.Source, p.Labels = &source, slices.Clone(p.Labels)
	for i, split := range p.Splits {
		if split == Test {
			p.Labels[i] = -1
		}
	}
	got := mustFit(t, p, quick(), res)
	if !sameBits(got.Models[0].params, want.Models[0].params) {
		t.Error("test rows and their labels change the weights")
	}
}

func TestTheBestEpochIsKept(t *testing.T) {
	// Validation labels that contradict the training rows: the better the
	// model fits, the worse it gets.
	p := clouds(400, 8, 4, 100)
	for i, split := range p.Splits {
		if split == Valid {
			p.Labels[i] = (p.Labels[i] + 1) % 4
		}
	}
	res := Resources{Budget: testBudget(t, 32<<20)}
	o := quick()
	o.Epochs, o.Patience = 100, 7
	r := mustFit(t, p, o, res)
	h := r.Histories[0]
	if len(h.Epochs) != h.Best+1+o.Patience || len(h.Epochs) == o.Epochs {
		t.Errorf("stopped after %d epochs, the best being %d and patience %d", len(h.Epochs), h.Best, o.Patience)
	}
	for i, e := range h.Epochs {
		if o.better(e, h.Epochs[h.Best]) {
			t.Errorf("epoch %d is better than %d, which was kept", i, h.Best)
		}
	}
	if got := accuracy(t, p, r, res, Valid); got != h.ValidAccuracy() {
		t.Errorf("the weights kept have validation accuracy %v, the history says %v", got, h.ValidAccuracy())
	}
	o.Epochs, o.Patience = h.Best+1, 0
	if short := mustFit(t, p, o, res); !sameBits(short.Models[0].params, r.Models[0].params) {
		t.Error("the weights kept are not those of the best epoch")
	}
}

func TestBetter(t *testing.T) {
	for _, c := range []struct {
		name string
		a, b Epoch
		want bool
	}{
		{"higher measure", Epoch{ValidMeasure: 0.6, ValidLoss: 9}, Epoch{ValidMeasure: 0.5, ValidLoss: 1}, true},
		{"lower measure", Epoch{ValidMeasure: 0.4, ValidLoss: 1}, Epoch{ValidMeasure: 0.5, ValidLoss: 9}, false},
		{"lower measure, higher accuracy", Epoch{ValidMeasure: 0.4, ValidAccuracy: 0.9}, Epoch{ValidMeasure: 0.5, ValidAccuracy: 0.8}, false},
		{"lower loss", Epoch{ValidMeasure: 0.5, ValidLoss: 1}, Epoch{ValidMeasure: 0.5, ValidLoss: 2}, true},
		{"higher loss", Epoch{ValidMeasure: 0.5, ValidLoss: 2}, Epoch{ValidMeasure: 0.5, ValidLoss: 1}, false},
		{"equal, later", Epoch{ValidMeasure: 0.5, ValidLoss: 1}, Epoch{ValidMeasure: 0.5, ValidLoss: 1}, false},
		{"training loss does not count", Epoch{ValidMeasure: 0.5, TrainLoss: 1}, Epoch{ValidMeasure: 0.5, TrainLoss: 2}, false},
	} {
		if got := (Options{}).better(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		byLoss := Options{Choose: ByLoss}
		if got := byLoss.better(c.a, c.b); got != (c.a.ValidLoss < c.b.ValidLoss) {
			t.Errorf("%s, by loss: %v", c.name, got)
		}
	}
}

// TestTheEpochWithTheLowestLossIsKept checks it with measurements of whole histories and of short ones.
func TestTheEpochWithTheLowestLossIsKept(t *testing.T) {
	p := noisy(300, 20, 4, 0.3) // the longer the training, the surer the model is of wrong labels
	o, res := quick(), Resources{Budget: testBudget(t, 32<<20)}
	o.Hidden, o.Epochs, o.Dropout, o.InputDropout = 64, 100, 0, 0
	byMeasure := mustFit(t, p, o, res).Histories[0]
	o.Choose = ByLoss
	whole := mustFit(t, p, o, res)
	h := whole.Histories[0]
	for i, e := range h.Epochs {
		if e.ValidLoss < h.Epochs[h.Best].ValidLoss || i < h.Best && e.ValidLoss == h.Epochs[h.Best].ValidLoss {
			t.Errorf("epoch %d has a loss of %v, and %d was kept, which has %v", i, e.ValidLoss, h.Best, h.Epochs[h.Best].ValidLoss)
		}
	}
	if h.Best == byMeasure.Best {
		t.Errorf("epoch %d is the best in both ways", h.Best)
	}
	if err := FitEach(t.Context(), p, o, []int{0}, res, func(m *Model, each History) error {
		if !sameBits(m.params, whole.Models[0].params) || !slices.Equal(each.Epochs, h.Epochs) {
			t.Error("FitEach keeps other weights")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

func TestRate(t *testing.T) {
	o := Options{LR: 0.2, Schedule: Cosine, Epochs: 4}
	for epoch, want := range []float64{0.2, 0.2 * (1 + math.Sqrt2/2) / 2, 0.1, 0.2 * (1 - math.Sqrt2/2) / 2} {
		if got := o.rate(epoch); math.Abs(got-want) > 1e-15 {
			t.Errorf("epoch %d: %v, want %v", epoch, got, want)
		}
	}
	o.Schedule = Constant
	if got := o.rate(3); got != 0.2 {
		t.Errorf("constant rate %v", got)
	}
}

func TestProblemsAreValidated(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*Problem)
		want   string
		kind   error
	}{
		{"too few labels", func(p *Problem) { p.Labels = p.Labels[1:] }, "99 labels", seal.ErrCorrupt},
		{"too few splits", func(p *Problem) { p.Splits = p.Splits[1:] }, "99 splits", seal.ErrCorrupt},
		{"a class too large", func(p *Problem) { p.Labels[7] = 2 }, "row 7 has label 2", seal.ErrCorrupt},
		{"an unknown split", func(p *Problem) { p.Splits[7] = 4 }, "row 7 has label 1 and split 4", seal.ErrCorrupt},
		{"a training row without label", func(p *Problem) { p.Labels[50] = -1 }, "row 50 of the training or validation split has no label", nil},
		{"nothing to train on", func(p *Problem) { clear(p.Splits) }, "no row is in the training split", nil},
		{"one class", func(p *Problem) { p.Classes = 1; clear(p.Labels) }, "two classes", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := clouds(100, 4, 2, 50)
			c.change(&p)
			_, err := FitRuns(t.Context(), p, quick(), Resources{Budget: testBudget(t, 32<<20)})
			if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

func TestFailuresReturnTheMemory(t *testing.T) {
	huge := func(p *Problem) {
		source := *p.Source.(*table)
		source.value = func(int64, int) float32 { return math.MaxFloat32 }
		p.Source = &source
	}
	broken := func(p *Problem) {
		source := *p.Source.(*table)
		source.broken = func(chunk int) bool { return chunk == 3 }
		p.Source = &source
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		budget int64
		change func(*Problem)
		want   error
		text   string
	}{
		{"no memory for the model", t.Context(), 1 << 10, nil, mem.ErrBudget, "the weights of a model"},
		{"no memory for a run", t.Context(), 200 << 10, nil, mem.ErrBudget, "needs"},
		{"a chunk that cannot be read", t.Context(), 32 << 20, broken, errBroken, "chunk 3"},
		{"a chunk that cannot be read, streamed", t.Context(), 5 << 20, broken, errBroken, "chunk 3"},
		{"values that overflow", t.Context(), 32 << 20, huge, nil, "diverged in epoch 1"},
		{"cancelled", cancelled, 32 << 20, nil, context.Canceled, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := clouds(4000, 256, 4, 1000)
			if c.change != nil {
				c.change(&p)
			}
			o := quick()
			o.Runs = 2
			_, err := FitRuns(c.ctx, p, o, Resources{Budget: testBudget(t, c.budget), Threads: 2})
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%v, want %v and %q", err, c.want, c.text)
			}
		})
	}
}

// TestMemoryDoesNotGrowWithRows compares all that is ever allocated on the heap
// for few rows and for many.
func TestMemoryDoesNotGrowWithRows(t *testing.T) {
	testkit.Slow(t, "hundreds of thousands of rows")
	used := func(n int64) (heap, peak int64) {
		const limit = 44 << 20
		p, b := clouds(n, 256, 4, 8192), testBudget(t, limit)
		o := quick()
		o.Epochs, o.BatchSize = 1, 2048
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r := mustFit(t, p, o, Resources{Budget: b})
		accuracy(t, p, r, Resources{Budget: b}, Test)
		runtime.ReadMemStats(&after)
		return int64(after.TotalAlloc - before.TotalAlloc), b.Peak() - (b.Limit() - limit)
	}
	few, _ := used(65_536)
	many, peak := used(4 * 65_536)
	if many > few+512<<10 {
		t.Errorf("the heap took %v for 64 Ki rows, %v for 256 Ki", mem.Bytes(few), mem.Bytes(many))
	}
	t.Logf("heap %v and %v, arrays %v of %v of rows", mem.Bytes(few), mem.Bytes(many), mem.Bytes(peak), mem.Bytes(4*65_536*256*4))
}

func ExampleFitRuns() {
	ctx := context.Background()
	budget, err := mem.NewBudget(256 << 20)
	if err != nil {
		panic(err)
	}
	res := Resources{Budget: budget, Threads: 2}
	problem := clouds(1000, 8, 2, 200) // in a run: OpenRows, and labels and splits of its rows
	options := usual()
	options.Epochs, options.Runs = 100, 2
	result, err := FitRuns(ctx, problem, options, res)
	if err != nil {
		panic(err)
	}
	defer result.Free()

	tallies := make([]Tally, len(result.Models))
	err = Predict(ctx, problem.Source, result.Models, res, func(first int64, ids []int64, run int, probability []float32) error {
		end := first + int64(len(ids))
		tallies[run].Add(probability, problem.Labels[first:end], problem.Splits[first:end])
		return nil
	})
	if err != nil {
		panic(err)
	}
	var test []float64
	for _, t := range tallies {
		share, _ := t.Accuracy(Test)
		test = append(test, share)
	}
	fmt.Println(result.Histories[0].ValidAccuracy(), result.Histories[1].ValidAccuracy(), test)
	// Output: 1 1 [1 1]
}

// Models that are trained one call at a time, in any order, equal those of one call; an
// error of done ends the call.
func TestFitEach(t *testing.T) {
	o := quick()
	o.Runs, o.Epochs, o.BatchSize = 4, 8, 50
	p, res := clouds(300, 6, 3, 100), Resources{Budget: testBudget(t, 32<<20), Threads: 2}
	want := mustFit(t, p, o, res)
	seen := 0
	for _, runs := range [][]int{{3, 1}, {0}, {2}} {
		err := FitEach(t.Context(), p, o, runs, res, func(m *Model, h History) error {
			seen++
			if !slices.Contains(runs, h.Run) || !slices.Equal(m.params, want.Models[h.Run].params) || !sameCourse(h, want.Histories[h.Run]) {
				t.Errorf("run %d of %v is not that of one call", h.Run, runs)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen != o.Runs {
		t.Errorf("%d models, want %d", seen, o.Runs)
	}
	full := errors.New("the disk is full")
	if err := FitEach(t.Context(), p, o, []int{0, 1}, res, func(*Model, History) error { return full }); !errors.Is(err, full) {
		t.Errorf("an error of done: %v", err)
	}
}
