package hops

import (
	"context"

	"golang.org/x/sync/errgroup"

	"ndls/internal/packed"
)

// MarkSources sets a bit of from for each source row of the edges of src, among all rows of the graph. It reads all edges once.
func MarkSources(ctx context.Context, src packed.Source, all int64, threads int, from []uint32) error {
	every := new([packed.StripRows]bool)
	for i := range every {
		every[i] = true
	}
	s := &spread{from: from}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(threads, 1))
	for strip := range src.Strips() {
		g.Go(func() error { return s.read(ctx, src, strip, all, every) })
	}
	return g.Wait()
}
