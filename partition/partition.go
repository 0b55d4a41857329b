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
)

const (
	// BlockRows is the number of destination rows of a block.
	BlockRows = packed.BlockRows
	// DefaultIntervalBlocks is the number of blocks of an interval: at 16
	// columns of float32 its rows take 1 GiB.
	DefaultIntervalBlocks = 16
)

// Values of Options.Normalize.
const (
	NormalizeAuto = "auto" // "l1" for rows that are bags of a few words whose lengths neighbours do not share, else "none"
	NormalizeL1   = "l1"   // divide every row by the sum of its absolute values
	NormalizeNone = "none"
)

// Options says how to cut a graph. Budget and Scratch are required, the zero
// value of every other field is a default.
type Options struct {
	// Budget pays for every array that grows with the input.
	Budget *mem.Budget
	// Threads that compute at a time, 0 for one.
	Threads int
	// Scratch is a local folder for temporary files. They are removed before
	// Run returns.
	Scratch string
	// IntervalBlocks is the number of blocks of an interval, 0 for
	// DefaultIntervalBlocks.
	IntervalBlocks int
	// NoShards leaves the edge shards out: hop streams alone are written.
	NoShards bool
	// Features asks for feature tiles, if the dataset has features.
	Features bool
	// Normalize is one of the Normalize constants, "" for NormalizeAuto.
	Normalize string
	// Split is "" for the published split, if there is one, or "random:T,V": of each class T
	// nodes train, V validate and the rest tests; or "share:T,V": of all labelled nodes these
	// shares do.
	Split string
	// Splits is the number of splits, 0 for one. Split i is the published one with number i,
	// or drawn with Seed+i. The node table has the first one, files of a byte a node
	// ([SplitPath]) have the others.
	Splits int
	// LabelsPerClass, unless 0, replaces the training nodes of the published split: so many of
	// each class are drawn among the labelled nodes that neither validate nor test.
	LabelsPerClass int
	// Only is "" for the whole graph, OnlyTrain or OnlyTrainValid for the graph of the nodes of
	// these splits and the edges between them.
	Only string
	// DropEdges is the share of edges to drop. The rows of an edge, in either direction, are
	// dropped together; nodes stay.
	DropEdges float64
	// BlankFeatures is the share of nodes whose features become zeros, of all nodes but the
	// training nodes that have a label.
	BlankFeatures float64
	// Seed decides what is drawn, and which edges and features are left out.
	Seed uint64
}

// Validate reports the first option that makes no sense.
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
		return fmt.Errorf("there is no part %q of a graph: choose %s or %s", o.Only, OnlyTrain, OnlyTrainValid)
	case !(o.DropEdges >= 0 && o.DropEdges < 1):
		return fmt.Errorf("partition without a share of %v of the edges: the share is from 0 to below 1", o.DropEdges)
	case !(o.BlankFeatures >= 0 && o.BlankFeatures <= 1):
		return fmt.Errorf("partition without the features of a share of %v of the nodes: the share is from 0 to 1", o.BlankFeatures)
	}
	if o.Splits < 0 || o.LabelsPerClass < 0 || o.LabelsPerClass > 0 && o.Split != "" {
		return fmt.Errorf("partition with %d splits, split %q and %d labels of each class", o.Splits, o.Split, o.LabelsPerClass)
	}
	_, err := parseSplit(o.Split)
	return err
}

// Run does all that is left of a partition of the graph of ds, and returns the summary.
// It commits to cat the node table, the edge shards, unless Options.NoShards, and hop streams of
// all intervals, the feature tiles if asked for, and at last the summary. What is committed already is
// not made again.
//
// Sorted keys stay in memory and in the scratch folder, unless the catalogue holds those
// of several workers: then Run goes on with theirs.
//
// Input that is no graph with one label, split and feature row for a
// node is refused with a [dataset.ErrData], whose text names the row or the node. Other
// errors wrap [mem.ErrBudget], [storage.ErrDisk] and what ds and cat return.
func Run(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (_ shards.Summary, err error) {
	if err := o.Validate(); err != nil {
		return shards.Summary{}, err
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return shards.Summary{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.number(ctx); err != nil {
		return shards.Summary{}, err
	}
	if err := j.findMembers(ctx); err != nil {
		return shards.Summary{}, err
	}
	return j.run(ctx)
}

// run does one step after the other.
func (j *job) run(ctx context.Context) (shards.Summary, error) {
	left, err := Next(ctx, j.cat)
	if err != nil {
		return shards.Summary{}, err
	}
	if left.Shared {
		j.useCatalog()
	} else {
		j.useScratch(false)
	}
	for before := (Left{}); ; before = left {
		if left, err = next(ctx, j.cat, j.edges.have); err == nil {
			err = j.cat.Remove(ctx, left.Superseded)
		}
		if err != nil {
			return shards.Summary{}, err
		}
		if left.Step != "" && left.Step == before.Step && slices.Equal(left.Pieces, before.Pieces) {
			return shards.Summary{}, fmt.Errorf("the step %s of the partition was done and left no files", left.Step)
		}
		if left.Step == "" {
			return shards.ReadSummary(ctx, j.cat)
		}
		for _, p := range left.Cut(1) {
			if err := j.do(ctx, left.ordered, left.Step, p); err != nil {
				return shards.Summary{}, err
			}
		}
	}
}

// job is the work of a worker on a partition: all steps, or a piece of one.
type job struct {
	ds      dataset.Dataset // nil in steps that do not read it
	info    dataset.Info
	cat     *catalog.Catalog
	o       Options
	split   drawnSplit // nil for the published split
	members *members   // nil for all nodes
	stated  int64      // how many nodes the dataset states where the members are fewer, else -1
	scratch *extsort.Scratch
	edges   edgeSteps
	alone   bool    // the job does all steps
	ordered ordered // zero before the step Order
	part    Piece   // of the edge list that is read
	heap    int64   // bytes of the budget that are set aside for threads

	rows, loops atomic.Int64        // edge rows and self-loops read
	outside     atomic.Int64        // edge rows of nodes that are no members
	dropped     atomic.Int64        // edges that Options.DropEdges has left out
	blank       *mem.Array[uint64]  // a bit for each node whose features are blanked; nil where there are none
	ids         *idSet              // input ids of all nodes
	nodeOf      *mem.Array[uint32]  // node id by rank of the input id
	outDegree   *mem.Array[uint32]  // by rank, while the nodes of a graph with directions are ordered
	strength    *mem.Array[float64] // by rank, while the nodes of a graph with weights are ordered

	// named describes the ids of a keyed dataset, unless they are their own numbers; table
	// finds their numbers while the dataset is read.
	named shards.IDs
	table *inputid.Table
	// doubts says which ids may stand for something else.
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

// checkInfo refuses a graph that cannot be partitioned, before any of it is read.
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
	j.freeNumbers()
	j.o.Budget.Release(j.heap)
	return j.scratch.Remove()
}

const (
	// edgeBatch is how many edges each thread reads at a time.
	edgeBatch = 1 << 13
	// partsPerThread is into how many parts a thread's share of the input is cut:
	// threads that are faster, or have less to read, take more of them.
	partsPerThread = 8
)

// inputReaders are threads that read the input, with what they take of the budget.
type inputReaders struct {
	n      int
	budget *mem.Budget
	bytes  int64
}

// takeReaders takes as many threads as the budget has memory for.
func (j *job) takeReaders() (inputReaders, error) {
	free := j.o.Budget.Free()
	r := inputReaders{readers(j.o.Threads, free), j.o.Budget, readersBytes(j.o.Threads, free)}
	return r, j.o.Budget.Reserve(r.bytes, "reading the input")
}

func (r inputReaders) release() { r.budget.Release(r.bytes) }

// inParts calls the function that worker gives for parts of a piece: each of so many threads
// calls worker once, and what it gives for one part after the other.
func inParts(ctx context.Context, threads int, p Piece, worker func(context.Context) func(Piece) error) error {
	parts := []Piece{p}
	if threads > 1 {
		parts = p.cut(threads * partsPerThread)
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

// visitEdges is called for edges of the list, with their weights where edges have weights.
type visitEdges func(batch []dataset.Edge, weights []float32) error

// eachEdges visits the part of the edge list that is wanted in batches, on so many threads
// at a time: each calls visitor once. One thread visits them in the order of the list.
func (j *job) eachEdges(ctx context.Context, threads int, visitor func() visitEdges) error {
	meter := progress.Start(ctx, "reading edges", j.info.EdgeHint, "edges")
	defer meter.Done()
	return inParts(ctx, threads, j.part, func(ctx context.Context) func(Piece) error {
		visit, batch := visitor(), make([]dataset.Edge, edgeBatch)
		var weights []float32
		if j.info.Weighted {
			weights = make([]float32, edgeBatch)
		}
		return func(p Piece) error { return j.eachEdgeOf(ctx, p, batch, weights, meter, visit) }
	})
}

// eachEdgeOf visits the edges of a part of the list.
func (j *job) eachEdgeOf(ctx context.Context, p Piece, batch []dataset.Edge, weights []float32, meter *progress.Meter, visit visitEdges) error {
	return dataset.ReadEdges(ctx, j.ds, dataset.Share{First: p.First, Last: p.Last, Of: Slices}, batch, weights, func(edges []dataset.Edge, weights []float32) error {
		if err := visit(edges, weights); err != nil {
			return err
		}
		meter.Add(int64(len(edges)))
		return nil
	})
}

// intervalRows is the number of rows of every interval but the last.
func (j *job) intervalRows() int64 { return int64(j.o.IntervalBlocks) * BlockRows }

// intervalsOf is the number of intervals of so many nodes.
func (j *job) intervalsOf(nodes int64) int {
	return int((nodes + j.intervalRows() - 1) / j.intervalRows())
}

// node is the node id of an input id; what and row are for the error.
func (j *job) node(id uint32, what string, row int64) (uint32, error) {
	rank, ok := j.ids.rank(id)
	if !ok {
		return 0, j.noNode(id, what, row, j.ids.n)
	}
	return j.nodeOf.S[rank], nil
}

// noNode is the error for a row of an id that is none of the nodes.
func (j *job) noNode(id uint32, what string, row, nodes int64) error {
	return badData("%s: %s row %d is of node %d, and there are the nodes 0 to %d: correct the row or the number of nodes",
		j.info.Name, what, row, id, nodes-1)
}

func (j *job) wantFeatures() bool { return j.o.Features && j.info.NumFeatures > 0 }

// normalize says whether rows are divided by the sum of their absolute values, which the step
// Order has decided.
func (j *job) normalize() bool { return j.ordered.L1 }
