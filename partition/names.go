package partition

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ndls/catalog"
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
	// Tiles commits feature tiles, each a panel of an interval, from the files of Deal.
	Tiles = "tiles"
	// Columns commits the feature tiles of panels, if rows can only be read from the first.
	Columns = "columns"
	// Whole commits the summary.
	Whole = "whole"
)

// counts is the kind of the file with the counts of the nodes that is written when the parts of the node table are joined.
const counts = "counts"

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
func havePieces(cat *catalog.Catalog, step string) (pieces []steps.Piece) {
	for _, e := range runs(cat, step) {
		pieces = append(pieces, pieceOf(e))
	}
	return pieces
}

// pieceOf returns the piece of a run file.
func pieceOf(e catalog.Entry) steps.Piece {
	return steps.Piece{First: int(e.FirstPiece), Last: int(e.LastPiece)}
}

// writeJSON returns a function that writes the counts of a step.
func writeJSON(what any) func(*catalog.File) error {
	return func(f *catalog.File) error { return json.NewEncoder(f).Encode(what) }
}

// readJSON reads what [writeJSON] wrote.
func readJSON(ctx context.Context, cat *catalog.Catalog, e catalog.Entry, what any) error {
	r, err := cat.Stream(ctx, e)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	if err == nil {
		err = json.Unmarshal(text, what)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", e.Path, err)
	}
	return nil
}

// noLabel is the label of a node without one.
const noLabel = -1
