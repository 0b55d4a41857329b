// Command cluster measures what a coordinator costs: it runs a job with ndls run,
// and with ndls coordinator and one ndls worker, in turn, and prints the wall clock
// of each pair from the first process's start to the last one's end, how much of it
// was not in stages, and the medians:
//
//	go run ./bench/cluster -ndls build/ndls [-pairs 5] [-edges 10000000]
//
// Both have one thread and the same --memory, and must leave the same catalogue.
//
// With -partition it has a graph partitioned by crews of workers, given as numbers of
// workers and threads of each, in turn, and prints what each step took:
//
//	go run ./bench/cluster -ndls build/ndls -pairs 3 -partition 1x1,2x1,1x2 -edges 40000000 -nodes 2000000
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
	ndls, dir, memory, crews string
	pairs, features, blocks  int
	nodes, edges             int64
}

func main() {
	log.SetFlags(0)
	var s settings
	flag.StringVar(&s.ndls, "ndls", "build/ndls", "the program")
	flag.StringVar(&s.dir, "dir", "", "folder for run directories (default a temporary one)")
	flag.StringVar(&s.memory, "memory", "2GiB", "--memory of whoever computes")
	flag.IntVar(&s.pairs, "pairs", 5, "runs of each kind")
	flag.Int64Var(&s.edges, "edges", 10_000_000, "edges of the graph")
	flag.Int64Var(&s.nodes, "nodes", 0, "nodes of the graph (default a tenth of the edges)")
	flag.StringVar(&s.crews, "partition", "", "partition by these WORKERSxTHREADS, separated by commas")
	flag.IntVar(&s.features, "features", 16, "of -partition: features of a node")
	flag.IntVar(&s.blocks, "interval-blocks", 1, "of -partition: --interval-blocks")
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
	if s.crews != "" {
		return s.partitions(ctx, dir)
	}
	kinds := []kind{s.alone, s.cluster}
	var seconds, outside [2][]float64
	var catalogues [2]string
	fmt.Printf("| pair | ndls run, s | outside stages | coordinator and worker, s | outside stages | ratio |\n|---|---|---|---|---|---|\n")
	for pair := range s.pairs {
		for i := range kinds {
			i := (i + pair) % 2 // neither is always first
			run := filepath.Join(dir, "run")
			begun := time.Now()
			if err := kinds[i](ctx, run); err != nil {
				return err
			}
			took := time.Since(begun).Seconds()
			stages, err := inStages(ctx, run)
			if err != nil {
				return err
			}
			seconds[i], outside[i] = append(seconds[i], took), append(outside[i], took-stages)
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
		line(fmt.Sprint(pair+1), seconds[0][pair], outside[0][pair], seconds[1][pair], outside[1][pair])
	}
	line("median", median(seconds[0]), median(outside[0]), median(seconds[1]), median(outside[1]))
	return nil
}

func line(name string, alone, aloneOutside, cluster, clusterOutside float64) {
	fmt.Printf("| %s | %.2f | %.2f | %.2f | %.2f | %.3f |\n", name, alone, aloneOutside, cluster, clusterOutside, cluster/alone)
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
	return fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%d,classes=8,seed=1", s.nodes, s.edges, features)
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
