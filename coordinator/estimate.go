package coordinator

import (
	"fmt"
	"math"

	"ndls/internal/control"
	"ndls/internal/mem"
)

// Shape is what an estimate needs to know of a graph.
type Shape struct {
	Nodes int64 `json:"nodes"`
	// Edges counts undirected edges.
	Edges    int64 `json:"edges"`
	Features int   `json:"features"`
	Classes  int   `json:"classes"`
	// Training is the number of nodes to train on.
	Training int64 `json:"training"`
}

// StageEstimate is what one stage is expected to take. Hops up to Kmax are
// counted although most graphs settle earlier, so passes, bytes read and
// seconds of lsi, smooth and smooth-labels are upper bounds.
type StageEstimate struct {
	Stage control.Stage `json:"name"`
	// PeakBytes is what the stage takes of the budget, LeastBytes the
	// smallest budget with which it runs.
	PeakBytes  int64 `json:"peak_bytes"`
	LeastBytes int64 `json:"least_bytes"`
	// DiskBytes stays in the run directory, ScratchBytes only while the stage runs.
	DiskBytes      int64   `json:"disk_bytes"`
	ScratchBytes   int64   `json:"scratch_bytes"`
	BytesRead      int64   `json:"bytes_read"`
	Passes         int     `json:"passes"`
	ColumnsPerPass int     `json:"columns_per_pass"`
	Seconds        float64 `json:"seconds"`
}

// Rates and sizes of the formulas, for one thread of the machine they were
// measured on (see docs/decisions.md). They scale estimates of time only.
const (
	// sortedEdges is undirected edges a second through partition.
	sortedEdges = 1.0e6
	// passedEdges is directed edges a second past a block of 16 columns.
	passedEdges = 100e6
	// diskBytes is bytes a second of sequential reading or writing.
	diskBytes = 800e6
	// trainFlops is float32 operations a second in matrix products.
	trainFlops = 8e9

	// shardBytes and hopBytes are bytes of a directed edge in an edge shard
	// and in a hop stream.
	shardBytes = 4.4
	hopBytes   = 4
	// nodeBytes is bytes of a row of the node table, kBytes of the K table.
	nodeBytes, kBytes = 26, 20
	// granule is the number of columns to which widths are rounded up.
	granule = 16
	// workSpace is what sorting, reading ahead and row batches take at least.
	workSpace = mem.MinBudget - mem.RuntimeShare
)

// Estimate lists the stages that a graph of this shape allows, in order. If one
// does not fit r.Memory, the list is complete nonetheless and the error wraps
// [mem.ErrBudget] and says which --memory would do.
func Estimate(s Shape, p control.Plan, r control.Resources) ([]StageEstimate, error) {
	if s.Nodes < 1 || s.Edges < 0 || s.Features < 0 || s.Classes < 0 {
		return nil, fmt.Errorf("coordinator: no graph has %d nodes, %d edges, %d features and %d classes: %w",
			s.Nodes, s.Edges, s.Features, s.Classes, control.ErrOption)
	}
	e := estimator{s, p, r, float64(max(r.Threads, 1))}
	list := []StageEstimate{e.partition(), e.lsi()}
	if s.Features > 0 && p.Partition.Features != "none" {
		list = append(list, e.smooth())
		if s.Classes > 0 {
			list = append(list, e.train(), e.predict(), e.smoothLabels(), e.evaluate())
		}
	}
	var worst *StageEstimate
	for i := range list {
		if worst == nil || list[i].LeastBytes > worst.LeastBytes {
			worst = &list[i]
		}
	}
	if worst.LeastBytes > r.Memory {
		return list, fmt.Errorf("coordinator: %s needs %s at least, --memory is %s; --memory %dMiB would do: %w",
			worst.Stage, mem.Bytes(worst.LeastBytes), mem.Bytes(r.Memory), (worst.LeastBytes+1<<20-1)>>20, mem.ErrBudget)
	}
	return list, nil
}

type estimator struct {
	Shape
	plan    control.Plan
	res     control.Resources
	threads float64
}

// whole is x as an integer, or the largest one: nobody waits for that anyway.
func whole(x float64) int64 {
	if x >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(x)
}

// columns rounds a width up to whole granules.
func columns(width int) int { return (width + granule - 1) / granule * granule }

// partition holds degrees, components and new ids (4n each) and the bitmap of
// ids (n/8), and sorts 8 bytes an edge, then 8 bytes an edge and direction, with
// as much again to sort into. What exceeds the budget is spilled once.
func (e estimator) partition() StageEstimate {
	width := columns(e.Features)
	if e.plan.Partition.Features == "none" {
		width = 0
	}
	fixed := int64(mem.RuntimeShare) + 12*e.Nodes + e.Nodes/8
	sorting := max(4*8*e.Edges, workSpace)
	tiles := 4 * int64(width) * e.Nodes
	x := StageEstimate{
		Stage:      control.Partition,
		LeastBytes: fixed + workSpace,
		DiskBytes:  int64(2*float64(e.Edges)*(shardBytes+hopBytes)) + nodeBytes*e.Nodes + tiles,
		BytesRead:  8*e.Edges + tiles,
	}
	x.PeakBytes = min(fixed+sorting, max(e.res.Memory, x.LeastBytes))
	if fixed+sorting > e.res.Memory {
		x.ScratchBytes = 3*8*e.Edges + tiles
		x.BytesRead += x.ScratchBytes
	}
	x.Seconds = float64(e.Edges)/sortedEdges/e.threads + float64(x.BytesRead+x.DiskBytes+x.ScratchBytes)/diskBytes
	return x
}

// residentShare is the part of what is free that packed edges may take up to be
// read once instead of in every pass; usefulColumns caps, for each thread, the
// width of a block of smoothing that then saves no reading. Both are what the
// worker does.
const (
	residentShare = 4
	usefulColumns = 64
)

// passes plans hops over width columns with arrays dense arrays of n rows and
// perNode more bytes a node: as many columns at a time as the budget holds, or
// as are useful.
func (e estimator) passes(s control.Stage, width, hops, arrays int, perNode int64) StageEstimate {
	width = columns(width)
	fixed := mem.RuntimeShare + perNode*e.Nodes
	stream := 2 * e.Edges * hopBytes
	resident := stream <= (e.res.Memory-mem.RuntimeShare-8*e.Nodes)/residentShare
	if resident {
		fixed += stream
	}
	column := 4 * int64(arrays) * e.Nodes
	block := int(min(max(e.res.Memory-fixed, 0)/column, int64(width))) / granule * granule
	if resident && s != control.LSI {
		block = min(block, usefulColumns*max(e.res.Threads, 1))
	}
	if e.res.BlockColumns > 0 {
		block = min(columns(e.res.BlockColumns), width)
	}
	block = max(block, granule)
	rows := perNode*e.Nodes + granule*column
	if e.res.BlockColumns > 0 {
		rows = perNode*e.Nodes + int64(block)*column
	}
	least := mem.RuntimeShare + rows
	if resident || least > e.res.Memory {
		// Whether the edges are in memory then or not, the rows fit beside them.
		least += min(stream, rows/(residentShare-1)+1)
	}
	x := StageEstimate{
		Stage:          s,
		PeakBytes:      fixed + int64(block)*column,
		LeastBytes:     max(least, mem.MinBudget),
		Passes:         (width + block - 1) / block * hops,
		ColumnsPerPass: block,
	}
	edges := 2 * float64(e.Edges)
	x.BytesRead = stream
	if !resident {
		x.BytesRead = whole(float64(x.Passes) * edges * hopBytes)
	}
	kernel := float64(hops) * edges * float64(width) / granule / passedEdges / e.threads
	x.Seconds = max(kernel, float64(x.BytesRead)/diskBytes)
	return x
}

// lsi holds two arrays, and for each node degree, component, id, K and, with
// several blocks, the partial distances of the hop: 22 bytes. The distances of a
// window of hops and the rows of all blocks lie on disk then.
func (e estimator) lsi() StageEstimate {
	l := e.plan.LSI
	width := l.Probes
	switch l.Mode {
	case "influence-exact":
		width = int(min(e.Nodes, 1<<31-granule))
	case "feature":
		width = e.Features
	}
	hops := l.Kmax
	x := e.passes(control.LSI, max(width, 1), hops, 2, 22)
	if x.ColumnsPerPass < columns(width) {
		x.ScratchBytes = whole(float64(e.Nodes) * (8*float64(hops/2+1) + 4*float64(columns(width))))
		x.BytesRead = whole(float64(x.BytesRead) + float64(8*e.Nodes)*float64(x.Passes))
	}
	x.DiskBytes = kBytes * e.Nodes
	return x
}

// smooth holds three arrays: a hop, the next and the sum. The sums are written
// as tiles, then put together to rows.
func (e estimator) smooth() StageEstimate {
	hops := e.plan.Smooth.Hops
	if e.plan.Smooth.Rule == "ndls" || e.plan.Smooth.Rule == "ndls-reference" {
		hops = e.plan.LSI.Kmax
	}
	x := e.passes(control.Smooth, e.Features, hops, 3, 12)
	tiles := 4 * int64(columns(e.Features)) * e.Nodes
	rows := (8 + 4*int64(e.Features)) * e.Nodes
	x.DiskBytes, x.ScratchBytes = rows, tiles
	x.BytesRead += 2 * tiles
	x.Seconds += float64(2*tiles+tiles+rows) / diskBytes
	return x
}

// weights is the number of parameters of the model, biases aside.
func (e estimator) weights() float64 {
	t := e.plan.Train
	if t.Layers == 1 {
		return float64(e.Features * e.Classes)
	}
	return float64(t.Hidden) * float64(e.Features+(t.Layers-2)*t.Hidden+e.Classes)
}

// train holds the weights, their gradients and two moments, and a batch. A row
// and weight take 2 operations forwards and 4 backwards.
func (e estimator) train() StageEstimate {
	t := e.plan.Train
	rows := float64(e.Training) * float64(t.Epochs*t.Runs)
	batch := 4 * int64(t.BatchSize) * int64(e.Features+t.Layers*t.Hidden+e.Classes) * 2
	least := int64(mem.MinBudget) + 16*int64(e.weights()) + batch
	return StageEstimate{
		Stage:      control.Train,
		PeakBytes:  least,
		LeastBytes: least,
		DiskBytes:  4 * int64(e.weights()) * int64(t.Runs),
		BytesRead:  (8 + 4*int64(e.Features)) * e.Nodes,
		Seconds:    rows * 6 * e.weights() / trainFlops / e.threads,
	}
}

// predict applies every model to every row.
func (e estimator) predict() StageEstimate {
	runs := e.plan.Train.Runs
	x := e.train()
	x.Stage = control.Predict
	x.DiskBytes = (8 + 4*int64(e.Classes)) * e.Nodes * int64(runs)
	x.BytesRead = (8 + 4*int64(e.Features)) * e.Nodes * int64(runs)
	x.Seconds = float64(runs)*float64(e.Nodes)*2*e.weights()/trainFlops/e.threads + float64(x.DiskBytes+x.BytesRead)/diskBytes
	return x
}

// smoothLabels smooths the soft labels of every run side by side.
func (e estimator) smoothLabels() StageEstimate {
	width := columns(e.Classes) * e.plan.Train.Runs
	if e.plan.Labels.SoftLabels != "" {
		width = columns(e.Classes)
	}
	x := e.passes(control.SmoothLabels, width, e.plan.Labels.Kmax, 3, 12)
	x.DiskBytes = (12 + 4*int64(e.Classes)) * e.Nodes
	x.ScratchBytes = 4 * int64(columns(width)) * e.Nodes
	x.BytesRead += 2 * x.ScratchBytes
	x.Seconds += float64(3*x.ScratchBytes+x.DiskBytes) / diskBytes
	return x
}

// evaluate reads soft labels and predictions once.
func (e estimator) evaluate() StageEstimate {
	read := (20 + 8*int64(e.Classes)) * e.Nodes
	return StageEstimate{
		Stage: control.Evaluate, PeakBytes: mem.MinBudget, LeastBytes: mem.MinBudget,
		BytesRead: read, Seconds: float64(read) / diskBytes,
	}
}
