package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"ndls/catalog"
	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/stationary"
	"ndls/partition"
	"ndls/shards"
	"ndls/spmv"
)

// vmHWM finds the peak resident size in the text of /proc/self/status.
func vmHWM(status string) (int64, error) {
	for line := range strings.Lines(status) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("worker: no VmHWM in /proc/self/status")
}

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
func (j *job) openGraph(ctx context.Context) (_ *graph, err error) {
	g := &graph{}
	defer func() {
		if err != nil {
			g.close()
		}
	}()
	if g.summary, err = shards.ReadSummary(ctx, j.cat); err != nil {
		return nil, err
	}
	n := g.summary.Nodes
	g.lo, g.hi = j.span(n)
	if g.degree, err = mem.Alloc[uint32](j.budget, g.hi-g.lo, "degrees"); err != nil {
		return nil, err
	}
	if g.component, err = mem.Alloc[uint32](j.budget, g.hi-g.lo, "components"); err != nil {
		return nil, err
	}
	err = j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		clip(g.degree.S, g.lo, b.Degree, first)
		clip(g.component.S, g.lo, b.Component, first)
	})
	if err != nil {
		return nil, err
	}
	if err := partition.EnsureHops(ctx, j.cat); err != nil {
		return nil, err
	}
	if g.stream, err = shards.OpenHopStream(ctx, j.cat); err != nil {
		return nil, err
	}
	if g.stream.NumNodes() != n || g.stream.NumEdges() != 2*g.summary.Edges {
		return nil, fmt.Errorf("worker: the hop streams hold %d nodes and %d directed edges, the summary says %d and %d: %w",
			g.stream.NumNodes(), g.stream.NumEdges(), n, 2*g.summary.Edges, seal.ErrCorrupt)
	}
	if g.hi-g.lo == n && hops.Resident(g.stream.Bytes(), j.budget.Free()) {
		if err := g.stream.Load(ctx, j.budget); err != nil {
			return nil, err
		}
	}
	g.kernel, err = spmv.Select(j.res.Kernel)
	return g, err
}

// hops is the graph as the engines see it.
func (g *graph) hops(j *job, state *stationary.State) hops.Graph {
	h := hops.Graph{
		Source: hops.Slice(g.stream, g.lo, g.hi), Degree: g.degree.S, Kernel: g.kernel, State: state, Budget: j.budget,
		Threads: j.res.Threads, Scratch: j.res.Scratch, Group: j.group,
	}
	if j.group.Size() == 1 {
		h.Filter = func(ctx context.Context, src packed.Source, keep func(row int64) bool) (hops.Stream, error) {
			return shards.FilterHops(ctx, src, keep, j.res.Scratch, j.budget, j.res.Threads)
		}
	}
	return h
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

// state prepares the stationary state the plan asks for.
func (g *graph) state(ctx context.Context, j *job) (*stationary.State, error) {
	nodes := stationary.Nodes{Degree: g.degree.S, Components: int(g.summary.Components)}
	if j.plan.LSI.Stationary == "component" {
		nodes.Component = g.component.S
	}
	return stationary.New(ctx, j.group, j.budget, nodes, j.plan.LSI.R)
}

// readNodes visits the node table.
func (j *job) readNodes(ctx context.Context, visit func(first int64, b shards.NodeBatch)) error {
	entries := j.cat.Entries(catalog.KindNodes)
	if len(entries) != 1 {
		return fmt.Errorf("worker: the catalogue names %d node tables: run `ndls partition` first: %w", len(entries), seal.ErrCorrupt)
	}
	r, err := j.cat.OpenVerified(ctx, entries[0])
	if err != nil {
		return err
	}
	err = shards.ReadNodes(r, entries[0].Path, func(first int64, b shards.NodeBatch) error {
		visit(first, b)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	})
	if err == nil {
		err = r.Finish()
	}
	return errors.Join(err, r.Close())
}

// ids loads the input ids, by node: those of the task's rows of n.
func (j *job) ids(ctx context.Context, n int64) (*mem.Array[uint32], error) {
	lo, hi := j.span(n)
	ids, err := mem.Alloc[uint32](j.budget, hi-lo, "input ids")
	if err != nil {
		return nil, err
	}
	err = j.readNodes(ctx, func(first int64, b shards.NodeBatch) {
		for i, id := range b.ID {
			if node := first + int64(i); lo <= node && node < hi {
				ids.S[node-lo] = uint32(id)
			}
		}
	})
	if err != nil {
		ids.Free()
		return nil, err
	}
	return ids, nil
}

// precision is how rows are kept between hops.
func (j *job) precision() spmv.Precision {
	if j.plan.Precision == "float16" {
		return spmv.Float16
	}
	return spmv.Float32
}

// capacity is what column blocks for some columns have to fit.
func (j *job) capacity(g *graph, columns int) hops.Capacity {
	return hops.Capacity{
		Nodes: g.hi - g.lo, Others: g.summary.Nodes - (g.hi - g.lo), Components: g.summary.Components, Free: j.budget.Free(), Resident: g.stream.Resident(),
		Threads: j.res.Threads, Precision: j.precision(), Columns: columns, Asked: j.res.BlockColumns,
	}
}

// refused says which --memory has room for need bytes beside what is held now.
func (j *job) refused(what string, need int64, err error) error {
	least := j.res.Memory - j.budget.Free() + need
	return fmt.Errorf("worker: %s: %w; --memory %dMiB would do", what, err, (least+1<<20-1)>>20)
}
