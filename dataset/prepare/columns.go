package prepare

import (
	"fmt"
	"math"
	"slices"

	"ndls/dataset/graph"
	"ndls/internal/elementary"
)

// Transforms of numbers.
const (
	Log      = "log"
	Quantile = "quantile"
)

// Columns says how the columns of a dataset become features.
type Columns struct {
	// Numbers is the number of columns of numbers of the dataset.
	Numbers int `json:"numbers"`
	// Names lists the columns of the dataset that hold the numbers, if they have names.
	Names []string `json:"names,omitempty"`
	// Transform is Log, Quantile or "". Plain lists columns of numbers that are not transformed, in ascending order.
	Transform string `json:"transform,omitempty"`
	Plain     []int  `json:"plain,omitempty"`
	// Means holds the number that stands for a missing one, by column; nil if no number may be missing. Missing lists the columns that
	// have masks, in ascending order.
	Means   []float32 `json:"means,omitempty"`
	Missing []int     `json:"missing,omitempty"`
	// Neighbours says that the mean over neighbours takes the place of Means, where neighbours have numbers.
	Neighbours bool `json:"neighbours,omitempty"`
	// Ranks holds the quantiles of each column, empty in a plain column.
	Ranks []ranks `json:"ranks,omitempty"`
	// Categories follow the columns of numbers.
	Categories []Category `json:"categories,omitempty"`
}

// Width returns the number of features of a row.
func (c *Columns) Width() int {
	n := c.Numbers + len(c.Missing)
	for i := range c.Categories {
		n += c.Categories[i].width()
	}
	return n
}

// FirstMask returns the feature that holds the masks of column Missing[0]; those of the others follow.
func (c *Columns) FirstMask() int { return c.Width() - len(c.Missing) }

// FromNeighbours reports whether neighbours fill some columns. c may be nil.
func (c *Columns) FromNeighbours() bool { return c != nil && c.Neighbours && len(c.Missing) > 0 }

// Check refuses a dataset whose columns are others than those of c.
func (c *Columns) Check(info graph.Info) error {
	var names []string
	for _, category := range c.Categories {
		names = append(names, category.Name)
	}
	switch {
	case info.NumFeatures != c.Numbers:
		return graph.BadData(info.Name, "has %d features beside categories, and the nodes of the run %d: name the same columns in the same order", info.NumFeatures, c.Numbers)
	case len(info.Columns) > 0 && len(c.Names) > 0 && !slices.Equal(info.Columns, c.Names):
		at := 0
		for at < min(len(info.Columns), len(c.Names)) && info.Columns[at] == c.Names[at] {
			at++
		}
		return graph.BadData(info.Name, "has features in %s where the nodes of the run have them in %s: name the same columns in the same order with features=, or rename the column",
			nameAt(info.Columns, at), nameAt(c.Names, at))
	case !slices.Equal(info.Categories, names):
		return graph.BadData(info.Name, "has the categories %q, and the nodes of the run %q: name the same columns in the same order with categories=", info.Categories, names)
	}
	return nil
}

// nameAt returns how messages name one of the columns.
func nameAt(names []string, at int) string {
	if at == len(names) {
		return "no further column"
	}
	return fmt.Sprintf("column %q", names[at])
}

// isPlain reports whether a column of numbers stays as it is.
func (c *Columns) isPlain(column int) bool {
	_, found := slices.BinarySearch(c.Plain, column)
	return c.Transform == "" || found
}

// number returns the transformed number of a column.
func (c *Columns) number(column int, x float32) float32 {
	switch {
	case x != x || c.isPlain(column):
		return x
	case c.Transform == Log:
		return log(x)
	}
	return float32(normal(c.Ranks[column].share(x)))
}

// log returns sign(x)·ln(1 + |x|).
func log(x float32) float32 {
	y := math.Abs(float64(x))
	if y < 1e-4 {
		y -= float64(float64(y*y) / 2) // the next term of the series is below half a last place of float32
	} else {
		y = elementary.Log(1 + y)
	}
	return float32(math.Copysign(y, float64(x)))
}

// Read returns the features of the rows of r.
func (c *Columns) Read(r graph.FeatureReader) graph.FeatureReader {
	return &reader{FeatureReader: r, c: c, row: make([]float32, c.Width())}
}

// ReadBlank is [Columns.Read] for a caller that fills missing numbers: if neighbours fill them, they stay NaN.
func (c *Columns) ReadBlank(r graph.FeatureReader) graph.FeatureReader {
	return &reader{FeatureReader: r, c: c, row: make([]float32, c.Width()), blank: c.Neighbours}
}

type reader struct {
	graph.FeatureReader
	c     *Columns
	row   []float32
	blank bool // missing numbers stay NaN
}

// Next implements [graph.FeatureReader].
func (r *reader) Next() (graph.FeatureRow, error) {
	f, err := r.FeatureReader.Next()
	if err != nil {
		return f, err
	}
	if f.Dense == nil && r.c.Numbers > 0 {
		if r.c.Transform != Log || len(r.c.Plain) > 0 || r.c.Width() != r.c.Numbers || r.c.Means != nil {
			return f, sparse(r.Position())
		}
		r.row = r.row[:0]
		for _, x := range f.Values {
			r.row = append(r.row, log(x)) // 0 stays 0
		}
		f.Values = r.row
		return f, nil
	}
	if len(f.Dense) != r.c.Numbers || len(f.Categories) != len(r.c.Categories) {
		return f, fmt.Errorf("%s has %d numbers and %d categories of %d and %d", r.Position(), len(f.Dense), len(f.Categories), r.c.Numbers, len(r.c.Categories))
	}
	r.c.code(r.row, f, r.blank)
	return graph.FeatureRow{ID: f.ID, Dense: r.row}, nil
}

// Known reports whether a number of a row of features was not missing.
func (c *Columns) Known(row []float32, column int) bool {
	at, may := slices.BinarySearch(c.Missing, column)
	return !may || row[c.FirstMask()+at] == 0
}

// code fills to with the features of a row. With blank, missing numbers stay NaN.
func (c *Columns) code(to []float32, f graph.FeatureRow, blank bool) {
	clear(to[c.Numbers:])
	mask := to[c.FirstMask():]
	for i, x := range f.Dense {
		if x == x {
			to[i] = c.number(i, x)
			continue
		}
		if to[i] = x; !blank {
			to[i] = c.Means[i]
		}
		if at, found := slices.BinarySearch(c.Missing, i); found { // a new node may miss a number that no other misses
			mask[at] = 1
		}
	}
	first := c.Numbers
	for i := range c.Categories {
		if at := c.Categories[i].of(f.Categories[i]); at >= 0 {
			to[first+at] = 1
		}
		first += c.Categories[i].width()
	}
}

// sparse is the error for a row that lists what is not zero.
func sparse(where string) error {
	return graph.BadData(where, "lists what is not zero, and --fill, --normalize %s and categories take columns of numbers: write dense rows, or leave these out", Quantile)
}

// NodeName returns the input id of the node of the row, "" if that is its number.
func (r *reader) NodeName() string {
	return graph.NodeName(r.FeatureReader)
}

// Position returns the place of the row.
func (r *reader) Position() string { return Position(r.FeatureReader) }

// Position returns the place of the row that a reader has read last.
func Position(r graph.FeatureReader) string {
	return graph.Position(r, "a row of features")
}
