// Command train measures training and prediction on random rows in memory:
//
//	go run -C bench ./train [-shape papers] [-rows 100000] [-epochs 5] [-threads 1] [-cpuprofile FILE]
//	go run -C bench ./train -shape cora [-threads 1]
//
// The first prints seconds for each epoch of one model, and for each of as many predictions of
// all rows.
// Rows, hidden layer and classes are as wide as for ogbn-papers100M. The second prints
// seconds for ten models of 500 epochs, of the shape of Cora. compare.sh sets both beside
// PyTorch.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
	"ndls/train"
)

// shape is the shape of a problem.
type shape struct {
	width, hidden, classes int
	train, valid           int64
}

// flop is the number of additions and multiplications of the products of a training row:
// each layer's output, its weights' gradient and, but for the first, its input's gradient.
func (s shape) flop() float64 {
	return 2 * float64(2*s.width*s.hidden+3*s.hidden*s.classes)
}

const chunkRows = 1 << 15

// source holds its rows in memory.
type source struct {
	shape
	values []float32
}

func newSource(s shape) *source {
	x := &source{shape: s, values: make([]float32, (s.train+s.valid)*int64(s.width))}
	random := rng.New(1)
	for i := range x.values {
		x.values[i] = float32(2*random.Float64() - 1)
	}
	return x
}

func (s *source) NumRows() int64 { return s.train + s.valid }
func (s *source) Width() int     { return s.width }
func (s *source) NumChunks() int { return int((s.NumRows() + chunkRows - 1) / chunkRows) }

func (s *source) Chunk(i int) (first, rows int64) {
	first = int64(i) * chunkRows
	return first, min(chunkRows, s.NumRows()-first)
}

// ReadRows is for rows that do not fit in memory.
func (s *source) ReadRows(int, int64, int64, []float32) ([]float32, error) {
	return nil, errors.ErrUnsupported
}

func (s *source) ReadChunk(i int, dst *shards.RowBatch) error {
	first, rows := s.Chunk(i)
	dst.First, dst.ID, dst.Label = first, dst.ID[:0], dst.Label[:0]
	for row := first; row < first+rows; row++ {
		dst.ID = append(dst.ID, row)
	}
	dst.Values = s.values[first*int64(s.width) : (first+rows)*int64(s.width)]
	return nil
}

func main() {
	name := flag.String("shape", "papers", "papers or cora")
	rows := flag.Int64("rows", 100_000, "number of training rows of papers")
	epochs := flag.Int("epochs", 5, "number of epochs that are timed")
	threads := flag.Int("threads", 1, "number of threads")
	profile := flag.String("cpuprofile", "", "file for a profile of what is timed")
	flag.Parse()
	run := func(*os.File) error { return fmt.Errorf("-shape %s: give papers or cora", *name) }
	switch *name {
	case "papers":
		s := shape{width: 128, hidden: 256, classes: 172, train: *rows}
		run = func(f *os.File) error { return papers(s, *epochs, *threads, f) }
	case "cora":
		s := shape{width: 1433, hidden: 64, classes: 7, train: 140, valid: 500}
		run = func(f *os.File) error { return cora(s, *threads, f) }
	}
	if err := withProfile(*profile, run); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// withProfile gives run a file for its profile, nil if there is no path.
func withProfile(path string, run func(*os.File) error) error {
	if path == "" {
		return run(nil)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(run(f), f.Close())
}

// timed calls do, and says how many seconds it took.
func timed(profile *os.File, do func() error) (seconds float64, err error) {
	if profile != nil {
		if err := pprof.StartCPUProfile(profile); err != nil {
			return 0, err
		}
		defer pprof.StopCPUProfile()
	}
	start := time.Now()
	err = do()
	return time.Since(start).Seconds(), err
}

func (s *source) problem() train.Problem {
	p := train.Problem{Source: s, Labels: make([]int32, s.NumRows()), Splits: make([]uint8, s.NumRows()), Classes: s.classes}
	for i := range p.Labels {
		p.Labels[i] = int32(rng.Below(rng.Hash(2, uint64(i)), uint64(s.classes)))
		p.Splits[i] = train.Train
		if int64(i) >= s.train {
			p.Splits[i] = train.Valid
		}
	}
	return p
}

// usual are the options that a run has unless it is told others.
var usual = train.Options{
	Hidden: 64, Layers: 2, Dropout: 0.4, InputDropout: 0.4, LR: 0.01, WeightDecay: 5e-4, Schedule: train.Constant,
	Epochs: 500, Patience: 200, BatchSize: 4096, Runs: 10,
}

func papers(s shape, epochs, threads int, profile *os.File) error {
	budget, err := mem.NewBudget(2 << 30)
	if err != nil {
		return err
	}
	defer budget.Close()
	o := usual
	o.Hidden, o.Epochs, o.Runs = s.hidden, 1+epochs, 1
	ctx, src, res := context.Background(), newSource(s), train.Resources{Budget: budget, Threads: threads}
	t, err := train.Begin(ctx, src.problem(), o, 0, res)
	if err != nil {
		return err
	}
	defer t.Free()
	if !t.InMemory() {
		return fmt.Errorf("%d rows do not fit in memory: give fewer -rows", s.train)
	}
	predict := func(times int) error {
		for range times {
			if err := train.Predict(ctx, src, []*train.Model{t.Model()}, res, func(int64, []int64, int, []float32) error { return nil }); err != nil {
				return err
			}
		}
		return nil
	}
	// What only a first epoch and a first prediction pay for is not timed.
	if _, err := t.Epoch(ctx, 0); err != nil {
		return err
	}
	took, err := timed(profile, func() error {
		for epoch := range epochs {
			if _, err := t.Epoch(ctx, 1+epoch); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := predict(1); err != nil {
		return err
	}
	predicting, err := timed(nil, func() error { return predict(epochs) })
	if err != nil {
		return err
	}
	epoch := took / float64(epochs)
	fmt.Printf("%.3f s/epoch\t%.1f GFLOP/s\t%.3f s/prediction\n", epoch, float64(s.train)*s.flop()/epoch/1e9, predicting/float64(epochs))
	return nil
}

func cora(s shape, threads int, profile *os.File) error {
	budget, err := mem.NewBudget(1 << 30)
	if err != nil {
		return err
	}
	defer budget.Close()
	o := usual
	o.Hidden, o.Epochs, o.Patience, o.Runs, o.BatchSize = s.hidden, 500, 0, 10, 0
	p := newSource(s).problem()
	took, err := timed(profile, func() error {
		r, err := train.FitRuns(context.Background(), p, o, train.Resources{Budget: budget, Threads: threads})
		r.Free()
		return err
	})
	if err == nil {
		fmt.Printf("%.2f s for 10 models of 500 epochs\n", took)
	}
	return err
}
