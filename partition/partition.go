package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	NormalizeAuto = "auto" // "l1" for sparse features, else "none"
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
	// Features asks for feature tiles, if the dataset has features.
	Features bool
	// Normalize is one of the Normalize constants, "" for NormalizeAuto.
	Normalize string
	// Split is "" for the published split, if there is one, or
	// "random:T,V": of each class T nodes train, V validate and the rest
	// tests.
	Split string
	// Seed decides a random split.
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
	}
	_, err := parseSplit(o.Split)
	return err
}

// Run does all that is left of a partition of the graph of ds, and returns the summary.
// It commits to cat the node table, the edge shards and hop streams of all intervals,
// the feature tiles if asked for, and at last the summary. What is committed already is
// not made again.
//
// Sorted keys stay in memory and in the scratch folder, unless the catalogue holds those
// of several workers: then Run goes on with theirs.
//
// Input that is no undirected graph with one label, split and feature row for a
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
	return j.run(ctx)
}

// run does one step after the other.
func (j *job) run(ctx context.Context) (shards.Summary, error) {
	left, err := Next(ctx, j.cat)
	if err != nil {
		return shards.Summary{}, err
	}
	if left.Shared {
		j.keys = catalogKeys{j}
	} else {
		j.alone, j.keys = true, &localKeys{scratch: j.scratch}
	}
	for before := (Left{}); ; before = left {
		if left, err = next(ctx, j.cat, j.keys.have); err == nil {
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
	split   *randomSplit // nil for the published split
	scratch *extsort.Scratch
	keys    keyStore
	alone   bool    // the job does all steps
	ordered ordered // zero before the step Order
	part    Piece   // of the edge list that is read
	heap    int64   // bytes of the budget that are set aside for threads

	rows, loops atomic.Int64       // edge rows and self-loops read
	ids         *idSet             // input ids of all nodes
	nodeOf      *mem.Array[uint32] // node id by rank of the input id

	// named describes the ids of a keyed dataset, unless they are their own numbers; table
	// finds their numbers while the dataset is read.
	named shards.IDs
	table *inputid.Table
	held  int64 // bytes of the budget for reading tables
}

func newJob(ds dataset.Dataset, cat *catalog.Catalog, o Options) (*job, error) {
	j := &job{ds: ds, info: dataset.Info{NumNodes: -1}, cat: cat, o: o, part: allSlices}
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
	case i.Directed:
		return badData("%s is declared directed: LSI is defined for undirected graphs only; remove ?directed to use every edge in both directions", i.Name)
	case i.NumNodes > dataset.MaxID+1:
		return badData("%s has %d nodes, more than node ids of 32 bits can name", i.Name, i.NumNodes)
	case i.NumNodes == 0:
		return badData("%s has no nodes: give it an edge list that is not empty", i.Name)
	}
	if j.split, err = parseSplit(j.o.Split); err == nil && j.split != nil && !j.info.HasLabels {
		err = badData("--split %s draws from classes, and %s has no labels: give it labels, or leave --split out", j.o.Split, j.info.Name)
	}
	return err
}

func (j *job) close() error {
	if j.keys != nil {
		j.keys.close()
	}
	if j.ids != nil {
		j.ids.free()
	}
	j.nodeOf.Free()
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

// eachEdges visits the part of the edge list that is wanted in batches, on so many threads
// at a time: each calls visitor once. One thread visits them in the order of the list.
func (j *job) eachEdges(ctx context.Context, threads int, visitor func() func([]dataset.Edge) error) error {
	meter := progress.Start(ctx, "reading edges", j.info.EdgeHint, "edges")
	defer meter.Done()
	return inParts(ctx, threads, j.part, func(ctx context.Context) func(Piece) error {
		visit, batch := visitor(), make([]dataset.Edge, edgeBatch)
		return func(p Piece) error { return j.eachEdgeOf(ctx, p, batch, meter, visit) }
	})
}

// eachEdgeOf visits the edges of a part of the list.
func (j *job) eachEdgeOf(ctx context.Context, p Piece, batch []dataset.Edge, meter *progress.Meter, visit func([]dataset.Edge) error) (err error) {
	r, err := dataset.EdgeRange(ctx, j.ds, p.First, p.Last, Slices)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		n, err := r.Read(batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(batch[:n])
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		meter.Add(int64(n))
	}
}

// intervalRows is the number of rows of every interval but the last.
func (j *job) intervalRows() int64 { return int64(j.o.IntervalBlocks) * BlockRows }

// intervalsOf is the number of intervals of so many nodes.
func (j *job) intervalsOf(nodes int64) int {
	return int((nodes + j.intervalRows() - 1) / j.intervalRows())
}

// interval is the range of rows of interval i.
func (j *job) interval(i int) (lo, hi int64) {
	lo = int64(i) * j.intervalRows()
	return lo, min(lo+j.intervalRows(), j.ordered.Nodes)
}

// node is the node id of an input id; what and row are for the error.
func (j *job) node(id uint32, what string, row int64) (uint32, error) {
	rank, ok := j.ids.rank(id)
	if !ok {
		return 0, badData("%s: %s row %d is of node %d, and there are the nodes 0 to %d: correct the row or the number of nodes",
			j.info.Name, what, row, id, j.ids.n-1)
	}
	return j.nodeOf.S[rank], nil
}

func (j *job) wantFeatures() bool { return j.o.Features && j.info.NumFeatures > 0 }

// normalize says whether rows are divided by the sum of their absolute values.
func (j *job) normalize() bool { return Normalizes(j.o.Normalize, j.info) }
