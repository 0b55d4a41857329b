package partition

import (
	"context"
	"errors"
	"math"
	"strconv"

	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/inputid"
	"ndls/internal/mem"
	"ndls/shards"
)

// orderBytes is enough memory for the step Order of a graph with weights: of so many nodes, or,
// if that is below 0, of as many as so many pairs can have.
func orderBytes(nodes, pairs int64) int64 {
	if nodes < 0 {
		nodes = 2 * pairs
	}
	return (17+8)*nodes + 4*pairs + 1<<20
}

// visits calls visit for items in ascending order.
type visits[T extsort.Item] func(visit func([]T) error) error

// united visits the pairs of input ids that all visits, each once. A pair without a weight comes
// once anyway. The rows of one with weights, in either direction, must have the same weight.
// Where the dataset asks for their sum, they are added up in ascending order.
func united[T extsort.Item](ctx context.Context, j *job, all visits[T]) visits[T] {
	if !j.info.Weighted {
		return all
	}
	return func(visit func([]T) error) error {
		out := make([]T, 0, extsort.BatchKeys)
		var key uint64
		var least float32
		var rows dataset.EdgeRows
		end := func() error {
			if rows.N == 0 {
				return nil
			}
			weight, problem := rows.Weight(j.info.AddRepeated)
			if lo, hi := pairOfKey(key); lo == hi {
				weight = least // is not used: a self-loop only names a node
			} else if problem != "" {
				return j.badEdge(ctx, lo, hi, problem)
			}
			out = out[:len(out)+1]
			if extsort.Set(&out[len(out)-1], key, weight); len(out) < cap(out) {
				return nil
			}
			err := visit(out)
			out = out[:0]
			return err
		}
		err := all(func(batch []T) error {
			for i := range batch {
				if k := extsort.Key(&batch[i]); rows.N == 0 || k != key {
					if err := end(); err != nil {
						return err
					}
					key, least, rows = k, extsort.Value(&batch[i]), dataset.EdgeRows{}
				}
				for range 1 + extsort.Repeated(&batch[i]) {
					rows.Add(extsort.Value(&batch[i]))
				}
			}
			return nil
		})
		if err == nil {
			err = end()
		}
		if err == nil && len(out) > 0 {
			err = visit(out)
		}
		return err
	}
}

// badEdge is the error about an edge.
func (j *job) badEdge(ctx context.Context, lo, hi uint32, problem string) error {
	u, err := j.nameOf(ctx, lo)
	if err != nil {
		return err
	}
	v, err := j.nameOf(ctx, hi)
	if err != nil {
		return err
	}
	return badData("%s: the edge between nodes %s and %s: %s", j.info.Name, u, v, problem)
}

// nameOf is the input id behind a number, as messages spell it.
func (j *job) nameOf(ctx context.Context, id uint32) (name string, err error) {
	if j.named.Type == inputid.Number {
		return strconv.FormatUint(uint64(id), 10), nil
	}
	t, closeFile, err := j.openIDs(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, closeFile()) }()
	err = t.Each(func(first int64, keys [][]byte) error {
		if at := int64(id) - first; at >= 0 && at < int64(len(keys)) {
			name = t.IDs().Type.Quote(keys[at])
		}
		return ctx.Err()
	})
	return name, err
}

// allocStrength prepares for strengths by rank, in a graph with weights.
func (j *job) allocStrength() (err error) {
	if j.info.Weighted {
		j.strength, err = mem.Alloc[float64](j.o.Budget, j.ids.n, "strengths")
	}
	return err
}

// addStrengths adds the weights of pairs of ranks to the strengths of both ends.
func addStrengths[T extsort.Item](strength []float64, pairs []T) {
	for i := range pairs {
		u, v := pairOfKey(extsort.Key(&pairs[i]))
		weight := float64(extsort.Value(&pairs[i]))
		strength[u] += weight
		strength[v] += weight
	}
}

// strengths gives those of nodes with these input ids to a batch of the node table.
func (j *job) strengths(ids []int64, to []float64) error {
	for i := range to {
		rank, _ := j.ids.rank(uint32(ids[i]))
		to[i] = j.strength.S[rank]
		if to[i]+1 > math.MaxFloat32 {
			return badData("%s: the weights of the edges of one node add up to more than 3.4e38, the largest float32: scale all weights down before the import", j.info.Name)
		}
	}
	return nil
}

// newPage returns an empty page of a shard.
func newPage(m shards.EdgeMeta) shards.EdgePage {
	p := shards.NewEdgePage()
	if m.Weighted {
		p.Weights = make([]float32, 0, shards.EdgePageRows)
	}
	return p
}
