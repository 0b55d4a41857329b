package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"ndls/coordinator"
)

func main() {
	if err := command(os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scaling:", err)
		os.Exit(1)
	}
}

func command(w io.Writer, args []string) error {
	set := flag.NewFlagSet("scaling", flag.ContinueOnError)
	table := set.String("table", "columns", "columns, bytes, gangs, intervals, limits, renewals or held")
	workers := set.String("workers", "1,2,4,8,16,32,64", "numbers of workers, separated by commas")
	sizes := set.String("sizes", "1,2,4,8", "of -table intervals: workers that own a column block together")
	graph := set.String("graph", "papers100m", "papers100m, web: the 3.6 G nodes and 128 G edges of Common Crawl 2012, or 10g: 10 G nodes and 200 G edges")
	targets := set.String("targets", "labelled", "labelled or all, as in ndls run")
	probes := set.Int("probes", 16, "columns of the probe, as in ndls run")
	seeds := set.Int("seeds", 5, "runs of which the mean is printed")
	files := set.String("files", "100,1000,10000,100000", "of -table limits: files in the catalogue")
	dir := set.String("dir", "", "of -table limits: where the run directory is made")

	lasting := set.Duration("for", 10*time.Second, "of -table renewals: how long workers renew")

	j := job{machine: reference}
	memory := set.Float64("memory", float64(j.machine.Memory)/(1<<30), "GiB of a machine")
	set.IntVar(&j.machine.Threads, "threads", j.machine.Threads, "of a machine")
	set.Float64Var(&j.machine.Edges, "edges", j.machine.Edges, "directed edges a second past 16 columns of a machine")
	set.Float64Var(&j.machine.Disk, "disk", j.machine.Disk, "bytes a second of its disk")
	set.Float64Var(&j.machine.Net, "net", j.machine.Net, "bytes a second of its network")
	set.Float64Var(&j.store, "store", 0, "bytes a second of the store for all machines together, 0 without bound")
	set.BoolVar(&j.grid, "grid", false, "groups of workers share the rows of a panel, where that is faster")
	sending := set.Float64("sending", 0, "nanoseconds of a thread in which a worker sends a byte of rows and receives one")
	barrier := set.Float64("barrier", 0.1, "of -table gangs and intervals: seconds of a barrier beside waiting")

	var f fate
	set.DurationVar(&f.lease, "lease", coordinator.DefaultLease, "how long a worker may be silent")
	set.DurationVar(&f.checkpoint, "checkpoint", coordinator.DefaultCheckpoint, "how often tasks are saved")
	set.Float64Var(&f.slow, "slow", 0, "standard deviation of the logarithm of a worker's slowness")
	set.DurationVar(&f.mtbf, "mtbf", 0, "mean time between failures of a machine, 0 for never")
	set.DurationVar(&f.replace, "replace", 2*time.Minute, "until another machine stands in")
	if err := set.Parse(args); err != nil {
		return err
	}
	counts, err := numbers(*workers)
	if err != nil {
		return err
	}
	groups, err := numbers(*sizes)
	if err != nil {
		return err
	}
	listed, err := numbers(*files)
	if err != nil {
		return err
	}
	j.machine.Memory, j.sending = int64(*memory*(1<<30)), *sending*1e-9
	j.workers, j.plan = counts[len(counts)-1], papersPlan(*targets)
	j.plan.LSI.Probes = *probes
	switch *graph {
	case "papers100m":
		j.Counts = papers
	case "web":
		j.Counts = web
	case "10g":
		j.Counts = huge
	default:
		return fmt.Errorf("%q is no graph: papers100m, web or 10g", *graph)
	}
	switch *table {
	case "columns":
		return columnsTable(w, j, f, counts, *seeds)
	case "bytes":
		return bytesTable(w, j, f)
	case "gangs":
		gangsTable(w, j, f, counts, *barrier, *seeds)
		return nil
	case "intervals":
		intervalsTable(w, j, f, groups, *barrier, *seeds)
		return nil
	case "limits":
		return limits(context.Background(), w, *dir, listed)
	case "renewals":
		return renewals(context.Background(), w, *dir, counts, *lasting)
	case "held":
		return heldTable(w)
	}
	return fmt.Errorf("%q is no table: columns, bytes, gangs, intervals, limits, renewals or held", *table)
}

// numbers reads positive numbers, separated by commas.
func numbers(text string) (list []int, err error) {
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no positive number", s)
		}
		list = append(list, n)
	}
	return list, nil
}
