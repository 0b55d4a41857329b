package graph

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ndls/group"
	"ndls/hops"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/stationary"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
	"ndls/stage"
)

// Graph holds rows [lo, hi) of the stored graph, ready for passes. If edges have directions, it holds one direction: hops add the rows of
// the nodes at one end of the edges to the rows at the other end.
type Graph struct {
	summary   shards.Summary
	direction string // of hops
	edgesKind string // kind of the files that hold the edges
	Lo, Hi    int64
	Degree    *mem.Array[uint32] // with directions, the number of rows added to each row
	sent      *mem.Array[uint32] // with directions, the number of rows to which each row is added; else nil
	Component *mem.Array[uint32]
	strength1 *mem.Array[float32] // strengths plus one; nil where edges have no weights
	divisors  *mem.Array[float32] // of sums, with directions; else nil
	stream    *shards.HopStream
	resident  bool       // the stream is in memory
	by        *stage.Env // task that opened the stream
	kernel    *spmv.Kernel

	// If workers that share the rows send each other only the rows that are read: reads has a bit for each row that this worker reads, and
	// read has, for each worker, a bit for each of this worker's rows which that worker reads. Else both are nil. members is the group that
	// exchanged them.
	reads, read *mem.Array[uint32]
	members     group.Group
}

// place names the graph in a session.
const place = "graph"

// Open opens the stored graph, in the first direction of hops, unless it is open.
func Open(ctx context.Context, env *stage.Env) (Engine, error) {
	return OpenDirection(ctx, env, env.Plan.Directions()[0])
}

// OpenDirection opens the stored graph for hops in a direction, unless it is open.
func OpenDirection(ctx context.Context, env *stage.Env, direction string) (Engine, error) {
	g, err := stage.Keep(env.Session, place, direction, func() (*Graph, error) { return openGraph(ctx, env, direction) })
	if err != nil {
		return Engine{}, err
	}
	if err := g.follow(ctx, env); err != nil {
		env.Drop(place)
		return Engine{}, err
	}
	if !env.Task.Shares() {
		env.Group = group.Solo(g.summary.Nodes)
	} else if err := g.list(ctx, env); err != nil {
		return Engine{}, err
	}
	return Engine{env, g}, nil
}

// OpenNodes returns the graph that is open. If none is, it opens one without directions and without edges.
func OpenNodes(ctx context.Context, env *stage.Env) (*Graph, error) {
	if g := stage.Kept[*Graph](env.Session, place); g != nil {
		return g, nil
	}
	return stage.Keep(env.Session, place, "nodes", func() (*Graph, error) { return NodesAlone(ctx, env) })
}

// list makes the workers of the group tell each other which rows they read, if that pays and they have not done so.
func (g *Graph) list(ctx context.Context, env *stage.Env) (err error) {
	members, n := env.Group, g.summary.Nodes
	if g.members == members || !group.ListsPay(n, g.stream.NumEdges(), members.Size()) {
		return nil
	}
	if g.reads == nil {
		if g.reads, err = mem.Alloc[uint32](env.Budget, (n+31)/32, "rows that are read"); err != nil {
			return err
		}
		if err := hops.MarkSources(ctx, hops.Slice(g.stream, g.Lo, g.Hi), n, env.Resources.Threads, g.reads.S); err != nil {
			g.reads.Free()
			g.reads = nil
			return err
		}
	}
	if words := int64(members.Size()) * ((g.Hi - g.Lo + 31) / 32); g.read == nil || int64(len(g.read.S)) != words {
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
func openGraph(ctx context.Context, env *stage.Env, direction string) (_ *Graph, err error) {
	g := &Graph{direction: direction, by: env}
	defer func() {
		if err != nil {
			g.Free()
		}
	}()
	if err := g.alloc(env); err != nil {
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

// NodesAlone opens a graph without directions like openGraph, but without edges. The caller frees it.
func NodesAlone(ctx context.Context, env *stage.Env) (_ *Graph, err error) {
	g := &Graph{}
	defer func() {
		if err != nil {
			g.Free()
		}
	}()
	if err := g.alloc(env); err != nil {
		return nil, err
	}
	return g, g.readNodes(ctx, env)
}

// alloc allocates degrees, strengths and components.
func (g *Graph) alloc(env *stage.Env) (err error) {
	g.summary = env.Summary
	g.Lo, g.Hi = env.Span(g.summary.Nodes)
	if g.Degree, err = mem.Alloc[uint32](env.Budget, g.Hi-g.Lo, "degrees"); err != nil {
		return err
	}
	if g.Component, err = mem.Alloc[uint32](env.Budget, g.Hi-g.Lo, "components"); err != nil {
		return err
	}
	if g.summary.Weighted {
		if g.strength1, err = mem.Alloc[float32](env.Budget, g.Hi-g.Lo, "strengths"); err != nil {
			return err
		}
	}
	if !g.summary.Directed {
		return nil
	}
	if g.sent, err = mem.Alloc[uint32](env.Budget, g.Hi-g.Lo, "degrees"); err != nil {
		return err
	}
	g.divisors, err = mem.Alloc[float32](env.Budget, g.Hi-g.Lo, "divisors")
	return err
}

// readNodes loads degrees, strengths and components.
func (g *Graph) readNodes(ctx context.Context, env *stage.Env) error {
	columns := shards.NodeDegree | shards.NodeComponent
	if g.summary.Weighted {
		columns |= shards.NodeStrength
	}
	if g.summary.Directed {
		columns |= shards.NodeOutDegree
	}
	return env.Nodes().Read(ctx, columns, func(first int64, b shards.NodeBatch) {
		clip(g.Degree.S, g.Lo, b.Degree, first)
		clip(g.Component.S, g.Lo, b.Component, first)
		for i, s := range b.Strength {
			if at := first + int64(i) - g.Lo; g.summary.Weighted && 0 <= at && at < g.Hi-g.Lo {
				g.strength1.S[at] = float32(s + 1)
			}
		}
		if g.sent != nil {
			clip(g.sent.S, g.Lo, b.OutDegree, first)
		}
	})
}

// direct turns the degrees of nodes, all and outgoing, into those for the direction of hops, and computes the divisors. With a = degree + 1
// for the rows that are added and b = sent + 1, the rows of a hop are D_a^(r−1) M̃ D_b^(−r) X. In Z = D_b^(−r) X, this is the sum of the
// rows of Z divided by a^(1−r) b^r.
func (g *Graph) direct(r float64) {
	degree, sent := g.Degree.S, g.sent.S
	for i := range degree {
		degree[i] -= sent[i]
		if g.direction == plan.Out {
			degree[i], sent[i] = sent[i], degree[i]
		}
		a, b := float64(degree[i])+1, float64(sent[i])+1
		g.divisors.S[i] = float32(elementary.Pow(a, 1-r) * elementary.Pow(b, r))
	}
}

// openStream opens the hop streams. Streams of an object store are read under ctx.
func (g *Graph) openStream(ctx context.Context, env *stage.Env) (err error) {
	if err := partition.EnsureHops(ctx, env.Catalog); err != nil {
		return err
	}
	_, kind := stage.EdgeKinds(g.direction)
	g.edgesKind = stage.EdgesOf(env.Catalog, g.direction)
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
func (g *Graph) load(ctx context.Context, env *stage.Env, free int64) error {
	if !hops.Resident(g.stream.RowsBytes(g.Lo, g.Hi), free) {
		return nil
	}
	g.resident = true
	return g.stream.LoadRows(ctx, env.Budget, g.Lo, g.Hi, env.Resources.Threads)
}

// follow reopens the hop streams if another task has opened them, unless they are in memory. Files of an object store cannot be read after
// the end of the context in which they were opened.
func (g *Graph) follow(ctx context.Context, env *stage.Env) error {
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

// Free closes the streams and frees the memory.
func (g *Graph) Free() {
	if g.stream != nil {
		g.stream.Close()
	}
	g.Degree.Free()
	g.Component.Free()
	g.strength1.Free()
	g.sent.Free()
	g.divisors.Free()
	g.reads.Free()
	g.read.Free()
}

// on sets the degrees and the divisors of sums in h.
func (g *Graph) on(h hops.Graph) hops.Graph {
	h.Degree = g.Degree.S
	switch {
	case g.divisors != nil:
		h.Sent, h.Divisors = g.sent.S, g.divisors.S
	case g.strength1 != nil:
		h.Divisors = g.strength1.S
	}
	return h
}

// scaled returns the nodes whose degrees scale rows.
func (g *Graph) scaled() stationary.Nodes {
	nodes := stationary.Nodes{Degree: g.Degree.S, Components: int(g.summary.Components)}
	switch {
	case g.sent != nil:
		nodes.Degree = g.sent.S
	case g.strength1 != nil:
		nodes.Strength1 = g.strength1.S
	}
	return nodes
}

// Engine joins a task with the stored graph that it works on.
type Engine struct {
	*stage.Env
	*Graph
}

// Passed adds the passes of s to the report.
func (g Engine) Passed(s hops.Stats, l spmv.Layout) {
	g.Report.Passes += s.Passes
	g.Report.ColumnsPerPass = l.Columns
	g.Report.EdgesStreamed += s.EdgesStreamed
	g.Report.KernelSeconds += s.Seconds
	g.Report.Hops.Add(s.ByHop...)
}

// Capacity returns the limits that column blocks for this number of columns have to fit.
func (g Engine) Capacity(columns int) hops.Capacity {
	return hops.Capacity{
		Nodes: g.Hi - g.Lo, Others: g.summary.Nodes - (g.Hi - g.Lo), Listed: g.Group.Listed(), Pair: g.Group.Size() == 2,
		Components: g.summary.Components, Free: g.Budget.Free(), Resident: g.stream.Resident(),
		Threads: g.Resources.Threads, Precision: Precision(g.Plan), Columns: columns, Asked: g.Resources.BlockColumns,
	}
}

// Refused returns an error that names the --memory with room for need bytes beside what is held now.
func (g Engine) Refused(what string, need int64, err error) error {
	least := g.Resources.Memory - g.Budget.Free() + need
	return fmt.Errorf("%s: %w; --memory %dMiB is enough", what, err, (least+1<<20-1)>>20)
}

// Agree returns c for the number of columns that every member has memory for. Each member proposes the largest number that leaves its rows
// in memory, or the least possible; the smallest proposal wins.
func (g Engine) Agree(ctx context.Context, c hops.Capacity, opts func(hops.Capacity) (spmv.Layout, error)) (hops.Capacity, error) {
	if c.Others == 0 {
		return c, nil
	}
	c = c.Agreed(packed.Panels(c.Columns) * packed.PanelColumns)
	if g.Resources.BlockColumns > 0 {
		c.Asked = min(c.Asked, max(g.Resources.BlockColumns/packed.PanelColumns, 1)*packed.PanelColumns)
	}
	for ; c.Asked > packed.PanelColumns; c.Asked -= packed.PanelColumns {
		if l, err := opts(c); err == nil && l.Residency == spmv.Resident {
			break
		}
	}
	columns, err := group.Min(ctx, g.Group, c.Asked)
	return c.Agreed(columns), err
}

// Hops returns the graph as the engines see it.
func (g Engine) Hops(state *stationary.State) hops.Graph {
	h := g.on(hops.Graph{
		Source: hops.Slice(g.stream, g.Lo, g.Hi), Kernel: g.kernel, State: state, Budget: g.Budget,
		Threads: g.Resources.Threads, Scratch: g.Resources.Scratch, Group: g.Group, Traffic: g.Traffic,
	})
	if lean := g.Resources.Lean; !lean || g.Resources.Spare > 0 {
		if lean {
			bytes := float64(hops.CopiedBytes(g.stream.Bytes())) / float64(max(g.stream.NumEdges(), 1)) // per edge
			h.Room = max(int64(float64(g.Resources.Spare)/bytes), 1)
		}
		h.Filter = func(ctx context.Context, src packed.Source, keep, from func(row int64) bool, bytes int64) (hops.Stream, error) {
			return shards.FilterHops(ctx, src, keep, from, g.Resources.Scratch, g.Budget, bytes, g.Resources.Threads)
		}
	}
	return h
}

// State prepares the stationary state that the plan asks for.
func (g Engine) State(ctx context.Context) (*stationary.State, error) {
	return Stationary(ctx, g.Env, g.Graph, g.Group, g.Plan.LSI.R)
}

// stateFor prepares the stationary state for the walk of a rule.
func (g Engine) stateFor(ctx context.Context, rule smooth.Rule) (*stationary.State, error) {
	if rule.Walk {
		return Stationary(ctx, g.Env, g.Graph, g.Group, 0)
	}
	return g.State(ctx)
}

// Stationary prepares the stationary state of a graph whose rows a group shares.
func Stationary(ctx context.Context, env *stage.Env, g *Graph, members group.Group, r float64) (*stationary.State, error) {
	nodes := g.scaled()
	if env.Plan.LSI.Stationary == "component" {
		nodes.Component = g.Component.S
	}
	return stationary.New(ctx, members, env.Budget, nodes, r)
}

// Precision returns the precision of rows between hops.
func Precision(p plan.Options) spmv.Precision {
	if p.Precision == "float16" {
		return spmv.Float16
	}
	return spmv.Float32
}
