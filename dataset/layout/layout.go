package layout

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"ndls/dataset/array"
	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// SplitSource opens the stream of splits.
type SplitSource interface {
	Open(context.Context) (graph.SplitReader, error)
}

// Graph is a [graph.Dataset] made of sources. What a layout does not have is nil, but
// for the edges.
type Graph struct {
	source.Files
	Options
	Known graph.Info
	// Stated says where the number of nodes is stated, "" where nothing but a layout does.
	Stated      string
	EdgeList    graph.EdgeSource
	FeatureRows graph.FeatureSource
	Classes     *column.Labels
	// AnswerRows has the answers of a dataset that has them in place of classes, in AnswerFile.
	AnswerRows graph.FeatureSource
	AnswerFile string
	Membership SplitSource
	// Another, unless nil, opens one of several splits; they count from 0.
	Another func(ctx context.Context, number int64) (SplitSource, error)
}

// Opened is called with the error of opening the sources. Without one it notes what follows from the sources and returns the
// graph; with one it closes the files and returns that error.
func (g *Graph) Opened(err error) (graph.Dataset, error) {
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	g.Known.SizeHint = g.Bytes()
	g.Known.Weighted, g.Known.AddRepeated = g.Weights.Name != "", g.Weights.Sum
	g.Known.HasSplits = g.Membership != nil
	g.Known.CutsFeatures = array.CutsFeatures(g.FeatureRows)
	if g.Known.HasLabels = g.Classes != nil || g.AnswerRows != nil; g.Classes != nil {
		g.Known.Classes = g.Classes.Classes
	}
	return g, nil
}

// Direct says that edges lead from their first node to their second one. key is the text of the URI
// about it, with the sign in front of it, and becomes the last part of the identity.
func (g *Graph) Direct(key string) {
	sign := "?"
	switch {
	case key[0] == ',':
		sign = ","
	case strings.Contains(g.Known.Identity, "?"):
		sign = "&"
	}
	g.Known.Directed = true
	g.Known.Identity += sign + key[1:]
}

// Limit bounds the ids by the number of nodes, if that is known.
func (g *Graph) Limit() graph.IDLimit {
	if g.Known.NumNodes < 0 {
		return graph.AnyID
	}
	return graph.IDLimit{N: min(g.Known.NumNodes, graph.MaxID+1), Stated: cmp.Or(g.Stated, "as the graph states")}
}

// Info implements [graph.Dataset].
func (g *Graph) Info() graph.Info { return g.Known }

// Edges implements [graph.Dataset].
func (g *Graph) Edges(ctx context.Context, s graph.Share) (graph.EdgeReader, error) {
	return g.EdgeList.Open(ctx, s)
}

// Features implements [graph.Dataset].
func (g *Graph) Features(ctx context.Context, s graph.Share) (graph.FeatureReader, error) {
	if g.FeatureRows == nil {
		return nil, graph.NoStream("features", g.Known.Name)
	}
	return g.FeatureRows.Open(ctx, s)
}

// Labels implements [graph.Dataset].
func (g *Graph) Labels(ctx context.Context) (graph.LabelReader, error) {
	if g.AnswerRows != nil {
		return graph.LabelsOfAnswers(ctx, g.AnswerRows, g.Known, g.AnswerFile)
	}
	if g.Classes == nil {
		return nil, graph.NoStream("labels", g.Known.Name)
	}
	return g.Classes.Open(ctx)
}

// Answers implements [graph.Answered].
func (g *Graph) Answers(ctx context.Context) (graph.FeatureReader, error) {
	if g.AnswerRows == nil {
		return nil, graph.NoStream("answers", g.Known.Name)
	}
	return graph.OpenAnswers(ctx, g.AnswerRows, g.Known, g.AnswerFile)
}

// Splits implements [graph.Dataset].
func (g *Graph) Splits(ctx context.Context, number int) (graph.SplitReader, error) {
	switch {
	case g.Membership == nil:
		return nil, graph.NoStream("published split", g.Known.Name)
	case number == 0:
		return g.Membership.Open(ctx)
	case g.Another == nil:
		return nil, graph.CheckSplit(g.Known.Name, number)
	}
	split, err := g.Another(ctx, int64(number))
	if err != nil {
		return nil, err
	}
	return split.Open(ctx)
}

// AllowMissing makes missing features NaN, where they may be missing.
func (g *Graph) AllowMissing() {
	if f, ok := g.FeatureRows.(interface{ AllowMissing() }); ok {
		f.AllowMissing()
	}
}

var _ graph.Dataset = (*Graph)(nil)
