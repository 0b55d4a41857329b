package main

import (
	"math"
	"slices"

	"ndls/estimate"
	sharing "ndls/group"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
	"ndls/stage/depth"
	"ndls/stage/registry"
	"ndls/steps"
)

// What was measured: RESULTS.md names the command of each.
const (
	// overlap is the time of a pass that reads and computes, as a multiple of the slower of the
	// two.
	overlap = 1.25
	// shardBytes is the size of a directed edge.
	shardBytes = 6.85
	// partitionSeconds and trainSeconds are of papers100m:scale=1,tails=0 on the reference machine: of the
	// whole stage, and of one model of papersPlan.
	partitionSeconds = 297.6
	trainSeconds     = 69.4
	// featureSeconds is a value of a tile, part of partitionSeconds.
	featureSeconds = 0.8 / 2 / (2e6 * 16)
	// saveRate is bytes of a checkpoint a second, before the store.
	saveRate = 1.6e9
	// plannedRead and plannedWrite are the bytes a second of the disk in a plan of a machine that was not measured.
	plannedRead, plannedWrite = 1e9, 0.5e9
	// delay is the seconds until something small has gone to another worker: assumed.
	delay = 0.15e-3
)

const (
	// rowBytes is a row of 16 float32 columns, probeRow one of a probe, whose values are float16.
	rowBytes = 4 * packed.PanelColumns
	probeRow = 2 * packed.PanelColumns
	// rest is the pause of a worker after a save, as a multiple of the time of the save.
	rest = 10
)

// measuredRows and measuredNodes describe the graph that was partitioned in pieces.
const measuredRows, measuredNodes = 40e6, 2e6

// Steps of a partition in pieces, of all workers together, as shares of the time that
// edges take in one piece (bench/cluster/RESULTS.md).
const (
	wholeEdges   = 13.8 - 0.8
	splitShare   = 2.9 / wholeEdges
	mergeShare   = 1.3 / wholeEdges
	countShare   = 1.9 / wholeEdges
	gatherShare  = 0.6 / wholeEdges
	relabelShare = 7.0 / wholeEdges
	rowsShare    = 4.3 / wholeEdges
	endShare     = 0.05 / wholeEdges
)

// Steps that go over the nodes: of so many nodes, and order of so many labelled ones. They were measured in seconds of the
// processor, and are taken waitShare times as long, as the other steps were. One thread joins the node table, where the
// edges of papers100M took two.
const (
	waitShare  = 18.0 / 11.2
	orderShare = 0.15 * waitShare / wholeEdges
	rankShare  = 0.33 * waitShare / wholeEdges
	nodesShare = 0.32 * waitShare / wholeEdges
	joinShare  = 2 * 0.027 * waitShare / wholeEdges
)

// rankedBytes is the size that the step Rank leaves for a node.
const rankedBytes = 25

// edgeShares lists the shares of the intervals of papers100m in all edges, from the node table of
// papers100m:scale=1/256,tails=0.
var edgeShares = []float64{0.388, 0.194, 0.143, 0.110, 0.084, 0.060, 0.021}

// reference is the machine of those measurements. Its network was never measured but
// on loopback: a stream of blocks.
var reference = machine{Memory: 16 << 30, Threads: 2, Edges: 312e6, Disk: 0.975e9, Net: 0.65e9}

// papers are the counts of ogbn-papers100M, and the edges of papers100m:scale=1,tails=0 after
// duplicates are dropped.
var papers = estimate.Counts{
	Nodes: 111_059_956, Edges: 1_553_450_870, InputRows: 1_615_685_872, StatedNodes: true, Components: 1,
	Features: 128, Half: true, Classes: 172, Training: 1_207_179, Validation: 125_265, Labelled: 1_546_782,
	Hops: 19, LabelledHops: 19,
}

// huge is a graph of 10 G nodes.
var huge = estimate.Counts{Nodes: 10e9, Edges: 200e9, Features: 128, Half: true, Classes: 172, Hops: 19}

// web are the counts of the web graph of Common Crawl 2012, with features, classes and labels as
// papers have them.
var web = estimate.Counts{
	Nodes: 3_563_602_789, Edges: 128e9, InputRows: 128e9, StatedNodes: true, Components: 1,
	Features: 128, Half: true, Classes: 172, Training: 1_207_179, Validation: 125_265, Labelled: 1_546_782, Hops: 20, LabelledHops: 20,
}

// papersPlan is the plan that was measured.
func papersPlan(targets string) plan.Options {
	p := plan.Default()
	p.LSI.Probes, p.Smooth.Targets = 16, targets
	p.Train.Runs, p.Train.Epochs, p.Train.Hidden = 1, 20, 256
	return p
}

// machine describes the machine of a worker. Rates are a second.
type machine struct {
	Memory  int64
	Threads int
	// Edges are directed edges past 16 float32 columns, with all threads.
	Edges float64
	// Disk and Net are bytes.
	Disk, Net float64
}

// job is a run on equal machines.
type job struct {
	estimate.Counts
	plan    plan.Options
	machine machine
	workers int
	// store is the bytes a second that the store gives all workers together, 0
	// without bound.
	store float64
	// grid lets groups of workers share the rows of a panel, where that is faster.
	grid bool
	// cores is the number of workers that compute at the same time if all are on one machine, 0 for
	// all of them.
	cores int
	// sending is the seconds of a thread that a byte of rows takes between two workers: of the one that sends it, of the
	// one that receives it, and of what is between them on the same machine.
	sending float64
	// inMemory has edges stay in memory whatever the machine has.
	inMemory bool
	// replayed are the phases of a run that was measured, in place of those of the model.
	replayed []phase
}

// phase is tasks that may be done at the same time.
type phase struct {
	stage control.Stage
	part  control.Part
	// tasks are numbers of pieces.
	tasks []int
	piece work
	// weights lists the work of each task's piece as a multiple of a usual piece; nil: one.
	weights []float64
	// open is done at each attempt before the first piece, cold once by each machine.
	open, cold work
	// beside is the seconds of each attempt that no piece takes, asks those of a core.
	beside, asks float64
}

// work is the cost of a piece of a task.
type work struct {
	read, written int64   // bytes of the store
	units         int     // after each of which the state can be saved
	unit          float64 // seconds of computing, and of reading edges meanwhile
	members       int     // that share rows; 0 is one
	way           sharing.Way
	moved         float64 // bytes of rows that come from other workers in a unit, as many as go to them
	most, all     float64 // that come to the worker which has fewest rows, and that all rows have
	ahead         float64 // bytes of rows that a worker can hold while it adds its own
	waits         float64 // seconds after a unit in which workers that share rows wait for each other
	state         int64   // bytes of a checkpoint; 0: none are made
	files         int     // that are listed in the end
}

// directed is the number of directed edges.
func (j job) directed() float64 { return 2 * float64(j.Counts.Edges) }

// stream is the size of the hop streams, as the planner has it.
func (j job) stream() int64 {
	return partition.HopBytes(partition.Counts{Nodes: j.Nodes, Edges: j.Counts.Edges})
}

// rate returns the bytes a second that one of several workers gets from the store.
func (j job) rate(at int) float64 {
	if j.store == 0 {
		return j.machine.Net
	}
	return min(j.machine.Net, j.store/float64(max(min(at, j.workers), 1)))
}

// resident reports whether the edges of n rows stay in memory beside two hops of these, of so many bytes a row.
func (m machine) resident(n, stream, row int64) bool {
	free := mem.Usable(m.Memory) - 8*n
	return hops.Resident(stream, free) && stream+2*n*row <= free
}

// hop is the seconds of a hop over some edges, of which stream bytes come from disk.
func (m machine) hop(edges, stream float64) float64 {
	compute := edges / m.Edges
	if stream == 0 {
		return compute
	}
	return overlap * max(compute, stream/m.Disk)
}

// computes is the seconds for which a unit takes all threads of a machine, sending and receiving included.
func (j job) computes(w work) float64 {
	return w.unit + w.moved*j.sending/float64(j.machine.Threads)
}

// takesUnit is the seconds of a unit where no one is slow. Rows arrive while others are added, but for those of a window,
// which are added once it is there.
func (j job) takesUnit(w work) float64 {
	late := 0.0
	if w.most > 0 {
		late = min(spmv.SharedWindow/w.most, 1)
	}
	hop := w.way.HopSeconds(w.members, (1-late)*w.unit, w.most/j.machine.Net, w.all/j.machine.Net, w.ahead/j.machine.Net) + late*w.unit
	return max(hop, j.computes(w)) + w.waits
}

// pass is a hop of all edges on one machine.
func (j job) pass() float64 {
	stream := float64(j.stream())
	if j.inMemory || j.machine.resident(j.Nodes, j.stream(), rowBytes) {
		stream = 0
	}
	return j.machine.hop(j.directed(), stream)
}

func (j job) intervals() int {
	rows := int64(j.plan.Partition.IntervalBlocks) * partition.BlockRows
	return int((j.Nodes + rows - 1) / rows)
}

// phases returns the phases of a run.
func (j job) phases() (all []phase) {
	if j.replayed != nil {
		return j.replayed
	}
	for _, s := range registry.Possible(j.plan, j.Counts) {
		switch s {
		case control.Partition:
			all = append(all, j.partition()...)
		case control.LSI:
			all = append(all, j.lsi()...)
		case control.Smooth:
			half := int64(shards.TileRowBytes(j.Half))
			all = append(all, j.columns(s, packed.Panels(j.Features), j.Hops, half, j.targets()), j.rows(s, packed.Panels(j.Features), j.targets(), j.Features))
		case control.LabelDepth:
			end := phase{stage: s, part: control.Whole, tasks: []int{1}, piece: work{units: 1, files: 1}}
			all = append(all, j.labels(s, j.Validation), end)
		case control.SmoothLabels:
			all = append(all, j.labels(s, j.Nodes), j.rows(s, j.labelPanels(), j.Nodes, j.Classes))
		case control.Train:
			all = append(all, j.training()...)
		case control.Predict:
			all = append(all, j.pieces(s, control.Rows, j.intervals())...)
		default:
			all = append(all, j.whole(s))
		}
	}
	return all
}

// targets is the number of rows that are written.
func (j job) targets() int64 {
	if j.plan.Smooth.Targets == plan.LabelledTargets {
		return j.Labelled
	}
	return j.Nodes
}

func (j job) partition() []phase {
	ratio := float64(j.InputRows) / float64(papers.InputRows)
	tiles := int64(packed.Panels(j.Features)*shards.TileRowBytes(j.Half)) * j.Nodes
	graph := j.stream() + int64(shardBytes*j.directed())
	i, table, e, m := j.intervals(), j.nodeTable(), j.InputRows, j.Counts.Edges
	if j.workers == 1 {
		p := phase{stage: control.Partition, part: control.Whole, tasks: []int{1}}
		p.piece = j.overlapped(partitionSeconds*ratio, 0, graph+tiles+table)
		p.piece.files = i*(2+packed.Panels(j.Features)) + 2
		return []phase{p}
	}
	features := featureSeconds * float64(j.Features) * float64(j.Nodes)
	edges := partitionSeconds*ratio - features
	step := func(part string, tasks int, share float64, read, written int64, files int) phase {
		n := int64(tasks)
		p := phase{stage: control.Partition, part: control.Part(part), tasks: divide(tasks, tasks)}
		p.piece = j.overlapped(share*edges/float64(tasks), read/n, written/n)
		p.piece.files = files
		return p
	}
	t := steps.Tasks(j.workers)
	relabel := step(partition.Relabel, t, relabelShare, 8*m, 16*m, 1)
	relabel.open = work{read: table}
	shares := j.fileShares()
	rows := step(partition.Rows, len(shares), rowsShare, 16*m+int64(shardBytes*j.directed()), graph, 2)
	for _, x := range shares {
		rows.weights = append(rows.weights, x*float64(len(shares)))
	}
	perNode := 1 / float64(j.InputRows) / (measuredNodes / measuredRows)
	nodes := perNode * float64(j.Nodes)
	// The node table is joined by the first task of the step.
	join := max(joinShare*nodes*edges, seconds(2*table, j.rate(1)))
	piece := rows.piece.unit + seconds(rows.piece.read+rows.piece.written, j.rate(1))
	rows.tasks, rows.weights = append([]int{1}, rows.tasks...), append([]float64{join / piece}, rows.weights...)
	cells := i * packed.Panels(j.Features)
	deal := step(partition.Deal, t, features/edges, 0, tiles+4*j.Nodes, 1)
	deal.open = work{read: table}
	made := min(t, cells)
	columns := step(partition.Tiles, made, 0, tiles+4*j.Nodes, tiles, (cells+made-1)/made)
	tallied := min(int64(t)*j.Nodes, m+j.Nodes) // nodes, counted once for each piece that has edges of them
	return []phase{
		step(partition.Split, t, splitShare, 0, 8*e, 1), step(partition.Merge, t, mergeShare, 8*e, 8*m, 1),
		step(partition.Count, t, countShare, 8*m, 16*tallied, 2), step(partition.Gather, t, gatherShare, 16*tallied, 16*j.Nodes, 4),
		step(partition.Order, 1, orderShare*perNode*float64(j.Labelled), 0, 16*j.Labelled, 5),
		step(partition.Rank, t, rankShare*nodes, 16*j.Nodes, rankedBytes*j.Nodes, 1), step(partition.Components, 1, 0, 0, 0, 1),
		step(partition.Nodes, j.workers, nodesShare*nodes, rankedBytes*j.Nodes, table, 2), relabel, rows, deal, columns,
		step(partition.Whole, 1, endShare, 0, 0, 1),
	}
}

// fileShares are the shares of the tasks of the rows of a partition in all edges. Intervals are cut
// to files of equal edges, as far as files have space for them.
func (j job) fileShares() (shares []float64) {
	intervals := edgeShares
	if j.intervals() != len(intervals) {
		intervals = slices.Repeat([]float64{1 / float64(j.intervals())}, j.intervals())
	}
	all, left := j.directed(), steps.Left{Step: partition.Rows}
	for _, x := range intervals {
		files := math.Ceil(x * all / float64(partition.FileEdges(int64(all))))
		for range int(files) {
			n := len(left.Pieces)
			left.Pieces = append(left.Pieces, steps.Unit(n))
			left.Weights = append(left.Weights, int64(x*all/files))
		}
	}
	for _, p := range left.Cut(j.workers) {
		task := int64(0)
		for _, w := range left.Weights[p.First:p.Last] {
			task += w
		}
		shares = append(shares, float64(task)/all)
	}
	return shares
}

// overlapped is one unit of work: what goes to the store and comes from there goes while
// the rest is computed.
func (j job) overlapped(seconds float64, read, written int64) work {
	return work{units: 1, unit: max(seconds-float64(read+written)/j.rate(1), 0), read: read, written: written}
}

// weight returns the work of a task's pieces as a multiple of a usual piece.
func (p phase) weight(task int) float64 {
	if p.weights == nil {
		return 1
	}
	return p.weights[task]
}

// of is a piece of a task.
func (p phase) of(task int) work {
	w := p.piece
	x := p.weight(task)
	w.read, w.written, w.unit = int64(x*float64(w.read)), int64(x*float64(w.written)), x*w.unit
	return w
}

func (j job) nodeTable() int64 { return partition.NodeBytes(partition.Counts{Nodes: j.Nodes}) }

// graph returns what is read before a pass: every attempt reads the node table, twice; a machine
// without a copy reads the hop streams.
func (j job) graph() (open, cold work) {
	return work{read: 2 * j.nodeTable()}, work{read: j.stream()}
}

// lsi is one task, or stretches of hops in which workers share the panels of the probe, or the
// rows of each. Groups have the size with which it takes the fewest seconds.
func (j job) lsi() []phase {
	return j.lsiBy(j.soonest(probeRow, func(g group) float64 { return g.takes(j.lsiBy(g)) }))
}

// lsiBy is lsi of workers of which those of a group share rows.
func (j job) lsiBy(g group) []phase {
	n := packed.Panels(j.plan.LSI.Probes)
	size, takers := int64(g.size), j.workers/g.size
	tasks := (n + 1) / 2 // float16 rows of two panels are a cache line
	ends, few := depth.StretchEnds(j.Hops, j.plan)
	passes := j.Hops
	if plain := few.PlainHops(); plain > 0 {
		passes = plain + few.FewPasses()
		ends = append(ends, passes) // as many passes as a stretch of hops up to there
	}
	switch {
	case g.size > 1 && takers == 1:
		return []phase{g.cells(control.LSI, n, passes+1, 0, 5*j.Nodes/int64(n))}
	case g.size > 1:
		tasks = n
	case takers == 1 || tasks == 1:
		p := phase{stage: control.LSI, part: control.Whole, tasks: []int{1}}
		p.open, p.cold = j.graph()
		p.piece = work{units: n * (passes + 1), unit: j.pass(), state: j.Nodes * rowBytes * int64(n), written: 5 * j.Nodes, files: j.intervals()}
		return []phase{p}
	}
	var all []phase
	from, rows, hop := -1, j.Nodes*probeRow/size, work{unit: j.pass()}
	if g.size > 1 {
		hop = g.unit()
	}
	ranges := int((j.Nodes + partition.BlockRows - 1) / partition.BlockRows)
	for _, to := range ends {
		columns := phase{stage: control.LSI, part: control.Columns}
		for _, panels := range evenly(n, min(tasks, takers)) {
			columns.tasks = append(columns.tasks, slices.Repeat([]int{panels}, g.size)...)
		}
		columns.open, columns.cold = j.graph()
		columns.cold.read /= size
		columns.piece = hop
		columns.piece.units, columns.piece.written, columns.piece.files = to-from, rows, 1
		// A worker has two tasks, and has the node table open for the second one.
		found := phase{stage: control.LSI, part: control.Rows, tasks: evenly(ranges, j.workers)}
		found.open = work{read: j.nodeTable()}
		found.piece = work{written: 2 * partition.BlockRows, files: 2}
		if from < 0 { // later there are few nodes left
			columns.piece.written += int64(to-from) * 8 * j.Nodes / size
			columns.piece.files += ranges / g.size
			found.piece.read = int64(to-from) * 8 * partition.BlockRows * int64(n)
		} else {
			columns.piece.read = rows
		}
		all, from = append(all, columns, found), to
	}
	p := phase{stage: control.LSI, part: control.Whole, tasks: []int{1}}
	p.piece = work{units: 1, read: j.nodeTable() + 2*j.Nodes, written: 5 * j.Nodes, files: j.intervals()}
	return append(all, p)
}

// takes is about how many seconds the workers take for phases if nothing happens to them.
func (j job) takes(phases []phase) (total float64) {
	rate := j.rate(j.workers)
	for _, p := range phases {
		longest := 0.0
		for i, pieces := range p.tasks {
			w := p.of(i)
			longest = max(longest, seconds(p.open.read+p.cold.read, rate)+float64(pieces)*(float64(w.units)*j.takesUnit(w)+seconds(w.read+w.written, rate)))
		}
		total += longest * math.Ceil(float64(len(p.tasks))/float64(j.workers))
	}
	return total
}

// evenly divides n pieces into a task for each worker.
func evenly(n, workers int) (tasks []int) {
	size := (n + workers - 1) / workers
	for ; n > 0; n -= size {
		tasks = append(tasks, min(size, n))
	}
	return tasks
}

// pieces is a stage in n tasks, as the planner has all of it, and the task that ends it.
func (j job) pieces(s control.Stage, part control.Part, n int) []phase {
	end := j.whole(s)
	if j.workers == 1 || n == 1 {
		return []phase{end}
	}
	p := end
	p.part, p.tasks = part, evenly(n, n)
	p.piece.read, p.piece.written, p.piece.unit = p.piece.read/int64(n), p.piece.written/int64(n), p.piece.unit/float64(n)
	end.piece = work{units: 1}
	return []phase{p, end}
}

// training is models in tasks, or each of them in a task for each worker of a group: the planner says which.
func (j job) training() []phase {
	n := j.plan.Train.Runs
	r := control.Resources{Memory: j.machine.Memory, Threads: j.machine.Threads, Speeds: trainedSpeeds(trainSeconds)}
	rates := control.Rates{Edges: j.machine.Edges, Network: j.machine.Net, Delay: delay}
	stages := registry.Costs(control.Train)
	size := 1
	if j.grid && n < j.workers {
		size = estimate.BestGroup(j.Counts, j.plan, r, stages[0], j.workers, j.workers, n, rates, func(int) bool { return true })
	}
	phases := j.pieces(control.Train, control.Models, n)
	if size == 1 {
		return phases
	}
	p, end := phases[0], phases[len(phases)-1]
	p.part, p.tasks = control.Models, evenly(n*size, n*size)
	p.piece.written /= int64(size)
	computes := func(size int) float64 { // beside what a worker reads
		return estimate.GroupSeconds(j.Counts, j.plan, r, stages[0], n*size, size, n, rates) - float64(p.piece.read)/plannedRead
	}
	p.piece.unit *= computes(size) / computes(1)
	end.piece = work{units: 1}
	return []phase{p, end}
}

// columns smooths panels of rows of some bytes; out rows stay.
func (j job) columns(s control.Stage, n, last int, in, out int64) phase {
	if g := j.groupOf(n, rowBytes); g.size > 1 {
		return g.cells(s, n, last, in, out*rowBytes)
	}
	p := phase{stage: s, part: control.Columns, tasks: divide(n, j.workers)}
	p.open, p.cold = j.graph()
	p.piece = work{
		read: 2 * j.Nodes * in, written: out * rowBytes, units: last, unit: j.pass(),
		state: (j.Nodes + out) * rowBytes, files: j.intervals(),
	}
	return p
}

// labels smooths the soft labels of all models, of which out rows stay.
func (j job) labels(s control.Stage, out int64) phase {
	return j.columns(s, j.labelPanels(), min(j.Hops, j.plan.Labels.Kmax), int64(shards.TileRowBytes(false)), out)
}

func (j job) labelPanels() int { return j.plan.Train.Runs * packed.Panels(j.Classes) }

// rows assembles rows of tiles.
func (j job) rows(s control.Stage, n int, rows int64, width int) phase {
	i := j.intervals()
	each := rows / int64(i)
	p := phase{stage: s, part: control.Rows, tasks: divide(i, i)}
	if j.workers == 1 {
		p.tasks = []int{i}
	}
	p.open = work{read: j.nodeTable()}
	p.piece = work{read: 2 * each * rowBytes * int64(n), written: each * int64(8+4*width), files: 1}
	return p
}

// whole is a stage that is not cut, as the planner has it.
func (j job) whole(s control.Stage) phase {
	r := control.Resources{Memory: j.machine.Memory, Threads: j.machine.Threads}
	if s == control.Train {
		r.Speeds = trainedSpeeds(trainSeconds)
	}
	f, _ := estimate.Run(j.Counts, j.plan, r, 0, registry.Costs(s)...)
	p := phase{stage: s, part: control.Whole, tasks: []int{1}}
	moved := float64(f[0].BytesRead)/plannedRead + float64(f[0].BytesWritten)/plannedWrite
	p.piece = work{read: f[0].BytesRead, written: f[0].BytesWritten, units: 1, unit: max(f[0].Seconds-moved, 0), files: 1}
	return p
}

// plannedTraining returns the planner's seconds for the measured training, on a machine of these
// speeds.
func plannedTraining(speeds control.Speeds) float64 {
	r := control.Resources{Memory: reference.Memory, Threads: reference.Threads, Speeds: speeds}
	f, _ := estimate.Run(papers, papersPlan(plan.LabelledTargets), r, 0, registry.Costs(control.Train)...)
	return f[0].Seconds
}

// trainedSpeeds returns the speeds of a machine for which the planner expects so many seconds for
// the measured training: those of package estimate, except for products.
func trainedSpeeds(seconds float64) control.Speeds {
	s := control.Speeds{Flops: 80e9, Write: plannedWrite, Read: plannedRead}
	slow, flops := plannedTraining(s), s.Flops
	s.Flops *= 2
	products := 2 * (slow - plannedTraining(s)) // at the first speed
	s.Flops = flops * products / (seconds - (slow - products))
	return s
}

// divide cuts n panels into tasks as the coordinator does: of two, and of one where fewer are left
// than two for each worker; a stage of one worker is one task.
func divide(n, workers int) (tasks []int) {
	if workers == 1 {
		return []int{n}
	}
	for ; n > 0; n -= tasks[len(tasks)-1] {
		size := 1
		if n >= 2*workers || len(tasks)%workers != 0 && tasks[len(tasks)-1] == 2 {
			size = 2
		}
		tasks = append(tasks, min(size, n))
	}
	return tasks
}

// seconds is the time that bytes take.
func seconds(bytes int64, rate float64) float64 { return float64(bytes) / rate }

// alone returns the time of phases on one machine that does not die, one after the other, with the
// state of tasks saved every so often: the closed formula.
func (j job) alone(phases []phase, every float64) (total float64) {
	rate := j.rate(1)
	warm := false
	for _, p := range phases {
		for i, pieces := range p.tasks {
			total += seconds(p.open.read, rate)
			if p.cold.read > 0 && !warm {
				total += seconds(p.cold.read, rate)
				warm = true
			}
			n, piece := float64(pieces), p.of(i)
			total += n * (seconds(piece.read, rate) + float64(piece.units)*piece.unit + seconds(piece.written, rate))
			total += n * float64(p.saves(rate, every)) * p.save(rate)
		}
	}
	return total
}

// save is the seconds of a checkpoint.
func (p phase) save(rate float64) float64 {
	return seconds(p.piece.state, min(saveRate, rate))
}

// between is the least time between two checkpoints.
func (p phase) between(rate, every float64) float64 { return max(every, rest*p.save(rate)) }

// saves is the number of checkpoints of a piece that nothing disturbs: at the end of a
// unit that another follows, once it is time.
func (p phase) saves(rate, every float64) int {
	if p.piece.state == 0 || p.piece.units == 0 {
		return 0
	}
	return (p.piece.units - 1) / int(math.Ceil(p.between(rate, every)/p.piece.unit))
}
