package partition

import (
	"context"
	"math"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/share"
	"ndls/steps"
)

// Several workers add strengths up by ranges of ids. A strength is the sum of the weights of a node's edges in ascending order of their
// other ends, the order in which one worker visits all pairs. Edges to larger ends are the node's own pairs. Edges to smaller ends come
// first; they are found among the turned pairs. So a piece of Count leaves its pairs turned and sorted. A piece of Gather reads, for its
// range, what all pieces of Count left, one after the other, and then the pairs.

// allocStrength allocates strengths by rank, in a graph with weights.
func (j counting) allocStrength() (err error) {
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

// strengths writes the strengths of nodes with these input ids to `to`.
func (j nodeTable) strengths(ids []int64, to []float64) error {
	for i := range to {
		rank, _ := j.ids.rank(uint32(ids[i]))
		to[i] = j.strength.S[rank]
		if err := j.checkStrength(to[i]); err != nil {
			return err
		}
	}
	return nil
}

func (j nodeTable) checkStrength(x float64) error {
	if x+1 > math.MaxFloat32 {
		return badData("%s: the weights of the edges of one node add up to more than 3.4e38, the largest float32: scale all weights down before the import", j.info.Name)
	}
	return nil
}

// turnPairs adds to files the edges of a piece of Count by their second end, in a graph with weights.
func (j *sortedEdges[T]) turnPairs(ctx context.Context, p steps.Piece, pairs pairSource[T], files *catalog.Batch) error {
	if !j.info.Weighted {
		return nil
	}
	s, err := extsort.NewSorter[T](ctx, j.o.Budget, j.scratch, sortOptions(max(pairs.keys(), 1), j.o.Threads, false))
	if err != nil {
		return err
	}
	defer s.Close()
	edges := j.edgesOf(func(edges []T) error {
		for i := range edges {
			lo, hi := pairOfKey(extsort.Key(&edges[i]))
			extsort.SetKey(&edges[i], pairKey(hi, lo))
		}
		return s.Add(edges)
	})
	if err := pairs.each(ctx, j.o.Threads, edges); err != nil {
		return err
	}
	if err := s.Finish(); err != nil {
		return err
	}
	return catalogKeys[T]{j.job}.add(ctx, files, Count+tallyTurned, p, s.Keys(), s.InOrder, [2]int64{})
}

// addStrengthsOf adds up the strengths of a range of ids, which are in j.ids, in a graph with weights.
func (j *sortedEdges[T]) addStrengthsOf(ctx context.Context, r idRange) error {
	if err := j.counting().allocStrength(); err != nil || !j.info.Weighted {
		return err
	}
	keys := catalogKeys[T]{j.job}
	turned, err := keys.open(ctx, Count+tallyTurned, allSlices, false)
	if err != nil {
		return err
	}
	defer turned.Close()
	pairs, err := keys.open(ctx, Merge, allSlices, false)
	if err != nil {
		return err
	}
	defer pairs.Close()
	add := func(edges []T) error { //nolint:unparam // as its callers take it
		for i := range edges {
			id, _ := pairOfKey(extsort.Key(&edges[i]))
			rank, _ := j.ids.rank(id)
			j.strength.S[rank] += float64(extsort.Value(&edges[i]))
		}
		return nil
	}
	edges := j.edgesOf(add)
	threads := max(j.o.Threads, 1)
	parts := strengthRanges * threads
	if err := share.Each(threads, parts, func(i int) error {
		lo, hi := share.Part{I: i + 1, N: parts}.Range(r.hi - r.lo)
		first, end := idRange{lo: r.lo + lo, hi: r.lo + hi}.keys()
		if err := turned.InOrderWithin(ctx, 1, first, end, add); err != nil {
			return err
		}
		return pairs.InOrderWithin(ctx, 1, first, end, edges)
	}); err != nil {
		return err
	}
	for _, x := range j.strength.S {
		if err := j.nodeTable().checkStrength(x); err != nil {
			return err
		}
	}
	return nil
}

// strengthFiles returns the files of the strengths of a range, none without weights.
func (j counting) strengthFiles(r idRange) []tallyFile {
	if !j.info.Weighted {
		return nil
	}
	half := func(kind string, shift uint) tallyFile {
		return tallyFile{kind: kind, all: j.pairsOfIDs(func(rank, id uint32) (uint32, bool) {
			x := j.strength.S[rank]
			return uint32(math.Float64bits(x) >> shift), x != 0 && r.has(id)
		})}
	}
	return []tallyFile{half(tallyHigh, 32), half(tallyLow, 0)}
}

// strengthRanges is the number of ranges of ids that a thread takes, one after the other, when strengths are added up.
const strengthRanges = 4
