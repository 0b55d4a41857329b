package graph

import (
	"context"
	"io"
)

// An EdgeSource or FeatureSource opens one of the streams.
type (
	EdgeSource interface {
		Open(context.Context) (EdgeReader, error)
	}
	FeatureSource interface {
		Open(context.Context) (FeatureReader, error)
	}
)

// NoEdges is a part that holds nothing.
type NoEdges struct{}

func (NoEdges) Read([]Edge) (int, error) { return 0, io.EOF }

func (NoEdges) Close() error { return nil }

// Share is [first, last) of so many equal parts.
type Share struct{ First, Last, Of int }

// Bounds returns the bounds of the share of n things.
func (s Share) Bounds(n int64) (lo, hi int64) {
	part := func(i int) int64 { return n/int64(s.Of)*int64(i) + n%int64(s.Of)*int64(i)/int64(s.Of) }
	return part(s.First), part(s.Last)
}

// cuttable is an edge list that can be read from the middle, if CanCut says so.
type cuttable interface {
	CanCut() bool
	OpenShare(ctx context.Context, s Share) (EdgeReader, error)
}

// OpenShare opens a part of an edge list.
func OpenShare(ctx context.Context, e EdgeSource, s Share) (EdgeReader, error) {
	switch c, ok := e.(cuttable); {
	case s.First == 0 && s.Last == s.Of:
		return e.Open(ctx)
	case ok && c.CanCut():
		return c.OpenShare(ctx, s)
	case s.First > 0:
		return NoEdges{}, nil
	}
	return e.Open(ctx)
}

// EdgeFunc is an [EdgeSource] of one function.
type EdgeFunc func(context.Context) (EdgeReader, error)

// Open implements [EdgeSource].
func (f EdgeFunc) Open(ctx context.Context) (EdgeReader, error) { return f(ctx) }

// FeatureFunc is a [FeatureSource] of one function.
type FeatureFunc func(context.Context) (FeatureReader, error)

// Open implements [FeatureSource].
func (f FeatureFunc) Open(ctx context.Context) (FeatureReader, error) { return f(ctx) }
