package dataset

import (
	"context"
	"errors"
	"slices"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/layout/dgl"
	"ndls/dataset/layout/graphbolt"
	"ndls/dataset/layout/graphland"
	"ndls/dataset/layout/graphsaint"
	"ndls/dataset/layout/memmap"
	"ndls/dataset/layout/npz"
	"ndls/dataset/layout/ogb"
	"ndls/dataset/layout/planetoid"
	"ndls/dataset/layout/pyg"
	"ndls/dataset/source"
	"ndls/dataset/table"
	"ndls/internal/meant"
)

// scheme is a kind of URI.
type scheme struct {
	name  string
	open  func(ctx context.Context, rest string, o Options) (Dataset, error)
	about string // for users
}

// schemes are the known kinds of URI, in the order in which help lists them.
var schemes = []scheme{
	{"edges", openEdges("edges"), aboutEdges},
	{"table", table.Open, aboutTable},
	{"mtx", openEdges("mtx"), aboutMatrixMarket},
	{"metis", openEdges("metis"), aboutMETIS},
	{"dimacs", openEdges("dimacs"), aboutDIMACS},
	{"adjlist", openEdges("adjlist"), aboutAdjacencyList},
	{"npz", npz.Open, aboutNPZ},
	{"graphsaint", graphsaint.Open, aboutGraphSAINT},
	{"pyg", pyg.Open, aboutPyG},
	{"dgl", dgl.Open, aboutDGL},
	{"graphbolt", graphbolt.Open, aboutGraphBolt},
	{"mag240m", memmap.OpenMAG240M, aboutMAG240M},
	{"igb", memmap.OpenIGB, aboutIGB},
	{"ogb", ogb.Open, aboutOGB},
	{"graphland", graphland.Open, aboutGraphLand},
	{"planetoid", planetoid.Open, aboutPlanetoid},
	{"karate", openKarate, aboutKarate},
	{"synthetic", openSynthetic, aboutSynthetic},
	{"papers100m", openPapers, aboutPapers},
}

// listed are the kinds whose edges may have directions, but for those that look after the key
// directed= themselves.
var listed = []string{"npz", "graphsaint", "pyg", "dgl", "graphbolt", "mag240m", "igb", "ogb"}

// Open opens the dataset that uri names; [Formats] describes the forms.
// It reads what is needed to fill Info: headers, and label files once. Errors
// are [ErrURI], [ErrData], or those of the file system.
func Open(ctx context.Context, uri string, o Options) (Dataset, error) {
	name, rest, ok := strings.Cut(uri, ":")
	var kinds []string
	for _, s := range schemes {
		if ok && s.name == name {
			ds, err := s.openDirected(ctx, rest, o)
			if err == nil && ds.Info().Answers != o.Answers && ds.Info().HasLabels {
				err = graph.BadURI("%s: has one class for each node; several labels or numbers are read from table:, ogb: and graphland: alone", name)
				err = errors.Join(err, ds.Close())
				return nil, err
			}
			if err != nil {
				return nil, err
			}
			if m, ok := ds.(interface{ AllowMissing() }); ok && o.Missing {
				m.AllowMissing()
			}
			if n, ok := ds.(interface{ NoteIn(*source.Sums) error }); ok {
				if err := n.NoteIn(source.SumsOf(ctx)); err != nil {
					return nil, errors.Join(err, ds.Close())
				}
			}
			return ds, nil
		}
		kinds = append(kinds, s.name)
	}
	if kind := meant.Word(name, kinds); kind != "" {
		return nil, graph.BadURI("%q is no dataset; did you mean %s:? `ndls help datasets` describes all kinds", uri, kind)
	}
	return nil, graph.BadURI("%q is no dataset: a kind and a colon come first, such as edges:FILE for a list of edges or table:FILE for tables; the kinds are %s, and `ndls help datasets` describes them",
		uri, strings.Join(kinds, ", "))
}

// TaskOf returns what the labels of the dataset of a URI are, where its files state it; else Classes.
func TaskOf(ctx context.Context, uri string) (Answers, error) {
	if rest, ok := strings.CutPrefix(uri, "graphland:"); ok {
		return graphland.Task(ctx, rest)
	}
	return Classes, nil
}

// openDirected opens a dataset, whose edges have directions where the URI says so.
func (s scheme) openDirected(ctx context.Context, rest string, o Options) (Dataset, error) {
	if !slices.Contains(listed, s.name) {
		return s.open(ctx, rest, o)
	}
	rest, key, err := cutDirected(rest)
	if err != nil {
		return nil, err
	}
	ds, err := s.open(ctx, rest, o)
	if err == nil && key != "" {
		ds.(interface{ Direct(key string) }).Direct(key)
	}
	return ds, err
}
