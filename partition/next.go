package partition

import (
	"context"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/tiles"
)

// Left holds the next work of a partition, or of another stage that is done in steps of pieces.
type Left struct {
	// Step is the first step that is not complete, "" if nothing is left.
	Step string
	// Pieces lists the pieces of the step that are left, undivided.
	Pieces []Piece
	// Shared says that the catalogue holds sorted keys, because several workers have begun.
	Shared bool
	// Small says that one worker is faster than several.
	Small bool
	// Superseded, if not nil, reports the files that no remaining step reads.
	Superseded func(catalog.Entry) bool
	// Count, if not nil, returns the number of tasks into which the pieces are cut for workers, in place of [Tasks].
	Count func(workers int) int
	// Weights, if not nil, holds the amount of work of each piece. Otherwise all pieces have the same.
	Weights []int64

	ordered  ordered
	weighted bool // edges have weights
}

// Next returns what the catalogue lacks of a partition by several workers.
func Next(ctx context.Context, cat *catalog.Catalog) (Left, error) {
	return next(ctx, cat, func(step string) []Piece { return havePieces(cat, step) })
}

// next returns what is left; have lists the pieces whose sorted keys exist.
func next(ctx context.Context, cat *catalog.Catalog, have func(step string) []Piece) (l Left, err error) {
	o, isOrdered, err := readOrdered(ctx, cat)
	if err != nil {
		return Left{}, err
	}
	l.ordered = o
	l.Shared = slices.ContainsFunc(cat.Entries(catalog.KindRun), func(e catalog.Entry) bool { return e.Step != Order })
	l.weighted = slices.ContainsFunc(cat.Entries(catalog.KindRun), func(e catalog.Entry) bool { return e.ValueType != "" }) || o.Weighted
	var keep []string // files of these steps
	switch {
	case len(cat.Entries(catalog.KindSummary)) > 0:
	case !isOrdered:
		l.Step, l.Pieces, keep = nextOfPairs(have, Order, units(1))
		if l.Step == Order && l.Shared {
			l.Step, l.Pieces, keep = nextOfTallies(have)
		}
	default:
		if l.Step, l.Pieces, keep = nextOfNodes(cat, o); l.Step == "" {
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
	case Nodes: // a task reads all files of Rank
		l.Count = func(workers int) int { return workers }
	}
	doubles := doubleTiles(cat)
	// Files that exist before nodes have numbers belong to an earlier numbering.
	unnumbered := !isOrdered && l.Step != ""
	l.Superseded = func(e catalog.Entry) bool {
		switch e.Kind {
		case catalog.KindRun:
			step, _, _ := strings.Cut(e.Step, "-")
			return !slices.Contains(keep, step)
		case catalog.KindEdges, catalog.KindHops, catalog.KindReversed, catalog.KindReversedHops, catalog.KindNodes, catalog.KindSplits:
			return unnumbered
		case catalog.KindFeatures:
			return unnumbered || doubles[e.Path]
		}
		return false
	}
	return l, nil
}

// nextOfPairs returns the work left until all unique pairs exist, then the step `then`, which reads them.
func nextOfPairs(have func(step string) []Piece, then string, thenLeft []Piece) (step string, left []Piece, keep []string) {
	unmerged := uncovered(have(Merge), units(Slices))
	if len(unmerged) == 0 {
		return then, thenLeft, []string{Merge, Relabel}
	}
	keep = []string{Split, Merge}
	if left := uncovered(have(Split), units(Slices)); len(left) > 0 {
		return Split, left, keep
	}
	return Merge, unmerged, keep
}

// nextOfTallies returns the work left until the step Order has its input, once all unique pairs exist. The notes of the first file hold
// counts of the input.
func nextOfTallies(have func(step string) []Piece) (step string, left []Piece, keep []string) {
	ungathered := uncovered(have(Gather), units(Slices))
	if len(ungathered) == 0 {
		return Order, units(1), []string{Merge, Gather}
	}
	if left := uncovered(have(Count), have(Merge)); len(left) > 0 {
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
func nextOfNodes(cat *catalog.Catalog, o ordered) (step string, left []Piece, keep []string) {
	if hasNodes(cat) {
		return "", nil, nil
	}
	left = uncovered(havePieces(cat, Nodes), units(o.Groups))
	switch {
	case len(left) == 0:
		return "", nil, nil
	case len(uncovered(havePieces(cat, Rank), units(Slices))) > 0:
		return Rank, uncovered(havePieces(cat, Rank), havePieces(cat, Gather)), []string{Merge, Gather, Rank}
	case len(havePieces(cat, Components)) == 0:
		return Components, units(1), []string{Merge, Rank}
	}
	return Nodes, left, []string{Merge, Rank, Components, Nodes}
}

// joinedNodes is the number of nodes that are joined to the node table in about the time of writing one edge to its files.
const joinedNodes = 2

func nextAfterOrder(cat *catalog.Catalog, o ordered, have func(step string) []Piece) (step string, left []Piece, keep []string) {
	rows, shardsThere := leftOfRows(cat, o)
	if !hasNodes(cat) {
		// Joining comes first: no other piece of the step may take longer.
		join := Piece{o.rowPieces(), o.rowPieces() + 1}
		if len(rows) == 0 {
			return Rows, []Piece{join}, nil
		}
		rows = append([]Piece{join}, rows...)
	}
	if len(rows) > 0 {
		if shardsThere || len(uncovered(have(Relabel), units(Slices))) == 0 {
			return Rows, rows, []string{Relabel}
		}
		return nextOfPairs(have, Relabel, uncovered(have(Relabel), have(Merge)))
	}
	cells := leftOfTiles(cat, o)
	switch {
	case len(cells) == 0:
		return Whole, units(1), nil
	case !o.CutsFeatures:
		return Columns, panelsOf(cells, o), nil
	}
	if left := uncovered(havePieces(cat, Deal), units(Slices)); len(left) > 0 {
		return Deal, left, []string{Deal}
	}
	return Tiles, cells, []string{Deal}
}

// runs lists the run files of a kind that a step left, in order of their pieces.
func runs(cat *catalog.Catalog, step string) (files []catalog.Entry) {
	for _, e := range cat.Entries(catalog.KindRun) {
		if e.Step == step {
			files = append(files, e)
		}
	}
	return files
}

// havePieces returns the pieces of the run files that a step left.
func havePieces(cat *catalog.Catalog, step string) (pieces []Piece) {
	for _, e := range runs(cat, step) {
		pieces = append(pieces, pieceOf(e))
	}
	return pieces
}

// pieceOf returns the piece of a run file.
func pieceOf(e catalog.Entry) Piece { return Piece{int(e.FirstPiece), int(e.LastPiece)} }

// uncovered returns the wanted pieces that lie in none of the present pieces. Both lists are in order.
func uncovered(there, wanted []Piece) (left []Piece) {
	for _, p := range wanted {
		for len(there) > 0 && there[0].Last <= p.First {
			there = there[1:]
		}
		if len(there) == 0 || there[0].First > p.First {
			left = append(left, p)
		}
	}
	return left
}

// leftOfRows returns the pieces without shard or hop stream, and whether only hop streams are missing, which are made from shards.
func leftOfRows(cat *catalog.Catalog, o ordered) (left []Piece, shardsThere bool) {
	shardsThere = !o.NoShards
	for _, p := range units(o.rowPieces()) {
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

// leftOfTiles returns the cells that lack a tile, or whose tile is float16 although others are not.
func leftOfTiles(cat *catalog.Catalog, o ordered) (left []Piece) {
	there := tiles.Committed(cat, catalog.KindFeatures, !hasFullTiles(cat))
	for _, p := range units(o.Intervals * o.Panels) {
		if _, ok := there[tiles.Place{Interval: p.First / o.Panels, Panel: p.First % o.Panels}]; !ok {
			left = append(left, p)
		}
	}
	return left
}

// panelsOf returns the panels of cells.
func panelsOf(cells []Piece, o ordered) (panels []Piece) {
	for _, p := range units(o.Panels) {
		if slices.ContainsFunc(cells, func(cell Piece) bool { return cell.First%o.Panels == p.First }) {
			panels = append(panels, p)
		}
	}
	return panels
}

// doubleTiles returns float16 tiles that also exist as float32; a late attempt left them.
func doubleTiles(cat *catalog.Catalog) map[string]bool {
	doubles := map[string]bool{}
	full := tiles.Committed(cat, catalog.KindFeatures, false)
	for at, e := range tiles.Committed(cat, catalog.KindFeatures, true) {
		if _, ok := full[at]; ok {
			doubles[e.Path] = true
		}
	}
	return doubles
}

// Tasks returns the number of tasks into which the steps with [Slices] pieces are cut for workers: enough for workers of different speed,
// and few files to merge.
func Tasks(workers int) int {
	if workers <= 1 {
		return 1
	}
	return 2 * workers
}

// weightedTasks is the number of tasks per worker for pieces of different size.
const weightedTasks = 4

// cutByWeight joins pieces to about count tasks of about equal work.
func (l Left) cutByWeight(count int) (tasks []Piece) {
	all, last := int64(0), int64(0) // weights of all pieces, and of the last task
	for _, w := range l.Weights {
		all += w
	}
	for i, p := range l.Pieces {
		w := l.Weights[i]
		if at := len(tasks) - 1; at >= 0 && tasks[at].Last == p.First && last+w <= all/int64(count) {
			tasks[at].Last = p.Last
			last += w
			continue
		}
		tasks, last = append(tasks, p), w
	}
	return tasks
}

// Cut joins the pieces that are left to tasks for this number of workers.
func (l Left) Cut(workers int) (tasks []Piece) {
	count := Tasks(workers)
	switch {
	case l.Count != nil:
		count = l.Count(workers)
	case l.Weights != nil && workers > 1:
		return l.cutByWeight(weightedTasks * workers)
	case l.Step == Columns:
		count = max(workers, 1) // each task reads all features
	}
	size := (len(l.Pieces) + count - 1) / max(count, 1)
	pieces := 0 // in the last task
	for _, p := range l.Pieces {
		if last := len(tasks) - 1; last >= 0 && tasks[last].Last == p.First && pieces < size {
			tasks[last].Last = p.Last
			pieces++
			continue
		}
		tasks, pieces = append(tasks, p), 1
	}
	return tasks
}
