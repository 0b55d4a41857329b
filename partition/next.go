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
	// Begun says that the partition is being done in pieces.
	Begun bool
	// Pieces are those that are left of the step, the smallest there are. Whole
	// has none.
	Pieces []Piece
	// Superseded says which files no step that is left reads.
	Superseded func(catalog.Entry) bool
}

// Next says what the catalogue lacks of a partition in pieces.
func Next(ctx context.Context, cat *catalog.Catalog) (Left, error) {
	o, isOrdered, err := readOrdered(ctx, cat)
	if err != nil {
		return Left{}, err
	}
	l := Left{Begun: isOrdered || len(cat.Entries(catalog.KindRun)) > 0}
	var keep []string // of the run files
	switch {
	case len(cat.Entries(catalog.KindSummary)) > 0:
	case !isOrdered && len(cat.Entries(catalog.KindNodes)) > 0:
		l.Step = Whole // Run has committed the table
	case !isOrdered:
		l.Step, l.Pieces, keep = nextBeforeOrder(cat)
	default:
		l.Step, l.Pieces, keep = nextAfterOrder(cat, o)
	}
	doubles := doubleTiles(cat)
	unfinished := l.Step == Split || l.Step == Merge || l.Step == Order
	l.Superseded = func(e catalog.Entry) bool {
		switch e.Kind {
		case catalog.KindRun:
			return !slices.ContainsFunc(keep, func(folder string) bool { return strings.HasPrefix(e.Path, folder) })
		case catalog.KindEdges, catalog.KindHops:
			return unfinished // of a Run that did not come to the table
		case catalog.KindFeatures:
			return unfinished || doubles[e.Path]
		}
		return false
	}
	return l, nil
}

func nextBeforeOrder(cat *catalog.Catalog) (step string, left []Piece, keep []string) {
	merged := uncovered(cat, uniqueFolder, units(Slices))
	if len(merged) == 0 {
		return Order, units(1), []string{uniqueFolder}
	}
	keep = []string{pairsFolder, uniqueFolder}
	if left := uncovered(cat, pairsFolder, units(Slices)); len(left) > 0 {
		return Split, left, keep
	}
	return Merge, merged, keep
}

func nextAfterOrder(cat *catalog.Catalog, o ordered) (step string, left []Piece, keep []string) {
	if rows := leftOfRows(cat, o); len(rows) > 0 {
		var unique []Piece
		for _, e := range runs(cat, uniqueFolder) {
			unique = append(unique, pieceOf(e))
		}
		if left := uncovered(cat, edgesFolder, unique); len(left) > 0 {
			return Relabel, left, []string{orderPath, uniqueFolder, edgesFolder}
		}
		return Rows, rows, []string{orderPath, edgesFolder}
	}
	keep = []string{orderPath}
	if left := leftOfColumns(cat, o); len(left) > 0 {
		return Columns, left, keep
	}
	return Whole, nil, keep
}

// units are n pieces.
func units(n int) []Piece {
	all := make([]Piece, n)
	for i := range all {
		all[i] = Piece{i, i + 1}
	}
	return all
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

// pieceOf reads the path of a run file.
func pieceOf(e catalog.Entry) (p Piece) {
	_, _ = fmt.Sscanf(e.Path[strings.LastIndexByte(e.Path, '/')+1:], "%d-%d", &p.First, &p.Last)
	return p
}

// uncovered are the pieces of which a folder has no run file.
func uncovered(cat *catalog.Catalog, folder string, pieces []Piece) (left []Piece) {
	files := runs(cat, folder)
	for _, p := range pieces {
		for len(files) > 0 && pieceOf(files[0]).Last <= p.First {
			files = files[1:]
		}
		if len(files) == 0 || pieceOf(files[0]).First > p.First {
			left = append(left, p)
		}
	}
	return left
}

// leftOfRows are the intervals without shard or hop stream.
func leftOfRows(cat *catalog.Catalog, o ordered) (left []Piece) {
	for _, p := range units(o.Intervals) {
		e, ok := cat.Lookup(EdgesPath(p.First))
		if ok {
			_, ok = cat.Lookup(HopPath(e))
		}
		if !ok {
			left = append(left, p)
		}
	}
	return left
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
