package stage

import (
	"context"
	"fmt"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/partition"
	"ndls/shards"
	"ndls/spmv"
)

// graph is the stored graph, ready for passes: rows [lo, hi) of it.
type graph struct {
	summary   shards.Summary
	lo, hi    int64
	degree    *mem.Array[uint32]
	component *mem.Array[uint32]
	stream    *shards.HopStream
	kernel    *spmv.Kernel
}

// openGraph loads degrees and components and opens the hop streams, which it
// first rebuilds from their shards where they are missing.
func (env *Env) openGraph(ctx context.Context) (_ *graph, err error) {
	g := &graph{}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.summary, err = shards.ReadSummary(ctx, env.Catalog); err != nil {
		return nil, err
	}
	n := g.summary.Nodes
	g.lo, g.hi = env.Span(n)
	if g.degree, err = mem.Alloc[uint32](env.Budget, g.hi-g.lo, "degrees"); err != nil {
		return nil, err
	}
	if g.component, err = mem.Alloc[uint32](env.Budget, g.hi-g.lo, "components"); err != nil {
		return nil, err
	}
	err = readNodes(ctx, env.Catalog, func(first int64, b shards.NodeBatch) {
		clip(g.degree.S, g.lo, b.Degree, first)
		clip(g.component.S, g.lo, b.Component, first)
	})
	if err != nil {
		return nil, err
	}
	if err := partition.EnsureHops(ctx, env.Catalog); err != nil {
		return nil, err
	}
	if g.stream, err = shards.OpenHopStream(ctx, env.Catalog); err != nil {
		return nil, err
	}
	if g.stream.NumNodes() != n || g.stream.NumEdges() != 2*g.summary.Edges {
		return nil, fmt.Errorf("the hop streams hold %d nodes and %d directed edges, the summary says %d and %d: %w",
			g.stream.NumNodes(), g.stream.NumEdges(), n, 2*g.summary.Edges, seal.ErrCorrupt)
	}
	if g.hi-g.lo == n && hops.Resident(g.stream.Bytes(), env.Budget.Free()) {
		if err := g.stream.Load(ctx, env.Budget); err != nil {
			return nil, err
		}
	}
	g.kernel, err = spmv.Select(env.Resources.Kernel)
	return g, err
}

// clip copies to rows lo, lo+1, … what values of rows first, first+1, … there are of
// them.
func clip(to []uint32, lo int64, values []uint32, first int64) {
	from, end := max(lo, first), min(lo+int64(len(to)), first+int64(len(values)))
	if from < end {
		copy(to[from-lo:], values[from-first:end-first])
	}
}

func (g *graph) close() {
	if g.stream != nil {
		g.stream.Close()
	}
	g.degree.Free()
	g.component.Free()
}
