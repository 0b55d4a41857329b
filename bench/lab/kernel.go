package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"ndls/bench/pass"
	"ndls/spmv"
)

// kernelRate is one line of `bench kernel --json`.
type kernelRate struct {
	Bench     string `json:"bench"`
	What      string `json:"what"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"`
	Columns   int    `json:"columns"`
	Precision string `json:"precision"`
	Threads   int    `json:"threads"`
	ISA       string `json:"isa"`
	Rate      rates  `json:"edges_per_second"`
}

func (a *app) benchKernelCommand() *cobra.Command {
	var nodes, edges int64
	var columns, rounds int
	var precision string
	cmd := a.command("kernel", "edges per second of the pass, beside CSR and a gather of the same rows",
		`kernel times three loops in turn on random edges in memory: gather, the sum of
random rows without any structure; csr, one destination after the other; pass,
strip by strip, as a run does. csr and pass also divide the sums and store rows;
gather and csr prefetch 64 rows ahead, where they were measured to be fastest.
It reports the median, least and largest of the rounds.

Sources are any of the nodes. So that a sample is as dense as a pass over a graph
like ogbn-papers100M, destinations are only the first edges/29 rows, in whole
strips of 32768, or all rows if there are not that many.

Memory: (nodes + edges/29) rows of columns x 4 or 2 bytes, and 9 bytes an edge.`,
		func(context.Context, []string) error {
			kernel, err := spmv.Select(a.kernel)
			if err != nil {
				return asUsage(err)
			}
			p, err := precisionOf(precision)
			if err != nil {
				return asUsage(err)
			}
			if err := positive(map[string]int64{"rounds": int64(rounds)}); err != nil {
				return err
			}
			budget, err := a.budget()
			if err != nil {
				return err
			}
			measured, err := pass.Kernels(kernel, budget, pass.Sample{
				Nodes: nodes, Edges: edges, Columns: columns, Precision: p, Threads: a.threads, Rounds: rounds, Seed: 1,
			})
			if err != nil {
				return err
			}
			if !a.json {
				fmt.Fprintf(a.stdout, "%-7s %s of %d columns, %d nodes, %d edges, %d threads, %s\n", "", precision, columns, nodes, edges, a.threads, kernel.Name())
			}
			for _, m := range measured {
				r := kernelRate{
					Bench: "kernel", What: m.What, Nodes: nodes, Edges: edges, Columns: columns, Precision: precision,
					Threads: a.threads, ISA: kernel.Name(),
				}
				slices.Sort(m.Rates)
				r.Rate = rates{m.Rates[len(m.Rates)/2], m.Rates[0], m.Rates[len(m.Rates)-1]}
				err := a.lineOr(r, "%-7s %8.1f million edges/s (%.1f to %.1f)\n", m.What, r.Rate.Median/1e6, r.Rate.Min/1e6, r.Rate.Max/1e6)
				if err != nil {
					return err
				}
			}
			return nil
		})
	f := cmd.Flags()
	f.Int64Var(&nodes, "nodes", 1<<24, "rows")
	f.Int64Var(&edges, "edges", 1<<27, "directed edges")
	f.IntVar(&columns, "columns", 16, "columns of a row: 16, 32 or 64, or 8 of float32")
	f.StringVar(&precision, "precision", "float32", "type of the rows: float32 or float16")
	f.IntVar(&rounds, "rounds", 5, "rounds that count")
	return cmd
}

// precisionOf reads "float32" or "float16".
func precisionOf(s string) (spmv.Precision, error) {
	for _, p := range []spmv.Precision{spmv.Float32, spmv.Float16} {
		if s == p.String() {
			return p, nil
		}
	}
	return 0, fmt.Errorf("precision %q: there are float32 and float16", s)
}
