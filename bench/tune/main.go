// Command tune measures what a search of settings takes beside as many runs: it searches with ndls tune,
// then it runs the settings of each trial with ndls run, in a fresh process and a fresh run directory each, and
// prints the wall clock of both and what stages the runs spent theirs in:
//
//	go run -C bench ./tune -data $NDLS_DATA/data [-trials 100] [-every 1]
//
// With -every N it runs each N-th trial alone, and takes their mean for that of all. Each run must have the same
// accuracy on validation nodes as its trial, to the last bit, if that has as many models, trained with the same patience. With -cpuprofile FILE it searches the default space in this process,
// without runs, and writes a profile of that.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
	"time"

	"ndls"
	"ndls/tune"
)

// settings are the flags.
type settings struct {
	ndls, data, dir, dataset string
	trials, every, threads   int
	runs                     int
	profile                  string
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.StringVar(&s.ndls, "ndls", "../build/ndls", "the program")
	flag.StringVar(&s.data, "data", filepath.Join(os.Getenv("NDLS_DATA"), "data"), "folder of the data sets")
	flag.StringVar(&s.dataset, "dataset", "", "dataset URI (default Cora in -data)")
	flag.StringVar(&s.dir, "dir", "", "folder for run directories (default a temporary one)")
	flag.IntVar(&s.trials, "trials", 100, "trials of the search")
	flag.IntVar(&s.every, "every", 1, "run each so many-th trial")
	flag.IntVar(&s.runs, "runs", 1, "models of a trial, and of a run")
	flag.IntVar(&s.threads, "threads", 2, "threads of each process")
	flag.StringVar(&s.profile, "cpuprofile", "", "file for a profile of the search alone")
	flag.Parse()
	if s.dataset == "" {
		s.dataset = "planetoid:" + filepath.Join(s.data, "cora", "cora")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := s.measure
	if s.profile != "" {
		do = s.profiled
	}
	if err := do(ctx, flag.Args()); err != nil {
		log.Fatal("tune: ", err)
	}
}

// profiled searches in this process.
func (s *settings) profiled(ctx context.Context, _ []string) (err error) {
	dir, err := os.MkdirTemp(s.dir, "ndls-tune-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.Create(s.profile)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	start := time.Now()
	r, err := tune.Search(ctx, tune.Config{
		Base: ndls.Config{
			Run: filepath.Join(dir, "search"), Dataset: s.dataset, Resources: ndls.Resources{Threads: s.threads},
			Options: func(o *ndls.Options) { o.Train.BatchSize, o.Train.Runs = 0, s.runs },
		},
		Trials: s.trials,
		Done: func(t tune.Trial) {
			fmt.Printf("%6.2f s: trial %d took %.2f s\n", time.Since(start).Seconds(), t.Number, t.Seconds)
		},
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d trials in %.2f s\n", len(r.Trials), time.Since(start).Seconds())
	return nil
}

// measure searches, with further flags of ndls tune, and runs the trials.
func (s *settings) measure(ctx context.Context, more []string) (err error) {
	if s.ndls, err = filepath.Abs(s.ndls); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.dir, "ndls-tune-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	common := []string{"--dataset", s.dataset, "--threads", fmt.Sprint(s.threads), "--quiet", "--batch-size", "0", "--runs", fmt.Sprint(s.runs)}
	folder := filepath.Join(dir, "search")
	searched, err := s.time(ctx, append(append([]string{"tune", "--run", folder, "--trials", fmt.Sprint(s.trials)}, common...), more...))
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(folder, tune.ResultName))
	if err != nil {
		return err
	}
	var r tune.Result
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	trials := 0.0
	patience := 0
	for _, t := range r.Trials {
		trials += t.Seconds
		patience = max(patience, t.Patience)
	}
	var all float64
	stages, runs := map[ndls.Stage]float64{}, 0
	for i := 0; i < len(r.Trials); i += s.every {
		t := r.Trials[i]
		if t.Failed != "" {
			continue
		}
		run := filepath.Join(dir, "run")
		took, err := s.time(ctx, s.line(run, common, t))
		if err != nil {
			return err
		}
		if len(t.Models) < s.runs*r.Splits || t.Patience < patience {
			t.Base, t.Smoothed = nil, nil // with --halving it has fewer models, or models trained with less patience
		}
		if err := s.compare(ctx, run, t, stages); err != nil {
			return fmt.Errorf("trial %d: %w", t.Number, err)
		}
		if err := os.RemoveAll(run); err != nil {
			return err
		}
		all += took
		runs++
	}
	n := float64(len(r.Trials))
	fmt.Printf("%s, %d trials by the accuracy %q\n", s.dataset, len(r.Trials), r.Score)
	fmt.Printf("ndls tune: %.1f s; a trial %.2f s, some of them at the same time\n", searched, trials/n)
	fmt.Printf("ndls run: %.2f s each (%d runs), %.1f s for all trials\n", all/float64(runs), runs, all/float64(runs)*n)
	fmt.Printf("ratio: %.1f\n", all/float64(runs)*n/searched)
	for _, x := range ndls.Stages() {
		if stages[x] > 0 {
			fmt.Printf("  %-14s %.2f s of a run\n", x, stages[x]/float64(runs))
		}
	}
	return nil
}

// line is the ndls run with the settings of a trial.
func (s *settings) line(run string, common []string, t tune.Trial) []string {
	list := append([]string{"run", "--run", run}, common...)
	for _, x := range t.Settings {
		list = append(list, "--"+x.Name, x.Value)
	}
	return list
}

// time runs the program and says how many seconds it took.
func (s *settings) time(ctx context.Context, args []string) (float64, error) {
	cmd := exec.CommandContext(ctx, s.ndls, args...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("ndls %q: %w", args, err)
	}
	return time.Since(start).Seconds(), nil
}

// compare compares the figures of a run with those of its trial, and adds up what its stages took.
func (s *settings) compare(ctx context.Context, run string, t tune.Trial, stages map[ndls.Stage]float64) error {
	d, err := ndls.Open(ctx, run)
	if err != nil {
		return err
	}
	report, err := d.Report(ctx)
	if err != nil {
		return err
	}
	if got := report.Accuracy.Base.Valid; t.Base != nil && *got != *t.Base {
		return fmt.Errorf("the run has %v on validation nodes, the trial %v", *got, *t.Base)
	}
	if t.Smoothed != nil && *report.Accuracy.Smoothed.Valid != *t.Smoothed {
		return fmt.Errorf("the run has %v after label smoothing, the trial %v", *report.Accuracy.Smoothed.Valid, *t.Smoothed)
	}
	for _, x := range d.Record().Stages {
		stages[x.Stage] += x.Seconds
	}
	return nil
}
