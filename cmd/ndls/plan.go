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
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/progress"
)

func (a *app) planCommand() *cobra.Command {
	var uri string
	var shape coordinator.Shape
	var blockColumns int
	var flags *planFlags
	cmd := a.command("plan (--dataset URI | --nodes N --edges M [--features F --classes C])",
		"what a run takes: memory, disk, passes, time",
		`plan estimates each stage from counts alone: peak memory and the least --memory
with which it runs, disk, bytes read, passes and seconds. Hops are counted up to
--kmax, which most graphs do not need. A plan that does not fit --memory is
refused with status 3, naming a --memory that would do. A dataset that does not
state its size is read once.`,
		func(ctx context.Context, _ *cobra.Command) error {
			plan := flags.over(control.DefaultPlan())
			if width, err := strconv.Atoi(plan.Partition.Features); err == nil {
				shape.Features, plan.Partition.Features = width, ""
			}
			if err := plan.Validate(); err != nil {
				return err
			}
			memory, err := a.memoryBytes()
			if err != nil {
				return err
			}
			if (uri == "") == (shape.Nodes == 0) {
				return asUsage(errors.New("give either --dataset, or --nodes and --edges"))
			}
			if uri != "" {
				if shape, err = a.measure(ctx, uri, plan); err != nil {
					return err
				}
			}
			list, err := coordinator.Estimate(shape, plan, control.Resources{Memory: memory, Threads: a.threads, BlockColumns: blockColumns})
			if printErr := a.printEstimates(list); printErr != nil {
				return printErr
			}
			return err
		})
	f := cmd.Flags()
	f.StringVar(&uri, "dataset", "", "dataset URI")
	f.Int64Var(&shape.Nodes, "nodes", 0, "nodes")
	f.Int64Var(&shape.Edges, "edges", 0, "undirected edges")
	f.IntVar(&shape.Classes, "classes", 0, "classes")
	f.Int64Var(&shape.Training, "training", 0, "training nodes")
	f.IntVar(&blockColumns, "block-columns", 0, "columns of a column block (default as many as --memory holds)")
	// Here --features is the width of a feature row, or "none".
	flags = newPlanFlags(cmd).partition().lsi().smooth().train().labels()
	f.Lookup("features").Usage = `width of a feature row, or "none"`
	return cmd
}

// measure finds the counts of a dataset, reading what it does not state.
func (a *app) measure(ctx context.Context, uri string, plan control.Plan) (s coordinator.Shape, err error) {
	ds, err := dataset.Open(ctx, uri, dataset.Options{NoFeatures: plan.Partition.Features == "none"})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	info := ds.Info()
	s = coordinator.Shape{Nodes: info.NumNodes, Edges: info.EdgeHint, Features: info.NumFeatures, Classes: len(info.Classes)}
	if s.Nodes < 0 || s.Edges == 0 {
		if err := countEdges(ctx, ds, info.EdgeHint, &s); err != nil {
			return s, err
		}
	}
	if info.HasSplits {
		s.Training, err = countTraining(ctx, ds)
	}
	return s, err
}

// countEdges reads the edge list. The largest id bounds the number of nodes.
func countEdges(ctx context.Context, ds dataset.Dataset, hint int64, s *coordinator.Shape) (err error) {
	r, err := ds.Edges(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	m := progress.Start(ctx, "count edges", hint, "edges")
	defer m.Done()
	batch := make([]dataset.Edge, 1<<14)
	s.Edges = 0
	for {
		n, err := r.Read(batch)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			s.Nodes = max(s.Nodes, int64(max(e.U, e.V))+1)
		}
		s.Edges += int64(n)
		m.Add(int64(n))
	}
}

func countTraining(ctx context.Context, ds dataset.Dataset) (n int64, err error) {
	r, err := ds.Splits(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		_, split, err := r.Next()
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if split == dataset.Train {
			n++
		}
	}
}

func (a *app) printEstimates(list []coordinator.StageEstimate) error {
	if a.json {
		for _, x := range list {
			if err := a.line(x); err != nil {
				return err
			}
		}
		return nil
	}
	t := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tmemory\tat least\tdisk\tscratch\tread\tpasses\tcolumns\ttime\t")
	for _, x := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%s\t\n", x.Stage, mem.Bytes(x.PeakBytes), mem.Bytes(x.LeastBytes),
			mem.Bytes(x.DiskBytes), mem.Bytes(x.ScratchBytes), mem.Bytes(x.BytesRead), x.Passes, x.ColumnsPerPass, duration(x.Seconds))
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
