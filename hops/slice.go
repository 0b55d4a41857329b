package hops

import (
	"context"

	"ndls/internal/packed"
)

// Slice returns rows [lo, hi) of src, whole strips, as a source with hi−lo nodes that numbers them 0, 1, …. The sources of edges keep the
// numbers of src.
func Slice(src packed.Source, lo, hi int64) packed.Source {
	if lo == 0 && hi == src.NumNodes() {
		return src
	}
	return slice{src, int(lo >> packed.StripShift), hi - lo}
}

type slice struct {
	packed.Source
	first int
	rows  int64
}

// whole returns the source of which src is a slice.
func whole(src packed.Source) packed.Source {
	if s, ok := src.(slice); ok {
		return s.Source
	}
	return src
}

func (s slice) NumNodes() int64       { return s.rows }
func (s slice) Strips() int           { return packed.Strips(s.rows) }
func (s slice) Edges(strip int) int64 { return s.Source.Edges(s.first + strip) }

func (s slice) Open(ctx context.Context, strip int, lo, hi uint32) (packed.Frames, error) {
	return s.Source.Open(ctx, s.first+strip, lo, hi)
}
