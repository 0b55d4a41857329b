package features

import (
	"context"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
	"ndls/train"
)

// ofSplit is the source of the rows that models of a split read: in place of the label columns of other splits they have zeros.
type ofSplit struct {
	train.Source
	out   estimate.Output
	split int
}

// RowsOfSplit returns the rows that models of a split read, given all rows.
func RowsOfSplit(env *stage.Env, src train.Source, split int) train.Source {
	if out := OutputOf(env.Plan, env.Summary); out.Splits > 1 {
		return ofSplit{src, out, split}
	}
	return src
}

// ReadChunk implements train.Source.
func (s ofSplit) ReadChunk(i int, dst *shards.RowBatch) error {
	if err := s.Source.ReadChunk(i, dst); err != nil {
		return err
	}
	s.blank(dst.Values)
	return nil
}

// ReadRows implements train.Source.
func (s ofSplit) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	values, err := s.Source.ReadRows(i, at, rows, space)
	if err != nil {
		return nil, err
	}
	values = space[:copy(space, values)] // rows in memory belong to all splits
	s.blank(values)
	return values, nil
}

// blank clears the label columns of other splits in rows. Each hop and direction of a row has columns of all splits.
func (s ofSplit) blank(rows []float32) {
	width, own := s.out.Width(), s.out.Features+s.split*s.out.Classes
	for ; len(rows) > 0; rows = rows[width:] {
		clear(rows[s.out.Features:own])
		clear(rows[own+s.out.Classes : width])
	}
}

// OutputOf returns what the stage writes for each target of a graph.
func OutputOf(p plan.Options, s shards.Summary) estimate.Output {
	return estimate.OutputOf(p, s.Features, len(s.Classes))
}

// OpenRows opens the rows that models read.
func OpenRows(ctx context.Context, env *stage.Env) (*train.Smoothed, error) {
	return train.OpenRows(ctx, env.Catalog, stage.RowsKind(env.Plan))
}

// TrainedWidth returns the number of values per row that models read.
func TrainedWidth(p plan.Options, s shards.Summary) int {
	return OutputOf(p, s).Trained()
}

// StoredRows returns the number of smoothed rows that a run has in files.
func StoredRows(cat *catalog.Catalog, p plan.Options) (rows int64) {
	for _, e := range cat.Entries(stage.RowsKind(p)) {
		rows += e.Rows
	}
	return rows
}
