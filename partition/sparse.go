package partition

import (
	"ndls/dataset"
	"ndls/internal/extsort"
	"ndls/internal/rng"
)

// The keys of rng.Hash for the draws of a seed. They make draws independent of each other and of a random split, which has no such key.
const (
	drawEdges = 1 + iota
	drawFeatures
)

// edgeDraw decides which edges are dropped. All rows of an edge, in both directions, are dropped together.
type edgeDraw struct {
	stem  rng.Stem
	share float64
}

// edgeDraw returns the draw of the options.
func (o Options) edgeDraw() edgeDraw {
	return edgeDraw{rng.Stem(rng.Hash(o.Seed, drawEdges)), o.DropEdges}
}

// drops reports whether the edge between two input ids is dropped.
func (d edgeDraw) drops(u, v uint32) bool {
	first := rng.Stem(d.stem.Hash(uint64(min(u, v))))
	return rng.Float64(first.Hash(uint64(max(u, v)))) < d.share
}

// notDropped moves the pairs of input ids that are not dropped to the front of a batch. Self-loops stay, because they name a node.
func notDropped[T extsort.Item](d edgeDraw, pairs []T) []T {
	n := 0
	for i := range pairs {
		if u, v := pairOfKey(extsort.Key(&pairs[i])); u != v && d.drops(u, v) {
			continue
		}
		pairs[n] = pairs[i]
		n++
	}
	return pairs[:n]
}

// blanks reports whether the features of a node are blanked. Training nodes with a label keep theirs.
func (o Options) blanks(id int64, label int32, split uint8) bool {
	if o.BlankFeatures == 0 || dataset.Split(split) == dataset.Train && label != noLabel {
		return false
	}
	return rng.Float64(rng.Hash(o.Seed, drawFeatures, uint64(id))) < o.BlankFeatures
}
