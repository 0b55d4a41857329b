package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/shards"
	"ndls/steps"
)

// Steps of a partition, in order. A step may begin when all pieces of the step before it are done.
const (
	// Split sorts the pairs of parts of the edge list.
	Split = "split"
	// Merge writes the unique pairs of ranges of keys.
	Merge = "merge"
	// Count counts the degrees and finds the components of ranges of unique pairs.
	Count = "count"
	// Gather adds up the tallies of Count for ranges of input ids.
	Gather = "gather"
	// Order finds where the nodes of each degree begin, which decides where edges are cut. If one worker does all steps, it orders the
	// nodes and commits the node table, and the next three steps are left out.
	Order = "order"
	// Rank gives the ids of the ranges of Gather their nodes.
	Rank = "rank"
	// Components numbers the components.
	Components = "components"
	// Nodes writes parts of the node table.
	Nodes = "nodes"
	// Relabel sorts the edges by node id, in both directions, of ranges of unique pairs.
	Relabel = "relabel"
	// Rows commits shards and their hop streams; one of its pieces joins the parts of the node table.
	Rows = "rows"
	// Deal leaves parts of the feature rows by interval, if rows can be read from the middle.
	Deal = "deal"
	// Tiles commits the feature tiles of cells, each a panel of an interval, from the files of Deal.
	Tiles = "tiles"
	// Columns commits the feature tiles of panels, if rows can only be read from the first.
	Columns = "columns"
	// Whole commits the summary.
	Whole = "whole"
)

// counts is the kind of the file with the counts of the nodes that is written when the parts of the node table are joined.
const counts = "counts"

// step describes a step of a partition.
type step struct {
	name string
	// pieces returns the number of pieces that several workers can share; 0 for a step that they do not execute.
	pieces func(o ordered) int
	reads  reading
	run    func(ctx context.Context, j *job, p steps.Piece) error
}

// reading says what a step needs of the dataset.
type reading int

const (
	noDataset  reading = iota
	idsOfRows          // the dataset in a graph with weights, to name ids in errors
	statements         // what the dataset states of itself
	firstRows          // rows for the first piece, statements for the others
	memberRows         // rows, and which nodes are members
)

// table lists the steps in order.
var table = []step{
	{Number, one, statements, func(context.Context, *job, steps.Piece) error { return nil }}, // done when the dataset is opened
	{Split, each, memberRows, func(ctx context.Context, j *job, p steps.Piece) error { return j.edges.splitEdges(ctx, p) }},
	{Merge, each, idsOfRows, func(ctx context.Context, j *job, p steps.Piece) error { return j.edges.mergePairs(ctx, p) }},
	{Count, each, firstRows, func(ctx context.Context, j *job, p steps.Piece) error { return j.edges.countPairs(ctx, p) }},
	{Gather, each, statements, func(ctx context.Context, j *job, p steps.Piece) error { return j.edges.gatherIDs(ctx, p) }},
	{Order, one, memberRows, func(ctx context.Context, j *job, _ steps.Piece) error {
		if j.alone {
			return j.edges.orderNodes(ctx)
		}
		return j.ordering().orderRanges(ctx)
	}},
	{Rank, each, noDataset, func(ctx context.Context, j *job, p steps.Piece) error { return j.ordering().rankNodes(ctx, p) }},
	{Components, one, noDataset, func(ctx context.Context, j *job, _ steps.Piece) error { return j.ordering().numberComponents(ctx) }},
	{Nodes, func(o ordered) int { return o.Groups }, statements, func(ctx context.Context, j *job, p steps.Piece) error {
		return j.nodeTable().writeParts(ctx, p)
	}},
	{Relabel, each, noDataset, func(ctx context.Context, j *job, p steps.Piece) error { return j.edges.relabelPairs(ctx, p) }},
	{Rows, func(o ordered) int { return o.rowPieces() + o.joins() }, noDataset, func(ctx context.Context, j *job, p steps.Piece) error {
		return j.edges.writeRows(ctx, p)
	}},
	{Deal, ordered.deals, memberRows, func(ctx context.Context, j *job, p steps.Piece) error { return j.tiling().dealFeatures(ctx, p) }},
	{Tiles, ordered.cells, memberRows, func(ctx context.Context, j *job, p steps.Piece) error { return j.tiling().writeCells(ctx, p) }},
	{Columns, func(o ordered) int { return o.Panels }, memberRows, func(ctx context.Context, j *job, p steps.Piece) error {
		return j.tiling().writeColumns(ctx, p)
	}},
	{Whole, func(ordered) int { return 0 }, noDataset, func(ctx context.Context, j *job, _ steps.Piece) error {
		return j.nodeTable().writeSummary(ctx)
	}},
}

func one(ordered) int { return 1 }

func each(ordered) int { return Slices }

// place returns the place of a step in the table, -1 for an unknown one.
func place(name string) int {
	return slices.IndexFunc(table, func(s step) bool { return s.name == name })
}

// IsStep reports whether there is such a step, other than Whole.
func IsStep(name string) bool { return name != Whole && place(name) >= 0 }

// Slices is the number of pieces of the steps Split, Merge, Count, Gather, Relabel and Deal.
const Slices = 1024

// allSlices is all pieces of such a step.
var allSlices = steps.Piece{First: 0, Last: Slices}

const (
	runFolder = "graph/runs/"
	orderPath = runFolder + "order.json"
)

// runPath returns the path of the run file of a piece of a step.
func runPath(step string, p steps.Piece) string {
	return fmt.Sprintf("%s%s/%04d-%04d", runFolder, step, p.First, p.Last)
}

// keysOf describes a file that a step leaves for other steps.
func keysOf(step, path string) catalog.Entry {
	return catalog.Describe(catalog.KindRun, path).OfStep(step)
}

// ordered holds what the step Order leaves beside the node table.
type ordered struct {
	Rows      int64 `json:"rows"`
	Loops     int64 `json:"loops"`
	Dropped   int64 `json:"dropped,omitempty"`
	Nodes     int64 `json:"nodes"`
	Stated    bool  `json:"stated"` // the dataset states the number of nodes
	Intervals int   `json:"intervals"`
	// Cuts are the cuts of the files of edges; Edges counts the edges of the nodes of each file.
	Cuts   cuts    `json:"cuts"`
	Edges  []int64 `json:"edges"`
	Panels int     `json:"panels"`
	// CutsFeatures says that several workers can read parts of the features.
	CutsFeatures bool `json:"cuts_features,omitempty"`
	Directed     bool `json:"directed,omitempty"`
	Weighted     bool `json:"weighted,omitempty"`
	NoShards     bool `json:"no_shards,omitempty"` // only hop streams are written
	// Groups is the number of row groups of the node table, and Lonely the number of nodes without an edge, if the steps Rank, Components
	// and Nodes follow.
	Groups int   `json:"groups,omitempty"`
	Lonely int64 `json:"lonely,omitempty"`
	// L1 says that rows of features are divided by the sum of their absolute values. Choice says why if the option left it open.
	L1     bool   `json:"l1,omitempty"`
	Choice string `json:"choice,omitempty"`
	counted
	Warnings []string `json:"warnings,omitempty"`
}

// counted holds the counts of nodes for the summary. If parts of the node table are joined, it ends in a file of its own.
type counted struct {
	Components       int64            `json:"components,omitempty"`
	LargestComponent int64            `json:"largest_component,omitempty"`
	Labelled         int64            `json:"labelled,omitempty"`
	Splits           map[string]int64 `json:"splits"`
	Blanked          int64            `json:"blanked,omitempty"`
}

// cells returns the number of pieces of the step Tiles.
func (o ordered) cells() int {
	if !o.CutsFeatures {
		return 0
	}
	return o.Intervals * o.Panels
}

// deals returns the number of pieces of the step Deal.
func (o ordered) deals() int {
	if o.cells() == 0 {
		return 0
	}
	return Slices
}

// joins returns the number of pieces of the step Rows that join the parts of the node table.
func (o ordered) joins() int { return min(o.Groups, 1) }

// readOrdered reads what the step Order left; ok is false before that step.
func readOrdered(ctx context.Context, cat *catalog.Catalog) (o ordered, ok bool, err error) {
	e, ok := cat.Lookup(orderPath)
	if !ok {
		return o, false, nil
	}
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return o, false, err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(text, &o)
	}
	if err != nil {
		return o, false, fmt.Errorf("read %s: %w", orderPath, err)
	}
	for _, e := range runs(cat, counts) {
		if o.counted, err = readCounted(ctx, cat, e); err != nil {
			return o, false, err
		}
	}
	return o, true, nil
}

// Execute executes a piece of a step for workers that share a partition; open opens the dataset. It does not make again what is committed.
func Execute(ctx context.Context, open func() (dataset.Dataset, error), cat *catalog.Catalog, o Options, step string,
	p steps.Piece,
) (err error) {
	if err := o.Validate(); err != nil {
		return err
	}
	left, err := next(ctx, cat, inCatalog(cat))
	if err != nil {
		return err
	}
	at := place(step)
	if at < 0 || p.First < 0 || p.First >= p.Last || p.Last > table[at].pieces(left.ordered) {
		return fmt.Errorf("step %s has no pieces %d to %d", step, p.First, p.Last)
	}
	_, numbered := cat.Lookup(shards.IDsPath)
	if left.Done() || step == Number && numbered || step != Number && place(left.Step) > at {
		return nil // another attempt has done the step
	}
	reads := table[at].reads
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
	j.info.Weighted = j.info.Weighted || left.weighted
	j.useCatalog()
	return j.do(ctx, left.ordered, table[at], p)
}

// do executes a piece of a step.
func (j *job) do(ctx context.Context, o ordered, s step, p steps.Piece) error {
	if o.Nodes > 0 {
		j.setOrdered(o)
	}
	return s.run(ctx, j, p)
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
