package partition

import (
	"context"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/steps"
	"ndls/tiles"
)

// remaining is the next work of a partition, with what the steps so far have found.
type remaining struct {
	steps.Left
	ordered  ordered
	weighted bool // edges have weights
}

// Next returns what the catalogue lacks of a partition by several workers.
func Next(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
	l, err := nextOf(ctx, cat, inCatalog(cat))
	return l.Left, err
}

// inCatalog returns the function that lists the pieces whose sorted keys the catalogue has.
func inCatalog(cat *catalog.Catalog) func(step string) []steps.Piece {
	return func(step string) []steps.Piece { return havePieces(cat, step) }
}

// nextOf returns what is left; have lists the pieces whose sorted keys exist.
func nextOf(ctx context.Context, cat *catalog.Catalog, have func(step string) []steps.Piece) (l remaining, err error) {
	o, isOrdered, err := readOrdered(ctx, cat)
	if err != nil {
		return l, err
	}
	l.ordered = o
	l.Shared = slices.ContainsFunc(cat.Entries(catalog.KindRun), func(e catalog.Entry) bool { return e.Step != Order })
	l.weighted = slices.ContainsFunc(cat.Entries(catalog.KindRun), func(e catalog.Entry) bool { return e.ValueType != "" }) || o.Weighted
	var keep []string // files of these steps
	switch {
	case len(cat.Entries(catalog.KindSummary)) > 0:
	case !isOrdered:
		l.Step, l.Pieces, keep = nextOfPairs(have, Order, steps.Units(1))
		if l.Step == Order && l.Shared {
			l.Step, l.Pieces, keep = nextOfTallies(have)
		}
	default:
		if l.Step, l.Pieces, keep = nextOfNodes(cat, o); l.Done() {
			l.Step, l.Pieces, keep = nextAfterOrder(cat, o, have)
			if !hasNodes(cat) {
				keep = append(keep, Nodes)
			}
		}
		keep = append(keep, Order, counts)
	}
	switch l.Step {
	case Rows:
		for _, p := range l.Pieces {
			weight := o.Nodes / joinedNodes
			if p.First < o.rowPieces() {
				weight = o.Edges[p.First%len(o.Edges)]
			}
			l.Weights = append(l.Weights, weight)
		}
	case Nodes, Columns: // a task reads all files of Rank, or all features
		l.Count = steps.Each
	}
	doubles := doubleTiles(cat)
	// Files that exist before nodes have numbers belong to an earlier numbering.
	unnumbered := !isOrdered && !l.Done()
	l.Superseded = func(e catalog.Entry) bool {
		switch e.Kind {
		case catalog.KindRun:
			step, _, _ := strings.Cut(e.Step, "-")
			return !slices.Contains(keep, step)
		case catalog.KindEdges, catalog.KindHops, catalog.KindReversed, catalog.KindReversedHops, catalog.KindNodes, catalog.KindSplits:
			return unnumbered
		case catalog.KindFeatures, catalog.KindUnfilled:
			return unnumbered || doubles[e.Path]
		}
		return false
	}
	return l, nil
}

// nextOfPairs returns the work left until all unique pairs exist, then the step `then`, which reads them.
func nextOfPairs(have func(step string) []steps.Piece, then string, thenLeft []steps.Piece) (step string, left []steps.Piece,
	keep []string,
) {
	unmerged := steps.Uncovered(have(Merge), steps.Units(Slices))
	if len(unmerged) == 0 {
		return then, thenLeft, []string{Merge, Relabel}
	}
	keep = []string{Split, Merge}
	if left := steps.Uncovered(have(Split), steps.Units(Slices)); len(left) > 0 {
		return Split, left, keep
	}
	return Merge, unmerged, keep
}

// nextOfTallies returns the work left until the step Order has its input, once all unique pairs exist. The notes of the first file hold
// counts of the input.
func nextOfTallies(have func(step string) []steps.Piece) (step string, left []steps.Piece, keep []string) {
	ungathered := steps.Uncovered(have(Gather), steps.Units(Slices))
	if len(ungathered) == 0 {
		return Order, steps.Units(1), []string{Merge, Gather}
	}
	if left := steps.Uncovered(have(Count), have(Merge)); len(left) > 0 {
		return Count, left, []string{Merge, Count, Gather}
	}
	return Gather, ungathered, []string{Merge, Count, Gather}
}

// hasNodes reports whether the node table exists.
func hasNodes(cat *catalog.Catalog) bool {
	_, ok := cat.Lookup(NodesPath)
	return ok
}

// nextOfNodes returns the work left until all parts of the node table exist, if several workers write it; step is "" if there is none.
func nextOfNodes(cat *catalog.Catalog, o ordered) (step string, left []steps.Piece, keep []string) {
	if hasNodes(cat) {
		return "", nil, nil
	}
	left = steps.Uncovered(havePieces(cat, Nodes), steps.Units(o.Groups))
	switch {
	case len(left) == 0:
		return "", nil, nil
	case len(steps.Uncovered(havePieces(cat, Rank), steps.Units(Slices))) > 0:
		return Rank, steps.Uncovered(havePieces(cat, Rank), havePieces(cat, Gather)), []string{Merge, Gather, Rank}
	case len(havePieces(cat, Components)) == 0:
		return Components, steps.Units(1), []string{Merge, Rank}
	}
	return Nodes, left, []string{Merge, Rank, Components, Nodes}
}

// joinedNodes is the number of nodes that are joined to the node table in about the time of writing one edge to its files.
const joinedNodes = 2

func nextAfterOrder(cat *catalog.Catalog, o ordered, have func(step string) []steps.Piece) (step string, left []steps.Piece,
	keep []string,
) {
	rows, shardsThere := leftOfRows(cat, o)
	if !hasNodes(cat) {
		// Joining comes first: no other piece of the step may take longer.
		join := steps.Unit(o.rowPieces())
		if len(rows) == 0 {
			return Rows, []steps.Piece{join}, nil
		}
		rows = append([]steps.Piece{join}, rows...)
	}
	if len(rows) > 0 {
		if shardsThere || len(steps.Uncovered(have(Relabel), steps.Units(Slices))) == 0 {
			return Rows, rows, []string{Relabel}
		}
		return nextOfPairs(have, Relabel, steps.Uncovered(have(Relabel), have(Merge)))
	}
	left = leftOfTiles(cat, o)
	switch {
	case len(left) == 0:
		return Whole, steps.Units(1), nil
	case !o.CutsFeatures:
		return Columns, panelsOf(left, o, hasFullTiles(cat)), nil
	}
	if undealt := steps.Uncovered(havePieces(cat, Deal), steps.Units(Slices)); len(undealt) > 0 {
		return Deal, undealt, []string{Deal}
	}
	return Tiles, left, []string{Deal}
}

// leftOfRows returns the pieces without shard or hop stream, and whether only hop streams are missing, which are made from shards.
func leftOfRows(cat *catalog.Catalog, o ordered) (left []steps.Piece, shardsThere bool) {
	shardsThere = !o.NoShards
	for _, p := range steps.Units(o.rowPieces()) {
		files := o.files(p.First)
		_, shard := cat.Lookup(files.shard.Path)
		_, hops := cat.Lookup(files.hops.Path)
		if !shard && !o.NoShards || !hops {
			left = append(left, p)
		}
		shardsThere = shardsThere && shard
	}
	return left, shardsThere
}

// leftOfTiles returns the pieces of the step Tiles that lack their tile, or whose tile is float16 although others are not.
func leftOfTiles(cat *catalog.Catalog, o ordered) (left []steps.Piece) {
	there := committedTiles(cat, !hasFullTiles(cat))
	for _, p := range steps.Units(o.Intervals * o.Panels) {
		if _, ok := there[tiles.Place{Interval: p.First / o.Panels, Panel: p.First % o.Panels}]; !ok {
			left = append(left, p)
		}
	}
	return left
}

// panelsOf returns the pieces of the step Columns for the panels of pieces of the step Tiles. Once a tile is float32, panels are made as
// such by pieces of other numbers, whose tasks are others than those that have made them float16.
func panelsOf(left []steps.Piece, o ordered, full bool) (pieces []steps.Piece) {
	first := 0
	if full {
		first = o.Panels
	}
	for panel := range o.Panels {
		if slices.ContainsFunc(left, func(p steps.Piece) bool { return p.First%o.Panels == panel }) {
			pieces = append(pieces, steps.Unit(first+panel))
		}
	}
	return pieces
}

// panels returns the panels of pieces of the step Columns.
func (o ordered) panels(p steps.Piece) steps.Piece {
	if p.First >= o.Panels {
		return steps.Piece{First: p.First - o.Panels, Last: p.Last - o.Panels}
	}
	return p
}

// doubleTiles returns float16 tiles that also exist as float32; a late attempt left them.
func doubleTiles(cat *catalog.Catalog) map[string]bool {
	doubles := map[string]bool{}
	full := committedTiles(cat, false)
	for at, e := range committedTiles(cat, true) {
		if _, ok := full[at]; ok {
			doubles[e.Path] = true
		}
	}
	return doubles
}
