package partition

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/dataset"
	"ndls/internal/direct"
	"ndls/internal/mem"
)

// pairKey orders undirected edges of input ids, or of their ranks, by the
// smaller and then the larger end. It is never endOfRun: ids end at
// dataset.MaxID.
func pairKey(lo, hi uint32) uint64 { return uint64(lo)<<32 | uint64(hi) }

// uniqueEdges is the list of undirected edges, each once, as pairKeys of ranks
// in a scratch file.
type uniqueEdges struct {
	f *spilled
	n int64
}

func (e uniqueEdges) close() { e.f.close() }

// each visits the edges in batches. It comes once: what was read is taken off
// the disk.
func (e uniqueEdges) each(ctx context.Context, visit func([]uint64) error) error {
	r := direct.NewReader(e.f, 0, e.n*8)
	defer r.Close()
	batch := make([]uint64, batchKeys)
	for left := e.n; left > 0; {
		keys := batch[:min(left, batchKeys)]
		if _, err := io.ReadFull(r, mem.AsBytes(keys)); err != nil {
			return readBackError(e.f, err)
		}
		if err := visit(keys); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		left -= int64(len(keys))
		e.f.drop((e.n - left) * 8)
	}
	return nil
}

// readGraph reads the edges and everything else that names a node. It sets
// j.ids and gives the unique edges, and the degrees by rank.
func (j *job) readGraph(ctx context.Context) (uniqueEdges, *mem.Array[uint32], error) {
	if err := j.noteIDs(); err != nil {
		return uniqueEdges{}, nil, err
	}
	pairs, err := j.sortPairs(ctx)
	if err != nil {
		return uniqueEdges{}, nil, err
	}
	defer pairs.close()
	if err := j.rankIDs(ctx); err != nil {
		return uniqueEdges{}, nil, err
	}
	degrees, err := mem.Alloc[uint32](j.o.Budget, j.ids.n, "degrees")
	if err != nil {
		return uniqueEdges{}, nil, err
	}
	edges, err := j.rankEdges(pairs, degrees.S)
	if err != nil {
		degrees.Free()
	}
	return edges, degrees, err
}

// noteIDs sets j.ids to the stated ids, or to none.
func (j *job) noteIDs() (err error) {
	if j.info.NumNodes >= 0 {
		j.ids = allIDs(j.info.NumNodes)
		return nil
	}
	j.ids, err = newIDSet(j.o.Budget)
	return err
}

// rankIDs prepares j.ids, to which the ids of all edges were added, for ranking.
func (j *job) rankIDs(ctx context.Context) error {
	if !j.ids.all {
		if err := j.addOtherIDs(ctx); err != nil {
			return err
		}
	}
	if err := j.ids.rankAll(); err != nil {
		return err
	}
	if j.ids.n == 0 {
		return fmt.Errorf("partition: %s has no nodes: there is nothing to do", j.info.Name)
	}
	return nil
}

// sortPairs reads the edge list, drops self-loops and sorts. Without j.ids it
// keeps self-loops: they may be all that names a node.
func (j *job) sortPairs(ctx context.Context) (_ *sorter, err error) {
	limit := int64(dataset.MaxID) + 1
	if j.info.NumNodes >= 0 {
		limit = j.info.NumNodes
	}
	note := j.ids != nil && !j.ids.all
	s, err := newSorter(ctx, j.o.Budget, j.scratch, sortOptions{
		want: j.info.EdgeHint + j.info.EdgeHint/8, threads: j.o.Threads, grows: note,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	keys := make([]uint64, 0, batchKeys)
	if err := j.eachEdges(ctx, "reading edges", func(batch []dataset.Edge) error {
		keys = keys[:0]
		for i, e := range batch {
			lo, hi := min(e.U, e.V), max(e.U, e.V)
			if int64(hi) >= limit {
				return fmt.Errorf("partition: %s: edge row %d%s is (%d, %d), and node ids end at %d: correct the row or the number of nodes",
					j.info.Name, j.rows+int64(i)+1, j.ofPart(), e.U, e.V, limit-1)
			}
			if note {
				if err := j.ids.add(lo); err != nil {
					return err
				}
				if err := j.ids.add(hi); err != nil {
					return err
				}
			}
			if lo == hi {
				j.loops++
				if j.ids != nil {
					continue
				}
			}
			keys = append(keys, pairKey(lo, hi))
		}
		j.rows += int64(len(batch))
		return s.add(keys)
	}); err != nil {
		return nil, err
	}
	return s, s.finish()
}

// ofPart says where rows are counted from.
func (j *job) ofPart() string {
	if j.part == (Piece{}) {
		return ""
	}
	return fmt.Sprintf(" from %d/%d of the list", j.part.First, Slices)
}

// addOtherIDs adds the nodes that have no edge but a label, a split or a
// feature row.
func (j *job) addOtherIDs(ctx context.Context) error {
	add := func(_ int64, id uint32) error { return j.ids.add(id) }
	if j.info.HasLabels {
		if err := j.eachLabel(ctx, func(row int64, id uint32, _ int32) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.HasSplits {
		if err := j.eachSplit(ctx, func(row int64, id uint32, _ dataset.Split) error { return add(row, id) }); err != nil {
			return err
		}
	}
	if j.info.NumFeatures > 0 {
		return j.eachFeatureRow(ctx, "reading node ids", func(row int64, f dataset.FeatureRow) error { return add(row, f.ID) })
	}
	return nil
}

// rankEdges counts degrees and writes the edges, by rank, to a scratch file.
func (j *job) rankEdges(pairs *sorter, degrees []uint32) (uniqueEdges, error) {
	stream, err := pairs.stream()
	if err != nil {
		return uniqueEdges{}, err
	}
	defer stream.close()
	keys := readAhead(j.o.Threads, stream)
	defer keys.close()
	f, err := j.scratch.create()
	if err != nil {
		return uniqueEdges{}, err
	}
	total := int64(0)
	for {
		batch, err := keys.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			f.abort()
			return uniqueEdges{}, err
		}
		for i, k := range batch.keys {
			u, _ := j.ids.rank(uint32(k >> 32))
			v, _ := j.ids.rank(uint32(k))
			degrees[u]++
			degrees[v]++
			batch.keys[i] = pairKey(u, v)
		}
		if err := f.writeKeys(batch.keys); err != nil {
			f.abort()
			return uniqueEdges{}, err
		}
		total += int64(len(batch.keys))
	}
	r, err := f.finish()
	return uniqueEdges{r, total}, err
}

// relabel numbers the nodes by descending degree, equal degrees by ascending
// input id, and sets j.nodeOf. Nodes of degree d end before ends[d].
func (j *job) relabel(degrees *mem.Array[uint32]) (ends *mem.Array[uint32], err error) {
	if j.nodeOf, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "relabelling"); err != nil {
		return nil, err
	}
	largest := uint32(0)
	for _, d := range degrees.S {
		largest = max(largest, d)
	}
	if ends, err = mem.Alloc[uint32](j.o.Budget, int64(largest)+1, "degree counts"); err != nil {
		return nil, err
	}
	for _, d := range degrees.S {
		ends.S[d]++
	}
	at := uint32(0)
	for d := int64(largest); d >= 0; d-- {
		ends.S[d], at = at, at+ends.S[d]
	}
	for rank, d := range degrees.S {
		j.nodeOf.S[rank] = ends.S[d]
		ends.S[d]++
	}
	return ends, nil
}
