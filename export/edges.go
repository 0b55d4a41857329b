package export

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/shards"
)

var edgeColumns = []column{{"u", int64Kind, 0}, {"v", int64Kind, 0}}

// edgeBatch is how many edges are read from a shard, or made for a writer, at a time.
const edgeBatch = 1 << 16

// ranks knows the order of nodes by input id.
type ranks struct {
	rank *mem.Array[uint32] // by node
	id   *mem.Array[uint32] // by rank
}

func newRanks(ctx context.Context, cat *catalog.Catalog, b *mem.Budget) (*ranks, error) {
	rank, err := places(ctx, nodeSource(cat), b)
	if err != nil {
		return nil, err
	}
	id, err := nodeIDs(ctx, cat, b)
	if err != nil {
		rank.Free()
		return nil, err
	}
	slices.Sort(id.S)
	return &ranks{rank, id}, nil
}

func (r *ranks) free() {
	r.rank.Free()
	r.id.Free()
}

// scan visits every undirected edge once, as the ranks of its ends, the smaller
// one first.
func (r *ranks) scan(ctx context.Context, cat *catalog.Catalog, visit func(u, v uint32) error) error {
	src, dst := make([]uint32, edgeBatch), make([]uint32, edgeBatch)
	n := uint32(len(r.rank.S))
	return eachFile(ctx, cat, catalog.KindEdges, func(e catalog.Entry, file storage.Reader, _ int64) error {
		edges, err := shards.OpenEdges(file, e.Path)
		if err != nil {
			return err
		}
		for {
			got, err := edges.Read(src, dst)
			for i := range got {
				if src[i] >= n || dst[i] >= n {
					return fmt.Errorf("%s: edge %d–%d of %d nodes: %w", e.Path, src[i], dst[i], n, seal.ErrCorrupt)
				}
				if u, v := r.rank.S[src[i]], r.rank.S[dst[i]]; u < v {
					if err := visit(u, v); err != nil {
						return err
					}
				}
			}
			if err == io.EOF {
				return ctx.Err()
			}
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
		}
	})
}

// exportEdges sorts the edges range by range of their smaller end.
func exportEdges(ctx context.Context, cat *catalog.Catalog, o Options, out io.Writer) (int64, error) {
	r, err := newRanks(ctx, cat, o.Budget)
	if err != nil {
		return 0, err
	}
	defer r.free()
	counts, err := mem.Alloc[uint32](o.Budget, int64(len(r.rank.S)), "edges of each node")
	if err != nil {
		return 0, err
	}
	defer counts.Free()
	var total int64
	if err := r.scan(ctx, cat, func(u, _ uint32) error { counts.S[u]++; total++; return nil }); err != nil {
		return 0, err
	}
	names, err := loadNames(ctx, cat, o.Budget)
	if err != nil {
		return 0, err
	}
	defer names.close()
	w, err := newWriter(o.Format, out, names.columns(edgeColumns), total, names)
	if err != nil {
		return 0, err
	}
	room := min(max((o.Budget.Free()-8192)/8, 1), total)
	keys, err := mem.Alloc[uint64](o.Budget, room, "edges to sort")
	if err != nil {
		return 0, err
	}
	defer keys.Free()
	m := progress.Start(ctx, "export", total, "edges")
	defer m.Done()
	for lo := 0; lo < len(counts.S); {
		hi, n := lo, int64(0)
		for hi < len(counts.S) && n+int64(counts.S[hi]) <= room {
			n += int64(counts.S[hi])
			hi++
		}
		if hi == lo {
			return 0, fmt.Errorf("the %d edges of node %d need %s more; give more --memory: %w",
				counts.S[lo], r.id.S[lo], mem.Bytes((int64(counts.S[lo])-room)*8), mem.ErrBudget)
		}
		if n > 0 {
			if err := r.writeRange(ctx, cat, uint32(lo), uint32(hi), keys.S[:n], w, m); err != nil {
				return 0, err
			}
		}
		lo = hi
	}
	return total, w.close()
}

// writeRange writes the edges whose smaller end has a rank in [lo, hi); there
// are len(keys).
func (r *ranks) writeRange(ctx context.Context, cat *catalog.Catalog, lo, hi uint32, keys []uint64, w writer, m *progress.Meter) error {
	n := 0
	err := r.scan(ctx, cat, func(u, v uint32) error {
		if u < lo || u >= hi {
			return nil
		}
		if n == len(keys) {
			return fmt.Errorf("the edge shards changed while being read: %w", seal.ErrCorrupt)
		}
		keys[n] = uint64(u)<<32 | uint64(v)
		n++
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(keys)
	us, vs := make([]int64, edgeBatch), make([]int64, edgeBatch)
	for part := range slices.Chunk(keys, edgeBatch) {
		for i, key := range part {
			us[i], vs[i] = int64(r.id.S[key>>32]), int64(r.id.S[uint32(key)])
		}
		if err := w.write([][]byte{mem.AsBytes(us[:len(part)]), mem.AsBytes(vs[:len(part)])}, len(part)); err != nil {
			return err
		}
		m.Add(int64(len(part)))
	}
	return ctx.Err()
}
