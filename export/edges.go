package export

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sort"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
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
	rank, err := places(ctx, nodeSource(cat, false, false), b)
	if err != nil {
		return nil, err
	}
	id, err := nodeIDs(ctx, cat, b)
	if err != nil {
		rank.Free()
		return nil, err
	}
	slices.Sort(id.S)
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

// exportEdges sorts the edges range by range of their first end.
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
	var total int64
	if err := r.scan(ctx, files, func(u, _ uint32, _ float32) error { counts.S[u]++; total++; return nil }); err != nil {
		return 0, err
	}
	columns, perEdge := edgeColumns, int64(8)
	if graph.Directed {
		columns = directedColumns
	}
	if weighted {
		columns, perEdge = append(columns[:2:2], column{"weight", float32Kind, 0}), 12
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
	room := min(max((o.Budget.Free()-2*8192)/perEdge, 1), total)
	keys, err := mem.Alloc[uint64](o.Budget, room, "edges to sort")
	if err != nil {
		return 0, err
	}
	defer keys.Free()
	edges := edgeList{keys: keys.S}
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
	for lo := 0; lo < len(counts.S); {
		hi, n := lo, int64(0)
		for hi < len(counts.S) && n+int64(counts.S[hi]) <= room {
			n += int64(counts.S[hi])
			hi++
		}
		if hi == lo {
			return 0, fmt.Errorf("the %d edges of node %s need %s more; give more --memory: %w",
				counts.S[lo], names.quote(int64(r.id.S[lo])), mem.Bytes((int64(counts.S[lo])-room)*perEdge), mem.ErrBudget)
		}
		if n > 0 {
			if err := r.writeRange(ctx, files, uint32(lo), uint32(hi), edges.first(int(n)), w, m); err != nil {
				return 0, err
			}
		}
		lo = hi
	}
	return total, w.close()
}

// edgeList is edges as the ranks of their ends, and their weights, nil without weights. It is
// sorted by rank.
type edgeList struct {
	keys    []uint64
	weights []float32
}

func (l edgeList) first(n int) edgeList {
	l.keys = l.keys[:n]
	if l.weights != nil {
		l.weights = l.weights[:n]
	}
	return l
}

func (l edgeList) Len() int           { return len(l.keys) }
func (l edgeList) Less(i, j int) bool { return l.keys[i] < l.keys[j] }

func (l edgeList) Swap(i, j int) {
	l.keys[i], l.keys[j] = l.keys[j], l.keys[i]
	l.weights[i], l.weights[j] = l.weights[j], l.weights[i]
}

func (l edgeList) sort() {
	if l.weights == nil {
		slices.Sort(l.keys)
		return
	}
	sort.Sort(l)
}

// writeRange writes the edges whose first end has a rank in [lo, hi); there
// are as many as the list holds.
func (r *ranks) writeRange(ctx context.Context, files *edgeFiles, lo, hi uint32, list edgeList, w writer, m *progress.Meter) error {
	n := 0
	err := r.scan(ctx, files, func(u, v uint32, weight float32) error {
		if u < lo || u >= hi {
			return nil
		}
		if n == list.Len() {
			return fmt.Errorf("the edges changed while being read: %w", seal.ErrCorrupt)
		}
		list.keys[n] = uint64(u)<<32 | uint64(v)
		if list.weights != nil {
			list.weights[n] = weight
		}
		n++
		return nil
	})
	if err != nil {
		return err
	}
	list.sort()
	us, vs := make([]int64, edgeBatch), make([]int64, edgeBatch)
	for at := 0; at < list.Len(); at += edgeBatch {
		part := list.keys[at:min(at+edgeBatch, list.Len())]
		for i, key := range part {
			us[i], vs[i] = int64(r.id.S[key>>32]), int64(r.id.S[uint32(key)])
		}
		cols := [][]byte{mem.AsBytes(us[:len(part)]), mem.AsBytes(vs[:len(part)])}
		if list.weights != nil {
			cols = append(cols, mem.AsBytes(list.weights[at:at+len(part)]))
		}
		if err := w.write(cols, len(part)); err != nil {
			return err
		}
		m.Add(int64(len(part)))
	}
	return ctx.Err()
}
