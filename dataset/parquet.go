package dataset

import (
	"context"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
	"ndls/dataset/table"
)

// columnarEdges is an edge list in two columns of a Parquet or Arrow file.
type columnarEdges struct {
	*table.NumberedEdges
	rows  int64
	notes []graph.Note
}

func openColumnarEdges(src *source.Source, ext string, limit graph.IDLimit, named ends, weight string) (*columnarEdges, error) {
	f, err := table.OpenNumbered(src, ext)
	if err != nil {
		return nil, err
	}
	titles := f.Titles()
	if len(titles) < 2 && len(f.Nested()) == 0 {
		return nil, graph.BadData(src.Name, "needs two integer columns, source and target (or src= and dst=); it has: %s", strings.Join(titles, ", "))
	}
	c := edgeColumns{
		file: src.Name, titles: slices.Concat(titles, f.Nested()), width: len(titles),
		candidates: func() ([]int, error) { return f.Integers(), nil },
	}
	u, v, err := c.find(named)
	if err != nil {
		return nil, err
	}
	for i, key := range []string{"src", "dst"} {
		if err := f.NeedIDs(key, c.titles[[]int{u, v}[i]]); err != nil {
			return nil, err
		}
	}
	w, err := c.weight(weight, u, v)
	if err != nil {
		return nil, err
	}
	weight = ""
	if w >= 0 {
		weight = c.titles[w]
		if err := f.NeedWeights(weight); err != nil {
			return nil, err
		}
	}
	e := &columnarEdges{NumberedEdges: f.Edges(c.titles[u], c.titles[v], weight, limit), rows: f.Rows()}
	e.notes = c.notes(u, v, w, func(int) bool { return false })
	return e, nil
}

// parquetPairs opens an edge list whose columns have well-known names, or are the only two.
func parquetPairs(src *source.Source, limit graph.IDLimit) (graph.EdgeSource, error) {
	e, err := openColumnarEdges(src, ".parquet", limit, ends{}, "")
	if err != nil {
		return nil, err
	}
	return e, nil
}

// openColumnarFeatures opens features beside edges.
func openColumnarFeatures(ctx context.Context, src *source.Source, ext string, limit graph.IDLimit,
	zero bool,
) (*table.NumberedFeatures, error) {
	f, err := table.OpenNumbered(src, ext)
	if err != nil {
		return nil, err
	}
	return f.Features(ctx, limit, zero)
}
