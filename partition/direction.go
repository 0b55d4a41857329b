package partition

import (
	"ndls/dataset"
)

// pairOf returns the key of an edge of input ids: (source, destination) with directions, else (smaller, larger).
func (j *job) pairOf(e dataset.Edge) uint64 {
	if j.info.Directed {
		return pairKey(e.U, e.V)
	}
	return pairKey(min(e.U, e.V), max(e.U, e.V))
}
