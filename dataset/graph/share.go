package graph

import (
	"context"
	"io"
)

// An EdgeSource or FeatureSource opens one of the streams, as [Dataset] says.
type (
	EdgeSource interface {
		Open(ctx context.Context, s Share) (EdgeReader, error)
	}
	FeatureSource interface {
		Open(ctx context.Context, s Share) (FeatureReader, error)
	}
)

// Share is [First, Last) of so many equal parts.
type Share struct{ First, Last, Of int }

// Whole is all parts.
var Whole = Share{Last: 1, Of: 1}

// IsWhole reports whether the share is all parts.
func (s Share) IsWhole() bool { return s.First == 0 && s.Last == s.Of }

// Bounds returns the bounds of the share of n things.
func (s Share) Bounds(n int64) (lo, hi int64) {
	part := func(i int) int64 { return n/int64(s.Of)*int64(i) + n%int64(s.Of)*int64(i)/int64(s.Of) }
	return part(s.First), part(s.Last)
}

// Uncut is the share of what can only be read from its beginning: all, or nothing.
func (s Share) Uncut() Share {
	if s.First > 0 {
		return Share{Of: 1}
	}
	return Whole
}

// EdgeFunc is an [EdgeSource] that can only be read from its beginning.
type EdgeFunc func(context.Context) (EdgeReader, error)

// Open implements [EdgeSource].
func (f EdgeFunc) Open(ctx context.Context, s Share) (EdgeReader, error) {
	if s.First > 0 {
		return noEdges{}, nil
	}
	return f(ctx)
}

// noEdges is a part that holds nothing.
type noEdges struct{}

func (noEdges) Read([]Edge, []float32) (int, error) { return 0, io.EOF }

func (noEdges) Close() error { return nil }

// FeatureFunc is a [FeatureSource] that can only be read from its beginning.
type FeatureFunc func(context.Context) (FeatureReader, error)

// Open implements [FeatureSource].
func (f FeatureFunc) Open(ctx context.Context, _ Share) (FeatureReader, error) { return f(ctx) }
