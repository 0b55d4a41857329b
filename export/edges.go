package export

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"sort"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/share"
)

var edgeColumns = []column{{"u", int64Kind, 0}, {"v", int64Kind, 0}}

var directedColumns = []column{{"src", int64Kind, 0}, {"dst", int64Kind, 0}}

// ranks is the order of nodes by input id.
type ranks struct {
	directed bool
	rank     *mem.Array[uint32] // by node
	id       *mem.Array[uint32] // by rank
}

func newRanks(ctx context.Context, cat *catalog.Catalog, directed bool, b *mem.Budget) (*ranks, error) {
	rank, err := places(ctx, nodeSource(cat, false, false, b), b)
	if err != nil {
		return nil, err
	}
	id, err := nodeIDs(ctx, cat, rank.S, b)
	if err != nil {
		rank.Free()
		return nil, err
	}
	return &ranks{directed, rank, id}, nil
}

func (r *ranks) free() {
	r.rank.Free()
	r.id.Free()
}

// scan visits every edge once, as the ranks of its ends, the smaller one first, or, with
// directions, that from which it leads to the other; and its weight, 1 in a graph without weights.
func (r *ranks) scan(ctx context.Context, edges *edgeFiles, visit func(u, v uint32, weight float32) error) error {
	n := uint32(len(r.rank.S))
	return edges.each(ctx, func(src, dst []uint32, weights []float32) error {
		for i := range src {
			if src[i] >= n || dst[i] >= n {
				return fmt.Errorf("edge %d–%d of %d nodes: %w", src[i], dst[i], n, seal.ErrCorrupt)
			}
			weight := float32(1)
			if len(weights) > 0 {
				weight = weights[i]
			}
			if u, v := r.rank.S[src[i]], r.rank.S[dst[i]]; u < v || r.directed {
				if err := visit(u, v, weight); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// exportEdges sorts the edges range by range of their first end, those of a part.
func exportEdges(ctx context.Context, cat *catalog.Catalog, o Options, out io.Writer) (int64, error) {
	graph, err := summary(ctx, cat)
	if err != nil {
		return 0, err
	}
	weighted := graph.Weighted
	r, err := newRanks(ctx, cat, graph.Directed, o.Budget)
	if err != nil {
		return 0, err
	}
	defer r.free()
	files, err := openEdges(ctx, cat, weighted, o.Budget)
	if err != nil {
		return 0, err
	}
	defer files.close()
	counts, err := mem.Alloc[uint32](o.Budget, int64(len(r.rank.S)), "edges of each node")
	if err != nil {
		return 0, err
	}
	defer counts.Free()
	var all int64
	if err := r.scan(ctx, files, func(u, _ uint32, _ float32) error { counts.S[u]++; all++; return nil }); err != nil {
		return 0, err
	}
	first, end, total := nodesOf(o.Part, counts.S, all)
	columns, perEdge := edgeColumns, int64(4)
	if graph.Directed {
		columns = directedColumns
	}
	if weighted {
		columns, perEdge = append(columns[:2:2], column{"weight", float32Kind, 0}), 8
	}
	names, err := loadNames(ctx, cat, o.Budget)
	if err != nil {
		return 0, err
	}
	defer names.close()
	w, err := newWriter(o.Format, out, names.columns(columns), total, names)
	if err != nil {
		return 0, err
	}
	room := min(max((o.Budget.Free()-2*8192)/perEdge, 1), total, math.MaxUint32)
	ends, err := mem.Alloc[uint32](o.Budget, room, "edges to sort")
	if err != nil {
		return 0, err
	}
	defer ends.Free()
	edges := edgeList{ends: ends.S}
	if weighted {
		weights, err := mem.Alloc[float32](o.Budget, room, "weights of edges to sort")
		if err != nil {
			return 0, err
		}
		defer weights.Free()
		edges.weights = weights.S
	}
	m := progress.Start(ctx, "export", total, "edges")
	defer m.Done()
	for lo := first; lo < end; {
		hi, n := lo, int64(0)
		for hi < end && n+int64(counts.S[hi]) <= room {
			n += int64(counts.S[hi])
			hi++
		}
		if hi == lo {
			more := (int64(counts.S[lo]) - room) * perEdge
			return 0, fmt.Errorf("the %d edges of node %s need %s more; %s: %w",
				counts.S[lo], names.quote(int64(r.id.S[lo])), mem.Bytes(more), o.Budget.Would(more), mem.ErrBudget)
		}
		if n > 0 {
			if err := r.writeRange(ctx, files, uint32(lo), counts.S[lo:hi], edges.slice(0, int(n)), w, m); err != nil {
				return 0, err
			}
		}
		lo = hi
	}
	return total, w.close()
}

// nodesOf are the ranks [lo, hi) of the nodes whose edges belong to a part, and the number of these edges. counts has those of each
// node, which are in the part of the first of them.
func nodesOf(p share.Part, counts []uint32, all int64) (lo, hi int, edges int64) {
	if p.Whole() {
		return 0, len(counts), all
	}
	from, to := p.Range(all)
	before := int64(0)
	for u, n := range counts {
		if before < from {
			lo = u + 1
		}
		if before < to {
			hi = u + 1
			if before >= from {
				edges += int64(n)
			}
		}
		before += int64(n)
	}
	return lo, hi, edges
}

// edgeList is the other ends of the edges of some nodes, as ranks, and the weights of these edges,
// nil without weights. It is sorted by rank.
type edgeList struct {
	ends    []uint32
	weights []float32
}

func (l edgeList) slice(lo, hi int) edgeList {
	l.ends = l.ends[lo:hi]
	if l.weights != nil {
		l.weights = l.weights[lo:hi]
	}
	return l
}

func (l edgeList) Len() int           { return len(l.ends) }
func (l edgeList) Less(i, j int) bool { return l.ends[i] < l.ends[j] }

func (l edgeList) Swap(i, j int) {
	l.ends[i], l.ends[j] = l.ends[j], l.ends[i]
	l.weights[i], l.weights[j] = l.weights[j], l.weights[i]
}

func (l edgeList) sort() {
	if l.weights == nil {
		slices.Sort(l.ends)
		return
	}
	sort.Sort(l)
}

// sortedNodes is the number of nodes whose edges a thread sorts at a time.
const sortedNodes = 1 << 10

// writeRange writes the edges of the nodes with the ranks lo, lo+1, …; counts has the number of
// edges of each. The list has room for all of them. writeRange overwrites the counts.
func (r *ranks) writeRange(ctx context.Context, files *edgeFiles, lo uint32, counts []uint32, list edgeList, w writer,
	m *progress.Meter,
) error {
	// counts[i] becomes the place of the next edge of node i. When all edges are read, it is the end of
	// the node's edges.
	first := uint32(0)
	for i, n := range counts {
		counts[i], first = first, first+n
	}
	n := 0
	err := r.scan(ctx, files, func(u, v uint32, weight float32) error {
		if u < lo || int64(u-lo) >= int64(len(counts)) {
			return nil
		}
		at := int(counts[u-lo])
		if at == list.Len() {
			return errChanged
		}
		list.ends[at] = v
		if list.weights != nil {
			list.weights[at] = weight
		}
		counts[u-lo]++
		n++
		return nil
	})
	if err != nil {
		return err
	}
	if n != list.Len() {
		return errChanged
	}
	begin := func(i int) int {
		if i == 0 {
			return 0
		}
		return int(counts[i-1])
	}
	_ = share.Ranges(runtime.GOMAXPROCS(0), len(counts), sortedNodes, func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			list.slice(begin(i), int(counts[i])).sort()
		}
		return nil
	})
	us, vs := make([]int64, edgeBatch), make([]int64, edgeBatch)
	node := 0
	for at := 0; at < list.Len(); at += edgeBatch {
		part := list.slice(at, min(at+edgeBatch, list.Len()))
		for i, v := range part.ends {
			for int(counts[node]) <= at+i {
				node++
			}
			us[i], vs[i] = int64(r.id.S[lo+uint32(node)]), int64(r.id.S[v])
		}
		cols := [][]byte{mem.AsBytes(us[:part.Len()]), mem.AsBytes(vs[:part.Len()])}
		if part.weights != nil {
			cols = append(cols, mem.AsBytes(part.weights))
		}
		if err := w.write(cols, part.Len()); err != nil {
			return err
		}
		m.Add(int64(part.Len()))
	}
	return ctx.Err()
}

var errChanged = fmt.Errorf("the edges changed while being read: %w", seal.ErrCorrupt)
