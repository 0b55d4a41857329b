package partition

import (
	"context"

	"ndls/internal/extsort"
	"ndls/internal/progress"
	"ndls/steps"
)

// sortedEdges implements the steps for edges that are items of one type.
type sortedEdges[T extsort.Item] struct {
	*job
	keys keyStore[T]
}

func (e *sortedEdges[T]) have(step string) []steps.Piece { return e.keys.have(step) }

func (e *sortedEdges[T]) held() int64 { return e.keys.held() }

func (e *sortedEdges[T]) close() { e.keys.close() }

// visitPairs visits the pairs of a source.
type visitPairs[T extsort.Item] func(ctx context.Context, threads int, visit func([]T) error) error

// eachPair visits the pairs of a source by the ranks of their ids, without self-loops and dropped edges. all is the way to visit the
// source.
func (j *sortedEdges[T]) eachPair(ctx context.Context, what string, pairs pairSource[T], all visitPairs[T], visit func([]T) error) error {
	meter := progress.Start(ctx, what, pairs.keys(), "edges")
	defer meter.Done()
	ranked := pairs.ranked() || j.ids.all
	// Pairs of ranks come from an earlier visit, which dropped edges.
	drop, draw := j.o.DropEdges > 0 && !pairs.ranked(), j.o.edgeDraw()
	return all(ctx, j.o.Threads, func(batch []T) error {
		meter.Add(int64(len(batch)))
		if drop {
			before := len(batch)
			batch = notDropped(draw, batch)
			j.dropped.Add(int64(before - len(batch)))
		}
		if ranked {
			return visit(batch)
		}
		n := 0
		for i := range batch {
			lo, hi := pairOfKey(extsort.Key(&batch[i]))
			if lo == hi {
				continue
			}
			u, _ := j.ids.rank(lo)
			v, _ := j.ids.rank(hi)
			batch[n] = batch[i]
			extsort.SetKey(&batch[n], pairKey(u, v))
			n++
		}
		return visit(batch[:n])
	})
}

// edgesOf returns a function that calls visit with unique pairs, without self-loops and dropped edges.
func (j *sortedEdges[T]) edgesOf(visit func(edges []T) error) func(pairs []T) error {
	draw := j.o.edgeDraw()
	return func(pairs []T) error {
		if j.o.DropEdges > 0 {
			pairs = notDropped(draw, pairs)
		}
		n := 0
		for i := range pairs {
			if lo, hi := pairOfKey(extsort.Key(&pairs[i])); lo != hi {
				pairs[n] = pairs[i]
				n++
			}
		}
		return visit(pairs[:n])
	}
}
