package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ndls/coordinator"
	"ndls/dataset"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/half"
	"ndls/internal/mem"
	"ndls/internal/progress"
)

func (a *app) planCommand() *cobra.Command {
	var uri string
	var counts estimate.Counts
	var blockColumns, workers int
	parallel := string(coordinator.Columns)
	var flags *planFlags
	cmd := a.command("plan (--dataset URI | --nodes N --edges M [--features F --classes C])",
		"what a run takes: memory, disk, passes, time",
		`plan estimates each stage from counts alone: peak memory and the least --memory
with which it runs, what it adds to the run directory, what run directory and
temporary files take together at the peak, bytes read and written, passes and
seconds. How many hops the nodes need is not known before lsi: --expect-hops says
how many to count. A plan that does not fit --memory is refused with status 3,
naming a --memory that would do. A dataset that does not state its size is read
once; without one, --half-features says that every feature is exactly a float16.`,
		func(ctx context.Context, _ *cobra.Command) error {
			plan := flags.over(control.DefaultPlan())
			if width, err := strconv.Atoi(plan.Partition.Features); err == nil {
				counts.Features, plan.Partition.Features = width, ""
			}
			if err := plan.Validate(); err != nil {
				return err
			}
			memory, err := a.memoryBytes()
			if err != nil {
				return err
			}
			if (uri == "") == (counts.Nodes == 0) {
				return asUsage(errors.New("give either --dataset, or --nodes and --edges"))
			}
			if uri != "" {
				hops := counts.Hops
				if counts, err = a.countDataset(ctx, uri, plan); err != nil {
					return err
				}
				counts.Hops = hops
			}
			counts.StatedNodes = counts.StatedNodes || uri == ""
			counts.Labelled = max(counts.Labelled, counts.Training)
			r := control.Resources{Memory: memory, Threads: a.threads, BlockColumns: blockColumns}
			stages := estimate.Stages(counts, plan)
			list, err := estimate.RunCut(counts, plan, r, workers, 0, stages...)
			switch p, wrong := coordinator.ParseParallel(parallel); {
			case wrong != nil:
				return asUsage(wrong)
			case workers > 1 && (p == coordinator.Intervals || p == coordinator.Auto && errors.Is(err, mem.ErrBudget)):
				if wrong := coordinator.CheckParallel(p, plan); wrong != nil {
					return asUsage(wrong)
				}
				list, err = estimate.RunShared(counts, plan, r, workers, 0, stages...)
			}
			if printErr := a.printFigures(list); printErr != nil {
				return printErr
			}
			return err
		})
	f := cmd.Flags()
	f.StringVar(&uri, "dataset", "", "dataset URI")
	f.Int64Var(&counts.Nodes, "nodes", 0, "nodes")
	f.Int64Var(&counts.Edges, "edges", 0, "undirected edges")
	f.IntVar(&counts.Classes, "classes", 0, "classes")
	f.Int64Var(&counts.Training, "training", 0, "training nodes")
	f.BoolVar(&counts.Half, "half-features", false, "every feature is exactly a float16")
	f.IntVar(&counts.Hops, "expect-hops", estimate.DefaultHops, "hops until the last node settles, at most --kmax")
	f.IntVar(&workers, "workers", 1, "workers, each with --memory: they share partition, and rows with --parallel intervals")
	parallelFlag(cmd, &parallel)
	f.IntVar(&blockColumns, "block-columns", 0, "columns of a column block (default as many as --memory holds)")
	// Here --features is the width of a feature row, or "none".
	flags = newPlanFlags(cmd).partition().lsi().smooth().train().labels()
	f.Lookup("features").Usage = `width of a feature row, or "none"`
	return cmd
}

// countDataset finds the counts of a dataset, reading what it does not state.
func (a *app) countDataset(ctx context.Context, uri string, plan control.Plan) (c estimate.Counts, err error) {
	ds, err := dataset.Open(ctx, uri, dataset.Options{NoFeatures: plan.Partition.Features == "none"})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	if c, err = statedCounts(ctx, ds); err == nil && (!c.StatedNodes || c.Edges == 0) {
		err = countEdges(ctx, ds, c.Edges, &c)
	}
	return c, err
}

// statedCounts is what a dataset says without its edges being read; Edges is 0
// where it does not say.
func statedCounts(ctx context.Context, ds dataset.Dataset) (c estimate.Counts, err error) {
	info := ds.Info()
	c = estimate.Counts{
		Nodes: max(info.NumNodes, 0), StatedNodes: info.NumNodes >= 0, Edges: info.EdgeHint,
		Features: info.NumFeatures, Classes: len(info.Classes), Hops: estimate.DefaultHops,
	}
	if info.HasSplits {
		if err := countSplits(ctx, ds, &c); err != nil {
			return c, err
		}
	}
	if info.NumFeatures > 0 {
		c.Half, err = halfFeatures(ctx, ds)
	}
	return c, err
}

// countEdges reads the edge list. The largest id bounds the number of nodes.
func countEdges(ctx context.Context, ds dataset.Dataset, hint int64, c *estimate.Counts) (err error) {
	r, err := ds.Edges(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m := progress.Start(ctx, "count edges", hint, "edges")
	defer m.Done()
	batch := make([]dataset.Edge, 1<<14)
	c.Edges = 0
	for {
		n, err := r.Read(batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			c.Nodes = max(c.Nodes, int64(max(e.U, e.V))+1)
		}
		c.Edges += int64(n)
		m.Add(int64(n))
	}
}

// countSplits reads the splits; labels outside them are not counted.
func countSplits(ctx context.Context, ds dataset.Dataset, c *estimate.Counts) (err error) {
	r, err := ds.Splits(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		_, split, err := r.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		c.Labelled++
		switch split {
		case dataset.Train:
			c.Training++
		case dataset.Valid:
			c.Validation++
		}
	}
}

// sampledRows is how many rows tell whether features are float16.
const sampledRows = 256

// halfFeatures says whether the first rows of features are exactly float16.
func halfFeatures(ctx context.Context, ds dataset.Dataset) (_ bool, err error) {
	r, err := ds.Features(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for range sampledRows {
		row, err := r.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		for _, x := range append(row.Dense, row.Values...) {
			if half.Float(half.FromFloat(x)) != x {
				return false, nil
			}
		}
	}
	return true, nil
}

func (a *app) printFigures(list []control.Figures) error {
	if a.json {
		for _, x := range list {
			if err := a.line(x); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tmemory\tat least\tdisk\tpeak disk\tread\twritten\tnetwork\tpasses\tcolumns\ttime\t")
	for _, x := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", x.Stage, mem.Bytes(x.PeakBytes), mem.Bytes(x.LeastBytes),
			mem.Bytes(x.DiskBytes), mem.Bytes(x.PeakDiskBytes), mem.Bytes(x.BytesRead), mem.Bytes(x.BytesWritten),
			mem.Bytes(x.NetworkBytes), x.Passes, x.ColumnsPerPass, duration(x.Seconds))
	}
	return t.Flush()
}

// duration prints seconds, rounded to what an estimate is worth.
func duration(seconds float64) string {
	switch {
	case seconds < 1:
		return "< 1s"
	case seconds > 100*365*24*3600:
		return "> 100 years"
	}
	return time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
}
