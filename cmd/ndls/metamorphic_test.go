package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"ndls"
	"ndls/internal/control/rpc"
	"ndls/internal/packed"
	"ndls/internal/storage/storagetest"
)

// The variables that say how many draws TestMetamorphic makes, and the seed of the first
// one; each further draw has the next seed.
const (
	drawsEnv = "NDLS_DRAWS"
	seedEnv  = "NDLS_DRAW_SEED"
	// firstSeed is the seed of the first draw, and fewDraws and someDraws are the numbers of draws
	// with -short and without, unless the variables say otherwise. These draws start no processes.
	firstSeed, fewDraws, someDraws = 1, 8, 16
)

// TestMetamorphic draws from a seed a graph and options that decide the bytes of a run,
// and ways to come to these bytes: memory, threads, kernels, workers and how they share
// the work; disks that fail, processes that die, power failures, signals and broken
// requests to an object store; and how the run is continued after each of them. Whatever
// was drawn, the run directory holds in the end what one process leaves that has much
// memory and no trouble.
func TestMetamorphic(t *testing.T) {
	few := uint64(someDraws)
	if testing.Short() {
		few = fewDraws
	}
	draws, many := fromEnvironment(t, drawsEnv, few)
	seed, given := fromEnvironment(t, seedEnv, firstSeed)
	many = many || given
	t.Setenv(rpc.TokenVariable, rpc.MakeToken())
	g := &grounds{tally: map[string]int{}}
	if many {
		g.program = binary
		if storagetest.HasServer(t) {
			g.server = storagetest.StartServer(t)
			for _, v := range g.server.Environment {
				name, value, _ := strings.Cut(v, "=")
				t.Setenv(name, value)
			}
		}
	}
	var queue []draw
	for ; uint64(len(queue)) < draws; seed++ {
		if d := newDraw(seed); many || !d.heavy() {
			queue = append(queue, d)
		}
	}
	var next sync.Mutex
	t.Run("draws", func(t *testing.T) {
		for lane := range min(lanes, len(queue)) {
			t.Run(strconv.Itoa(lane), func(t *testing.T) {
				t.Parallel()
				for {
					next.Lock()
					if len(queue) == 0 {
						next.Unlock()
						return
					}
					d := queue[0]
					queue = queue[1:]
					next.Unlock()
					g.play(t, d)
				}
			})
		}
	})
	if _, err := os.Stat("/disks"); err == nil {
		t.Error("something was written to /disks of the operating system: it did not go through package vfs")
	}
	t.Logf("%d draws", draws)
	for _, what := range slices.Sorted(maps.Keys(g.tally)) {
		t.Logf("%6d %s", g.tally[what], what)
	}
}

// play makes one draw, and says how to make it again if it fails.
func (g *grounds) play(t *testing.T, d draw) {
	t.Run(fmt.Sprint("seed ", d.seed), func(t *testing.T) {
		t.Logf("%s", d)
		began := time.Now()
		r := &round{T: t, draw: d, grounds: g, files: t.TempDir()}
		r.play()
		t.Logf("%s=%d took %.1f s", seedEnv, d.seed, time.Since(began).Seconds())
		g.count("draws that are equal", !t.Failed())
		g.count("draws that failed", t.Failed())
		if t.Failed() {
			t.Logf("again: %s=%d %s=1 go test -v -run TestMetamorphic ./cmd/ndls\n%s", seedEnv, d.seed, drawsEnv, d)
		}
	})
}

// lanes is the number of draws that are made at a time: they wait for each other's processes more
// than they compute.
var lanes = 3 * processors

func fromEnvironment(t *testing.T, name string, otherwise uint64) (n uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%s is no whole number", name, text)
	}
	return n, true
}

// world names what holds a run directory.
type world string

const (
	memory world = "memory" // a disk in memory, which can lose power
	folder world = "folder" // of the operating system
	bucket world = "bucket" // an object store that breaks requests; scratch is a disk in memory
)

// draw is all that a seed decides.
type draw struct {
	seed uint64
	world
	// dataset has FILES for the folder of files.
	dataset string
	files   map[string]string
	// plan has the options that decide bytes, by the verb that has them; "" holds the options of
	// all verbs.
	plan     map[string]string
	attempts []attempt
	// export names what is exported in the end, with little and with much memory.
	export string
}

// attempt is one time that the job is begun, and what goes wrong then.
type attempt struct {
	// stages, if any, are done by the verbs of this name, one after the other.
	stages []string
	// otherwise the run is done first under another plan, and then discarded.
	otherwise bool
	// workers work beside a coordinator; 0 is ndls run.
	workers int
	share   string
	// resources lists the options of ndls run, or of each worker in turn, for resources.
	resources []string
	// processes of the operating system, each of which passes its hooks; or else
	// goroutines, each with its trouble. The coordinator is the first.
	processes bool
	hooks     [][]string
	troubles  []trouble
	// cuts says that the power fails afterwards; keeps is the share that survives of
	// what was not synced.
	cuts  bool
	keeps float64
	// collects says that garbage is collected afterwards.
	collects bool
}

// trouble holds what happens to a process that works on a disk.
type trouble struct {
	kind string // of troubleKinds, "" for none
	// after is the share of the operations of the undisturbed run that come before.
	after float64
}

// dice draws.
type dice struct{ *rand.Rand }

// in says yes once in n times.
func (d dice) in(n int) bool { return d.IntN(n) == 0 }

func (d dice) one(of ...string) string { return of[d.IntN(len(of))] }

// maybe gives "" half of the time, and else an option with one of the values.
func (d dice) maybe(option string, values ...string) string {
	if value := d.one(values...); d.in(2) {
		return " " + option + " " + value
	}
	return ""
}

// newDraw is the same for the same seed, whatever the machine has.
func newDraw(seed uint64) draw {
	d := dice{rand.New(rand.NewPCG(seed, 0x6e646c73))}
	x := draw{seed: seed, files: map[string]string{}, plan: map[string]string{}}
	switch n := d.IntN(20); {
	case n < 12:
		x.world = memory
	case n < 19:
		x.world = folder
	default:
		x.world = bucket
	}
	wide := d.in(6)
	x.graph(d, wide)
	x.options(d, wide)
	for range 1 + d.IntN(3) {
		x.attempts = append(x.attempts, x.attempt(d, true))
	}
	if d.in(8) {
		first := &x.attempts[0]
		first.otherwise, first.stages, first.processes, first.hooks = true, nil, false, nil
	}
	x.attempts = append(x.attempts, x.attempt(d, false))
	x.export = d.one("lsi --format csv", "features --format arrow", "smoothed --format npy", "smoothed --format parquet", "hops --format npy",
		"soft-labels --format parquet", "predictions --format csv", "edges --format csv", "nodes --format parquet")
	return x
}

// graph draws a dataset. A wide one has rows for several workers.
func (x *draw) graph(d dice, wide bool) {
	features, classes := d.one("0", "5", "16", "17", "40", "70"), 2+d.IntN(7)
	nodes := 120 + d.IntN(1500)
	switch kind := d.IntN(12); {
	case wide:
		nodes, features = 2*packed.StripRows+1+d.IntN(3*packed.StripRows/2), d.one("16", "20")
		fallthrough
	default:
		x.dataset = fmt.Sprintf("synthetic:nodes=%d,edges=%d,features=%s,classes=%d,seed=%d", nodes, nodes*(1+d.IntN(4)), features, classes, d.IntN(100))
		if d.in(4) {
			x.dataset += ",weights=6"
		}
	case kind == 0:
		x.dataset = "karate:"
	case kind < 4:
		x.tables(d, 150+d.IntN(500), classes)
	}
}

// tables draws a dataset of text files: ids with gaps, repeated edges, loops, nodes
// without edges, rows in any order.
func (x *draw) tables(d dice, nodes, classes int) {
	ids := d.Perm(10 * nodes)[:nodes]
	var edges, features, labels strings.Builder
	edges.WriteString("from,to,weight\n")
	for range nodes * (1 + d.IntN(3)) {
		a, b := d.IntN(nodes), d.IntN(nodes-nodes/20)
		fmt.Fprintf(&edges, "%d,%d,%d\n", ids[a], ids[b], d.IntN(5))
		if d.in(10) {
			fmt.Fprintf(&edges, "%d,%d,1\n", ids[b], ids[a])
		}
	}
	labels.WriteString("id,class\n")
	width := 1 + d.IntN(20)
	for i, id := range ids {
		fmt.Fprint(&features, id)
		for range width {
			fmt.Fprintf(&features, ",%.3f", d.NormFloat64())
		}
		features.WriteString("\n")
		if i < nodes*3/4 {
			fmt.Fprintf(&labels, "%d,c%d\n", id, i%classes)
		}
	}
	x.files["edges.csv"], x.files["features.csv"], x.files["labels.csv"] = edges.String(), features.String(), labels.String()
	x.dataset = "edges:FILES/edges.csv?src=from&dst=to&features=FILES/features.csv&labels=FILES/labels.csv"
}

// options draws what decides bytes.
func (x *draw) options(d dice, wide bool) {
	bare := x.dataset == "karate:" || strings.Contains(x.dataset, "features=0")
	x.plan[""] = fmt.Sprint(" --seed ", d.IntN(5))
	precision := d.maybe("--precision", "float16") + d.maybe("--tolerance", "0", "0.05")
	x.plan["lsi"], x.plan["smooth"], x.plan["smooth-labels"] = precision, precision, precision
	x.plan["partition"] = d.maybe("--normalize", "none", "l1", "auto")
	if d.in(20) {
		x.plan["partition"] += " --features none"
		bare = true
	}
	if x.files["labels.csv"] != "" || d.in(4) {
		x.plan["partition"] += fmt.Sprintf(" --split random:%d,%d", 1+d.IntN(4), 1+d.IntN(4))
	}
	modes := []string{"influence-sketch", "influence-sketch", "influence-exact", "feature", "feature-sketch"}
	if bare {
		modes = modes[:3]
	}
	kmax := []string{"1", "3", "8", "30", "200"}
	if wide {
		modes, kmax = modes[:2], kmax[:2]
	}
	x.plan["lsi"] += fmt.Sprintf(" --lsi %s --epsilon %s --kmax %s --probes %s",
		d.one(modes...), d.one("0.001", "0.02", "0.05", "0.1", "0.3", "0.9"), d.one(kmax...), d.one("16", "17", "40"))
	x.plan["lsi"] += d.maybe("--r", "0", "0.3", "1") + d.maybe("--stationary", "global")
	rule := d.one("ndls", "ndls", "ndls-reference", "sgc", "s2gc", "gbp", "appnp", "sign", "nafs", "fastrp")
	hops := []string{"1", "4", "0"}
	if rule == "s2gc" {
		hops = hops[:2] // it averages over the hops from 1 on
	}
	x.plan["smooth"] += " --rule " + rule
	if slices.Contains([]string{"ndls-reference", "s2gc", "gbp", "appnp"}, rule) {
		x.plan["smooth"] += d.maybe("--alpha", "0", "0.4", "1")
	}
	if slices.Contains([]string{"sgc", "s2gc", "gbp", "appnp", "sign", "nafs"}, rule) {
		x.plan["smooth"] += d.maybe("--hops", hops...) + d.maybe("--depth", "node")
	}
	if rule == "ndls" {
		x.plan["smooth"] += d.maybe("--residual", "0.3")
	}
	if rule != "sign" && rule != "nafs" && rule != "fastrp" {
		x.plan["smooth"] += d.maybe("--keep-hops", "0..2", "1,3", "0", "6")
	}
	if rule != "nafs" && rule != "fastrp" && !bare && d.in(3) {
		x.plan["smooth"] += " --label-columns " + d.one("2", "5")
	}
	if rule == "fastrp" {
		x.plan["smooth"] += d.maybe("--dimensions", "5", "33") + d.maybe("--hop-weights", "1", "0,0,2", "0.5,-1,0,1") + d.maybe("--degree-power", "-0.5", "0.2") + d.maybe("--sparsity", "1", "20")
	}
	switch d.IntN(5) {
	case 0:
		x.plan["smooth"] += " --targets labelled"
	case 1:
		if ids := idsOf(x.files["features.csv"]); ids != nil {
			x.files["targets.txt"] = strings.Join(ids[:len(ids)*7/8], "\n") + "\n" // those with labels, and more
			x.plan["smooth"] += " --targets FILES/targets.txt"
		}
	}
	x.plan["train"] = fmt.Sprintf(" --runs %d --epochs %d --hidden %s", 1+d.IntN(3), 1+d.IntN(4), d.one("4", "8", "33"))
	x.plan["train"] += d.maybe("--layers", "1", "3") + d.maybe("--batch-size", "0", "16", "100") + d.maybe("--patience", "1", "2") + d.maybe("--schedule", "cosine")
	x.plan["train"] += d.maybe("--model", "ridge") + d.maybe("--input-norm", "standard") + d.maybe("--hidden-norm", "layer") + d.maybe("--choose", "loss")
	if wide {
		x.plan["train"] = " --runs 1 --epochs 1 --hidden 4"
	}
	labelRule := d.one("ndls", "ndls", "ndls-reference", "cs", "cs-nd")
	x.plan["smooth-labels"] += " --label-rule " + labelRule
	switch labelRule {
	case "cs":
		x.plan["smooth-labels"] += d.maybe("--cs-correct-hops", "1", "3") + d.maybe("--label-depth", "1", "3")
	case "ndls-reference":
		x.plan["smooth-labels"] += d.maybe("--label-alpha", "0", "0.5")
		fallthrough
	default:
		x.plan["smooth-labels"] += " --label-kmax " + d.one("1", "2", "6") + d.maybe("--label-epsilon", "0.05", "0.4") + d.maybe("--label-depth", "0", "1", "3")
	}
	x.plan["partition"] += d.maybe("--shards", "none")
	x.plan["smooth"] += d.maybe("--smoothed-precision", "float16")
	written := d.maybe("--probabilities", "best")
	x.plan["train"] += written
	x.plan["smooth-labels"] += written
}

// idsOf lists the first column of text.
func idsOf(text string) (ids []string) {
	for line := range strings.Lines(text) {
		id, _, _ := strings.Cut(line, ",")
		ids = append(ids, id)
	}
	return ids
}

// attempt draws one time that the job is begun.
func (x *draw) attempt(d dice, disturbed bool) attempt {
	a := attempt{collects: d.in(5), cuts: d.in(2), keeps: []float64{0, 0, 0.5}[d.IntN(3)]}
	if d.in(2) {
		a.workers = 1 + d.IntN(3)
		a.share = d.one("auto", "columns", "intervals", "grid", "grid --group-size 2")
		a.processes = x.world != memory && !d.in(3)
	} else if disturbed && d.in(6) {
		a.stages = []string{"partition", "lsi", "smooth"}[:1+d.IntN(3)]
		if strings.Contains(x.plan["partition"], "--features none") || strings.Contains(x.dataset, "features=0") || x.dataset == "karate:" {
			a.stages = a.stages[:min(len(a.stages), 2)]
		}
	}
	budgets := []string{"128MiB", "131MiB", "160MiB", "300MiB", "1GiB"}
	switch { // the smallest ones may be refused
	case disturbed:
	case a.share == "intervals" || strings.HasPrefix(a.share, "grid"): // with 16 threads, a strip of rows is shared by workers of 183 MiB
		budgets = budgets[3:]
	default:
		budgets = budgets[2:]
	}
	for range max(a.workers, 1) {
		a.resources = append(a.resources, fmt.Sprintf(" --memory %s --threads %s", d.one(budgets...), d.one("1", "2", "3", "5", "16"))+
			d.maybe("--kernel", kernels()...)+d.maybe("--block-columns", "0", "16", "32", "64"))
	}
	points := []string{"join", "next-done", "gang", "gang-done", "commit", "commit-done", "renew-done", "finish", "finish-done"}
	for process := range a.workers + 1 {
		var hooks []string
		var t trouble
		if disturbed {
			for range d.IntN(4) {
				hooks = append(hooks, fmt.Sprintf("%s:%d:%s", d.one(points...), 1+d.IntN(3), d.one("kill", "kill", "term")))
			}
			if process == 0 && a.workers == 0 || d.in(2) {
				t = trouble{d.one(slices.Sorted(maps.Keys(troubleKinds))...), d.Float64()}
			}
		}
		a.hooks, a.troubles = append(a.hooks, hooks), append(a.troubles, t)
	}
	if a.stages != nil {
		a.troubles = []trouble{{}}
	}
	return a
}

// kernels are those that a draw may name; one that this machine lacks is taken for auto.
func kernels() []string { return []string{"auto", "avx512", "avx2", "go"} }

// hasKernel reports whether this machine has a kernel.
func hasKernel(name string) bool {
	_, err := ndls.Kernel(name)
	return err == nil
}

// heavy says that the draw takes seconds, or something that must be built first.
func (x draw) heavy() bool {
	return x.world == bucket || x.nodes() > 4*4096 ||
		slices.ContainsFunc(x.attempts, func(a attempt) bool { return a.processes })
}

// nodes is the number of nodes of a generated graph, else 0.
func (x draw) nodes() (n int) {
	_, _ = fmt.Sscanf(x.dataset, "synthetic:nodes=%d", &n)
	return n
}

// line is the part of a command line that decides bytes, for some verbs.
func (x draw) line(verbs ...string) string {
	text := x.plan[""]
	for _, v := range verbs {
		for option := range strings.SplitSeq(strings.TrimPrefix(x.plan[v], " "), " --") {
			if option = " --" + strings.TrimPrefix(option, "--"); option != " --" && !strings.Contains(text, option) {
				text += option
			}
		}
	}
	return text
}

// allVerbs are the verbs whose options ndls run has.
var allVerbs = []string{"partition", "lsi", "smooth", "train", "smooth-labels"}

// String describes the draw in a line.
func (x draw) String() string {
	text := fmt.Sprintf("%s=%d: %s, --dataset %s%s", seedEnv, x.seed, x.world, x.dataset, x.line(allVerbs...))
	for i, a := range x.attempts {
		text += fmt.Sprintf(" | %d: %s", i+1, a)
		if a.cuts && x.world != folder {
			text += fmt.Sprintf("; power failure that leaves %.1f", a.keeps)
		}
		if a.collects {
			text += "; gc"
		}
	}
	return text
}

// String says who works, with what, and what happens to them.
func (a attempt) String() string {
	text := "alone"
	switch {
	case a.workers > 0 && a.processes:
		text = fmt.Sprintf("%d worker processes, %s, hooks %v", a.workers, a.share, a.hooks)
	case a.workers > 0:
		text = fmt.Sprintf("%d workers, %s", a.workers, a.share)
	case a.stages != nil:
		text = strings.Join(a.stages, ", ")
	}
	if a.otherwise {
		text = "another plan, discarded, " + text
	}
	text += ";" + strings.Join(a.resources, ";")
	for i, t := range a.troubles {
		if t.kind != "" && !a.processes {
			text += fmt.Sprintf("; %s of process %d after %.3f", t.kind, i, t.after)
		}
	}
	return text
}

// count adds to the tally if something holds.
func (g *grounds) count(what string, holds bool) {
	if holds {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tally[what]++
	}
}

// write puts the files of the dataset into the folder.
func (r *round) write() {
	for name, text := range r.draw.files {
		if err := os.WriteFile(filepath.Join(r.files, name), []byte(text), 0o644); err != nil {
			r.Fatal(err)
		}
	}
}
