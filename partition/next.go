package partition

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"ndls/catalog"
	"ndls/shards"
)

// Left is what is to be done next of a partition.
type Left struct {
	// Step is the first one that is not complete, "" if nothing is left.
	Step string
	// Pieces are those that are left of the step, the smallest there are.
	Pieces []Piece
	// Shared says that the catalogue holds sorted keys: several workers have begun.
	Shared bool
	// Superseded says which files no step that is left reads.
	Superseded func(catalog.Entry) bool

	ordered ordered
}

// Next says what the catalogue lacks of a partition by several workers.
func Next(ctx context.Context, cat *catalog.Catalog) (Left, error) {
	return next(ctx, cat, func(folder string) []Piece { return havePieces(cat, folder) })
}

// next says what is left, where have lists the pieces whose sorted keys are there.
func next(ctx context.Context, cat *catalog.Catalog, have func(folder string) []Piece) (l Left, err error) {
	o, isOrdered, err := readOrdered(ctx, cat)
	if err != nil {
		return Left{}, err
	}
	l.ordered = o
	l.Shared = slices.ContainsFunc(cat.Entries(catalog.KindRun), func(e catalog.Entry) bool { return e.Path != orderPath })
	var keep []string // of the files of this package's own
	switch {
	case len(cat.Entries(catalog.KindSummary)) > 0:
	case !isOrdered:
		l.Step, l.Pieces, keep = nextOfPairs(have, Order, units(1))
	default:
		l.Step, l.Pieces, keep = nextAfterOrder(cat, o, have)
		keep = append(keep, orderPath)
	}
	doubles := doubleTiles(cat)
	// What is there before nodes have numbers belongs to other numbers.
	unnumbered := !isOrdered && l.Step != ""
	l.Superseded = func(e catalog.Entry) bool {
		switch e.Kind {
		case catalog.KindRun:
			return !slices.ContainsFunc(keep, func(folder string) bool { return strings.HasPrefix(e.Path, folder) })
		case catalog.KindEdges, catalog.KindHops:
			return unnumbered
		case catalog.KindFeatures:
			return unnumbered || doubles[e.Path]
		}
		return false
	}
	return l, nil
}

// nextOfPairs is what is left to do until all unique pairs are there, then the step
// that reads them.
func nextOfPairs(have func(folder string) []Piece, then string, thenLeft []Piece) (step string, left []Piece, keep []string) {
	unmerged := uncovered(have(uniqueFolder), units(Slices))
	if len(unmerged) == 0 {
		return then, thenLeft, []string{uniqueFolder, edgesFolder}
	}
	keep = []string{pairsFolder, uniqueFolder}
	if left := uncovered(have(pairsFolder), units(Slices)); len(left) > 0 {
		return Split, left, keep
	}
	return Merge, unmerged, keep
}

func nextAfterOrder(cat *catalog.Catalog, o ordered, have func(folder string) []Piece) (step string, left []Piece, keep []string) {
	rows, shardsThere := leftOfRows(cat, o)
	if len(rows) > 0 {
		if shardsThere || len(uncovered(have(edgesFolder), units(Slices))) == 0 {
			return Rows, rows, []string{edgesFolder}
		}
		return nextOfPairs(have, Relabel, uncovered(have(edgesFolder), have(uniqueFolder)))
	}
	if left := leftOfColumns(cat, o); len(left) > 0 {
		return Columns, left, nil
	}
	return Whole, units(1), nil
}

// runs lists the run files of a folder, in order of their pieces.
func runs(cat *catalog.Catalog, folder string) (files []catalog.Entry) {
	for _, e := range cat.Entries(catalog.KindRun) {
		if strings.HasPrefix(e.Path, folder) {
			files = append(files, e)
		}
	}
	return files
}

// havePieces are the pieces of the run files of a folder.
func havePieces(cat *catalog.Catalog, folder string) (pieces []Piece) {
	for _, e := range runs(cat, folder) {
		pieces = append(pieces, pieceOf(e))
	}
	return pieces
}

// pieceOf reads the path of a run file.
func pieceOf(e catalog.Entry) (p Piece) {
	_, _ = fmt.Sscanf(e.Path[strings.LastIndexByte(e.Path, '/')+1:], "%d-%d", &p.First, &p.Last)
	return p
}

// uncovered are the wanted pieces that lie in none that is there. Both are in order.
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

// leftOfRows are the intervals without shard or hop stream, and whether no more than
// hop streams are missing.
func leftOfRows(cat *catalog.Catalog, o ordered) (left []Piece, shardsThere bool) {
	shardsThere = true
	for _, p := range units(o.Intervals) {
		_, shard := cat.Lookup(EdgesPath(p.First))
		_, hops := cat.Lookup(HopPath(p.First))
		if !shard || !hops {
			left = append(left, p)
		}
		shardsThere = shardsThere && shard
	}
	return left, shardsThere
}

// leftOfColumns are the granules that lack a tile, or have tiles of float16 where
// others cannot.
func leftOfColumns(cat *catalog.Catalog, o ordered) (left []Piece) {
	half := !hasFullTiles(cat)
	for _, p := range units(o.Granules) {
		for i := range o.Intervals {
			if _, ok := cat.Lookup(shards.TilePath(tilePrefix, i, p.First, half)); !ok {
				left = append(left, p)
				break
			}
		}
	}
	return left
}

// doubleTiles are those of float16 beside the same of float32: of an attempt that
// came too late.
func doubleTiles(cat *catalog.Catalog) map[string]bool {
	doubles := map[string]bool{}
	for _, e := range cat.Entries(catalog.KindFeatures) {
		if _, ok := cat.Lookup(shards.TilePath(tilePrefix, int(e.Interval), int(e.Block), false)); ok && isHalf(e) {
			doubles[e.Path] = true
		}
	}
	return doubles
}

// Tasks is into how many tasks the steps Split, Merge and Relabel are cut for so many
// workers: enough for workers of different speed, and few files to merge.
func Tasks(workers int) int {
	if workers <= 1 {
		return 1
	}
	return 2 * workers
}

// Cut joins the pieces that are left to tasks for so many workers.
func (l Left) Cut(workers int) (tasks []Piece) {
	count := Tasks(workers)
	switch l.Step {
	case Rows:
		if workers > 1 {
			count = len(l.Pieces)
		}
	case Columns:
		count = max(workers, 1) // each reads all features
	}
	size := (len(l.Pieces) + count - 1) / max(count, 1)
	pieces := 0 // of the last task
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
