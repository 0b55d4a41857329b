package partition

import (
	"context"

	"ndls/catalog"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/tiles"
)

// ordered holds what the step Order leaves beside the node table.
type ordered struct {
	Rows      int64 `json:"rows"`
	Loops     int64 `json:"loops"`
	Dropped   int64 `json:"dropped,omitempty"`
	Nodes     int64 `json:"nodes"`
	Stated    bool  `json:"stated"` // the dataset states the number of nodes
	Intervals int   `json:"intervals"`
	// Cuts are the cuts of the files of edges; Edges counts the edges of the nodes of each file.
	Cuts   cuts    `json:"cuts"`
	Edges  []int64 `json:"edges"`
	Panels int     `json:"panels"`
	// CutsFeatures says that several workers can read parts of the features.
	CutsFeatures bool `json:"cuts_features,omitempty"`
	Directed     bool `json:"directed,omitempty"`
	Weighted     bool `json:"weighted,omitempty"`
	NoShards     bool `json:"no_shards,omitempty"` // only hop streams are written
	// Groups is the number of row groups of the node table, and Lonely the number of nodes without an edge, if the steps Rank, Components
	// and Nodes follow.
	Groups int   `json:"groups,omitempty"`
	Lonely int64 `json:"lonely,omitempty"`
	// L1 says that rows of features are divided by the sum of their absolute values. Choice says why if the option left it open.
	L1     bool   `json:"l1,omitempty"`
	Choice string `json:"choice,omitempty"`
	counted
	Warnings []string `json:"warnings,omitempty"`
}

// counted holds the counts of nodes for the summary. If parts of the node table are joined, it ends in a file of its own.
type counted struct {
	Components       int64            `json:"components,omitempty"`
	LargestComponent int64            `json:"largest_component,omitempty"`
	Labelled         int64            `json:"labelled,omitempty"`
	Splits           map[string]int64 `json:"splits"`
	Blanked          int64            `json:"blanked,omitempty"`
}

// add adds the counts of other nodes, except those of components.
func (c *counted) add(o counted) {
	c.Labelled += o.Labelled
	c.Blanked += o.Blanked
	if c.Splits == nil {
		c.Splits = map[string]int64{}
	}
	for split, n := range o.Splits {
		c.Splits[split] += n
	}
}

// tiles returns the number of pieces of the step Tiles.
func (o ordered) tiles() int {
	if !o.CutsFeatures {
		return 0
	}
	return o.Intervals * o.Panels
}

// deals returns the number of pieces of the step Deal.
func (o ordered) deals() int {
	if o.tiles() == 0 {
		return 0
	}
	return Slices
}

// joins returns the number of pieces of the step Rows that join the parts of the node table.
func (o ordered) joins() int { return min(o.Groups, 1) }

// readOrdered reads what the step Order left; ok is false before that step.
func readOrdered(ctx context.Context, cat *catalog.Catalog) (o ordered, ok bool, err error) {
	e, ok := cat.Lookup(orderPath)
	if !ok {
		return o, false, nil
	}
	if err := readJSON(ctx, cat, e, &o); err != nil {
		return o, false, err
	}
	for _, e := range runs(cat, counts) {
		o.counted = counted{}
		if err := readJSON(ctx, cat, e, &o.counted); err != nil {
			return o, false, err
		}
	}
	return o, true, nil
}

// rowPieces returns the number of pieces of the step Rows without joining the node table: a piece per file of edges, then one per file of
// reversed edges in a graph with directions.
func (o ordered) rowPieces() int {
	if o.Directed {
		return 2 * o.Cuts.files()
	}
	return o.Cuts.files()
}

// files returns the files of a piece of the step Rows.
func (o ordered) files(piece int) rowFiles {
	kind, number := catalog.KindEdges, piece
	if piece >= o.Cuts.files() {
		kind, number = catalog.KindReversed, piece-o.Cuts.files()
	}
	f := filesOf(kind, number)
	f.lo, f.hi = o.Cuts[number], o.Cuts[number+1]
	return f
}

// hasFullTiles reports whether a feature was found that is not exactly float16.
func hasFullTiles(cat *catalog.Catalog) bool { return len(committedTiles(cat, false)) > 0 }

// committedTiles returns the feature tiles of a type. A partition has tiles of one kind.
func committedTiles(cat *catalog.Catalog, half bool) map[tiles.Place]catalog.Entry {
	if HasUnfilled(cat) {
		return tiles.Committed(cat, catalog.KindUnfilled, half)
	}
	return tiles.Committed(cat, catalog.KindFeatures, half)
}

// HasUnfilled reports whether there are tiles that neighbours have to fill.
func HasUnfilled(cat *catalog.Catalog) bool { return len(cat.Entries(catalog.KindUnfilled)) > 0 }

// Unfilled returns the layout of feature tiles that neighbours have to fill, of which some are committed. They hold the means of columns in
// place of missing numbers, and are float32 if one of them is.
func Unfilled(cat *catalog.Catalog, s shards.Summary) tiles.Layout {
	l := tiles.Features(s)
	l.Kind, l.Prefix, l.Half = catalog.KindUnfilled, "graph/unfilled", !hasFullTiles(cat)
	return l
}

// cutEdges sets Cuts and Edges. Nodes of degree d end before ends[d].
func (o *ordered) cutEdges(intervalRows int64, ends []uint32) {
	strips := stripEdges(o.Nodes, ends)
	o.Cuts = cutEdges(o.Nodes, intervalRows, strips, o.Directed)
	o.Edges = make([]int64, o.Cuts.files())
	for i := range o.Edges {
		for _, e := range strips[o.Cuts[i]>>packed.StripShift : packed.Strips(o.Cuts[i+1])] {
			o.Edges[i] += e
		}
	}
}
