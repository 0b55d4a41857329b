package partition

import (
	"context"

	"ndls/internal/extsort"
)

// edgeSteps are the steps that read and sort edges. Those of a graph with weights sort records,
// those of another one keys alone.
type edgeSteps interface {
	// have lists the pieces of a step of which sorted edges are there, in order.
	have(step string) []Piece
	// splitEdges sorts the pairs of a part of the edge list.
	splitEdges(ctx context.Context, p Piece) error
	// mergePairs writes the unique pairs of a range of keys.
	mergePairs(ctx context.Context, p Piece) error
	// countPairs leaves what a range of the unique pairs says of nodes.
	countPairs(ctx context.Context, p Piece) error
	// gatherIDs leaves what all of them say of a range of input ids.
	gatherIDs(ctx context.Context, p Piece) error
	// orderNodes numbers the nodes, and commits the node table and what later steps have to know.
	orderNodes(ctx context.Context) error
	// relabelPairs sorts both directions of a range of the unique pairs in the order of the shards.
	relabelPairs(ctx context.Context, p Piece) error
	// writeRows commits shards and their hop streams.
	writeRows(ctx context.Context, p Piece) error
	close()
}

// sortedEdges are the steps that sort edges as items of one type.
type sortedEdges[T extsort.Item] struct {
	*job
	keys keyStore[T]
}

// useCatalog leaves sorted edges in the catalogue, for all workers.
func (j *job) useCatalog() {
	if j.info.Weighted {
		j.edges = catalogEdges[extsort.Record](j)
	} else {
		j.edges = catalogEdges[uint64](j)
	}
}

func catalogEdges[T extsort.Item](j *job) edgeSteps {
	return &sortedEdges[T]{j, catalogKeys[T]{j}}
}

// useScratch leaves sorted edges in memory and in scratch files, for this job alone; once says
// that it does not relabel.
func (j *job) useScratch(once bool) {
	j.alone = true
	if j.info.Weighted {
		j.edges = localEdges[extsort.Record](j, once)
	} else {
		j.edges = localEdges[uint64](j, once)
	}
}

func localEdges[T extsort.Item](j *job, once bool) edgeSteps {
	return &sortedEdges[T]{j, &localKeys[T]{job: j, once: once}}
}

func (e *sortedEdges[T]) have(step string) []Piece { return e.keys.have(step) }

func (e *sortedEdges[T]) close() { e.keys.close() }
