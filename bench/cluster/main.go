// Command cluster measures what a coordinator costs: it runs a job with ndls run,
// and with ndls coordinator and one ndls worker, in turn, and prints the wall clock
// of each pair from the first process's start to the last one's end, how much of it
// was not in stages, the seconds of processors that the processes took, and the medians:
//
//	go run -C bench ./cluster [-pairs 5] [-edges 10000000]
//
// Both have one thread and the same --memory, and must leave the same catalogue.
//
// With -page it measures what the page of a running job costs instead: ndls run beside ndls run
// --http, to whose events this program listens as a browser does, on all processors.
//
//	go run -C bench ./cluster -page -pairs 7 -edges 3000000 -nodes 150000
//
// With -partition it has a graph partitioned by some numbers of workers, given as numbers of
// workers and threads of each, in turn, and prints what each step took:
//
//	go run -C bench ./cluster -pairs 3 -partition 1x1,2x1,1x2 -edges 40000000 -nodes 2000000
package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"ndls"
)

// settings are the flags.
type settings struct {
	ndls, dir, memory, groups        string
	pairs, features, blocks, weights int
	nodes, edges                     int64
	page                             bool
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.StringVar(&s.ndls, "ndls", "../build/ndls", "the program")
	flag.StringVar(&s.dir, "dir", "", "folder for run directories (default a temporary one)")
	flag.StringVar(&s.memory, "memory", "2GiB", "--memory of whoever computes")
	flag.IntVar(&s.pairs, "pairs", 5, "runs of each kind")
	flag.Int64Var(&s.edges, "edges", 10_000_000, "edges of the graph")
	flag.Int64Var(&s.nodes, "nodes", 0, "nodes of the graph (default a tenth of the edges)")
	flag.StringVar(&s.groups, "partition", "", "partition by these WORKERSxTHREADS, separated by commas")
	flag.IntVar(&s.features, "features", 16, "of -partition: features of a node")
	flag.IntVar(&s.weights, "weights", 0, "octaves of the weights of edges, 0 for none")
	flag.IntVar(&s.blocks, "interval-blocks", 1, "of -partition: --interval-blocks")
	flag.BoolVar(&s.page, "page", false, "measure what the page of a running job costs")
	flag.Parse()
	if s.nodes == 0 {
		s.nodes = s.edges / 10
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := s.measure(ctx); err != nil {
		log.Fatal("cluster: ", err)
	}
}

// kind is a way to run the job in a run directory.
type kind func(ctx context.Context, dir string) error

func (s *settings) measure(ctx context.Context) error {
	program, err := filepath.Abs(s.ndls)
	if err != nil {
		return err
	}
	s.ndls = program
	dir, err := os.MkdirTemp(s.dir, "ndls-cluster-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if s.groups != "" {
		return s.partitions(ctx, dir)
	}
	kinds, second := [2]kind{s.alone, s.cluster}, "coordinator and worker"
	if s.page {
		kinds, second = [2]kind{s.plain, s.watched}, "with the page"
	}
	fmt.Printf("| pair | ndls run, s | outside stages | of processors | %s, s | outside stages | of processors | ratio | of processors |\n|---|---|---|---|---|---|---|---|---|\n", second)
	var all [2][]took
	for pair := range s.pairs {
		var catalogues [2]string
		for i := range kinds {
			i := (i + pair) % 2 // neither is always first
			run := filepath.Join(dir, "run")
			t, err := measured(ctx, kinds[i], run)
			if err != nil {
				return err
			}
			all[i] = append(all[i], t)
			catalogue, err := os.ReadFile(filepath.Join(run, "catalog.parquet"))
			if err != nil {
				return err
			}
			catalogues[i] = string(catalogue)
			if err := os.RemoveAll(run); err != nil {
				return err
			}
		}
		if catalogues[0] != catalogues[1] {
			return fmt.Errorf("pair %d left different files", pair+1)
		}
		line(fmt.Sprint(pair+1), all[0][pair], all[1][pair])
	}
	line("median", medians(all[0]), medians(all[1]))
	return nil
}

// took holds the seconds of a run: by the clock, the part of these outside its stages, and of
// processors.
type took struct{ clock, outside, processors float64 }

// measured runs the job in a run directory.
func measured(ctx context.Context, k kind, run string) (t took, err error) {
	before, err := processors()
	if err != nil {
		return t, err
	}
	begun := time.Now()
	if err := k(ctx, run); err != nil {
		return t, err
	}
	t.clock = time.Since(begun).Seconds()
	after, err := processors()
	if err != nil {
		return t, err
	}
	t.processors = after - before
	stages, err := inStages(ctx, run)
	t.outside = t.clock - stages
	return t, err
}

// processors returns the seconds of processors that processes have taken which this one has started, and which have ended.
func processors() (float64, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err != nil {
		return 0, err
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds(), nil
}

func line(name string, a, b took) {
	fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.3f | %.3f |\n", name,
		a.clock, a.outside, a.processors, b.clock, b.outside, b.processors, b.clock/a.clock, b.processors/a.processors)
}

func medians(of []took) took {
	each := func(get func(took) float64) float64 {
		var list []float64
		for _, t := range of {
			list = append(list, get(t))
		}
		return median(list)
	}
	return took{
		each(func(t took) float64 { return t.clock }),
		each(func(t took) float64 { return t.outside }),
		each(func(t took) float64 { return t.processors }),
	}
}

// inStages sums the seconds of a run's stages.
func inStages(ctx context.Context, run string) (sum float64, err error) {
	d, err := ndls.Open(ctx, run)
	if err != nil {
		return 0, err
	}
	for _, s := range d.Record().Stages {
		sum += s.Seconds
	}
	return sum, nil
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

func (s *settings) graph(features int) string {
	uri := fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%d,classes=8,seed=1", s.nodes, s.edges, features)
	if s.weights > 0 {
		uri += fmt.Sprintf(",weights=%d", s.weights)
	}
	return uri
}

func (s *settings) job() []string {
	return []string{
		"--dataset", s.graph(32),
		"--runs", "1", "--epochs", "3", "--quiet",
	}
}

func (s *settings) alone(ctx context.Context, dir string) error {
	return s.run(ctx, "", append([]string{"run", "--run", dir, "--memory", s.memory, "--threads", "1"}, s.job()...)...)
}

// cluster runs a coordinator and one worker, at the same time.
func (s *settings) cluster(ctx context.Context, dir string) error {
	token := newToken()
	processes, ctx := errgroup.WithContext(ctx)
	processes.Go(func() error {
		return s.run(ctx, token, append([]string{"coordinator", "--run", dir}, s.job()...)...)
	})
	processes.Go(func() error {
		return s.run(ctx, token, "worker", "--run", dir, "--memory", s.memory, "--threads", "1", "--quiet")
	})
	return processes.Wait()
}

func newToken() string {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return hex.EncodeToString(secret)
}

// run starts the program: the time that is measured begins with the process, and workers
// must have memory of their own.
func (s *settings) run(ctx context.Context, token string, args ...string) error {
	cmd := exec.CommandContext(ctx, s.ndls, args...)
	cmd.Env = append(os.Environ(), "NDLS_TOKEN="+token)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ndls %s: %w\n%s", args[0], err, out)
	}
	return nil
}
