package dataset

import (
	"regexp"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// What a dataset is made of. Package graph defines these types, because the readers
// of single layouts need them too.
type (
	Dataset        = graph.Dataset
	Keyed          = graph.Keyed
	Answered       = graph.Answered
	Answers        = graph.Answers
	Info           = graph.Info
	Options        = graph.Options
	Edge           = graph.Edge
	EdgeReader     = graph.EdgeReader
	EdgeRows       = graph.EdgeRows
	FeatureRow     = graph.FeatureRow
	IDs            = column.IDs
	FeatureReader  = graph.FeatureReader
	ColumnSelector = graph.ColumnSelector
	LabelReader    = graph.LabelReader
	Share          = graph.Share
	Split          = graph.Split
	SplitReader    = graph.SplitReader
	Note           = graph.Note
	Table          = graph.Table
	Column         = graph.Column
	Input          = source.Input
)

// Whole is all of a stream.
var Whole = graph.Whole

// The splits.
const (
	NoSplit = graph.NoSplit
	Train   = graph.Train
	Valid   = graph.Valid
	Test    = graph.Test
)

// What a dataset has of each node.
const (
	Classes = graph.Classes
	Labels  = graph.Labels
	Numbers = graph.Numbers
)

// MaxID is the largest input id, MaxFeatures the largest width of a feature row.
const (
	MaxID       = graph.MaxID
	MaxFeatures = graph.MaxFeatures
)

var (
	// ErrURI reports a dataset URI that cannot be understood.
	ErrURI = graph.ErrURI
	// ErrData reports input files that are damaged, contradict each other or hold
	// what is not read. The wrapped error names file, row and remedy.
	ErrData = graph.ErrData
)

// IsKeyed reports whether the dataset of an identity is [Keyed]: whether its ids have to be
// numbered.
func IsKeyed(identity string) bool {
	return strings.HasPrefix(identity, "table:") || strings.HasPrefix(identity, "graphland:")
}

// categoryKey finds the key of a URI that names categories, and layouts that may have them.
var categoryKey = regexp.MustCompile(`[?&]categories=|^graphland:`)

// HasCategories reports whether the dataset of an identity may have categories.
func HasCategories(identity string) bool { return categoryKey.MatchString(identity) }

// weightKey finds the key of a URI that gives edges weights.
var weightKey = regexp.MustCompile(`[?&,:]weights?=`)

// IsWeighted reports whether edges of the dataset of an identity have weights.
func IsWeighted(identity string) bool { return weightKey.MatchString(identity) }

// Notes says what was read as what, and what was left out, where a file leaves a
// choice. It is complete once ds is open.
func Notes(ds Dataset) []Note {
	if d, ok := ds.(interface{ Notes() []Note }); ok {
		return d.Notes()
	}
	return nil
}

// Tables describes the tables of which ds is made; none where it is made of other files.
func Tables(ds Dataset) []Table {
	if d, ok := ds.(interface{ Tables() []Table }); ok {
		return d.Tables()
	}
	return nil
}

// Files lists the files that were opened for ds, as [Inputs] does.
func Files(ds Dataset) ([]Input, error) {
	if d, ok := ds.(interface{ Inputs() ([]Input, error) }); ok {
		return d.Inputs()
	}
	return nil, nil
}
