package partition

import (
	"context"

	"golang.org/x/sync/errgroup"

	"ndls/internal/inputid"
	"ndls/steps"
)

// fitBeside reports whether one worker makes all feature tiles while it sorts and writes edges: if all of both stays in memory.
func (j tiling) fitBeside(edges edgeSteps) bool {
	pairs := edges.held()
	return j.wantFeatures() && j.named.Type == inputid.Number && pairs > 0 && tilesBeside(j.o.Budget.Free(), j.bytes(), pairs, j.o.Threads)
}

// bytes returns enough memory to make all feature tiles at a time.
func (j tiling) bytes() int64 { return allTilesBytes(j.ids.n, j.ordered.Panels, j.info.RowMemory) }

// writeBeside executes the steps Relabel, Rows and Columns of one worker. Reading features waits for the disk, and sorting edges for the
// processor.
func (j tiling) writeBeside(ctx context.Context, edges edgeSteps) error {
	budget, err := j.o.Budget.Part(j.bytes(), "feature tiles")
	if err != nil {
		return err
	}
	defer budget.Close()
	tiles := &job{
		ds: j.ds, info: j.info, cat: j.cat, o: j.o, members: j.members, scratch: j.scratch, ordered: j.ordered, columns: j.columns,
		part: allSlices, ids: j.ids, nodeOf: j.nodeOf, named: j.named,
	}
	tiles.o.Budget = budget
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return tiles.tiling().writeColumns(ctx, steps.Piece{Last: j.ordered.Panels}) })
	both.Go(func() error {
		if err := edges.relabelPairs(ctx, allSlices); err != nil {
			return err
		}
		return edges.writeRows(ctx, steps.Piece{Last: j.ordered.rowPieces()})
	})
	return both.Wait()
}
