// Command plan sets the seconds that ndls plan gives for each stage beside those that the
// stage then takes:
//
//	go run -C bench ./plan -data DIR [-only cora,papers-1/64] [-threads 2] [-dir DIR]   (make plan)
//
// DIR holds the published data sets, one folder each. Planned shows what the user reads before
// the run: from counts alone, with the number of hops and of epochs that a plan assumes.
// Planned later shows what the run itself expects right before the stage, when the K table is
// there. The seconds of processor time, divided by the threads, are below the measured
// seconds: on a machine that other programs use they say more than the clock.
//
// A planned time is right if it is within 30 % of the measured one, or if both are below a
// second. The last line counts the stages for which that holds.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"ndls"
)

// job is a run to measure. Memory is in GiB.
type job struct {
	name, dataset string
	memory        float64
	options       func(*ndls.Options)
}

// jobs are the runs, with the data sets in a folder.
func jobs(data string) []job {
	papers := func(o *ndls.Options) { o.Train.Runs, o.Train.Epochs, o.Train.Hidden = 1, 20, 256 }
	return []job{
		{"cora", "planetoid:" + filepath.Join(data, "cora/cora"), 1, func(o *ndls.Options) { o.Train.BatchSize = 0 }},
		{"coauthor_cs", "npz:" + filepath.Join(data, "coauthor_cs/coauthor_cs.npz"), 2, func(o *ndls.Options) {
			o.Partition.Split, o.Train.BatchSize, o.Train.Epochs, o.LSI.Epsilon = "random:20,30", 0, 200, 0.1
		}},
		{"papers-1/64", "papers100m:scale=1/64,tails=0", 2, papers},
		{"papers-1/16", "papers100m:scale=1/16,tails=0", 4, papers},
		{"papers-1/4", "papers100m:scale=1/4,tails=0", 8, func(o *ndls.Options) {
			papers(o)
			o.Smooth.Targets = "labelled"
		}},
	}
}

func main() {
	data := flag.String("data", os.Getenv("NDLS_DATA"), "folder of the published data sets; NDLS_DATA by default")
	only := flag.String("only", "", "names of runs, separated by commas; all by default")
	threads := flag.Int("threads", runtime.NumCPU(), "threads of each run")
	dir := flag.String("dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, jobs(*data), *only, *threads, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "bench/plan:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, w io.Writer, all []job, only string, threads int, dir string) error {
	var names []string
	for _, j := range all {
		names = append(names, j.name)
	}
	chosen := names
	if only != "" {
		chosen = strings.Split(only, ",")
	}
	for _, name := range chosen {
		if !slices.Contains(names, name) {
			return fmt.Errorf("-only %s: the runs are %s", name, strings.Join(names, ", "))
		}
	}
	runtime.GOMAXPROCS(threads + 1) // as the program ndls has it
	fmt.Fprintln(w, "| data set | stage | planned, s | measured, s | planned ÷ measured | planned later, s | processor s ÷ threads | planned ÷ processor | |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|")
	t := tally{}
	for _, j := range all {
		if !slices.Contains(chosen, j.name) {
			continue
		}
		if err := j.measure(ctx, w, threads, dir, &t); err != nil {
			return fmt.Errorf("%s: %w", j.name, err)
		}
	}
	fmt.Fprintf(w, "\n%d of %d stages are planned within 30 %%. Plans measured:\n", t.right, t.all)
	for _, s := range t.speeds {
		fmt.Fprintf(w, "%.0f M edges/s and %.1f GFLOP/s and %.1f M values/s a thread, %.2f GB/s written, %.2f GB/s read\n",
			s.Edges/1e6, s.Flops/1e9, s.Values/1e6, s.Write/1e9, s.Read/1e9)
	}
	return nil
}

// tally counts stages, and those that were planned well.
type tally struct {
	right, all int
	speeds     []ndls.Speeds // of the machine, as each plan measured them
}

// measure plans a job, runs it and prints a line a stage.
func (j job) measure(ctx context.Context, w io.Writer, threads int, dir string, t *tally) (err error) {
	resources := ndls.Resources{Memory: int64(j.memory * (1 << 30)), Threads: threads}
	plan, err := ndls.Plan(ctx, ndls.PlanConfig{Dataset: j.dataset, Options: j.options, Resources: resources, Measure: true})
	if err != nil {
		return err
	}
	t.speeds = append(t.speeds, plan.Speeds)
	dir, err = os.MkdirTemp(dir, "ndls-plan")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	resources.Scratch = dir
	d, err := ndls.Run(ctx, ndls.Config{Run: filepath.Join(dir, "run"), Dataset: j.dataset, Options: j.options, Resources: resources})
	if err != nil {
		return err
	}
	var total, measured, later, processor float64
	line := func(stage string, planned, measured, later, processor float64) {
		mark := ""
		if !right(planned, measured) {
			mark = "off"
		}
		fmt.Fprintf(w, "| %s | %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %s |\n",
			j.name, stage, planned, measured, planned/measured, later, processor, planned/processor, mark)
	}
	for _, s := range d.Record().Stages {
		at := slices.IndexFunc(plan.Stages, func(f ndls.Figures) bool { return f.Stage == s.Stage })
		if at < 0 {
			continue // the run found that the stage comes into question, the plan did not
		}
		planned, again, busy := plan.Stages[at].Seconds, 0.0, 0.0
		if s.Planned != nil {
			again = s.Planned.Seconds
		}
		if s.Busy != nil {
			busy = s.Seconds * s.Busy.Mean / float64(threads)
		}
		line(string(s.Stage), planned, s.Seconds, again, busy)
		total, measured, later, processor = total+planned, measured+s.Seconds, later+again, processor+busy
		t.all++
		if right(planned, s.Seconds) {
			t.right++
		}
	}
	line("all", total, measured, later, processor)
	return nil
}

// right reports whether seconds are planned well enough.
func right(planned, measured float64) bool {
	return planned >= 0.7*measured && planned <= 1.3*measured || planned < 1 && measured < 1
}
