package partition

import (
	"context"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/dataset/prepare"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/steps"
)

// job holds the work of a worker on a partition: all steps, or a piece of one. numbering, counting, ordering, nodeTable,
// tiling and surveying embed it, each with the methods of one idea.
type job struct {
	ds      dataset.Dataset // nil in steps that do not read it
	info    dataset.Info
	cat     *catalog.Catalog
	o       Options
	split   drawnSplit // nil for the published split
	members *members   // nil for all nodes
	stated  int64      // nodes that the dataset states if the members are fewer, else -1
	scratch *extsort.Scratch
	alone   bool             // the job does all steps
	ordered ordered          // zero before the step Order
	columns *prepare.Columns // nil if rows are features as they are
	part    steps.Piece      // of the edge list that is read
	heap    int64            // bytes of the budget reserved for threads

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

// checkDirected refuses a graph with directions that has too many nodes, or weights.
func (j *job) checkDirected(nodes int64) error {
	switch {
	case !j.info.Directed:
	case j.info.Weighted:
		return badData("%s: its edges have directions and weights, and no rule takes both: leave out directed=true or the weight", j.info.Name)
	case nodes > maxDirected:
		return badData("%s has %d nodes, and a graph with directions can have at most %d: leave out directed=true", j.info.Name, nodes, int64(maxDirected))
	}
	return nil
}

// maxDirected is the largest number of nodes of a graph with directions, because the key of an edge has one bit for its direction.
const maxDirected = 1 << 31

func (j *job) noNodes() error {
	return badData("%s has no nodes: give it an edge list that is not empty", j.info.Name)
}

// noteIDs sets j.ids to the stated ids, or to an empty set.
func (j *job) noteIDs() (err error) {
	if j.info.NumNodes >= 0 {
		j.ids = allIDs(j.info.NumNodes)
		return nil
	}
	j.ids, err = newIDSet(j.o.Budget)
	return err
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

func (j *job) close() error {
	if j.ids != nil {
		j.ids.free()
	}
	j.members.free()
	j.nodeOf.Free()
	j.strength.Free()
	j.outDegree.Free()
	j.table.Free()
	j.o.Budget.Release(j.heap + j.held)
	return j.scratch.Remove()
}

// addOrdered adds the file that later steps read to files that are committed together.
func (j *job) addOrdered(ctx context.Context, files *catalog.Batch) error {
	return files.Write(ctx, keysOf(Order, orderPath).Counting(1), writeJSON(j.ordered))
}
