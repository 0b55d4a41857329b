package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ndls/dataset"
)

const (
	// degree is the directed edges of a row of papers100M, symmetrised.
	degree = 29
	// strip is the multiple to which the rows of the random graph are rounded up, as ndls does.
	strip = 1 << 15
	// kernelColumns is 64 bytes of float32.
	kernelColumns = 16
	// kernelRounds are timed in each process, after one that is not.
	kernelRounds = 3
	// tolerance is the allowed difference of results in float32.
	tolerance = 1e-4
)

// kernel compares one product, single-threaded.
func (b *bench) kernel(ctx context.Context) error {
	rows := min(b.nodes, ((b.edges+degree-1)/degree+strip-1)/strip*strip)
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	columns, rounds := strconv.Itoa(kernelColumns), strconv.Itoa(kernelRounds)
	python := func(file string) func(context.Context) outcome {
		return func(ctx context.Context) outcome {
			return b.jail.measure(ctx, b.peer(1, file, "kernel", "--nodes", number(b.nodes), "--rows", number(rows),
				"--edges", number(b.edges), "--columns", columns, "--rounds", rounds))
		}
	}
	graphblas := filepath.Join(b.scratch, "graphblas")
	text, compileErr := exec.CommandContext(ctx, "gcc", "-O3", "-march=native", "-o", graphblas, filepath.Join(b.peers, "graphblas.c"), "-lgraphblas").CombinedOutput()
	compiled := func(env ...string) func(context.Context) outcome {
		return func(ctx context.Context) outcome {
			if compileErr != nil {
				first, _, _ := strings.Cut(string(text), "\n")
				return outcome{Died: "not built (Debian: libgraphblas-dev): " + first}
			}
			return b.jail.measure(ctx, process{[]string{graphblas, number(b.nodes), number(rows), number(b.edges), columns, rounds}, env})
		}
	}
	contenders := []contender{
		{"ndls", func(ctx context.Context) outcome {
			return b.ownKernel(ctx, "--nodes", number(b.nodes), "--edges", number(b.edges), "--columns", columns, "--rounds", rounds)
		}},
		{"GraphBLAS", compiled(hugePages)},
		{"GraphBLAS, pages of 4 KiB", compiled()},
		{"torch CSR", python("torch_csr.py")},
		{"scipy CSR", python("scipy_csr.py")},
		{"torch COO", python("torch_coo.py")},
	}
	done, err := race(ctx, contenders, b.rounds, b.stop, map[string]bool{})
	if err != nil {
		return err
	}
	b.report.section("One product, one thread",
		fmt.Sprintf(`%d rows of %d columns of float32, %d directed edges with uniformly random sources into %d rows: %d a row, as in ogbn-papers100M.
ndls is the line "pass" of `+"`ndls bench kernel --threads 1`"+`. Each process times %d products after one that does not count; a rate is million edges a second.`,
			b.nodes, kernelColumns, b.edges, rows, degree, kernelRounds))
	t := b.report.table("program", "rate", "ours ÷ theirs", "peak memory", "version or remark")
	rate := func(o outcome) []float64 { return o.Rates }
	own := done[0].over(rate).median
	for _, r := range done {
		s := r.over(rate)
		t.row(r.name, s.text(1e-6, 1), ratio(own/s.median), size(r.peak()), r.remark())
	}
	return nil
}

// ownKernel reads the line "pass" of ndls bench kernel.
func (b *bench) ownKernel(ctx context.Context, args ...string) (o outcome) {
	start := time.Now()
	command := append([]string{b.ndls, "bench", "kernel", "--json", "--quiet", "--threads", "1", "--memory", b.limit}, args...)
	o.Peak, o.Died = b.jail.run(ctx, process{command: command}, func(line []byte) error {
		var r struct {
			What string
			Rate struct{ Median, Min, Max float64 } `json:"edges_per_second"`
		}
		err := json.Unmarshal(line, &r)
		if r.What == "pass" {
			o.Rates = []float64{r.Rate.Min, r.Rate.Median, r.Rate.Max}
		}
		return err
	})
	o.Wall = time.Since(start)
	return o
}

// propagate compares whole jobs, from the published files to the last hop.
func (b *bench) propagate(ctx context.Context) error {
	b.report.section(fmt.Sprintf("Hops over %d columns", b.columns), fmt.Sprintf(
		`Graphs of the shape of ogbn-papers100M (papers100m: with tails=0), read from the layout in which it is published, symmetrised; then hops of D̃⁻¹Ã in float32. "Prepare" is everything
before (for ndls: partition), "products" the hops alone (for ndls: the passes, which stream the edges), "whole" all of it and, for ndls, reading
feature tiles and writing the result. %s ndls runs under `+"`--memory %s`"+`.
The largest difference is one of sums over sampled rows, as a share of the row's absolute sum.`, b.results(), b.memory))
	t := b.report.table("scale", "hops", "program", "prepare, s", "products, s", "theirs ÷ ours", "whole, s", "theirs ÷ ours", "peak memory", "largest difference", "version or remark")
	dead := map[string]bool{}
	for _, task := range strings.Split(b.scales, ",") {
		scale, hops, ok := strings.Cut(task, ":")
		if !ok {
			return fmt.Errorf("-scales %s: write a scale and a number of hops, like 1/64:10", task)
		}
		graph, err := b.generate(ctx, scale)
		if err != nil {
			return err
		}
		done, err := race(ctx, b.propagators(graph, hops), b.rounds, b.long, dead)
		if err := errors.Join(err, os.RemoveAll(graph)); err != nil {
			return err
		}
		b.propagated(t, scale, hops, done)
		if err := b.report.write(b.out); err != nil {
			return err
		}
	}
	return nil
}

// results says what programs do with the rows of the last hop.
func (b *bench) results() string {
	if b.targets == "labelled" {
		return "All programs save the rows of the labelled nodes, as OGB's example does, and drop the others."
	}
	return fmt.Sprintf("Peers keep their result in memory; where they take %d columns at a time, each result is dropped after a sample.", blockColumns)
}

// blockColumns is the number of columns that a peer takes at a time if it does not take all.
const blockColumns = 16

func (b *bench) propagators(graph, hops string) []contender {
	python := func(file string, block int) func(context.Context) outcome {
		return func(ctx context.Context) outcome {
			return b.inPlace(func(out string) outcome {
				return b.jail.measure(ctx, b.peer(b.threads, file, "propagate", "--graph", graph, "--columns", strconv.Itoa(b.columns),
					"--block", strconv.Itoa(block), "--hops", hops, "--targets", b.targets, "--out", out))
			})
		}
	}
	some := fmt.Sprintf(", %d columns at a time", blockColumns)
	return []contender{
		{"ndls", func(ctx context.Context) outcome {
			return b.inPlace(func(dir string) outcome { return b.ownPropagation(ctx, graph, hops, dir) })
		}},
		{"torch CSR" + some, python("torch_csr.py", blockColumns)},
		{"scipy CSR" + some, python("scipy_csr.py", blockColumns)},
		{"torch CSR", python("torch_csr.py", 0)},
		{"scipy CSR (OGB's example)", python("scipy_csr.py", 0)},
		{"PyTorch Geometric SGConv", python("pyg_sgconv.py", 0)},
		{"torch COO", python("torch_coo.py", 0)},
	}
}

// ownPropagation runs the stages up to the smoothed features, each in a process.
func (b *bench) ownPropagation(ctx context.Context, graph, hops, dir string) outcome {
	start := time.Now()
	dir = filepath.Join(dir, "run")
	o := outcome{Seconds: map[string]float64{}}
	for _, stage := range [][]string{
		{"partition", "--dataset", "ogb:" + graph, "--normalize", "none", "--shards", "none"}, // peers write nothing either
		{"smooth", "--r", "0", "--rule", "sgc", "--hops", hops, "--targets", b.targets},
	} {
		b.ownStage(ctx, &o, b.memory, dir, stage...)
		if o.Died != "" {
			o.Wall = time.Since(start)
			return o
		}
	}
	o.Wall = time.Since(start)
	sample := b.peer(1, "sample.py", dir)
	text, err := output(ctx, sample.command[0], sample.command[1:]...)
	if err == nil {
		err = json.Unmarshal([]byte(text), &o)
	}
	if err != nil {
		o.Died = err.Error()
	}
	return o
}

// ownStage runs a stage and adds its seconds to o: those of the passes of smooth
// are called propagate.
func (b *bench) ownStage(ctx context.Context, o *outcome, memory, dir string, stage ...string) {
	command := append([]string{b.ndls, stage[0], "--run", dir, "--json", "--quiet", "--memory", memory, "--threads", strconv.Itoa(b.threads)}, stage[1:]...)
	peak, died := b.jail.run(ctx, process{command: command}, func(line []byte) error {
		var r struct {
			Name    string
			Seconds float64
			Kernel  float64 `json:"kernel_seconds"`
		}
		err := json.Unmarshal(line, &r)
		if r.Name == "smooth" {
			o.Seconds["propagate"], o.Seconds[r.Name] = r.Kernel, r.Seconds-r.Kernel
		} else if r.Name != "" {
			o.Seconds[r.Name] = r.Seconds
		}
		return err
	})
	o.Peak = max(o.Peak, peak)
	if died != "" {
		o.Died = in(stage[0], died)
	}
}

func (b *bench) propagated(t *table, scale, hops string, done []runs) {
	product := func(o outcome) []float64 { return []float64{o.Seconds["propagate"]} }
	whole := func(o outcome) []float64 { return []float64{o.whole()} }
	prepare := func(o outcome) []float64 {
		return []float64{o.whole() - o.Seconds["propagate"] - o.Seconds["smooth"]}
	}
	own := done[0]
	for _, r := range done {
		apart, remark := "", r.remark()
		if r.died() == "" && own.died() == "" && r.name != own.name {
			most := 0.0
			for _, o := range r.all {
				most = max(most, difference(own.all[0].Sample, o.Sample))
			}
			if apart = fmt.Sprintf("%.0e", most); !(most <= tolerance) {
				remark = "**another result** " + remark
			}
		}
		h, w := r.over(product), r.over(whole)
		t.row(scale, hops, r.name, r.over(prepare).text(1, 1), h.text(1, 1), ratio(h.median/own.over(product).median),
			w.text(1, 1), ratio(w.median/own.over(whole).median), size(r.peak()), apart, remark)
	}
}

// edgeFiles makes the edge list in some of the forms that are read.
func (b *bench) edgeFiles(ctx context.Context, names ...string) (dir string, err error) {
	graph, err := b.generate(ctx, b.edgeScale)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(b.scratch, "edges")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	args := []string{"-B", filepath.Join(b.peers, "convert.py"), graph, dir}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			args = append(args, name)
		}
	}
	_, err = output(ctx, b.python, args...)
	return dir, err
}

// sort compares finding the distinct directed pairs.
func (b *bench) sort(ctx context.Context) error {
	files := []string{"edges.parquet"}
	if b.gnu {
		files = append(files, "edges.txt")
	}
	dir, err := b.edgeFiles(ctx, files...)
	if err != nil {
		return err
	}
	defer os.Remove(filepath.Join(dir, "edges.txt"))
	memory, err := parseGiB(b.sortMemory)
	if err != nil {
		return fmt.Errorf("-sort-memory: %w", err)
	}
	python := func(file, edges string) func(context.Context) outcome {
		return func(ctx context.Context) outcome {
			return b.inPlace(func(out string) outcome {
				return b.jail.measure(ctx, b.peer(b.threads, file, "--edges", filepath.Join(dir, edges), "--dir", out,
					"--memory", strconv.FormatInt(memory, 10), "--threads", strconv.Itoa(b.threads)))
			})
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	contenders := []contender{
		{"ndls, sorting alone", func(ctx context.Context) outcome {
			return b.inPlace(func(out string) outcome {
				return b.jail.measure(ctx, process{command: []string{
					self, "-sort", "edges:" + filepath.Join(dir, "edges.parquet"), "-dir", out,
					"-sort-memory", b.sortMemory, "-threads", strconv.Itoa(b.threads),
				}})
			})
		}},
		{"ndls partition", func(ctx context.Context) outcome {
			return b.inPlace(func(out string) outcome { return b.ownSort(ctx, filepath.Join(dir, "edges.parquet"), out) })
		}},
		{"DuckDB", python("duckdb_sort.py", "edges.parquet")},
	}
	if b.gnu {
		contenders = append(contenders, contender{"GNU sort", python("gnu_sort.py", "edges.txt")})
	}
	done, err := race(ctx, contenders, b.rounds, b.long, map[string]bool{})
	if err != nil {
		return err
	}
	b.report.section("Sorting edges", fmt.Sprintf(
		`The edges of papers100m:scale=%s,tails=0 in both directions, distinct, without self-loops, in order, within %s each. ndls and DuckDB read Parquet and write Parquet; GNU sort reads and writes text in
which both directions are written out already. "Sorting alone" is the reader, the external sort and the writer of the partition stage; the stage itself also finds degrees and components, relabels nodes,
sorts a second time by the new labels and writes hop streams.`, b.edgeScale, b.sortMemory))
	t := b.report.table("program", "seconds", "theirs ÷ ours", "peak memory", "pairs", "version or remark")
	whole := func(o outcome) []float64 { return []float64{o.whole()} }
	own := done[0].over(whole).median
	for _, r := range done {
		s := r.over(whole)
		pairs := ""
		if r.died() == "" {
			pairs = strconv.FormatInt(r.all[0].Edges, 10)
		}
		t.row(r.name, s.text(1, 1), ratio(s.median/own), size(r.peak()), pairs, r.remark())
	}
	return nil
}

func (b *bench) ownSort(ctx context.Context, edges, dir string) outcome {
	start := time.Now()
	dir = filepath.Join(dir, "run")
	o := outcome{Seconds: map[string]float64{}}
	b.ownStage(ctx, &o, b.sortMemory, dir, "partition", "--dataset", "edges:"+edges, "--features", "none")
	o.Wall = time.Since(start)
	if o.Died != "" {
		return o
	}
	var found struct{ Dataset struct{ Edges int64 } }
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &found)
	}
	if err != nil {
		o.Died = err.Error()
	}
	o.Edges = 2 * found.Dataset.Edges
	return o
}

// read compares readers of edge lists.
func (b *bench) read(ctx context.Context) error {
	dir, err := b.edgeFiles(ctx, "edges.parquet", "edges.csv.gz")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	b.report.section("Reading edges", fmt.Sprintf(
		`The edge list of papers100m:scale=%s,tails=0. The peers read it into memory; ndls streams it, as its partition stage does, and drops it.`, b.edgeScale))
	t := b.report.table("file", "program", "million edges/s", "ours ÷ theirs", "peak memory", "version or remark")
	for _, name := range []string{"edges.parquet", "edges.csv.gz"} {
		file := filepath.Join(dir, name)
		python := func(peer string) func(context.Context) outcome {
			return func(ctx context.Context) outcome { return b.jail.measure(ctx, b.peer(b.threads, peer, file)) }
		}
		done, err := race(ctx, []contender{
			{"ndls", func(ctx context.Context) outcome {
				return b.jail.measure(ctx, process{command: []string{self, "-read", "edges:" + file}})
			}},
			{"pyarrow", python("read_pyarrow.py")},
			{"pandas", python("read_pandas.py")},
		}, b.rounds, b.long, map[string]bool{})
		if err != nil {
			return err
		}
		rate := func(o outcome) []float64 { return []float64{float64(o.Edges) / o.whole()} }
		own := done[0].over(rate).median
		for _, r := range done {
			s := r.over(rate)
			remark := r.remark()
			if r.died() == "" && done[0].died() == "" && (r.all[0].Sums[0] != done[0].all[0].Sums[0] || r.all[0].Sums[1] != done[0].all[0].Sums[1]) {
				remark = "**another result** " + remark
			}
			t.row(name, r.name, s.text(1e-6, 1), ratio(own/s.median), size(r.peak()), remark)
		}
	}
	return nil
}

// readEdges streams the edges of a dataset and prints what peer.py's readers do.
func readEdges(ctx context.Context, uri string) error {
	start := time.Now()
	d, err := dataset.Open(ctx, uri, dataset.Options{NoFeatures: true})
	if err != nil {
		return err
	}
	defer d.Close()
	r, err := d.Edges(ctx, dataset.Whole)
	if err != nil {
		return err
	}
	defer r.Close()
	o := outcome{Sums: make([]uint64, 2)}
	for batch := make([]dataset.Edge, 1<<14); ; {
		n, err := r.Read(batch, nil)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for _, e := range batch[:n] {
			o.Sums[0] += uint64(e.U)
			o.Sums[1] += uint64(e.V)
		}
		o.Edges += int64(n)
	}
	o.Seconds = map[string]float64{"read": time.Since(start).Seconds()}
	return json.NewEncoder(os.Stdout).Encode(o)
}
