package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"ndls"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/plan"
)

func (a *app) planCommand() *cobra.Command {
	var c ndls.PlanConfig
	var flags *planFlags
	cmd := a.command("plan (--dataset URI | --nodes N --edges M [--features F --classes C])",
		"what a run takes: memory, disk, passes, time",
		`plan estimates each stage from counts alone: peak memory and the least --memory
with which it runs, what it adds to the run directory, what run directory and
temporary files take together at the peak, bytes read and written, passes and
seconds. How many hops the nodes need is not known before lsi: --expect-hops says
how many to count. Nor is it known when training stops early. The line "assumed" says
what the plan takes for these. Seconds follow from speeds of this machine. A plan that does not fit --memory is refused with status 3,
naming a --memory that is enough. A dataset that does not state its size is read
once, and so is one of which --only takes a part; without one, --half-features says
that every feature is exactly a float16.`,
		func(ctx context.Context, cmd *cobra.Command) error {
			if err := bothCounts(cmd); err != nil {
				return err
			}
			if width, err := strconv.Atoi(flags.given.Partition.Features); err == nil {
				c.Counts.Features, flags.given.Partition.Features = width, ""
			}
			c.Options = flags.over
			o := ndls.DefaultOptions()
			flags.over(&o)
			if err := flags.used(a.log, o); err != nil {
				return err
			}
			c.Resources = a.resources()
			f, err := ndls.Plan(ctx, c)
			if printErr := printForecast(&a.results, f, c); printErr != nil {
				return printErr
			}
			return err
		})
	f := cmd.Flags()
	f.StringVar(&c.Dataset, "dataset", "", "dataset URI")
	f.Int64Var(&c.Counts.Nodes, "nodes", 0, "nodes")
	f.Int64Var(&c.Counts.Edges, "edges", 0, "undirected edges")
	f.IntVar(&c.Counts.Classes, "classes", 0, "classes")
	f.Int64Var(&c.Counts.Training, "training", 0, "training nodes")
	f.BoolVar(&c.Counts.Half, "half-features", false, "every feature is exactly a float16")
	f.IntVar(&c.Counts.Hops, "expect-hops", 0, "hops until the last node settles, at most --kmax. 0 stands for --kmax, which nodes of published graphs reach")
	f.IntVar(&c.Workers, "workers", 1, "workers, each with --memory: they share partition, and other stages as --parallel says")
	f.BoolVar(&c.Measure, "measure", true, "measure this machine for the seconds of the plan")
	parallelFlag(cmd, &c.Parallel, "columns")
	groupFlag(cmd, &c.GroupSize)
	a.columnsFlag(cmd)
	a.diskFlag(cmd)
	// Here --features is the width of a feature row, or "none".
	flags = newPlanFlags(cmd).groups(plan.Partition, plan.LSI, plan.Smooth, plan.Train, plan.Labels)
	f.Lookup("features").Usage = `width of a feature row, or "none"`
	cmd.Example = `  ndls plan --dataset ogb:DIR --memory 48GiB
  ndls plan --nodes 111059956 --edges 1615000000 --features 128 --classes 172 --workers 4`
	return cmd
}

// printForecast prints the table of a plan, what it rests on, and what would save time or disk.
func printForecast(r *results, f ndls.Forecast, c ndls.PlanConfig) error {
	for _, x := range f.Stages {
		if _, err := r.asJSON(x); err != nil {
			return err
		}
	}
	if r.json || len(f.Stages) == 0 {
		return nil
	}
	t := newTable(r.stdout, 2, tabwriter.AlignRight)
	fmt.Fprintln(t, "stage\tmemory used\tleast --memory\tdisk\tpeak disk\tread\twritten\tnetwork\tpasses\tcolumns\ttime\t")
	row := func(name, columns string, x ndls.Figures) {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t\n", name, mem.Bytes(x.PeakBytes), mem.Bytes(x.LeastBytes),
			mem.Bytes(x.DiskBytes), mem.Bytes(x.PeakDiskBytes), mem.Bytes(x.BytesRead), mem.Bytes(x.BytesWritten),
			mem.Bytes(x.NetworkBytes), x.Passes, columns, duration(x.Seconds))
	}
	for _, x := range f.Stages {
		row(string(x.Stage), strconv.Itoa(x.ColumnsPerPass), x)
	}
	row("total", "", f.Total)
	if err := t.Flush(); err != nil {
		return err
	}
	printAssumed(r.stdout, f.Assumed)
	printLeftOut(r.stdout, c)
	printGroups(r.stdout, f.Stages)
	if s := f.Speeds; s != (ndls.Speeds{}) {
		fmt.Fprintf(r.stdout, "measured: a thread passes %.0f M edges/s and multiplies at %.0f GFLOP/s; the disk writes %.2f GB/s and reads %.2f\n",
			s.Edges/1e6, s.Flops/1e9, s.Write/1e9, s.Read/1e9)
	}
	if s := f.SameResults; s != nil {
		fmt.Fprintf(r.stdout, "\n%s would save disk and leave results as they are:\n  peak disk %s in place of %s\n",
			s.Option, mem.Bytes(s.Total.PeakDiskBytes), mem.Bytes(f.Total.PeakDiskBytes))
	}
	for i, s := range f.Savings {
		if i == 0 {
			fmt.Fprintln(r.stdout, "\nwhat saves most, each by itself, and changes results:")
		}
		fmt.Fprintf(r.stdout, "  %-29s %s in place of %s, peak disk %s in place of %s\n", s.Option,
			duration(s.Total.Seconds), duration(f.Total.Seconds), mem.Bytes(s.Total.PeakDiskBytes), mem.Bytes(f.Total.PeakDiskBytes))
	}
	return nil
}

// printGroups says in which stages workers share rows.
func printGroups(w io.Writer, list []ndls.Figures) {
	var groups []string
	for _, x := range list {
		if x.GroupSize > 0 {
			groups = append(groups, fmt.Sprintf("of %d in %s", x.GroupSize, x.Stage))
		}
	}
	if len(groups) > 0 {
		fmt.Fprintf(w, "workers share the rows of a block of columns in groups: %s. The times do not count what the network takes\n", strings.Join(groups, ", "))
	}
}

// printAssumed says what the times of a plan rest on.
func printAssumed(w io.Writer, x ndls.Assumed) {
	fmt.Fprintf(w, "\nassumed: the last node settles after %d hops, and no row stands before; --expect-hops N plans for others\n", x.Hops)
	if x.Epochs < x.MostEpochs {
		fmt.Fprintf(w, "         a model trains for %d of at most %d epochs, of which --patience are the last\n", x.Epochs, x.MostEpochs)
	}
}

// printLeftOut says which stages are not planned because their counts were not given.
func printLeftOut(w io.Writer, c ndls.PlanConfig) {
	if c.Dataset != "" {
		return
	}
	o := ndls.DefaultOptions()
	c.Options(&o)
	if c.Counts.Features == 0 && o.Partition.Features != "none" && !o.Embeds() {
		fmt.Fprintln(w, "         no features, so that smooth and all stages that follow from it are left out; --features F plans for F values of each node")
	}
	if c.Counts.Classes == 0 {
		fmt.Fprintln(w, "         no classes, so that train and all stages that follow from it are left out; --classes C plans for C classes")
	} else if c.Counts.Training == 0 {
		fmt.Fprintf(w, "         no training nodes, so that train counts no rows; --training N plans for N of them\n")
	}
}

// bothCounts refuses nodes without edges and edges without nodes: a plan for none of them says nothing.
func bothCounts(cmd *cobra.Command) error {
	nodes, edges := cmd.Flags().Changed("nodes"), cmd.Flags().Changed("edges")
	switch {
	case cmd.Flags().Changed("dataset"):
	case nodes && !edges:
		return failure.Of(ndls.ErrOption, "--nodes without --edges: give --edges, too, the number of undirected edges")
	case edges && !nodes:
		return failure.Of(ndls.ErrOption, "--edges without --nodes: give --nodes, too")
	}
	return nil
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
