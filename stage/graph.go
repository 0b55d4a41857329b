package stage

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/group"
	"ndls/hops"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/seal"
	"ndls/internal/stationary"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/spmv"
)

// graph holds rows [lo, hi) of the stored graph, ready for passes. If edges have directions, it holds one direction: hops add the rows of
// the nodes at one end of the edges to the rows at the other end.
type graph struct {
	summary   shards.Summary
	direction string // of hops
	edgesKind string // kind of the files that hold the edges
	lo, hi    int64
	degree    *mem.Array[uint32] // with directions, the number of rows added to each row
	sent      *mem.Array[uint32] // with directions, the number of rows to which each row is added; else nil
	component *mem.Array[uint32]
	strength1 *mem.Array[float32] // strengths plus one; nil where edges have no weights
	divisors  *mem.Array[float32] // of sums, with directions; else nil
	stream    *shards.HopStream
	resident  bool // the stream is in memory
	by        *Env // task that opened the stream
	kernel    *spmv.Kernel

	// If workers that share the rows send each other only the rows that are read: reads has a bit for each row that this worker reads, and
	// read has, for each worker, a bit for each of this worker's rows which that worker reads. Else both are nil. members is the group that
	// exchanged them.
	reads, read *mem.Array[uint32]
	members     group.Group
}

// list makes the workers of the group tell each other which rows they read, if that pays and they have not done so.
func (g *graph) list(ctx context.Context, env *Env) (err error) {
	members, n := env.Group, g.summary.Nodes
	if g.members == members || !group.ListsPay(n, g.stream.NumEdges(), members.Size()) {
		return nil
	}
	if g.reads == nil {
		if g.reads, err = mem.Alloc[uint32](env.Budget, (n+31)/32, "rows that are read"); err != nil {
			return err
		}
		if err := hops.MarkSources(ctx, hops.Slice(g.stream, g.lo, g.hi), n, env.Resources.Threads, g.reads.S); err != nil {
			g.reads.Free()
			g.reads = nil
			return err
		}
	}
	if words := int64(members.Size()) * ((g.hi - g.lo + 31) / 32); g.read == nil || int64(len(g.read.S)) != words {
		g.read.Free()
		if g.read, err = mem.Alloc[uint32](env.Budget, words, "rows that others read"); err != nil {
			return err
		}
	}
	if err := members.Reads(ctx, g.reads.S, g.read.S); err != nil {
		return err
	}
	g.members = members
	return nil
}

// openGraph loads degrees, strengths and components, and opens the hop streams. It first rebuilds missing streams from their shards, if
// there are shards.
func (env *Env) openGraph(ctx context.Context, direction string) (_ *graph, err error) {
	g := &graph{direction: direction, by: env}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if err := g.alloc(ctx, env); err != nil {
		return nil, err
	}
	free := env.Budget.Free() // independent of how far reading the node table is
	var reading errgroup.Group
	reading.Go(func() error { return g.readNodes(ctx, env) })
	if err = g.openStream(ctx, env); err == nil {
		err = g.load(ctx, env, free)
	}
	if err := errors.Join(reading.Wait(), err); err != nil {
		return nil, err
	}
	if g.sent != nil {
		g.direct(env.Plan.LSI.R)
	}
	g.kernel, err = spmv.Select(env.Resources.Kernel)
	return g, err
}

// openNodes opens a graph without directions like openGraph, but without edges.
func (env *Env) openNodes(ctx context.Context) (_ *graph, err error) {
	g := &graph{}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if err := g.alloc(ctx, env); err != nil {
		return nil, err
	}
	return g, g.readNodes(ctx, env)
}

// alloc allocates degrees, strengths and components.
func (g *graph) alloc(ctx context.Context, env *Env) (err error) {
	if g.summary, err = shards.ReadSummary(ctx, env.Catalog); err != nil {
		return err
	}
	g.lo, g.hi = env.Span(g.summary.Nodes)
	if g.degree, err = mem.Alloc[uint32](env.Budget, g.hi-g.lo, "degrees"); err != nil {
		return err
	}
	if g.component, err = mem.Alloc[uint32](env.Budget, g.hi-g.lo, "components"); err != nil {
		return err
	}
	if g.summary.Weighted {
		if g.strength1, err = mem.Alloc[float32](env.Budget, g.hi-g.lo, "strengths"); err != nil {
			return err
		}
	}
	if !g.summary.Directed {
		return nil
	}
	if g.sent, err = mem.Alloc[uint32](env.Budget, g.hi-g.lo, "degrees"); err != nil {
		return err
	}
	g.divisors, err = mem.Alloc[float32](env.Budget, g.hi-g.lo, "divisors")
	return err
}

// readNodes loads degrees, strengths and components.
func (g *graph) readNodes(ctx context.Context, env *Env) error {
	columns := shards.NodeDegree | shards.NodeComponent
	if g.summary.Weighted {
		columns |= shards.NodeStrength
	}
	if g.summary.Directed {
		columns |= shards.NodeOutDegree
	}
	return env.nodeTable().readNodes(ctx, columns, func(first int64, b shards.NodeBatch) {
		clip(g.degree.S, g.lo, b.Degree, first)
		clip(g.component.S, g.lo, b.Component, first)
		for i, s := range b.Strength {
			if at := first + int64(i) - g.lo; g.summary.Weighted && 0 <= at && at < g.hi-g.lo {
				g.strength1.S[at] = float32(s + 1)
			}
		}
		if g.sent != nil {
			clip(g.sent.S, g.lo, b.OutDegree, first)
		}
	})
}

// direct turns the degrees of nodes, all and outgoing, into those for the direction of hops, and computes the divisors. With a = degree + 1
// for the rows that are added and b = sent + 1, the rows of a hop are D_a^(r−1) M̃ D_b^(−r) X. In Z = D_b^(−r) X, this is the sum of the
// rows of Z divided by a^(1−r) b^r.
func (g *graph) direct(r float64) {
	degree, sent := g.degree.S, g.sent.S
	for i := range degree {
		degree[i] -= sent[i]
		if g.direction == plan.Out {
			degree[i], sent[i] = sent[i], degree[i]
		}
		a, b := float64(degree[i])+1, float64(sent[i])+1
		g.divisors.S[i] = float32(elementary.Pow(a, 1-r) * elementary.Pow(b, r))
	}
}

// EdgeKinds returns the kinds of the shards and of the hop streams that hops in a direction read.
func EdgeKinds(direction string) (shard, hops string) {
	if direction == plan.Out {
		return catalog.KindReversed, catalog.KindReversedHops
	}
	return catalog.KindEdges, catalog.KindHops
}

// HasShards reports whether a run directory has edge shards, from which hop streams can be rebuilt.
func HasShards(cat *catalog.Catalog) bool { return len(cat.Entries(catalog.KindEdges)) > 0 }

// EdgesOf returns the kind of the files that hold the edges which hops in a direction read: the shards, or the hop streams if there are no
// shards.
func EdgesOf(cat *catalog.Catalog, direction string) string {
	shard, hops := EdgeKinds(direction)
	if HasShards(cat) {
		return shard
	}
	return hops
}

// openStream opens the hop streams. Streams of an object store are read under ctx.
func (g *graph) openStream(ctx context.Context, env *Env) (err error) {
	if err := partition.EnsureHops(ctx, env.Catalog); err != nil {
		return err
	}
	_, kind := EdgeKinds(g.direction)
	g.edgesKind = EdgesOf(env.Catalog, g.direction)
	edges := 2 * g.summary.Edges
	if g.summary.Directed {
		edges = g.summary.Edges
	}
	if g.stream, err = shards.OpenHopStreamOf(ctx, env.Catalog, kind); err != nil {
		return err
	}
	n := g.summary.Nodes
	if g.stream.NumNodes() != n || g.stream.NumEdges() != edges {
		return fmt.Errorf("the hop streams hold %d nodes and %d directed edges, the summary says %d and %d: %w",
			g.stream.NumNodes(), g.stream.NumEdges(), n, edges, seal.ErrCorrupt)
	}
	if g.stream.Weighted() != g.summary.Weighted {
		return fmt.Errorf("edges of the hop streams have weights: %v, the summary says %v: %w", g.stream.Weighted(), g.summary.Weighted, seal.ErrCorrupt)
	}
	return nil
}

// load reads the edges of the task's rows into memory, if they fit in free bytes of the budget.
func (g *graph) load(ctx context.Context, env *Env, free int64) error {
	if !hops.Resident(g.stream.RowsBytes(g.lo, g.hi), free) {
		return nil
	}
	g.resident = true
	return g.stream.LoadRows(ctx, env.Budget, g.lo, g.hi, env.Resources.Threads)
}

// follow reopens the hop streams if another task has opened them, unless they are in memory. Files of an object store cannot be read after
// the end of the context in which they were opened.
func (g *graph) follow(ctx context.Context, env *Env) error {
	if g.by == env || g.resident {
		return nil
	}
	g.by = env
	g.stream.Close()
	g.stream = nil
	return g.openStream(ctx, env)
}

// clip copies values, which belong to rows first, first+1, …, to the rows lo, lo+1, … in to; rows outside to are skipped.
func clip[T any](to []T, lo int64, values []T, first int64) {
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
	g.strength1.Free()
	g.sent.Free()
	g.divisors.Free()
	g.reads.Free()
	g.read.Free()
}

// on sets the degrees and the divisors of sums in h.
func (g *graph) on(h hops.Graph) hops.Graph {
	h.Degree = g.degree.S
	switch {
	case g.divisors != nil:
		h.Sent, h.Divisors = g.sent.S, g.divisors.S
	case g.strength1 != nil:
		h.Divisors = g.strength1.S
	}
	return h
}

// scaled returns the nodes whose degrees scale rows.
func (g *graph) scaled() stationary.Nodes {
	nodes := stationary.Nodes{Degree: g.degree.S, Components: int(g.summary.Components)}
	switch {
	case g.sent != nil:
		nodes.Degree = g.sent.S
	case g.strength1 != nil:
		nodes.Strength1 = g.strength1.S
	}
	return nodes
}
