// Command train measures epochs of training on synthetic rows in memory, on one
// thread, and prints seconds per epoch and GFLOP/s of the whole epoch:
//
//	go run [-tags openblas] ./bench/train [-rows 100000] [-epochs 5] [-cpuprofile FILE]
//
// Rows are as wide as those of ogbn-papers100M, and so are hidden layer and
// classes. compare.sh sets it beside PyTorch.
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

const (
	width, hidden, classes = 128, 256, 172
	chunkRows              = 1 << 15
)

// flop is the number of additions and multiplications of the products of one
// row: each layer's output, its weights' gradient and, but for the first, its
// input's gradient.
const flop = 2 * (2*width*hidden + 3*hidden*classes)

// source computes its rows.
type source int64

func (s source) NumRows() int64 { return int64(s) }
func (s source) Width() int     { return width }
func (s source) NumChunks() int { return int((s + chunkRows - 1) / chunkRows) }

func (s source) Chunk(i int) (first, rows int64) {
	first = int64(i) * chunkRows
	return first, min(chunkRows, int64(s)-first)
}

// ReadRows is for rows that do not fit in memory.
func (s source) ReadRows(int, int64, int64, []float32) ([]float32, error) {
	return nil, errors.ErrUnsupported
}

func (s source) ReadChunk(i int, dst *shards.RowBatch) error {
	first, rows := s.Chunk(i)
	dst.First, dst.ID, dst.Label, dst.Values = first, dst.ID[:0], dst.Label[:0], dst.Values[:0]
	for row := first; row < first+rows; row++ {
		dst.ID = append(dst.ID, row)
		for j := range uint64(width) {
			dst.Values = append(dst.Values, float32(rng.Normal(rng.Hash(1, uint64(row), j))))
		}
	}
	return nil
}

func main() {
	rows := flag.Int64("rows", 100_000, "number of training rows")
	epochs := flag.Int("epochs", 5, "number of epochs that are timed")
	profile := flag.String("cpuprofile", "", "file for a profile of the timed epochs")
	flag.Parse()
	if err := run(*rows, *epochs, *profile); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(rows int64, epochs int, profile string) error {
	p := train.Problem{Source: source(rows), Labels: make([]int32, rows), Splits: make([]uint8, rows), Classes: classes}
	for i := range p.Labels {
		p.Labels[i] = int32(rng.Below(rng.Hash(2, uint64(i)), classes))
		p.Splits[i] = train.Train
	}
	budget, err := mem.NewBudget(2 << 30)
	if err != nil {
		return err
	}
	o := train.DefaultOptions()
	o.Hidden, o.Epochs, o.Runs = hidden, 1+epochs, 1
	ctx := context.Background()
	t, err := train.Begin(ctx, p, o, 0, budget)
	if err != nil {
		return err
	}
	defer t.Free()
	if !t.InMemory() {
		return fmt.Errorf("%d rows do not fit in memory: give fewer -rows", rows)
	}
	// What only a first epoch pays for is not timed.
	if _, err := t.Epoch(ctx, 0); err != nil {
		return err
	}
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	start := time.Now()
	for epoch := range epochs {
		if _, err := t.Epoch(ctx, 1+epoch); err != nil {
			return err
		}
	}
	epoch := time.Since(start).Seconds() / float64(epochs)
	fmt.Printf("%.3f s/epoch\t%.1f GFLOP/s\n", epoch, float64(rows)*flop/epoch/1e9)
	return nil
}
