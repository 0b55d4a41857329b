package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
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
	// Threads that compute at a time, 0 for one. More than two bring nothing.
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
		return errors.New("partition: no memory budget")
	case o.Scratch == "":
		return errors.New("partition: no scratch folder")
	case o.Threads < 0:
		return fmt.Errorf("partition: %d threads", o.Threads)
	case o.IntervalBlocks < 0:
		return fmt.Errorf("partition: intervals of %d blocks", o.IntervalBlocks)
	case !slices.Contains([]string{"", NormalizeAuto, NormalizeL1, NormalizeNone}, o.Normalize):
		return fmt.Errorf("partition: unknown normalisation %q: choose %s, %s or %s", o.Normalize, NormalizeAuto, NormalizeL1, NormalizeNone)
	}
	_, err := parseSplit(o.Split)
	return err
}

// Run cuts the graph of ds into intervals and commits to cat their edge shards
// and hop streams, the node table, the feature tiles if asked for, and at last
// the summary, which it returns. A catalogue that holds a summary is left as it
// is; one that holds a node table gets what is missing; any other is started
// again.
//
// Input that is no undirected graph with one label, split and feature row for a
// node is refused, with an error that names the row or the node. Errors wrap
// [mem.ErrBudget], [storage.ErrDisk] and what ds and cat return.
func Run(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (_ shards.Summary, err error) {
	if err := o.Validate(); err != nil {
		return shards.Summary{}, err
	}
	if len(cat.Entries(catalog.KindSummary)) > 0 {
		return shards.ReadSummary(ctx, cat)
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return shards.Summary{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	return j.run(ctx)
}

// job is one Run.
type job struct {
	ds      dataset.Dataset
	info    dataset.Info
	cat     *catalog.Catalog
	o       Options
	split   *randomSplit // nil for the published split
	scratch *scratch
	part    Piece // of the edge list, if only a part of it is read

	rows, loops int64              // edge rows and self-loops read
	ids         *idSet             // input ids of all nodes
	nodeOf      *mem.Array[uint32] // node id by rank of the input id
}

func newJob(ds dataset.Dataset, cat *catalog.Catalog, o Options) (*job, error) {
	j := &job{ds: ds, info: ds.Info(), cat: cat, o: o}
	j.o.Threads = max(o.Threads, 1)
	if o.IntervalBlocks == 0 {
		j.o.IntervalBlocks = DefaultIntervalBlocks
	}
	if j.info.Directed {
		return nil, fmt.Errorf("partition: %s is declared directed: LSI is defined for undirected graphs only; remove ?directed to use every edge in both directions", j.info.Name)
	}
	if j.info.NumNodes > dataset.MaxID+1 {
		return nil, fmt.Errorf("partition: %s has %d nodes, more than node ids of 32 bits can name", j.info.Name, j.info.NumNodes)
	}
	var err error
	if j.split, err = parseSplit(o.Split); err != nil {
		return nil, err
	}
	if j.split != nil && !j.info.HasLabels {
		return nil, fmt.Errorf("partition: split %q draws from classes, and %s has no labels", o.Split, j.info.Name)
	}
	j.scratch, err = newScratch(o.Scratch)
	return j, err
}

func (j *job) close() error {
	if j.ids != nil {
		j.ids.free()
	}
	j.nodeOf.Free()
	return j.scratch.remove()
}

func (j *job) run(ctx context.Context) (shards.Summary, error) {
	var err error
	if j.hasGraph() {
		err = j.resume(ctx)
	} else {
		err = j.buildGraph(ctx)
	}
	if err == nil && j.wantFeatures() {
		err = j.writeTiles(ctx, Piece{0, granulesOf(j.info.NumFeatures)})
	}
	if err != nil {
		return shards.Summary{}, err
	}
	s, err := j.summarise(ctx)
	if err != nil {
		return shards.Summary{}, err
	}
	return s, shards.WriteSummary(ctx, j.cat, s)
}

// hasGraph says whether node table and shards are committed.
func (j *job) hasGraph() bool {
	e, ok := j.cat.Lookup(NodesPath)
	for i := int64(0); ok && i*j.intervalRows() < e.Rows; i++ {
		_, ok = j.cat.Lookup(EdgesPath(int(i)))
	}
	return ok
}

// buildGraph commits everything but tiles and summary. The node table comes
// last: where it is, the shards and hop streams are.
func (j *job) buildGraph(ctx context.Context) error {
	stale := []string{catalog.KindEdges, catalog.KindHops, catalog.KindFeatures, catalog.KindNodes, catalog.KindRun}
	if err := j.cat.Remove(ctx, func(e catalog.Entry) bool { return slices.Contains(stale, e.Kind) }); err != nil {
		return err
	}
	edges, degrees, err := j.readGraph(ctx)
	if err != nil {
		return err
	}
	defer edges.close()
	ends, err := j.relabel(degrees)
	degrees.Free()
	if err != nil {
		return err
	}
	defer ends.Free()
	component, err := j.writeShards(ctx, edges)
	if err != nil {
		return err
	}
	defer component.Free()
	return j.writeNodes(ctx, ends.S, component.S)
}

// resume takes the relabelling from the committed node table.
func (j *job) resume(ctx context.Context) error {
	if err := j.countRows(ctx); err != nil {
		return err
	}
	for _, e := range j.cat.Entries(catalog.KindEdges) {
		if _, ok := j.cat.Lookup(HopPath(e)); !ok {
			if err := BuildHops(ctx, j.cat, e); err != nil {
				return err
			}
		}
	}
	return j.readRelabelling(ctx)
}

// countRows counts edge rows and self-loops, unless that was noted.
func (j *job) countRows(ctx context.Context) error {
	o, noted, err := readOrdered(ctx, j.cat)
	if noted || err != nil {
		j.rows, j.loops = o.Rows, o.Loops
		return err
	}
	return j.eachEdges(ctx, "counting edges", func(batch []dataset.Edge) error {
		j.rows += int64(len(batch))
		for _, e := range batch {
			if e.U == e.V {
				j.loops++
			}
		}
		return nil
	})
}

// edges opens the edge list, or the part of it that is wanted.
func (j *job) edges(ctx context.Context) (dataset.EdgeReader, error) {
	if j.part == (Piece{}) {
		return j.ds.Edges(ctx)
	}
	return dataset.EdgeRange(ctx, j.ds, j.part.First, j.part.Last, Slices)
}

// eachEdges visits the edge list in batches.
func (j *job) eachEdges(ctx context.Context, what string, visit func([]dataset.Edge) error) (err error) {
	r, err := j.edges(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	meter := progress.Start(ctx, what, j.info.EdgeHint, "edges")
	defer meter.Done()
	batches := make([][]dataset.Edge, 3)
	for i := range batches {
		batches[i] = make([]dataset.Edge, 0, batchKeys)
	}
	source := newAhead(j.o.Threads, batches, func(b *[]dataset.Edge) error {
		n, err := r.Read((*b)[:batchKeys])
		*b = (*b)[:n]
		return err
	})
	defer source.close()
	for {
		batch, err := source.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(*batch)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		meter.Add(int64(len(*batch)))
	}
}

// intervalRows is the number of rows of every interval but the last.
func (j *job) intervalRows() int64 { return int64(j.o.IntervalBlocks) * BlockRows }

// intervals is the number of intervals.
func (j *job) intervals() int { return int((j.ids.n + j.intervalRows() - 1) / j.intervalRows()) }

// interval is the range of rows of interval i.
func (j *job) interval(i int) (lo, hi int64) {
	lo = int64(i) * j.intervalRows()
	return lo, min(lo+j.intervalRows(), j.ids.n)
}

// node is the node id of an input id; what and row are for the error.
func (j *job) node(id uint32, what string, row int64) (uint32, error) {
	rank, ok := j.ids.rank(id)
	if !ok {
		return 0, fmt.Errorf("partition: %s: %s row %d is of node %d, and there are the nodes 0 to %d: correct the row or the number of nodes",
			j.info.Name, what, row, id, j.ids.n-1)
	}
	return j.nodeOf.S[rank], nil
}

func (j *job) wantFeatures() bool { return j.o.Features && j.info.NumFeatures > 0 }

// normalize says whether rows are divided by the sum of their absolute values.
func (j *job) normalize() bool {
	return j.o.Normalize == NormalizeL1 || j.o.Normalize != NormalizeNone && j.info.SparseFeatures
}
