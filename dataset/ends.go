package dataset

import (
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/internal/meant"
)

// endpointNames are headers of the two id columns of an edge list.
var endpointNames = [][2]string{
	{"src", "dst"},
	{"source", "target"},
	{"id_1", "id_2"},
	{"from", "to"},
	{"node_1", "node_2"},
	{"u", "v"},
}

// ends are the columns of an edge list that the URI names; both are empty where it
// names none.
type ends struct{ src, dst string }

func (e ends) given() bool { return e != ends{} }

func (e ends) check() error {
	switch {
	case !e.given():
	case e.src == "" || e.dst == "":
		return graph.BadURI("src= and dst= go together: name the columns of both ends of an edge")
	case e.src == e.dst:
		return graph.BadURI("src=%s&dst=%s: both ends of an edge cannot be in the same column", e.src, e.dst)
	}
	return nil
}

// edgeColumns are the columns of a table of edges.
type edgeColumns struct {
	file   string
	titles []string // empty where the columns have no names
	width  int
	// candidates lists the columns that can hold node ids.
	candidates func() ([]int, error)
}

// find chooses the two columns with the ends of an edge: those that the URI names, or
// those with well-known names, or the only two there are. It does not guess.
func (c *edgeColumns) find(named ends) (u, v int, err error) {
	if named.given() {
		if u, err = c.column("src", named.src); err == nil {
			v, err = c.column("dst", named.dst)
		}
		if err == nil && u == v {
			err = graph.BadData(c.file, "src=%s and dst=%s are the same column", named.src, named.dst)
		}
		return u, v, err
	}
	for _, pair := range endpointNames {
		if u, v = c.index(pair[0]), c.index(pair[1]); u >= 0 && v >= 0 {
			return u, v, errors.Join(c.once(u), c.once(v))
		}
	}
	if c.width == 2 {
		return 0, 1, nil
	}
	found, err := c.candidates()
	if err != nil {
		return 0, 0, err
	}
	if len(found) == 2 {
		return found[0], found[1], nil
	}
	base := graph.EscapePath(filepath.Base(c.file))
	if len(c.titles) == 0 {
		return 0, 0, graph.BadData(c.file, "has %d columns without names, and not just two of them hold node ids: say in the URI which ones are the ends of an edge, for example edges:%s?src=1&dst=2",
			c.width, base)
	}
	return 0, 0, graph.BadData(c.file, "which columns are the ends of an edge? Say so in the URI: edges:%s?src=COLUMN&dst=COLUMN; the columns are %s", base, c.list())
}

// index finds a column by its name: exactly, or else whatever the case of its
// letters; -1 if there is none.
func (c *edgeColumns) index(name string) int {
	if i := slices.Index(c.titles, name); i >= 0 {
		return i
	}
	return slices.IndexFunc(c.titles, func(title string) bool { return strings.EqualFold(title, name) })
}

// column finds a column that the URI names, by number where columns have no names.
func (c *edgeColumns) column(key, name string) (int, error) {
	if len(c.titles) > 0 {
		i := c.index(name)
		if i < 0 {
			return 0, graph.BadData(c.file, "has no column %q for %s=: the columns are %s%s", name, key, c.list(), meant.Hint(name, c.titles))
		}
		return i, c.once(i)
	}
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || n > c.width {
		return 0, graph.BadData(c.file, "%s=%s: the file has no header, write the number of a column from 1 to %d", key, name, c.width)
	}
	return n - 1, nil
}

// once refuses a name that several columns have.
func (c *edgeColumns) once(i int) error {
	if slices.Contains(c.titles[i+1:], c.titles[i]) {
		return graph.BadData(c.file, "has two columns named %q: give each a name of its own", c.titles[i])
	}
	return nil
}

// weight finds the column of weights, which is none of the ends; -1 if the URI names none.
func (c *edgeColumns) weight(name string, u, v int) (int, error) {
	if name == "" {
		return -1, nil
	}
	w, err := c.column("weight", name)
	if err == nil && (w == u || w == v) {
		err = graph.BadData(c.file, "weight=%s: the column has the ends of edges", name)
	}
	return w, err
}

func (c *edgeColumns) list() string {
	shown := make([]string, len(c.titles))
	for i, title := range c.titles {
		if shown[i] = title; title == "" {
			shown[i] = `""`
		}
	}
	return strings.Join(shown, ", ")
}

// notes say which columns were chosen, and which ones are left out: w has the weights, unless
// it is below 0. blank says of a column that nothing is in it.
func (c *edgeColumns) notes(u, v, w int, blank func(i int) bool) []graph.Note {
	if len(c.titles) == 0 && c.width == 2 {
		return nil
	}
	name := func(i int) string {
		if len(c.titles) == 0 {
			return strconv.Itoa(i + 1)
		}
		return c.titles[i]
	}
	var others []string
	for i := range c.width {
		if i != u && i != v && i != w && !blank(i) {
			others = append(others, name(i))
		}
	}
	notes := []graph.Note{graph.NoteOf(c.file, "an edge joins the node in column %q to the node in column %q", name(u), name(v))}
	if w >= 0 {
		notes = append(notes, graph.NoteOf(c.file, "column %q has the weights of edges", name(w)))
	}
	switch {
	case len(others) == 0:
	case w >= 0:
		notes = append(notes, graph.WarningOf(c.file, "%s ignored: an edge is two node ids and a weight, without type or time", graph.Count(others, "column")))
	default:
		notes = append(notes, graph.WarningOf(c.file, "%s ignored: an edge is two node ids, without weight, type or time; weight=COLUMN in the URI names a column of weights", graph.Count(others, "column")))
	}
	return notes
}

// holds names what the fields of a column look like.
type holds uint8

// In the order in which a column of two kinds is of the later one.
const (
	holdsNothing holds = iota
	holdsDigits        // whole numbers
	holdsWhole         // whole numbers, some of them written as 170.0
	holdsOther
)

func holdsOf(field []byte) holds {
	text := graph.Unquote(field)
	whole := graph.WholeNumber(text)
	switch {
	case len(text) == 0:
		return holdsNothing
	case len(strings.Trim(string(whole), "0123456789")) > 0:
		return holdsOther
	case len(whole) < len(text):
		return holdsWhole
	}
	return holdsDigits
}

// idColumns are the columns that can hold node ids: plain whole numbers if there are
// any two of them, or else those with a fraction of zeros, too.
func idColumns(kinds []holds) (found []int) {
	for _, most := range []holds{holdsDigits, holdsWhole} {
		found = found[:0]
		for i, k := range kinds {
			if k != holdsNothing && k <= most {
				found = append(found, i)
			}
		}
		if len(found) >= 2 {
			break
		}
	}
	return found
}
