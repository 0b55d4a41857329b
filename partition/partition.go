package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/steps"
)

const (
	// BlockRows is the number of destination rows of a block.
	BlockRows = packed.BlockRows
	// DefaultIntervalBlocks is the number of blocks of an interval: at 16 columns of float32 its rows take 1 GiB.
	DefaultIntervalBlocks = 16
)

// Values of Options.Normalize.
const (
	NormalizeAuto = "auto" // "l1" for rows that are bags of a few words whose lengths neighbours do not share, else "none"
	NormalizeL1   = "l1"   // divide every row by the sum of its absolute values
	NormalizeNone = "none"
)

// Options says how to cut a graph. Budget and Scratch are required; the zero value of every other field means its default.
type Options struct {
	// Budget is charged for every array that grows with the input.
	Budget *mem.Budget
	// Threads is the number of threads that compute at a time, 0 for one.
	Threads int
	// Scratch is a local folder for temporary files. They are removed before
	// Run returns.
	Scratch string
	// IntervalBlocks is the number of blocks of an interval, 0 for
	// DefaultIntervalBlocks.
	IntervalBlocks int
	// NoShards leaves out the edge shards: only hop streams are written.
	NoShards bool
	// Features requests feature tiles, if the dataset has features.
	Features bool
	// Normalize is one of the Normalize constants, "" for NormalizeAuto.
	Normalize string
	// Split is "" for the published split, if there is one; "random:T,V", by which T nodes of each class train, V validate and the rest
	// test; or "share:T,V", the same for shares of all labelled nodes.
	Split string
	// Splits is the number of splits, 0 for one. Split i is the published split with number i, or drawn with Seed+i. The node table has the
	// first; files of a byte per node ([SplitPath]) have the others.
	Splits int
	// LabelsPerClass, if not 0, replaces the training nodes of the published split: this number of each class is drawn among the labelled
	// nodes that neither validate nor test.
	LabelsPerClass int
	// Only is "" for the whole graph; OnlyTrain or OnlyTrainValid restrict it to the nodes of these splits and the edges between them.
	Only string
	// DropEdges is the share of edges to drop. All rows of an edge, in both directions, are dropped together; nodes stay.
	DropEdges float64
	// BlankFeatures is the share of nodes whose features become zeros. Training nodes with a label are exempt.
	BlankFeatures float64
	// Seed decides what is drawn, and which edges and features are dropped.
	Seed uint64
}

// Validate reports the first invalid option.
func (o Options) Validate() error {
	switch {
	case o.Budget == nil:
		return errors.New("partition without a memory budget")
	case o.Scratch == "":
		return errors.New("partition without a scratch folder")
	case o.Threads < 0:
		return fmt.Errorf("partition with %d threads", o.Threads)
	case o.IntervalBlocks < 0:
		return fmt.Errorf("partition into intervals of %d blocks", o.IntervalBlocks)
	case !slices.Contains([]string{"", NormalizeAuto, NormalizeL1, NormalizeNone}, o.Normalize):
		return fmt.Errorf("unknown normalisation %q: choose %s, %s or %s", o.Normalize, NormalizeAuto, NormalizeL1, NormalizeNone)
	case !slices.Contains([]string{"", OnlyTrain, OnlyTrainValid}, o.Only):
		return fmt.Errorf("unknown part %q of a graph: choose %s or %s", o.Only, OnlyTrain, OnlyTrainValid)
	case !(o.DropEdges >= 0 && o.DropEdges < 1):
		return fmt.Errorf("the share of dropped edges is %v; it must be at least 0 and below 1", o.DropEdges)
	case !(o.BlankFeatures >= 0 && o.BlankFeatures <= 1):
		return fmt.Errorf("the share of nodes with blanked features is %v; it must be from 0 to 1", o.BlankFeatures)
	}
	if o.Splits < 0 || o.LabelsPerClass < 0 || o.LabelsPerClass > 0 && o.Split != "" {
		return fmt.Errorf("partition with %d splits, split %q and %d labels of each class", o.Splits, o.Split, o.LabelsPerClass)
	}
	_, err := parseSplit(o.Split)
	return err
}

// Run executes all remaining steps of a partition of the graph of ds, and returns the summary. It commits to cat the node table, the edge
// shards, unless Options.NoShards, the hop streams of all intervals, the feature tiles, if requested, and last the summary. It does not
// make again what is committed.
//
// Sorted keys stay in memory and in the scratch folder, unless the catalogue holds those of several workers: then Run continues with them.
//
// Run refuses input that is not a graph with at most one label, split and feature row per node with a [dataset.ErrData], whose text names
// the row or the node. Other errors wrap [mem.ErrBudget], [storage.ErrDisk] and what ds and cat return.
func Run(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (_ shards.Summary, err error) {
	if err := o.Validate(); err != nil {
		return shards.Summary{}, err
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return shards.Summary{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.numbering().number(ctx); err != nil {
		return shards.Summary{}, err
	}
	if err := j.findMembers(ctx); err != nil {
		return shards.Summary{}, err
	}
	return j.run(ctx)
}

// run executes one step after the other.
func (j *job) run(ctx context.Context) (shards.Summary, error) {
	left, err := next(ctx, j.cat, inCatalog(j.cat))
	if err != nil {
		return shards.Summary{}, err
	}
	if left.Shared {
		j.useCatalog()
	} else {
		j.useScratch(false)
	}
	for before := (steps.Left{}); ; before = left.Left {
		if left, err = next(ctx, j.cat, j.edges.have); err == nil {
			err = j.cat.Remove(ctx, left.Superseded)
		}
		if err != nil {
			return shards.Summary{}, err
		}
		if left.Repeats(before) {
			return shards.Summary{}, fmt.Errorf("step %s of the partition ended without leaving its files", left.Step)
		}
		if left.Done() {
			return shards.ReadSummary(ctx, j.cat)
		}
		for _, p := range left.Cut(1) {
			if err := j.do(ctx, left.ordered, table[place(left.Step)], p); err != nil {
				return shards.Summary{}, err
			}
		}
	}
}

// job holds the work of a worker on a partition: all steps, or a piece of one.
type job struct {
	ds      dataset.Dataset // nil in steps that do not read it
	info    dataset.Info
	cat     *catalog.Catalog
	o       Options
	split   drawnSplit // nil for the published split
	members *members   // nil for all nodes
	stated  int64      // nodes that the dataset states if the members are fewer, else -1
	scratch *extsort.Scratch
	edges   edgeSteps
	alone   bool        // the job does all steps
	ordered ordered     // zero before the step Order
	part    steps.Piece // of the edge list that is read
	heap    int64       // bytes of the budget reserved for threads

	rows, loops atomic.Int64        // edge rows and self-loops read
	outside     atomic.Int64        // edge rows of nodes that are not members
	dropped     atomic.Int64        // edges dropped by Options.DropEdges
	blank       *mem.Array[uint64]  // a bit for each node with blanked features; nil if there are none
	ids         *idSet              // input ids of all nodes
	nodeOf      *mem.Array[uint32]  // node id by rank of the input id
	outDegree   *mem.Array[uint32]  // by rank, while the nodes of a graph with directions are ordered
	strength    *mem.Array[float64] // by rank, while the nodes of a graph with weights are ordered

	// named describes the ids of a keyed dataset, unless they are their own numbers; table finds their numbers while the dataset is read.
	named shards.IDs
	table *inputid.Table
	// doubts names ids that may stand for something else.
	doubts []string
	held   int64 // bytes of the budget for reading tables
}

func newJob(ds dataset.Dataset, cat *catalog.Catalog, o Options) (*job, error) {
	j := &job{ds: ds, info: dataset.Info{NumNodes: -1}, stated: -1, cat: cat, o: o, part: allSlices}
	j.o.Threads = max(o.Threads, 1)
	if o.IntervalBlocks == 0 {
		j.o.IntervalBlocks = DefaultIntervalBlocks
	}
	if ds != nil {
		j.info = ds.Info()
		if err := j.checkInfo(); err != nil {
			return nil, err
		}
	}
	var err error
	if j.scratch, err = extsort.NewScratch(o.Scratch); err != nil {
		return nil, err
	}
	j.heap = threadsBytes(j.o.Threads, o.Budget.Free())
	return j, o.Budget.Reserve(j.heap, "threads")
}

// checkInfo refuses a graph that cannot be partitioned, before it is read.
func (j *job) checkInfo() (err error) {
	switch i := j.info; {
	case i.NumNodes > dataset.MaxID+1:
		return badData("%s has %d nodes, more than node ids of 32 bits can name", i.Name, i.NumNodes)
	case i.NumNodes == 0:
		return j.noNodes()
	}
	if err := j.checkDirected(j.info.NumNodes); err != nil {
		return err
	}
	if j.split, err = parseSplit(j.o.Split); err != nil {
		return err
	}
	switch {
	case j.split != nil && !j.info.HasLabels:
		return badData("--split %s draws labelled nodes, and %s has no labels: give it labels, or leave --split out", j.o.Split, j.info.Name)
	case j.o.LabelsPerClass > 0 && !(j.info.HasLabels && j.info.HasSplits):
		return badData("--labels-per-class %d retains the published validation and test nodes, and %s has no published split, or no labels: draw all with --split random:%d,30", j.o.LabelsPerClass, j.info.Name, j.o.LabelsPerClass)
	case j.split == nil && j.o.LabelsPerClass == 0 && j.o.Splits > 1 && !j.info.HasSplits:
		return badData("--splits %d, and %s has no published split: draw splits with --split random:20,30 or share:0.6,0.2", j.o.Splits, j.info.Name)
	}
	return nil
}

// Each of these types has the methods of one idea, and embeds the job.

func (j *job) numbering() numbering { return numbering{j} }
func (j *job) counting() counting   { return counting{j} }
func (j *job) ordering() ordering   { return ordering{j} }
func (j *job) nodeTable() nodeTable { return nodeTable{j} }
func (j *job) tiling() tiling       { return tiling{j} }

func (j *job) close() error {
	if j.edges != nil {
		j.edges.close()
	}
	if j.ids != nil {
		j.ids.free()
	}
	j.members.free()
	j.nodeOf.Free()
	j.strength.Free()
	j.outDegree.Free()
	j.numbering().free()
	j.o.Budget.Release(j.heap)
	return j.scratch.Remove()
}

const (
	// edgeBatch is the number of edges that each thread reads at a time.
	edgeBatch = 1 << 13
	// partsPerThread is the number of parts into which a thread's share of the input is cut: faster threads, or threads with less to read,
	// take more parts.
	partsPerThread = 8
)

// inputReaders is a number of threads that read the input, with their reserved memory.
type inputReaders struct {
	n      int
	budget *mem.Budget
	bytes  int64
}

// takeReaders reserves memory for as many threads as the budget allows. Each holds so many bytes beside its buffers.
func (j *job) takeReaders(held int64) (inputReaders, error) {
	free := j.o.Budget.Free()
	r := inputReaders{readers(j.o.Threads, free, held), j.o.Budget, readersBytes(j.o.Threads, free, held)}
	return r, j.o.Budget.Reserve(r.bytes, "reading the input")
}

func (r inputReaders) release() { r.budget.Release(r.bytes) }

// inParts divides a piece into parts and runs threads. Each thread calls worker once, then the returned function for one part after the
// other.
func inParts(ctx context.Context, threads int, p steps.Piece, worker func(context.Context) func(steps.Piece) error) error {
	parts := []steps.Piece{p}
	if threads > 1 {
		parts = p.Split(threads * partsPerThread)
	}
	var next atomic.Int64
	workers, ctx := errgroup.WithContext(ctx)
	for range threads {
		workers.Go(func() error {
			do := worker(ctx)
			for i := next.Add(1) - 1; i < int64(len(parts)); i = next.Add(1) - 1 {
				if err := do(parts[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return workers.Wait()
}

// visitEdges visits edges of the list, with their weights if edges have weights.
type visitEdges func(batch []dataset.Edge, weights []float32) error

// eachEdges visits j.part of the edge list in batches on threads; each thread calls visitor once. One thread visits the edges in the order
// of the list.
func (j *job) eachEdges(ctx context.Context, threads int, visitor func() visitEdges) error {
	meter := progress.Start(ctx, "reading edges", j.info.EdgeHint, "edges")
	defer meter.Done()
	return inParts(ctx, threads, j.part, func(ctx context.Context) func(steps.Piece) error {
		visit, batch := visitor(), make([]dataset.Edge, edgeBatch)
		var weights []float32
		if j.info.Weighted {
			weights = make([]float32, edgeBatch)
		}
		return func(p steps.Piece) error { return j.eachEdgeOf(ctx, p, batch, weights, meter, visit) }
	})
}

// eachEdgeOf visits the edges of a part of the list.
func (j *job) eachEdgeOf(ctx context.Context, p steps.Piece, batch []dataset.Edge, weights []float32, meter *progress.Meter,
	visit visitEdges,
) error {
	return dataset.ReadEdges(ctx, j.ds, dataset.Share{First: p.First, Last: p.Last, Of: Slices}, batch, weights,
		func(edges []dataset.Edge, weights []float32) error {
			if err := visit(edges, weights); err != nil {
				return err
			}
			meter.Add(int64(len(edges)))
			return nil
		})
}

// intervalRows returns the number of rows of every interval but the last.
func (j *job) intervalRows() int64 { return int64(j.o.IntervalBlocks) * BlockRows }

// intervalsOf returns the number of intervals of this number of nodes.
func (j *job) intervalsOf(nodes int64) int {
	return int((nodes + j.intervalRows() - 1) / j.intervalRows())
}

// node returns the node id of an input id; what and row are for the error.
func (j *job) node(id uint32, what string, row int64) (uint32, error) {
	rank, ok := j.ids.rank(id)
	if !ok {
		return 0, j.noNode(id, what, row, j.ids.n)
	}
	return j.nodeOf.S[rank], nil
}

// noNode returns the error for a row whose id is not a node.
func (j *job) noNode(id uint32, what string, row, nodes int64) error {
	return badData("%s: %s row %d names node %d, and node ids end at %d: correct the row or the number of nodes",
		j.info.Name, what, row, id, nodes-1)
}

func (j *job) wantFeatures() bool { return j.o.Features && j.info.NumFeatures > 0 }

// normalize reports whether rows are divided by the sum of their absolute values, as the step Order decided.
func (j *job) normalize() bool { return j.ordered.L1 }
