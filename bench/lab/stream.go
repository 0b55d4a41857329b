package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/bench/pass"
	"ndls/catalog"
	"ndls/internal/direct"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/spmv"
)

// streamRate is one line of `bench stream --json`: of "read", the file and
// nothing else; "resident", a pass with the edges in memory; "disk", a pass that
// reads them; or "ratio", the seconds of disk over those of the slower of the
// other two, round by round.
type streamRate struct {
	Bench     string `json:"bench"`
	What      string `json:"what"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"`
	Bytes     int64  `json:"bytes"`
	Columns   int    `json:"columns"`
	Precision string `json:"precision"`
	Threads   int    `json:"threads"`
	ISA       string `json:"isa"`
	EdgeRate  *rates `json:"edges_per_second,omitempty"`
	ByteRate  *rates `json:"bytes_per_second,omitempty"`
	Ratio     *rates `json:"ratio,omitempty"`
}

func (a *app) benchStreamCommand() *cobra.Command {
	var nodes, edges int64
	var columns, rounds int
	var precision string
	cmd := a.command("stream", "a pass that reads its edges, beside one with the edges in memory and a plain read",
		`stream times three things in turn: reading a hop stream past the page cache, in
requests of 256 KiB, and nothing else; a pass whose edges are in memory; a pass
that reads them. It reports rates, and the seconds of the last over those of the
slower of the other two. Where the pass is well fed that ratio is near 1.

The hop stream is that of --run or, without it, one of a random graph, which is
written to a folder that it makes in --scratch (default: here) and removes.

Memory: 2 x nodes x columns x 4 or 2 bytes, 4 bytes a node and 3 to 4 an edge.`,
		func(ctx context.Context, _ []string) (err error) {
			p, err := precisionOf(precision)
			if err != nil {
				return asUsage(err)
			}
			if err := positive(map[string]int64{"nodes": nodes, "edges": edges, "columns": int64(columns), "rounds": int64(rounds)}); err != nil {
				return err
			}
			if nodes > 1<<32-1 {
				return asUsage(fmt.Errorf("--nodes %d is more than ids can tell apart", nodes))
			}
			kernel, err := spmv.Select(a.kernel)
			if err != nil {
				return asUsage(err)
			}
			budget, err := a.budget()
			if err != nil {
				return err
			}
			cat, remove, err := a.streamCatalog(ctx, nodes, edges)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, remove()) }()
			disk, err := shards.OpenHopStream(ctx, cat)
			if err != nil {
				return err
			}
			defer disk.Close()
			resident, err := shards.OpenHopStream(ctx, cat)
			if err != nil {
				return err
			}
			defer resident.Close()
			if err := resident.Load(ctx, budget, a.threads); err != nil {
				return err
			}
			layout := spmv.Layout{Columns: columns, Precision: p}
			measured, err := pass.Streams(ctx, kernel, budget, disk, resident, layout, a.threads, rounds, func() error { return readPlainly(ctx, cat) })
			if err != nil {
				return err
			}
			r := streamRate{
				Bench: "stream", Nodes: disk.NumNodes(), Edges: disk.NumEdges(), Bytes: disk.Bytes(), Columns: columns,
				Precision: precision, Threads: a.threads, ISA: kernel.Name(),
			}
			return a.printStream(r, measured)
		})
	f := cmd.Flags()
	f.StringVar(&a.runDir, "run", "", "run directory with a hop stream")
	f.Int64Var(&nodes, "nodes", 1<<23, "nodes of the random graph")
	f.Int64Var(&edges, "edges", 1<<28, "directed edges of the random graph")
	f.IntVar(&columns, "columns", 16, "columns of a row, a multiple of 16")
	f.StringVar(&precision, "precision", "float32", "type of the rows: float32 or float16")
	f.IntVar(&rounds, "rounds", 5, "rounds that count")
	return cmd
}

// streamCatalog opens the run directory, or makes one with a random hop stream;
// remove deletes what was made.
func (a *app) streamCatalog(ctx context.Context, nodes, edges int64) (cat *catalog.Catalog, remove func() error, err error) {
	if a.runDir != "" {
		d, err := ndls.Open(ctx, a.runDir)
		if err != nil {
			return nil, nil, err
		}
		return d.Catalog(), func() error { return nil }, nil
	}
	store, remove, err := a.benchStore()
	if err != nil {
		return nil, nil, err
	}
	if cat, err = catalog.Open(ctx, store); err == nil {
		err = writeRandomHops(ctx, cat, nodes, edges)
	}
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return cat, remove, nil
}

// writeRandomHops commits the hop stream of a graph whose edges come from any
// node, evenly, and go to any.
func writeRandomHops(ctx context.Context, cat *catalog.Catalog, nodes, edges int64) error {
	f, err := cat.Create(ctx, catalog.Describe(catalog.KindHops, "graph/hops/part-00000.hops").In(0))
	if err != nil {
		return err
	}
	defer f.Abort()
	w, err := shards.NewHopWriter(f, shards.EdgeMeta{Hi: nodes, NumNodes: nodes, BlockRows: packed.BlockRows})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for lo := int64(0); lo < nodes; lo += packed.BlockRows {
		rows := min(packed.BlockRows, nodes-lo)
		gap := 2 * float64(nodes) / (float64(edges) * float64(rows) / float64(nodes))
		for at := rng.Float64() * gap; at < float64(nodes); at += rng.Float64() * gap {
			if err := w.Write([]uint32{uint32(at)}, []uint32{uint32(lo + rng.Int64N(rows))}, nil); err != nil {
				return err
			}
		}
	}
	if f.Rows, err = w.Close(""); err != nil {
		return err
	}
	return cat.Commit(ctx, f)
}

// readPlainly reads all hop streams with as many requests under way as two
// threads of a pass have.
func readPlainly(ctx context.Context, cat *catalog.Catalog) error {
	const readers = 8
	for _, e := range cat.Entries(catalog.KindHops) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			return err
		}
		var next atomic.Int64
		var wg sync.WaitGroup
		errs := make([]error, readers+1)
		for i := range readers {
			wg.Go(func() {
				buf := direct.AlignedBytes(packed.FrameBytes)
				for off := next.Add(packed.FrameBytes) - packed.FrameBytes; off < r.Size(); off = next.Add(packed.FrameBytes) - packed.FrameBytes {
					if _, err := r.ReadAt(buf, off); err != nil && err != io.EOF {
						errs[i] = err
						return
					}
				}
			})
		}
		wg.Wait()
		errs[readers] = r.Close()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// printStream prints a line for each of what was measured, and the ratio.
func (a *app) printStream(r streamRate, measured []pass.StreamRound) error {
	seconds := map[string][]float64{}
	var ratio []float64
	for _, m := range measured {
		seconds["read"] = append(seconds["read"], m.Read)
		seconds["resident"] = append(seconds["resident"], m.Resident)
		seconds["disk"] = append(seconds["disk"], m.Disk)
		ratio = append(ratio, m.Disk/max(m.Read, m.Resident))
	}
	if !a.json {
		fmt.Fprintf(a.stdout, "%-9s %s of %d columns, %d nodes, %d edges, %d threads, %s\n", "", r.Precision, r.Columns, r.Nodes, r.Edges, r.Threads, r.ISA)
	}
	for _, what := range []string{"read", "resident", "disk"} {
		line := r
		edges, bytes := ratesOf(r.Edges, seconds[what]), ratesOf(r.Bytes, seconds[what])
		line.What, line.EdgeRate, line.ByteRate = what, &edges, &bytes
		err := a.lineOr(line, "%-9s %8.1f million edges/s %7.0f MB/s (%.0f to %.0f)\n", what, edges.Median/1e6, bytes.Median/1e6, bytes.Min/1e6, bytes.Max/1e6)
		if err != nil {
			return err
		}
	}
	slices.Sort(ratio)
	x := rates{ratio[len(ratio)/2], ratio[0], ratio[len(ratio)-1]}
	r.What, r.Ratio = "ratio", &x
	return a.lineOr(r, "%-9s %8.2f times the seconds of the slower of read and resident (%.2f to %.2f)\n", r.What, x.Median, x.Min, x.Max)
}
