package partition

import (
	"context"

	"ndls/internal/extsort"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/steps"
)

// A tally holds what a piece knows of the nodes that it met, in files of sorted pairs of an input id and a number. Tallies add up: degrees
// are sums, and nodes are connected if any tally connects them. The step Count leaves tallies of ranges of unique pairs. The step Gather
// leaves tallies of ranges of input ids, with all that is known of these ids.
const (
	tallyDegrees = ""        // the degree of each node
	tallyStarts  = "-starts" // edges that begin at the node, in a graph with directions
	// tallyRoots has, for each node, the first node known to be connected to it. Count includes the first nodes themselves.
	tallyRoots = "-roots"
	// tallyLinks, of Gather, connects the roots of ranges: it has the first known connected node of each node that another range may have
	// as a root, and of nodes of other ranges.
	tallyLinks = "-links"
	// tallyTurned, of Count, has the edges of a graph with weights, sorted by their second end, then by their first.
	tallyTurned = "-turned"
	// tallyHigh and tallyLow, of Gather, have the two halves of the bits of each node's strength, a float64, in a graph with weights.
	tallyHigh = "-high"
	tallyLow  = "-low"
	// tallyClasses, of Gather, has the number of nodes of the range with each degree. Its notes are the range: input ids from the first
	// note to below the second.
	tallyClasses = "-classes"
)

// tally holds the arrays in which tallies are added up, by rank of the input ids.
type tally struct {
	degrees, parents *mem.Array[uint32]
	components       forest
}

func (t tally) free() {
	t.degrees.Free()
	t.parents.Free()
}

// idRange is the range [lo, hi) of input ids of a piece of the step Gather.
type idRange struct {
	piece  steps.Piece
	lo, hi int64
}

// idOf returns the id at whose numbers a border lies.
func idOf(border uint64) int64 {
	if border == extsort.End {
		return 1 << 32
	}
	return int64(border >> 32)
}

// limit ends the range where the stated ids end, if they are stated.
func (r *idRange) limit(stated int64) {
	if stated >= 0 {
		r.lo, r.hi = min(r.lo, stated), min(r.hi, stated)
	}
}

// keys returns the range of keys of numbers of these ids: from first to below end.
func (r idRange) keys() (first, end uint64) { return keyFrom(r.lo), keyFrom(r.hi) }

// keyFrom returns the first key of the numbers of an id.
func keyFrom(id int64) uint64 {
	if id >= 1<<32 {
		return extsort.End
	}
	return uint64(id) << 32
}

func (r idRange) has(id uint32) bool { return r.lo <= int64(id) && int64(id) < r.hi }

// tallyFile describes a file of a tally to write: the numbers that all visits, at most `most`, or at most one per id of j.ids if most is 0.
type tallyFile struct {
	kind  string
	most  int64
	all   visits[uint64]
	notes [2]int64
}

// with returns the file with these notes.
func (f tallyFile) with(first, second int64) tallyFile {
	f.notes = [2]int64{first, second}
	return f
}

// counting holds the steps Count and Gather: they count degrees and find components.
type counting struct{ *job }

func (j *job) counting() counting { return counting{j} }

// pairsOfIDs visits the pairs of an id and its value, in order of id, for ids that have one.
func (j counting) pairsOfIDs(value func(rank, id uint32) (n uint32, ok bool)) visits[uint64] {
	return batched(func(add func(key uint64) error) error {
		return j.ids.each(func(rank, id uint32) error {
			if n, ok := value(rank, id); ok {
				return add(pairKey(id, n))
			}
			return nil
		})
	})
}

// eachTally visits the numbers of a range in all files of a kind that a step left, on all threads.
func (j counting) eachTally(ctx context.Context, files string, r idRange, visit func(id, n uint32) error) error {
	keys := j.runFiles()
	lo, hi := r.keys()
	meter := progress.Start(ctx, "adding up degrees and components", 0, "nodes")
	defer meter.Done()
	for _, p := range havePieces(j.cat, files) {
		opened, err := keys.open(ctx, files, p, false)
		if err != nil {
			return err
		}
		err = opened.EachWithin(ctx, j.o.Threads, lo, hi, func(batch []uint64) error {
			meter.Add(int64(len(batch)))
			for _, key := range batch {
				if err := visit(pairOfKey(key)); err != nil {
					return err
				}
			}
			return nil
		})
		opened.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// newTally allocates a tally for the nodes of j.ids, and j.outDegree.
func (j counting) newTally() (t tally, err error) {
	if t.degrees, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "degrees"); err != nil {
		return t, err
	}
	if t.parents, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "components"); err != nil {
		t.free()
		return t, err
	}
	t.components = newForest(t.parents.S)
	if j.info.Directed {
		if j.outDegree, err = mem.Alloc[uint32](j.o.Budget, j.ids.n, "out-degrees"); err != nil {
			t.free()
		}
	}
	return t, err
}

// commitTally ranks j.ids and calls commit with a tally for them.
func (j counting) commitTally(commit func(t tally) error) error {
	if err := j.ids.rankAll(); err != nil {
		return err
	}
	t, err := j.newTally()
	if err != nil {
		return err
	}
	defer t.free()
	return commit(t)
}

// forgetIDs frees the data of one piece of Count or Gather, since other pieces have other ids.
func (j counting) forgetIDs() {
	if j.ids != nil {
		j.ids.free()
	}
	j.outDegree.Free()
	j.strength.Free()
	j.ids, j.outDegree, j.strength = nil, nil, nil
}

// noteIDsOf sets j.ids for a piece of this number of numbers: to the stated ids, or to an empty set for those of the piece.
func (j counting) noteIDsOf(numbers int64) (err error) {
	if n := j.info.NumNodes; n < manyNodes || numbers > n/sparseNodes {
		return j.noteIDs()
	}
	j.ids, err = newIDSet(j.o.Budget)
	return err
}

// If a graph has at least manyNodes nodes, and sparseNodes for each number of a piece, the ids of the piece are ranked among themselves
// although all ids are stated, because arrays of all nodes would take longer. Tests make manyNodes smaller.
const sparseNodes = 8

var manyNodes int64 = 1 << 22
