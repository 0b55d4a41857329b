package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"ndls/bench/artifacts"
	"ndls/internal/storage"
	"ndls/shards"
)

// rates are the rates of several rounds.
type rates struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// ratesOf divides by the seconds of each round.
func ratesOf(amount int64, seconds []float64) rates {
	var x []float64
	for _, s := range seconds {
		x = append(x, float64(amount)/s)
	}
	slices.Sort(x)
	return rates{x[len(x)/2], x[0], x[len(x)-1]}
}

// fileRate is one line of `bench shards --json` and `bench train --json`.
type fileRate struct {
	Bench     string `json:"bench"`
	What      string `json:"what"`
	Rows      int64  `json:"rows"`
	Bytes     int64  `json:"bytes"`
	Columns   int    `json:"columns"`
	Precision string `json:"precision"`
	Threads   int    `json:"threads"`
	RowRate   rates  `json:"rows_per_second"`
	ByteRate  rates  `json:"bytes_per_second"`
	Seconds   rates  `json:"seconds"`
}

// printRates prints one line for each of what was measured.
func (a *app) printRates(bench string, columns int, precision string, measured []artifacts.Measured) error {
	if !a.json {
		fmt.Fprintf(a.stdout, "%-15s %10s %14s %9s  %s\n", bench, "seconds", "million rows/s", "MB/s", "(least to most)")
	}
	for _, m := range measured {
		r := fileRate{
			Bench: bench, What: m.What, Rows: m.Rows, Bytes: m.Bytes, Columns: columns, Precision: precision, Threads: a.threads,
			RowRate: ratesOf(m.Rows, m.Seconds), ByteRate: ratesOf(m.Bytes, m.Seconds),
		}
		slices.Sort(m.Seconds)
		r.Seconds = rates{m.Seconds[len(m.Seconds)/2], m.Seconds[0], m.Seconds[len(m.Seconds)-1]}
		if err := a.lineOr(r, "%-15s %10.3f %14.3f %9.0f  (%.0f to %.0f)\n",
			m.What, r.Seconds.Median, r.RowRate.Median/1e6, r.ByteRate.Median/1e6, r.ByteRate.Min/1e6, r.ByteRate.Max/1e6); err != nil {
			return err
		}
	}
	return nil
}

// benchStore is an empty store on the disk that is measured; remove deletes it.
func (a *app) benchStore() (store storage.Store, remove func() error, err error) {
	parent := a.scratch
	if parent == "" {
		parent = "."
	}
	dir, err := os.MkdirTemp(parent, "ndls-bench-")
	if err != nil {
		return nil, nil, err
	}
	store, err = storage.NewLocal(dir)
	return store, func() error { return os.RemoveAll(dir) }, err
}

// isHalf reports whether --precision asks for float16.
func isHalf(precision string) (bool, error) {
	if precision != shards.Float32 && precision != shards.Float16 {
		return false, asUsage(fmt.Errorf("--precision %q is neither float32 nor float16", precision))
	}
	return precision == shards.Float16, nil
}

// positive refuses counts below 1.
func positive(counts map[string]int64) error {
	for _, flag := range slices.Sorted(maps.Keys(counts)) {
		if n := counts[flag]; n < 1 {
			return asUsage(fmt.Errorf("--%s %d is less than 1", flag, n))
		}
	}
	return nil
}

func (a *app) benchShardsCommand() *cobra.Command {
	var edges, rows int64
	var columns, rounds int
	var precision string
	cmd := a.command("shards", "edge shards and Arrow rows, written and read, beside plain reads of the same bytes",
		`shards writes a random edge shard and a random Arrow row file to a folder that it
makes in --scratch (default: here) and removes, and reads both: as a stage does,
and plainly, past the page cache, 1 MiB at a time. Everything is done once in
each round, in turn; medians are reported.`,
		func(ctx context.Context, _ []string) (err error) {
			half, err := isHalf(precision)
			if err != nil {
				return err
			}
			if err := positive(map[string]int64{"edges": edges, "rows": rows, "columns": int64(columns), "rounds": int64(rounds)}); err != nil {
				return err
			}
			if most := int64(math.MaxUint32 / 8); edges > most {
				return asUsage(fmt.Errorf("--edges %d is more than %d, for which node ids are too small", edges, most))
			}
			budget, err := a.budget()
			if err != nil {
				return err
			}
			store, remove, err := a.benchStore()
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			measured, err := artifacts.Shards(ctx, store, budget, edges, rows, shards.RowSchema{Column: "feature", Width: columns, Half: half}, rounds)
			if err != nil {
				return err
			}
			return a.printRates("shards", columns, precision, measured)
		})
	f := cmd.Flags()
	f.Int64Var(&edges, "edges", 1<<26, "directed edges of the shard")
	f.Int64Var(&rows, "rows", 1_200_000, "rows of the Arrow file")
	f.IntVar(&columns, "columns", 128, "columns of a row")
	f.StringVar(&precision, "precision", shards.Float32, "type of the rows: float32 or float16")
	f.IntVar(&rounds, "rounds", 3, "rounds")
	return cmd
}
