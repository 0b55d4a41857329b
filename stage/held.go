package stage

import (
	"context"
	"errors"

	"ndls/internal/mem"
	"ndls/plan"
	"ndls/shards"
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
	if h.labelled, err = of.like(env.Budget, rows); err != nil {
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
		h.take(at, of, row)
		at++
	}
	return h, nil
}

// like allocates so many rows with what l has of each.
func (l *labelled) like(budget *mem.Budget, rows int64) (*labelled, error) {
	same, err := newLabelled(budget, rows, len(l.splits))
	if err != nil || l.answers == nil {
		return same, err
	}
	same.width = l.width
	if same.answers, err = mem.Alloc[float32](budget, rows*int64(l.width), "labels or numbers of nodes"); err != nil {
		same.free()
		return nil, err
	}
	return same, nil
}

// take copies row from of another to row at.
func (l *labelled) take(at int64, of *labelled, from int64) {
	l.label.S[at] = of.label.S[from]
	for i, x := range of.splits {
		l.splits[i].S[at] = x.S[from]
	}
	copy(l.answersOf(at, 1), of.answersOf(from, 1))
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

// HeldBytes returns the memory for this number of held rows of a plan and a graph, of width values each.
func HeldBytes(p plan.Options, s shards.Summary, rows int64, width int) int64 {
	return labelledBytes(p, len(s.Classes), rows) + labelledPages(p) + train.HeldBytes(rows, width)
}

// HoldingBytes returns the memory that Hold uses beside HeldBytes while it reads this number of rows in files.
func HoldingBytes(p plan.Options, s shards.Summary, rows int64, width int) int64 {
	return labelledBytes(p, len(s.Classes), rows) + labelledPages(p) + train.ChunkBytes(rows, width)
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
