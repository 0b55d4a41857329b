package stage

import (
	"context"
	"errors"

	"ndls/plan"
	"ndls/train"
)

// HeldRows holds smoothed rows in memory, with their labels and splits. Several tasks may use them at the same time.
type HeldRows struct {
	source *train.Held
	*labelled
	// all says that every smoothed row is held, not only the rows that train or validate in a split.
	all bool
}

// Hold reads the smoothed rows of env: all of them, or those that train or validate in some split. The caller frees the result.
func Hold(ctx context.Context, env *Env, all bool) (h *HeldRows, err error) {
	src, err := env.openRows(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	of, err := env.labelledRows(ctx, src, env.Summary.Nodes)
	if err != nil {
		return nil, err
	}
	defer of.free()
	keep := func(row int64) bool { return all || of.inSplit(row) }
	rows := int64(0)
	for row := range src.NumRows() {
		if keep(row) {
			rows++
		}
	}
	h = &HeldRows{all: all}
	defer func() {
		if err != nil {
			h.Free()
			h = nil
		}
	}()
	if h.labelled, err = newLabelled(env.Budget, rows, len(of.splits)); err != nil {
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
		h.label.S[at] = of.label.S[row]
		for i, x := range of.splits {
			h.splits[i].S[at] = x.S[row]
		}
		at++
	}
	return h, nil
}

// inSplit reports whether a row trains or validates in some split.
func (l *labelled) inSplit(row int64) bool {
	for _, x := range l.splits {
		if s := x.S[row]; s == train.Train || s == train.Valid {
			return true
		}
	}
	return false
}

// HeldBytes returns the memory for this number of held rows of a plan, of width values each.
func HeldBytes(p plan.Options, rows int64, width int) int64 {
	return labelledBytes(p, rows) + labelledPages(p) + train.HeldBytes(rows, width)
}

// HoldingBytes returns the memory that Hold uses beside HeldBytes while it reads this number of rows in files.
func HoldingBytes(p plan.Options, rows int64, width int) int64 {
	return labelledBytes(p, rows) + labelledPages(p) + train.ChunkBytes(rows, width)
}

// Free frees the memory. h may be nil.
func (h *HeldRows) Free() {
	if h == nil {
		return
	}
	if h.labelled != nil {
		h.labelled.free()
	}
	h.source.Free()
}

// holding makes rows in memory for trials.
type holding struct{ *Env }

func (env *Env) holding() holding { return holding{env} }

// allRows opens the smoothed rows of all nodes.
func (env holding) allRows(ctx context.Context) (train.Source, func() error, error) {
	if env.Held != nil && env.Held.all {
		return env.Held.source, func() error { return nil }, nil
	}
	src, err := env.openRows(ctx)
	if err != nil {
		return nil, nil, err
	}
	return src, src.Close, nil
}
