package shards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"ndls/catalog"
	"ndls/internal/seal"
)

// SummaryPath is the path of the graph summary.
const SummaryPath = "graph/summary.json"

// Summary describes a partitioned graph.
type Summary struct {
	Name      string `json:"name"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"` // each once; without directions, a pair of nodes has one
	InputRows int64  `json:"input_rows"`
	SelfLoops int64  `json:"self_loops"`
	Repeated  int64  `json:"repeated"`
	// Dropped is the number of edges dropped at random. Blanked is the number of nodes with zeros in place of their features.
	Dropped          int64 `json:"dropped,omitempty"`
	Blanked          int64 `json:"blanked,omitempty"`
	Components       int64 `json:"components"`
	LargestComponent int64 `json:"largest_component"` // in nodes
	Features         int   `json:"features"`          // width of a row
	// FeatureType is the type of the values in tiles: Float16 if every value is exactly a float16, else Float32 or "".
	FeatureType  string           `json:"feature_type,omitempty"`
	Classes      []string         `json:"classes,omitempty"`
	Labelled     int64            `json:"labelled"`
	Splits       map[string]int64 `json:"splits,omitempty"`
	BlockRows    int64            `json:"block_rows"`
	IntervalRows int64            `json:"interval_rows"`
	Normalized   bool             `json:"normalized"` // features have L1 norm 1
	// Normalization describes the normalisation of rows and its reason, if the option was auto.
	Normalization string `json:"normalization,omitempty"`
	HasSplits     bool   `json:"has_splits"`
	// Weighted says that edges have weights.
	Weighted bool `json:"weighted,omitempty"`
	// Directed says that edges have directions.
	Directed bool `json:"directed,omitempty"`
	// IDs is the type of the input ids if they are numbered (inputid.Type), else "".
	IDs string `json:"ids,omitempty"`
	// Warnings holds what a user should know of the graph before trusting a result.
	Warnings []string `json:"warnings,omitempty"`
}

// HalfFeatures reports whether feature tiles are float16.
func (s Summary) HalfFeatures() bool { return s.FeatureType == Float16 }

// WriteSummary commits the summary of a graph.
func WriteSummary(ctx context.Context, c *catalog.Catalog, s Summary) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("shards: encode summary: %w", err)
	}
	return c.Write(ctx, catalog.Describe(catalog.KindSummary, SummaryPath).Counting(1), func(f *catalog.File) error {
		_, err := f.Write(append(data, '\n'))
		return err
	})
}

// maxSummaryBytes bounds the size of a summary that is read into memory, mainly class names.
const maxSummaryBytes = 64 << 20

// ReadSummary reads and checks the committed summary.
func ReadSummary(ctx context.Context, c *catalog.Catalog) (Summary, error) {
	e, ok := c.Lookup(SummaryPath)
	if !ok {
		return Summary{}, fmt.Errorf("shards: %[1]s has no %[2]s: run this first: ndls partition --dataset URI --run %[1]s", c.Store().URI(), SummaryPath)
	}
	if e.Bytes > maxSummaryBytes {
		return Summary{}, seal.Corrupt(SummaryPath, "it has %d bytes", e.Bytes)
	}
	r, err := c.Stream(ctx, e)
	if err != nil {
		return Summary{}, err
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return Summary{}, err
	}
	var s Summary
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return Summary{}, seal.Corrupt(SummaryPath, "%v", err)
	}
	return s, nil
}
