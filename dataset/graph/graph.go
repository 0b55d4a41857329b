package graph

import (
	"context"

	"ndls/internal/inputid"
)

// MaxID is the largest input id: one below the value that marks "no node".
const MaxID = 1<<32 - 2

// Edge is one row of the input's edge list, by input ids.
type Edge struct{ U, V uint32 }

// Split says which part of the evaluation a node belongs to.
type Split uint8

// The splits, in the order in which the node table spells them.
const (
	NoSplit Split = iota
	Train
	Valid
	Test
)

// String is the name of the split in files, "" for none.
func (s Split) String() string {
	return [...]string{"", "train", "valid", "test"}[s]
}

// Info holds what is known of a dataset before its edges are read.
type Info struct {
	// Name identifies the dataset in reports, for example "cora".
	Name string
	// Identity is the URI without host paths (base names only): it is part of
	// the plan, so that a run directory knows another dataset from its own.
	Identity string
	// NumNodes is the number of nodes where the input states it: then input
	// ids are 0..NumNodes-1 and every one is a node. It is -1 where the nodes
	// are the ids that occur.
	NumNodes int64
	// NumFeatures is the width of a feature row, 0 for none.
	NumFeatures int
	// Columns names the columns that hold the features, each of one or several, where they have names.
	Columns []string
	// CutsFeatures is true where feature rows can be read from the middle.
	CutsFeatures bool
	// Categories names columns of values that are no numbers: [FeatureRow].Categories holds them.
	Categories []string
	// Plain lists the features, in ascending order, that transforms leave as they are.
	Plain []int
	// RowMemory estimates the bytes that a reader of feature rows takes, 0 for few: those of wide Parquet files hold
	// a page of each column.
	RowMemory int64
	// EdgeMemory estimates the bytes that a reader of edges takes, 0 for at most 8 MiB: some writers of Parquet make
	// one page of a column in a row group.
	EdgeMemory int64
	// SparseFeatures is true for bag-of-words style input, which is
	// L1-row-normalised unless told otherwise.
	SparseFeatures bool
	// Classes names the classes in order of their label; empty without labels.
	Classes []string
	// HasLabels and HasSplits report whether Labels and Splits give anything.
	HasLabels, HasSplits bool
	// Answers says that the dataset is [Answered]: Classes names the columns.
	Answers Answers
	// Weighted is true where edges have weights.
	Weighted bool
	// AddRepeated is true where the weights of rows that repeat an edge, in either direction,
	// are added up. Elsewhere these rows have to agree.
	AddRepeated bool
	// Directed is true where edges have directions: U of an [Edge] is where it begins.
	Directed bool
	// EdgeHint and SizeHint estimate edge rows and input bytes for the
	// progress display; 0 when unknown.
	EdgeHint, SizeHint int64
}

// Dataset is an opened input. Its streams may be opened any number of times
// and give the same items in the same order each time. Errors name the file and
// the row or line.
type Dataset interface {
	Info() Info
	// Edges streams a share of the edge list as stored: duplicates, self-loops and both
	// directions included. Each row is in one part, whatever the number of parts is. A list that
	// can only be read from its beginning is all in the first part.
	Edges(ctx context.Context, s Share) (EdgeReader, error)
	// Features streams one row for each node, in any order: all of them, or a share where
	// Info().CutsFeatures is true.
	Features(ctx context.Context, s Share) (FeatureReader, error)
	// Labels streams the labelled nodes; a node without a label is absent.
	Labels(ctx context.Context) (LabelReader, error)
	// Splits streams the nodes of a published split. Splits are numbered from 0; Splits refuses a number that no split has.
	Splits(ctx context.Context, number int) (SplitReader, error)
	Close() error
}

// Answered is a Dataset that may have labels or numbers of nodes in place of classes: where it was opened with Options.Answers.
type Answered interface {
	// Answers streams the nodes that have answers: a dense row with a value for each of Info().Classes, NaN
	// where it is not known. The values of [Labels] are 0 and 1.
	Answers(ctx context.Context) (FeatureReader, error)
}

// Keyed is a Dataset whose nodes have ids of any type. Streams give numbers of nodes, and
// can be read once [Keyed.Number] has said how to find these.
type Keyed interface {
	Dataset
	// KeyType is the type of the ids. It reads all ids where they are text that may stand
	// for anything.
	KeyType(ctx context.Context) (inputid.Type, error)
	// OwnNodes reports whether a table of nodes lists the ids, each once. Otherwise the ids are
	// those that occur.
	OwnNodes() bool
	// EachKey visits the key of each id, on so many goroutines at a time: each calls worker
	// once, and what that gives for one id after the other.
	EachKey(ctx context.Context, threads int, worker func(thread int) func(key []byte) error) error
	// Doubts says which ids that EachKey has visited may stand for something else, such as NA for a missing value.
	Doubts() []string
	// Twice is the error for an id that the table of nodes has more than once.
	Twice(ctx context.Context, key []byte) error
	// Number says how many ids there are, and how to find the number of one.
	Number(n int64, find func(key []byte) (uint32, bool))
	// FetchBy, after Number, says what to call with up to [inputid.Fetched] keys before they are looked up. The next Number ends it.
	FetchBy(fetch func(keys [][]byte))
}

// ColumnSelector is a FeatureReader of dense rows that spares the cost of columns that
// are not read.
type ColumnSelector interface {
	// SelectColumns makes the rows that follow rows of columns [first, last) alone: Dense
	// has last-first values.
	SelectColumns(first, last int)
}

// EdgeReader streams edges in batches.
type EdgeReader interface {
	// Read fills edges from the front and returns how many it holds; io.EOF comes alone, with 0.
	// Where edges have weights, it fills weights too, with positive, finite numbers: weights is as
	// long as edges, or nil where they are not wanted.
	Read(edges []Edge, weights []float32) (int, error)
	Close() error
}

// FeatureRow is the row of one node: Dense has NumFeatures values, or else
// Indices and Values list the non-zero ones in ascending order of index. The
// slices are valid until the next call.
type FeatureRow struct {
	ID      uint32
	Dense   []float32
	Indices []uint32
	Values  []float32
	// Categories holds a value for each of Info().Categories, empty where it is missing.
	Categories [][]byte
}

// FeatureReader streams feature rows.
type FeatureReader interface {
	// Next returns the next row, or io.EOF. Values are finite, but for NaN with Options.Missing.
	Next() (FeatureRow, error)
	Close() error
}

// LabelReader streams labels.
type LabelReader interface {
	// Next returns a node and its class, 0 ≤ label < len(Classes), or io.EOF.
	Next() (id uint32, label int32, err error)
	Close() error
}

// SplitReader streams split membership.
type SplitReader interface {
	// Next returns a node and its split, never NoSplit, or io.EOF.
	Next() (id uint32, split Split, err error)
	Close() error
}
