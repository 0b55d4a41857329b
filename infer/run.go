package infer

import (
	"context"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/failure"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/rng"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/plan"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
)

// run is the run whose nodes are the old ones.
type run struct {
	cat     *catalog.Catalog
	plan    plan.Options
	summary shards.Summary
	ids     inputid.Type
	budget  *mem.Budget
	threads int
	// degree and component hold the degree and the component of each node. In a graph with weights
	// strength1, the strength plus one, takes the place of degree.
	degree, component *mem.Array[uint32]
	strength1         *mem.Array[float32]
	hops              *hopFiles
	rule              smooth.Rule
}

func (r *run) free() {
	r.degree.Free()
	r.strength1.Free()
	r.component.Free()
	if r.hops != nil {
		r.hops.close()
	}
}

// openRun opens what a run has stored: hops of all nodes, degrees and components.
func openRun(ctx context.Context, cat *catalog.Catalog, opts plan.Options, rule smooth.Rule, b *mem.Budget, threads int) (_ *run,
	err error,
) {
	r := &run{cat: cat, plan: opts, budget: b, threads: threads, rule: rule}
	defer func() {
		if err != nil {
			r.free()
		}
	}()
	if r.summary, err = shards.ReadSummary(ctx, cat); err != nil {
		return nil, err
	}
	if r.ids, err = inputid.TypeOf(r.summary.IDs); err != nil {
		return nil, err
	}
	if r.hops, err = openHops(ctx, cat, r.summary); err != nil {
		return nil, err
	}
	if !rule.NodeDependent && rule.Hops(0) > r.hops.last() {
		return nil, failure.Of(failure.ErrOption, "--rule %s takes %d hops, and the run has kept hops 0 to %d: make a run with --keep-hops 0..%d --targets all",
			rule.Name, rule.Hops(0), r.hops.last(), rule.Hops(0))
	}
	n := r.summary.Nodes
	if r.summary.Weighted {
		r.strength1, err = mem.Alloc[float32](b, n, "strengths")
	} else {
		r.degree, err = mem.Alloc[uint32](b, n, "degrees")
	}
	if err != nil {
		return nil, err
	}
	if r.component, err = mem.Alloc[uint32](b, n, "components"); err != nil {
		return nil, err
	}
	err = r.eachNodes(ctx, func(first int64, b shards.NodeBatch) error {
		if r.summary.Weighted {
			for i, s := range b.Strength {
				r.strength1.S[first+int64(i)] = float32(s + 1)
			}
		} else {
			copy(r.degree.S[first:], b.Degree)
		}
		copy(r.component.S[first:], b.Component)
		return nil
	})
	return r, err
}

// degree1 is d̃ of a node.
func (r *run) degree1(node uint32) float64 {
	if r.strength1 != nil {
		return float64(r.strength1.S[node])
	}
	return float64(r.degree.S[node]) + 1
}

// readNodeTable opens the node table for read, and compares its bytes with its checksum.
func (r *run) readNodeTable(ctx context.Context, read func(f *catalog.Verified, path string) error) error {
	entries := r.cat.Entries(catalog.KindNodes)
	if len(entries) != 1 {
		return fmt.Errorf("the catalogue names %d node tables: run `ndls partition` first: %w", len(entries), seal.ErrCorrupt)
	}
	f, err := r.cat.OpenVerified(ctx, entries[0])
	if err != nil {
		return err
	}
	defer f.Close()
	if err := read(f, entries[0].Path); err != nil {
		return err
	}
	return f.Finish()
}

// readers are those that read tables.
func (r *run) readers() shards.Readers { return shards.Readers{Threads: r.threads, Budget: r.budget} }

// eachNodes visits the node table.
func (r *run) eachNodes(ctx context.Context, visit func(first int64, b shards.NodeBatch) error) error {
	return r.readNodeTable(ctx, func(f *catalog.Verified, path string) error {
		rows := int64(0)
		err := shards.ReadNodes(f, path, r.readers(), func(first int64, b shards.NodeBatch) error {
			if rows = first + int64(len(b.ID)); rows > r.summary.Nodes {
				return seal.Corrupt(path, "it has more than %d nodes", r.summary.Nodes)
			}
			return visit(first, b)
		})
		if err == nil && rows != r.summary.Nodes {
			err = seal.Corrupt(path, "it has %d nodes of %d", rows, r.summary.Nodes)
		}
		return err
	})
}

// eachKey visits the keys of the input ids of all nodes, in order of node, and their type.
func (r *run) eachKey(ctx context.Context, visit func(node uint32, t inputid.Type, key []byte) error) error {
	if r.ids == inputid.Number {
		var key []byte
		return r.eachNodes(ctx, func(first int64, b shards.NodeBatch) error {
			for i, id := range b.ID {
				key = inputid.AppendInt(key[:0], id)
				if err := visit(uint32(first)+uint32(i), inputid.Int64, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return r.readNodeTable(ctx, func(f *catalog.Verified, path string) error {
		names, err := shards.OpenNodeIDs(f, path)
		if err != nil {
			return err
		}
		node := uint32(0)
		return names.Each(func(_ int64, keys [][]byte) error {
			for _, key := range keys {
				if err := visit(node, r.ids, key); err != nil {
					return err
				}
				node++
			}
			return ctx.Err()
		})
	})
}

// sampled is the approximate number of old nodes on which the threshold is chosen.
const sampled = 1 << 11

// sample lists the old nodes that the threshold is chosen on, by their ids and the seed.
func (r *run) sample(ctx context.Context) (nodes []uint32, err error) {
	limit := uint64(math.MaxUint64)
	if r.summary.Nodes > sampled {
		limit = uint64(float64(1<<63) / float64(r.summary.Nodes) * sampled * 2)
	}
	err = r.eachNodes(ctx, func(first int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			if rng.Hash(r.plan.Seed, uint64(id)) <= limit {
				nodes = append(nodes, uint32(first)+uint32(i))
			}
		}
		return nil
	})
	return nodes, err
}

// means are the stationary rows z̄ of some components.
type means struct {
	// place is, for each component, 1 + the place of its row, 0 where it has none; nil where the
	// whole graph has one row.
	place *mem.Array[uint32]
	rows  *mem.Array[float64]
}

func (m *means) free() {
	m.place.Free()
	m.rows.Free()
}

// of is the place of the stationary row of a node's component.
func (m *means) of(r *run, node uint32) uint32 {
	if m.place == nil {
		return 0
	}
	return m.place.S[r.component.S[node]] - 1
}

// global reports whether the whole graph has one stationary row.
func (r *run) global() bool { return r.plan.LSI.Stationary == "global" }

// findMeans reads the features of the run, and finds the stationary rows of the components of
// some nodes: z̄ = Σ d̃ Z^(0) / Σ d̃.
func (r *run) findMeans(ctx context.Context, nodes ...[]uint32) (_ *means, err error) {
	m := &means{}
	defer func() {
		if err != nil {
			m.free()
		}
	}()
	count := uint32(1)
	if !r.global() {
		if m.place, err = mem.Alloc[uint32](r.budget, r.summary.Components, "components"); err != nil {
			return nil, err
		}
		count = r.number(m.place.S, nodes)
	}
	w := r.summary.Features
	if m.rows, err = mem.Alloc[float64](r.budget, int64(count)*int64(w), "stationary rows"); err != nil {
		return nil, err
	}
	volume, err := mem.Alloc[float64](r.budget, int64(count), "volumes of components")
	if err != nil {
		return nil, err
	}
	defer volume.Free()
	node := uint32(0)
	var counted []weighed
	columns := tiles.Open(r.cat, r.budget, tiles.Features(r.summary)).On(r.threads)
	parts := min(max(r.threads, 1), packed.Panels(w))
	if err := columns.Rows(ctx, 0, w, func(rows []float32) error {
		counted = counted[:0]
		for row := range len(rows) / w {
			if m.place == nil || m.place.S[r.component.S[node]] > 0 {
				at, d := int(m.of(r, node)), r.degree1(node)
				volume.S[at] += d
				counted = append(counted, weighed{row, at, elementary.Pow(d, 1-r.plan.LSI.R)})
			}
			node++
		}
		// Each sum runs in ascending order of node, so that the threads take a part of the columns.
		_ = share.Each(parts, parts, func(part int) error {
			lo, hi := w*part/parts, w*(part+1)/parts
			for _, x := range counted {
				sum, row := m.rows.S[x.mean*w:][lo:hi], rows[x.row*w:][lo:hi]
				for c, value := range row {
					sum[c] += float64(x.weight * float64(value))
				}
			}
			return nil
		})
		return ctx.Err()
	}); err != nil {
		return nil, err
	}
	for i, v := range volume.S {
		for c := range w {
			m.rows.S[i*w+c] /= v
		}
	}
	return m, nil
}

// weighed is a row that counts in a stationary row, and its weight there.
type weighed struct {
	row, mean int
	weight    float64
}

// number numbers the components of some nodes from 1 on, in ascending order, and returns how many
// there are, but 1 at least.
func (r *run) number(place []uint32, nodes [][]uint32) (count uint32) {
	for _, list := range nodes {
		for _, v := range list {
			place[r.component.S[v]] = 1
		}
	}
	for c, is := range place {
		if is > 0 {
			count++
			place[c] = count
		}
	}
	return max(count, 1)
}
