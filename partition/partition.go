package partition

import (
	"context"

	"ndls/dataset/prepare"
	"ndls/internal/mem"
)

// Values of Options.Normalize.
const (
	NormalizeAuto = "auto" // "l1" for rows that are bags of a few words whose lengths neighbours do not share, else "none"
	NormalizeL1   = "l1"   // divide every row by the sum of its absolute values
	NormalizeNone = "none"
	// NormalizeLog and NormalizeQuantile transform numbers.
	NormalizeLog      = prepare.Log
	NormalizeQuantile = prepare.Quantile
)

// Options says how to cut a graph. Budget and Scratch are required; the zero value of every other field means its default. The plan has
// checked the values.
type Options struct {
	// Budget is charged for every array that grows with the input.
	Budget *mem.Budget
	// Threads is the number of threads that compute at a time, 0 for one.
	Threads int
	// Scratch is a local folder for temporary files. They are removed before
	// Run returns.
	Scratch string
	// IntervalBlocks is the number of blocks of an interval, 0 for
	// DefaultIntervalBlocks.
	IntervalBlocks int
	// NoShards leaves out the edge shards: only hop streams are written.
	NoShards bool
	// Features requests feature tiles, if the dataset has features.
	Features bool
	// Normalize is one of the Normalize constants, "" for NormalizeAuto.
	Normalize string
	// Fill is FillMean or FillNeighbours to fill missing features, "" to refuse them. FillNeighbours leaves tiles ([Unfilled]) that the
	// caller fills, once the hop streams are there.
	Fill string
	// Split is "" for the published split, if there is one; "random:T,V", by which T nodes of each class train, V validate and the rest
	// test; or "share:T,V", the same for shares of all labelled nodes.
	Split string
	// Splits is the number of splits, 0 for one. Split i is the published split with number i, or drawn with Seed+i. The node table has the
	// first; files of a byte per node ([SplitPath]) have the others.
	Splits int
	// LabelsPerClass, if not 0, replaces the training nodes of the published split: this number of each class is drawn among the labelled
	// nodes that neither validate nor test.
	LabelsPerClass int
	// Columns, if not nil, returns the content of [ColumnsPath] of another partition, which the step Fit takes over.
	Columns func(ctx context.Context) ([]byte, error)
	// Only is "" for the whole graph; OnlyTrain or OnlyTrainValid restrict it to the nodes of these splits and the edges between them.
	Only string
	// DropEdges is the share of edges to drop. All rows of an edge, in both directions, are dropped together; nodes stay.
	DropEdges float64
	// BlankFeatures is the share of nodes whose features become zeros. Training nodes with a label are exempt.
	BlankFeatures float64
	// Seed decides what is drawn, and which edges and features are dropped.
	Seed uint64
}

// Values of Options.Fill.
const (
	FillMean       = "mean"       // the mean of the column
	FillNeighbours = "neighbours" // the mean of the neighbours that have a number, and of the column where none has
)

// Values of Options.Only.
const (
	OnlyTrain      = "train"       // the training nodes
	OnlyTrainValid = "train,valid" // training and validation nodes
)
