// Command threads measures what a run gains from threads. It makes the same run with each
// number of threads in turn, several times, and prints the median seconds of each stage and
// how many times as fast it is as with the first number:
//
//	go run -C bench ./threads [-dataset papers100m:scale=1/64,tails=0] [-threads 1,2] [-rounds 5] [-memory 2] [-beside] [-profile DIR]
//
// A run with t threads has t cores of the machine, and one thread more that may go on when what
// it reads has come, as with the program ndls.
//
// The last line shows the limit of the machine's memory: the rate of a pass of 16 columns over
// random edges in memory, with as many nodes as the graph has, measured after each run.
//
// With -beside each round also has as many runs side by side as the last number of threads, each
// with one thread on a core of its own. They share nothing but the machine. "Side by side" shows how much more they do together than one of them alone: what so many threads could gain at most,
// if they share the memory and the disk of one machine.
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
	"ndls/coordinator"
	"ndls/internal/busy"
	"ndls/internal/mem"
	"ndls/spmv"
)

func main() {
	var b bench
	flag.StringVar(&b.dataset, "dataset", "papers100m:scale=1/64,tails=0", "the data set")
	list := flag.String("threads", "1,2", "numbers of threads, separated by commas")
	flag.IntVar(&b.rounds, "rounds", 5, "how often each number is measured")
	flag.Float64Var(&b.memory, "memory", 2, "memory of each run in GiB")
	flag.IntVar(&b.probes, "probes", 16, "probes of the LSI stage")
	flag.IntVar(&b.epochs, "epochs", 5, "epochs of the one model")
	flag.StringVar(&b.dir, "dir", os.TempDir(), "folder for the run directories, which are removed")
	flag.StringVar(&b.profiles, "profile", "", "folder for CPU profiles")
	flag.BoolVar(&b.beside, "beside", false, "also measure runs of one thread side by side")
	core := flag.Int("core", -1, "make one run of one thread on this core, and wait for a line of the standard input before each stage (what -beside starts)")
	flag.Parse()
	if *core >= 0 {
		if err := b.alone(context.Background(), *core); err != nil {
			fmt.Fprintln(os.Stderr, "threads:", err)
			os.Exit(1)
		}
		return
	}
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
	beside                 bool

	rates    map[int][]float64        // of a pass in memory, edges/s
	together map[ndls.Stage][]float64 // seconds of the runs side by side
}

// stages lists the stages of a whole run.
func stages() (names []ndls.Stage) {
	for _, s := range ndls.Stages() {
		if ndls.InWhole(s) {
			names = append(names, s)
		}
	}
	return names
}

// passEdges is the number of edges of the pass in memory: enough for some tenths of a second.
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
	b.rates, b.together = map[int][]float64{}, map[ndls.Stage][]float64{}
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
		if b.beside {
			if err := b.sideBySide(); err != nil {
				return err
			}
		}
	}
	b.print(measured)
	return nil
}

// measure makes one run.
func (b bench) measure(ctx context.Context, round, threads int, measured map[ndls.Stage]map[int]*took) error {
	if err := pin(0, threads); err != nil {
		return err
	}
	nodes, err := b.each(ctx, threads, func(s ndls.Stage, do func() (coordinator.StageRecord, error)) error {
		w := busy.Start(threads, readyTime)
		var r coordinator.StageRecord
		err := b.profiled(fmt.Sprintf("%s-%d", s, threads), round, func() (err error) {
			r, err = do()
			return err
		})
		ready := w.Stop()
		if err != nil {
			return err
		}
		t := measured[s][threads]
		t.seconds = append(t.seconds, r.Seconds)
		if r.Busy != nil {
			t.fewer = r.Busy.Fewer
		}
		if ready != nil {
			t.ready = ready.Fewer
		}
		return nil
	})
	if err != nil {
		return err
	}
	rate, err := passRate(nodes, threads)
	b.rates[threads] = append(b.rates[threads], rate)
	return err
}

// each makes a run with so many threads. It calls stage for each stage in turn, with what runs
// the stage and returns its record. It returns the number of nodes.
func (b bench) each(ctx context.Context, threads int, stage func(s ndls.Stage, do func() (coordinator.StageRecord, error)) error) (nodes int64, err error) {
	dir, err := os.MkdirTemp(b.dir, "ndls-threads")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	c := ndls.Config{Run: filepath.Join(dir, "run"), Dataset: b.dataset}
	c.Resources.Memory, c.Resources.Threads, c.Resources.Scratch = int64(b.memory*(1<<30)), threads, dir
	c.Options = func(o *ndls.Options) {
		o.LSI.Probes, o.Train.Epochs, o.Train.Runs = b.probes, b.epochs, 1
	}
	runtime.GOMAXPROCS(threads + 1)
	for _, s := range stages() {
		err := stage(s, func() (coordinator.StageRecord, error) {
			d, err := ndls.Run(ctx, c, s)
			if err != nil {
				return coordinator.StageRecord{}, err
			}
			graph, err := d.Graph(ctx)
			if err != nil {
				return coordinator.StageRecord{}, err
			}
			nodes = graph.Nodes
			records := d.Record().Stages
			i := slices.IndexFunc(records, func(r coordinator.StageRecord) bool { return r.Stage == s })
			if i < 0 {
				return coordinator.StageRecord{}, fmt.Errorf("the run directory has no record of %s", s)
			}
			return records[i], nil
		})
		if err != nil {
			return 0, err
		}
	}
	return nodes, nil
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
func (b bench) profiled(name string, round int, do func() error) error {
	if b.profiles == "" || round > 0 {
		return do()
	}
	f, err := os.Create(filepath.Join(b.profiles, name))
	if err != nil {
		return err
	}
	defer f.Close()
	if err := pprof.StartCPUProfile(f); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	return do()
}

func (b bench) print(measured map[ndls.Stage]map[int]*took) {
	first, last := b.threads[0], b.threads[len(b.threads)-1]
	head := []string{"stage"}
	for _, n := range b.threads {
		head = append(head, strconv.Itoa(n))
	}
	head = append(head, "times as fast")
	if b.beside {
		head = append(head, "side by side")
	}
	head = append(head, "fewer than all compute", "fewer than all compute or are ready")
	row(head...)
	row(slices.Repeat([]string{"---"}, len(head))...)

	sums, together := map[int]float64{}, 0.0
	for _, s := range stages() {
		cells := []string{string(s)}
		for _, n := range b.threads {
			sums[n] += measured[s][n].median()
			cells = append(cells, fmt.Sprintf("%.1f", measured[s][n].median()))
		}
		cells = append(cells, fmt.Sprintf("%.2f", measured[s][first].median()/measured[s][last].median()))
		if b.beside {
			together += median(b.together[s])
			cells = append(cells, b.gain(measured[s][first].median(), median(b.together[s])))
		}
		row(append(cells, fmt.Sprintf("%.2f", measured[s][last].fewer), fmt.Sprintf("%.2f", measured[s][last].ready))...)
	}
	all, rates := []string{"all"}, []string{"pass in memory, million edges/s"}
	for _, n := range b.threads {
		all = append(all, fmt.Sprintf("%.1f", sums[n]))
		rates = append(rates, fmt.Sprintf("%.0f", median(b.rates[n])/1e6))
	}
	all = append(all, fmt.Sprintf("%.2f", sums[first]/sums[last]))
	rates = append(rates, fmt.Sprintf("%.2f", median(b.rates[last])/median(b.rates[first])))
	if b.beside {
		all, rates = append(all, b.gain(sums[first], together)), append(rates, "")
	}
	row(append(all, "", "")...)
	row(append(rates, "", "")...)
}

// gain returns how much more the runs side by side do than one alone that takes so many seconds.
func (b bench) gain(alone, together float64) string {
	return fmt.Sprintf("%.2f", float64(b.threads[len(b.threads)-1])*alone/together)
}

// row prints a line of a Markdown table.
func row(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }
