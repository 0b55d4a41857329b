package partition

import (
	"context"

	"ndls/internal/extsort"
	"ndls/steps"
)

// sortedEdges implements the steps for edges that are items of one type.
type sortedEdges[T extsort.Item] struct {
	*job
	keys keyStore[T]
}

// useCatalog keeps sorted edges in the catalogue, for all workers.
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

// useScratch keeps sorted edges in memory and in scratch files, for this job alone. once says that the job does not relabel.
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

func (e *sortedEdges[T]) have(step string) []steps.Piece { return e.keys.have(step) }

func (e *sortedEdges[T]) close() { e.keys.close() }

// edgeSteps are the steps that read and sort edges: records in a graph with weights, else keys.
type edgeSteps interface {
	// have lists the pieces of a step whose sorted edges exist, in order.
	have(step string) []steps.Piece
	// splitEdges sorts the pairs of a part of the edge list.
	splitEdges(ctx context.Context, p steps.Piece) error
	// mergePairs writes the unique pairs of a range of keys.
	mergePairs(ctx context.Context, p steps.Piece) error
	// countPairs leaves a tally of a range of the unique pairs.
	countPairs(ctx context.Context, p steps.Piece) error
	// gatherIDs adds up all tallies of a range of input ids.
	gatherIDs(ctx context.Context, p steps.Piece) error
	// orderNodes numbers the nodes, and commits the node table and the data for later steps.
	orderNodes(ctx context.Context) error
	// relabelPairs sorts both directions of a range of the unique pairs in the order of the shards.
	relabelPairs(ctx context.Context, p steps.Piece) error
	// writeRows commits shards and their hop streams.
	writeRows(ctx context.Context, p steps.Piece) error
	close()
}
