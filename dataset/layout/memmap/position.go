package memmap

import (
	"context"
	"io"

	"ndls/dataset/graph"
)

// byPosition is a split of the nodes before end, in order: training, validation, test.
type byPosition struct {
	train, valid, end int64
	name              string
}

// Open implements [layout.SplitSource].
func (s *byPosition) Open(ctx context.Context) (graph.SplitReader, error) {
	return &positions{byPosition: s, ctx: ctx}, nil
}

type positions struct {
	*byPosition
	ctx  context.Context
	next int64
}

func (r *positions) Close() error { return nil }

func (r *positions) Position() string { return graph.RowOf(r.name, r.next-1) }

func (r *positions) Next() (uint32, graph.Split, error) {
	id := r.next
	if id == r.end {
		return 0, graph.NoSplit, io.EOF
	}
	if id%(1<<16) == 0 {
		if err := r.ctx.Err(); err != nil {
			return 0, graph.NoSplit, err
		}
	}
	r.next++
	switch {
	case id < r.train:
		return uint32(id), graph.Train, nil
	case id < r.train+r.valid:
		return uint32(id), graph.Valid, nil
	}
	return uint32(id), graph.Test, nil
}
