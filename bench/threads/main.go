// Command threads measures what a run gains from threads. It makes the same run with each
// number of threads in turn, several times, and prints the median seconds of each stage and
// how many times as fast it is as with the first number:
//
//	go run ./bench/threads [-dataset papers100m:scale=1/64] [-threads 1,2] [-rounds 5] [-memory 2] [-profile DIR]
//
// A run with t threads has t cores of the machine, and one thread more that may go on when what
// it reads has come, as with the program ndls.
//
// The last line is what the memory of the machine allows: the rate of a pass of 16 columns over
// random edges in memory, with as many nodes as the graph has, measured after each run.
//
// The last two columns are shares of the time with the last number of threads: that in which
// fewer than all threads computed, as report.json has it, and that in which fewer than all
// computed or were ready to. The second leaves out the time for which other processes held the
// cores. With -profile each stage of the first round leaves a CPU profile STAGE-THREADS in DIR.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"

	"ndls"
	"ndls/bench/pass"
	"ndls/internal/busy"
	"ndls/internal/mem"
	"ndls/spmv"
)

func main() {
	var b bench
	flag.StringVar(&b.dataset, "dataset", "papers100m:scale=1/64", "the data set")
	list := flag.String("threads", "1,2", "numbers of threads, separated by commas")
	flag.IntVar(&b.rounds, "rounds", 5, "how often each number is measured")
	flag.Float64Var(&b.memory, "memory", 2, "memory of each run in GiB")
	flag.IntVar(&b.probes, "probes", 16, "probes of the LSI stage")
	flag.IntVar(&b.epochs, "epochs", 5, "epochs of the one model")
	flag.StringVar(&b.dir, "dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.StringVar(&b.profiles, "profile", "", "folder for CPU profiles")
	flag.Parse()
	for _, s := range strings.Split(*list, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			fmt.Fprintf(os.Stderr, "threads: -threads %s: %q is no number of threads\n", *list, s)
			os.Exit(2)
		}
		b.threads = append(b.threads, n)
	}
	if err := b.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "threads:", err)
		os.Exit(1)
	}
}

type bench struct {
	dataset, dir, profiles string
	threads                []int
	rounds, probes, epochs int
	memory                 float64

	rates map[int][]float64 // of a pass in memory, edges/s
}

// stages are those of a whole run.
func stages() (names []ndls.Stage) {
	for _, s := range ndls.Stages() {
		if ndls.InWhole(s) {
			names = append(names, s)
		}
	}
	return names
}

// passEdges is how many edges the pass in memory has: enough for some tenths of a second.
const passEdges = 25_000_000

// took are the seconds of a stage in each round, and how busy its threads were in the last.
type took struct {
	seconds []float64
	fewer   float64
	ready   float64
}

func (t *took) median() float64 { return median(t.seconds) }

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

func (b bench) run(ctx context.Context) error {
	b.rates = map[int][]float64{}
	measured := map[ndls.Stage]map[int]*took{}
	for _, s := range stages() {
		measured[s] = map[int]*took{}
		for _, n := range b.threads {
			measured[s][n] = &took{}
		}
	}
	for round := range b.rounds {
		for _, n := range b.threads {
			if err := b.measure(ctx, round, n, measured); err != nil {
				return err
			}
		}
	}
	b.print(measured)
	return nil
}

// measure makes one run, a stage at a time.
func (b bench) measure(ctx context.Context, round, threads int, measured map[ndls.Stage]map[int]*took) (err error) {
	dir, err := os.MkdirTemp(b.dir, "ndls-threads")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c := ndls.Config{Run: filepath.Join(dir, "run"), Dataset: b.dataset}
	c.Resources.Memory, c.Resources.Threads, c.Resources.Scratch = int64(b.memory*(1<<30)), threads, dir
	c.Options = func(o *ndls.Options) {
		o.LSI.Probes, o.Train.Epochs, o.Train.Runs = b.probes, b.epochs, 1
	}
	if err := pin(threads); err != nil {
		return err
	}
	runtime.GOMAXPROCS(threads + 1)
	var nodes int64
	for _, s := range stages() {
		w := busy.Start(threads, readyTime)
		d, err := b.profiled(fmt.Sprintf("%s-%d", s, threads), round, func() (*ndls.Directory, error) { return ndls.Run(ctx, c, s) })
		ready := w.Stop()
		if err != nil {
			return err
		}
		graph, err := d.Graph(ctx)
		if err != nil {
			return err
		}
		nodes = graph.Nodes
		if ready != nil {
			measured[s][threads].ready = ready.Fewer
		}
		for _, r := range d.Record().Stages {
			if r.Stage == s {
				t := measured[s][threads]
				t.seconds = append(t.seconds, r.Seconds)
				if r.Busy != nil {
					t.fewer = r.Busy.Fewer
				}
			}
		}
	}
	rate, err := passRate(nodes, threads)
	b.rates[threads] = append(b.rates[threads], rate)
	return err
}

// passRate is the rate of a pass in memory, in edges/s.
func passRate(nodes int64, threads int) (float64, error) {
	kernel, err := spmv.Select("")
	if err != nil {
		return 0, err
	}
	budget, err := mem.NewBudget(2 << 30)
	if err != nil {
		return 0, err
	}
	measured, err := pass.Kernels(kernel, budget, pass.Sample{
		Nodes: nodes, Edges: passEdges, Columns: 16, Precision: spmv.Float32, Threads: threads, Rounds: 3, Seed: 1,
	})
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(measured, func(m pass.Measurement) bool { return m.What == "pass" })
	return median(measured[i].Rates), nil
}

// profiled calls do, and writes a profile of it in the first round.
func (b bench) profiled(name string, round int, do func() (*ndls.Directory, error)) (*ndls.Directory, error) {
	if b.profiles == "" || round > 0 {
		return do()
	}
	f, err := os.Create(filepath.Join(b.profiles, name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func (b bench) print(measured map[ndls.Stage]map[int]*took) {
	first, last := b.threads[0], b.threads[len(b.threads)-1]
	fmt.Print("| stage |")
	for _, n := range b.threads {
		fmt.Printf(" %d |", n)
	}
	fmt.Print(" times as fast | fewer than all compute | fewer than all compute or are ready |\n|---|")
	for range b.threads {
		fmt.Print("---|")
	}
	fmt.Println("---|---|---|")
	sums := map[int]float64{}
	for _, s := range stages() {
		fmt.Printf("| %s |", s)
		for _, n := range b.threads {
			sums[n] += measured[s][n].median()
			fmt.Printf(" %.1f |", measured[s][n].median())
		}
		fmt.Printf(" %.2f | %.2f | %.2f |\n", measured[s][first].median()/measured[s][last].median(), measured[s][last].fewer, measured[s][last].ready)
	}
	fmt.Print("| all |")
	for _, n := range b.threads {
		fmt.Printf(" %.1f |", sums[n])
	}
	fmt.Printf(" %.2f | | |\n| pass in memory, million edges/s |", sums[first]/sums[last])
	for _, n := range b.threads {
		fmt.Printf(" %.0f |", median(b.rates[n])/1e6)
	}
	fmt.Printf(" %.2f | | |\n", median(b.rates[last])/median(b.rates[first]))
}
