package partition

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/shards"
	"ndls/steps"
)

// Run executes all remaining steps of a partition of the graph of ds, and returns the summary. It commits to cat the node table, the edge
// shards, unless Options.NoShards, the hop streams of all intervals, the feature tiles, if requested, and last the summary. It does not
// make again what is committed.
//
// Sorted keys stay in memory and in the scratch folder, unless the catalogue holds those of several workers: then Run continues with them.
//
// Run refuses input that is not a graph with at most one label, split and feature row per node with a [dataset.ErrData], whose text names
// the row or the node. Other errors wrap [mem.ErrBudget], [storage.ErrDisk] and what ds and cat return.
func Run(ctx context.Context, ds dataset.Dataset, cat *catalog.Catalog, o Options) (_ shards.Summary, err error) {
	j, err := openGraph(ctx, ds, cat, o)
	if err != nil {
		return shards.Summary{}, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.fitting().fit(ctx); err != nil {
		return shards.Summary{}, err
	}
	return j.run(ctx)
}

// run executes one step after the other.
func (j *job) run(ctx context.Context) (shards.Summary, error) {
	left, err := nextOf(ctx, j.cat, inCatalog(j.cat))
	if err != nil {
		return shards.Summary{}, err
	}
	edges := j.sharedEdges()
	if !left.Shared {
		edges = j.ownEdges(false)
	}
	defer edges.close()
	for before := (steps.Left{}); ; before = left.Left {
		if left, err = nextOf(ctx, j.cat, edges.have); err == nil {
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
		if err := j.doSteps(ctx, edges, left); err != nil {
			return shards.Summary{}, err
		}
	}
}

// doSteps executes what is left of a step. If memory allows, it makes the feature tiles while edges are sorted and written.
func (j *job) doSteps(ctx context.Context, edges edgeSteps, left remaining) error {
	if left.Step == Relabel && j.tiling().fitBeside(edges) {
		j.setOrdered(left.ordered)
		return j.tiling().writeBeside(ctx, edges)
	}
	for _, p := range left.Cut(1) {
		if err := j.doStep(ctx, edges, left.ordered, stepTable[placeOf(left.Step)], p); err != nil {
			return err
		}
	}
	return nil
}

// Execute executes a piece of a step for workers that share a partition; open opens the dataset. It does not make again what is committed.
func Execute(ctx context.Context, open func() (dataset.Dataset, error), cat *catalog.Catalog, o Options, step string,
	p steps.Piece,
) (err error) {
	left, err := nextOf(ctx, cat, inCatalog(cat))
	if err != nil {
		return err
	}
	at := placeOf(step)
	if at < 0 || p.First < 0 || p.First >= p.Last || p.Last > stepTable[at].pieces(left.ordered) {
		return fmt.Errorf("step %s has no pieces %d to %d", step, p.First, p.Last)
	}
	_, numbered := cat.Lookup(shards.IDsPath)
	if left.Done() || step == Number && numbered || at > placeOf(Fit) && placeOf(left.Step) > at {
		return nil // another attempt has done the step
	}
	reads := stepTable[at].reads
	switch {
	case reads == idsOfRows && !left.weighted:
		reads = noDataset
	case reads == firstRows && p.First == 0:
		reads = memberRows
	}
	var ds dataset.Dataset
	if reads != noDataset {
		if ds, err = open(); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, ds.Close()) }()
	}
	j, err := newJob(ds, cat, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	if err := j.numbering().number(ctx); err != nil {
		return err
	}
	switch {
	case reads == memberRows:
		if err := j.findMembers(ctx); err != nil {
			return err
		}
	case reads > idsOfRows && o.Only != "":
		j.info.NumNodes = -1 // the nodes are the ids that occur
	}
	if ds != nil && step != Fit {
		if err := j.fitting().use(ctx); err != nil {
			return err
		}
	}
	j.info.Weighted = j.info.Weighted || left.weighted
	return j.doStep(ctx, j.sharedEdges(), left.ordered, stepTable[at], p)
}

// doStep executes a piece of a step.
func (j *job) doStep(ctx context.Context, edges edgeSteps, o ordered, s stepRow, p steps.Piece) error {
	if o.Nodes > 0 {
		j.setOrdered(o)
	}
	return s.run(ctx, j, edges, p)
}

// edgeSteps are the steps that read and sort edges: records in a graph with weights, else keys.
type edgeSteps interface {
	// have lists the pieces of a step whose sorted edges exist, in order.
	have(step string) []steps.Piece
	// held returns the number of pairs by rank that are in memory.
	held() int64
	// splitEdges sorts the pairs of a part of the edge list.
	splitEdges(ctx context.Context, p steps.Piece) error
	// mergePairs writes the unique pairs of a range of keys.
	mergePairs(ctx context.Context, p steps.Piece) error
	// countPairs leaves a tally of a range of the unique pairs.
	countPairs(ctx context.Context, p steps.Piece) error
	// gatherIDs adds up all tallies of a range of input ids.
	gatherIDs(ctx context.Context, p steps.Piece) error
	// orderNodes numbers the nodes, and commits the node table and the data for later steps.
	orderNodes(ctx context.Context) error
	// relabelPairs sorts both directions of a range of the unique pairs in the order of the shards.
	relabelPairs(ctx context.Context, p steps.Piece) error
	// writeRows commits shards and their hop streams.
	writeRows(ctx context.Context, p steps.Piece) error
	close()
}

// sharedEdges keeps sorted edges in the catalogue, for all workers.
func (j *job) sharedEdges() edgeSteps {
	if j.info.Weighted {
		return catalogEdges[extsort.Record](j)
	}
	return catalogEdges[uint64](j)
}

func catalogEdges[T extsort.Item](j *job) edgeSteps {
	return &sortedEdges[T]{j, catalogKeys[T]{j}}
}

// ownEdges keeps sorted edges in memory and in scratch files, for this job alone. once says that the job does not relabel.
func (j *job) ownEdges(once bool) edgeSteps {
	j.alone = true
	if j.info.Weighted {
		return localEdges[extsort.Record](j, once)
	}
	return localEdges[uint64](j, once)
}

func localEdges[T extsort.Item](j *job, once bool) edgeSteps {
	return &sortedEdges[T]{j, &localKeys[T]{job: j, once: once}}
}

// stepTable lists the steps in order.
var stepTable = []stepRow{
	{Number, onePiece, statements, doneAtOpening},
	{Fit, onePiece, memberRows, ofRoom((*job).fitting, fitting.do)},
	{Split, allPieces, memberRows, ofEdges(edgeSteps.splitEdges)},
	{Merge, allPieces, idsOfRows, ofEdges(edgeSteps.mergePairs)},
	{Count, allPieces, firstRows, ofEdges(edgeSteps.countPairs)},
	{Gather, allPieces, statements, ofEdges(edgeSteps.gatherIDs)},
	{Order, onePiece, memberRows, func(ctx context.Context, j *job, edges edgeSteps, _ steps.Piece) error {
		if j.alone {
			return edges.orderNodes(ctx)
		}
		return j.ordering().orderRanges(ctx)
	}},
	{Rank, allPieces, noDataset, ofRoom((*job).ordering, ordering.rankNodes)},
	{Components, onePiece, noDataset, ofRoom((*job).ordering, ordering.numberComponents)},
	{Nodes, func(o ordered) int { return o.Groups }, statements, ofRoom((*job).nodeTable, nodeTable.writeParts)},
	{Relabel, allPieces, noDataset, ofEdges(edgeSteps.relabelPairs)},
	{Rows, func(o ordered) int { return o.rowPieces() + o.joins() }, noDataset, ofEdges(edgeSteps.writeRows)},
	{Deal, ordered.deals, memberRows, ofRoom((*job).tiling, tiling.dealFeatures)},
	{Tiles, ordered.tiles, memberRows, ofRoom((*job).tiling, tiling.writeDealt)},
	{Columns, func(o ordered) int { return 2 * o.Panels }, memberRows, ofRoom((*job).tiling, tiling.writeColumns)},
	{Whole, func(ordered) int { return 0 }, noDataset, ofRoom((*job).nodeTable, nodeTable.writeSummary)},
}

// doneAtOpening is the step Number, which is done when the dataset is opened.
func doneAtOpening(context.Context, *job, edgeSteps, steps.Piece) error { return nil }

// ofEdges returns a step of the edges.
func ofEdges(do func(e edgeSteps, ctx context.Context, p steps.Piece) error) stepFunc {
	return func(ctx context.Context, _ *job, edges edgeSteps, p steps.Piece) error { return do(edges, ctx, p) }
}

// ofRoom returns a step of one of the parts of a job.
func ofRoom[T any](room func(*job) T, do func(room T, ctx context.Context, p steps.Piece) error) stepFunc {
	return func(ctx context.Context, j *job, _ edgeSteps, p steps.Piece) error { return do(room(j), ctx, p) }
}

// stepFunc executes some pieces of a step.
type stepFunc func(ctx context.Context, j *job, edges edgeSteps, p steps.Piece) error

// stepRow describes a step of a partition.
type stepRow struct {
	name string
	// pieces returns the number of pieces that several workers can share; 0 for a step that they do not execute.
	pieces func(o ordered) int
	reads  needed
	run    stepFunc
}

// needed says what a step needs of the dataset.
type needed int

const (
	noDataset  needed = iota
	idsOfRows         // the dataset in a graph with weights, to name ids in errors
	statements        // what the dataset states of itself
	firstRows         // rows for the first piece, statements for the others
	memberRows        // rows, and which nodes are members
)

func onePiece(ordered) int { return 1 }

func allPieces(ordered) int { return Slices }

// placeOf returns the place of a step in the table, -1 for an unknown one.
func placeOf(name string) int {
	return slices.IndexFunc(stepTable, func(s stepRow) bool { return s.name == name })
}

// IsStep reports whether there is such a step, other than Whole.
func IsStep(name string) bool { return name != Whole && placeOf(name) >= 0 }

// NextNumbered is Next for datasets whose ids have to be numbered.
func NextNumbered(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
	if _, ok := cat.Lookup(shards.IDsPath); !ok && len(cat.Entries(catalog.KindSummary)) == 0 {
		return steps.Left{Step: Number, Pieces: steps.Units(1), Superseded: func(catalog.Entry) bool { return false }}, nil
	}
	return Next(ctx, cat)
}

// CountIDs sorts and counts the ids of a dataset.
func CountIDs(ctx context.Context, ds dataset.Keyed, o Options) (c IDCounts, err error) {
	j, err := newJob(ds, nil, o)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, j.close()) }()
	t, err := ds.KeyType(ctx)
	if err != nil {
		return c, err
	}
	s, err := j.numbering().sortIDs(ctx, ds)
	if err != nil {
		return c, err
	}
	defer s.Close()
	c.Dense = t == inputid.Int64
	err = s.Each(ctx, func(key []byte, _ uint32) error {
		c.Dense = c.Dense && inputid.Int(key) == c.Nodes
		c.Nodes++
		c.Bytes += int64(len(key))
		return nil
	})
	return c, err
}

// setOrdered sets what the step Order left and, if the dataset is not open, what it says of the dataset.
func (j *job) setOrdered(o ordered) {
	j.ordered = o
	if j.ds == nil {
		j.info.Directed = o.Directed
		if o.Stated {
			j.info.NumNodes = o.Nodes
		}
	}
}
