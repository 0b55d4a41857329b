package trial

import (
	"context"
	"errors"

	"ndls/internal/control"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/features"
	"ndls/stage/labels"
	"ndls/stage/measures"
	"ndls/stage/models"
	"ndls/stage/registry"
	"ndls/train"
)

// Held holds smoothed rows in memory, with their labels and splits. Several tasks may use them at the same time.
type Held struct {
	source *train.Held
	*measures.Labelled
	// all says that every smoothed row is held, not only the rows that train or validate in a split.
	all bool
}

// stage returns the stage that executes on these rows in place of those in files. h may be nil.
func (h *Held) stage(s control.Stage) stage.Stage {
	if h != nil {
		switch s {
		case control.Train:
			return models.Train{Rows: &models.RowsWithLabels{Source: h.source, Labelled: h.Labelled}}
		case control.LabelDepth:
			return labels.Depth{Rows: h.every()}
		case control.SmoothLabels:
			return labels.Smooth{Rows: h.every()}
		}
	}
	return registry.Of(s)[0]
}

// every returns the rows if all nodes have one, else nil.
func (h *Held) every() train.Source {
	if !h.all {
		return nil
	}
	return h.source
}

// Hold reads the smoothed rows of env: all of them, or those that train or validate in some split. The caller frees the result.
func Hold(ctx context.Context, env *stage.Env, all bool) (h *Held, err error) {
	src, err := features.OpenRows(ctx, env)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	of, err := measures.LabelledRows(ctx, env, src)
	if err != nil {
		return nil, err
	}
	defer of.Free()
	keep := func(row int64) bool { return all || of.InSplit(row) }
	rows := int64(0)
	for row := range src.NumRows() {
		if keep(row) {
			rows++
		}
	}
	h = &Held{all: all}
	defer func() {
		if err != nil {
			h.Free()
			h = nil
		}
	}()
	if h.Labelled, err = of.Like(env.Budget, rows); err != nil {
		return h, err
	}
	if h.source, err = train.Hold(ctx, src, rows, keep, env.Budget); err != nil {
		return h, err
	}
	at := int64(0)
	for row := range src.NumRows() {
		if !keep(row) {
			continue
		}
		h.Take(at, of, row)
		at++
	}
	return h, nil
}

// HeldBytes returns the memory for this number of held rows of a plan and a graph, of width values each.
func HeldBytes(p plan.Options, s shards.Summary, rows int64, width int) int64 {
	return measures.LabelledBytes(p, len(s.Classes), rows) + measures.LabelledPages(p) + train.HeldBytes(rows, width)
}

// HoldingBytes returns the memory that Hold uses beside HeldBytes while it reads this number of rows in files.
func HoldingBytes(p plan.Options, s shards.Summary, rows int64, width int) int64 {
	return measures.LabelledBytes(p, len(s.Classes), rows) + measures.LabelledPages(p) + train.ChunkBytes(rows, width)
}

// Free frees the memory. h may be nil.
func (h *Held) Free() {
	if h == nil {
		return
	}
	if h.Labelled != nil {
		h.Labelled.Free()
	}
	h.source.Free()
}
