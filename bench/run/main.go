// Command run measures ndls beside what users of large graphs run today, each in
// a fresh process under a limit of memory and time, in turn, and writes the tables
// of bench/RESULTS.md:
//
//	kernel     one product of a random graph with 16 columns, one thread
//	propagate  hops over the features of graphs of the shape of ogbn-papers100M
//	sort       the distinct directed pairs of an edge list, in order
//	read       an edge list from Parquet and from gzipped text
//
// Run it by make bench, which installs the peers first; they are in bench/peers,
// whose README says how to add one.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"ndls"
)

// settings are the flags.
type settings struct {
	ndls, python, peers string
	dir, out            string
	tables              string

	rounds     int
	long, stop time.Duration
	limit      string
	threads    int

	nodes, edges int64

	scales  string
	targets string
	columns int
	memory  string

	edgeScale  string
	sortMemory string
	gnu        bool
}

func main() {
	var s settings
	flag.StringVar(&s.ndls, "ndls", "../build/ndls", "the program, with ndls-lab beside it")
	flag.StringVar(&s.python, "python", "../.tools/venv-bench/bin/python", "Python with the peers of requirements.txt")
	flag.StringVar(&s.peers, "peers", "peers", "folder of the peers")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "folder for graphs and results, which are removed")
	flag.StringVar(&s.out, "out", "RESULTS.md", "file to write")
	flag.StringVar(&s.tables, "tables", "kernel,propagate,sort,read", "what to measure")
	flag.IntVar(&s.rounds, "rounds", 3, "rounds of all in turn")
	flag.DurationVar(&s.long, "long", time.Minute, "what takes longer is not repeated")
	flag.DurationVar(&s.stop, "timeout", 15*time.Minute, "what takes longer is stopped")
	flag.StringVar(&s.limit, "limit", "20GiB", "memory of a process, ours too")
	flag.IntVar(&s.threads, "threads", runtime.NumCPU(), "threads of a process, but for kernel")
	flag.Int64Var(&s.nodes, "kernel-nodes", 1<<24, "kernel: rows of the dense matrix")
	flag.Int64Var(&s.edges, "kernel-edges", 1<<27, "kernel: edges, 29 a row of the sparse matrix")
	flag.StringVar(&s.scales, "scales", "1/256:10,1/64:10,1/16:10,1/8:1,1/4:1", "propagate: scales of papers100m: with tails=0, ascending, and hops")
	flag.StringVar(&s.targets, "targets", "all", "propagate: nodes whose rows are kept: all, or labelled, whose rows all programs save")
	flag.IntVar(&s.columns, "columns", 128, "propagate: columns of the peers; ndls takes all 128")
	flag.StringVar(&s.memory, "memory", "8GiB", "propagate: --memory of ndls")
	flag.StringVar(&s.edgeScale, "edge-scale", "1/16", "sort and read: scale of papers100m: with tails=0")
	flag.StringVar(&s.sortMemory, "sort-memory", "1GiB", "sort: memory that each is told to use")
	flag.BoolVar(&s.gnu, "gnu", true, "sort: GNU sort too, which needs 22 bytes of text for each pair")
	read := flag.String("read", "", "read the edges of a dataset URI as the read table does, and nothing else")
	pairs := flag.String("sort", "", "sort the edges of a dataset URI to a file in -dir as the sort table does, and nothing else")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	do := func() error { return run(ctx, s) }
	if *read != "" {
		do = func() error { return readEdges(ctx, *read) }
	}
	if *pairs != "" {
		do = func() error { return sortPairs(ctx, *pairs, s) }
	}
	if err := do(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/run:", err)
		stop()
		os.Exit(1)
	}
}

// bench is one run of the command.
type bench struct {
	settings
	jail    jail
	scratch string
	report  report
}

func run(ctx context.Context, s settings) error {
	limit, err := parseGiB(s.limit)
	if err != nil {
		return fmt.Errorf("-limit: %w", err)
	}
	for _, path := range []*string{&s.ndls, &s.python, &s.peers, &s.dir} {
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	b := &bench{settings: s}
	if b.scratch, err = os.MkdirTemp(s.dir, "ndls-peers"); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	b.jail = newJail(limit, s.stop)
	if b.report, err = newReport(ctx, b); err != nil {
		return err
	}
	steps := []struct {
		name string
		do   func(context.Context) error
	}{{"kernel", b.kernel}, {"propagate", b.propagate}, {"sort", b.sort}, {"read", b.read}}
	tables := strings.Split(s.tables, ",")
	for _, step := range steps {
		if !slices.Contains(tables, step.name) {
			continue
		}
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		if err := b.report.write(s.out); err != nil {
			return err
		}
	}
	return nil
}

// generate writes a graph of papers100m: at a scale and returns its folder.
func (b *bench) generate(ctx context.Context, scale string) (string, error) {
	dir := filepath.Join(b.scratch, "graph-"+strings.ReplaceAll(scale, "/", "-"))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	log.Printf("generating papers100m:scale=%s,tails=0", scale)
	_, err := ndls.Generate(ctx, "papers100m:scale="+scale+",tails=0", dir)
	return dir, err
}

// hugePages tells glibc's malloc to ask for huge pages, as NumPy and ndls do by
// themselves: products with random sources gain up to twice the speed.
const hugePages = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"

// peer is a command of the folder, in Python.
func (b *bench) peer(threads int, file string, args ...string) process {
	return process{
		command: append([]string{b.python, "-B", filepath.Join(b.peers, file)}, args...),
		env:     []string{fmt.Sprintf("OMP_NUM_THREADS=%d", threads), fmt.Sprintf("MKL_NUM_THREADS=%d", threads), "TMPDIR=" + b.scratch, hugePages},
	}
}

// inPlace runs what in a new folder, which is removed afterwards.
func (b *bench) inPlace(what func(dir string) outcome) outcome {
	dir, err := os.MkdirTemp(b.scratch, "run")
	if err != nil {
		return outcome{Died: err.Error()}
	}
	defer os.RemoveAll(dir)
	return what(dir)
}
