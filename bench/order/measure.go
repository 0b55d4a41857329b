package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/spmv"
)

// clock is a time, or the seconds between two.
type clock struct{ wall, cpu float64 }

var started = time.Now()

func now() clock {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u) // cannot fail with these arguments
	return clock{time.Since(started).Seconds(), float64(u.Utime.Nano()+u.Stime.Nano()) * 1e-9}
}

func (c clock) sub(d clock) clock { return clock{c.wall - d.wall, c.cpu - d.cpu} }

// measure times a pass of each order, in turn.
func measure(ctx context.Context, b *mem.Budget, all []*packedOrder, columns, threads, rounds int) error {
	block, err := spmv.NewBlock(b, all[0].pass.Kernel, group.Solo(all[0].stream.NumNodes()), spmv.Layout{Columns: columns}, threads, "")
	if err != nil {
		return err
	}
	defer block.Free()
	for range rounds {
		for _, q := range all {
			if err := q.fill(block); err != nil {
				return err
			}
			if _, err := q.pass.Run(ctx, block, nil, nil); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			start := now()
			if _, err := q.pass.Run(ctx, block, nil, nil); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			q.times[threads] = append(q.times[threads], now().sub(start))
		}
	}
	return nil
}

// fill gives every node the same values whatever the order.
func (q *packedOrder) fill(block *spmv.Block) error {
	row := make([]float32, block.Layout().Columns)
	return block.Fill(func(put func([]float32) error) error {
		for _, v := range q.nodes.S {
			h := rng.Hash(uint64(v))
			for c := range row {
				row[c] = float32((h>>c)&1023) - 511.5
			}
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	})
}

// spread is a median with its range.
type spread struct{ low, median, high float64 }

func spreadOf(xs []float64) spread {
	s := slices.Sorted(slices.Values(xs))
	return spread{s[0], (s[(len(s)-1)/2] + s[len(s)/2]) / 2, s[len(s)-1]}
}

func (s spread) String() string { return fmt.Sprintf("%.2f (%.2f–%.2f)", s.median, s.low, s.high) }

// report prints the table.
func report(w io.Writer, all []*packedOrder, threads []int) {
	fmt.Fprint(w, "| order | found in, CPU s | bytes an edge | rows an edge |")
	rule := "\n|---|---|---|---|"
	for _, t := range threads {
		fmt.Fprintf(w, " %d thread(s): M edges/s | × degree | × degree, CPU |", t)
		rule += "---|---|---|"
	}
	fmt.Fprintln(w, rule)
	degree := all[slices.IndexFunc(all, func(q *packedOrder) bool { return q.name == reference })]
	for _, q := range all {
		edges := float64(q.stream.NumEdges())
		fmt.Fprintf(w, "| %s | %.2f | %.2f | %.3f |", q.name, q.found, float64(q.stream.Bytes())/edges, float64(q.rows)/edges)
		for _, t := range threads {
			var rates, wall, cpu []float64
			for i, c := range q.times[t] {
				d := degree.times[t][i]
				rates = append(rates, edges/c.wall*1e-6)
				wall = append(wall, d.wall/c.wall)
				cpu = append(cpu, d.cpu/c.cpu)
			}
			fmt.Fprintf(w, " %.0f | %s | %s |", spreadOf(rates).median, spreadOf(wall), spreadOf(cpu))
		}
		fmt.Fprintln(w)
	}
}
