package table

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// Keyed are the keys of a URI that edges: and table: share.
type Keyed struct {
	// Ends are the columns with the two ends of an edge, and Weight that of the weights; empty where they are not named.
	Ends   [2]string
	Weight string
	// Repeated holds "sum" where weights of repeated edges are added up.
	Repeated string
	// Nulls says how null features are read: as zero, or refused.
	Nulls    string
	Directed bool
	// Form is how text is read.
	Form source.Form
}

// SharedKeys are the keys that Set takes.
var SharedKeys = append([]string{"src", "dst", "weight", "repeated", "directed", "nulls"}, source.FormKeys...)

// Set takes a key of a URI. headed are the names of the files that may have a header.
func (k *Keyed) Set(key, text string, headed []string) error {
	if slices.Contains(source.FormKeys, key) {
		return k.Form.Set(key, text, headed)
	}
	value, err := graph.PathOf(text)
	if err != nil {
		return err
	}
	switch key {
	case "src":
		k.Ends[0] = value
	case "dst":
		k.Ends[1] = value
	case "weight":
		k.Weight = value
	case "repeated":
		k.Repeated = value
	case "nulls":
		k.Nulls, err = value, graph.CheckNulls(value)
	case "directed":
		k.Directed, err = graph.ParseBool(key, value)
	}
	return err
}

// Check checks the columns of edges that the URI names.
func (k *Keyed) Check() error {
	switch ends, weight := k.Ends, k.Weight; {
	case (ends[0] == "") != (ends[1] == ""):
		return graph.BadURI("src= and dst= go together: name the columns of both ends of an edge")
	case ends[0] != "" && ends[0] == ends[1]:
		return graph.BadURI("src=%s&dst=%s: both ends of an edge cannot be in the same column", ends[0], ends[1])
	case weight != "" && slices.Contains(ends[:], weight):
		return graph.BadURI("weight=%s: the column has the ends of edges", weight)
	}
	return graph.CheckRepeated(k.Repeated, k.Weight)
}

// Identity spells those of the keys that come first in an identity.
func (k *Keyed) Identity() (parts []string) {
	for i, key := range []string{"src", "dst", "weight", "repeated"} {
		if value := []string{k.Ends[0], k.Ends[1], k.Weight, k.Repeated}[i]; value != "" {
			parts = append(parts, key+"="+graph.EscapePath(value))
		}
	}
	return parts
}

// spec names the sources of a graph.
type spec struct {
	Keyed
	edges, nodes, labels, splits place
	id                           string
	features                     []string
	// categories are columns of values, and plain those of features that transforms leave as they are.
	categories, plain []string
	label, split      string
	masks             []string // of training, validation and test, where split names three columns
	// answers are the columns that label names where they are read as answers.
	answers []string
	// relation is the relation of edges that is meant where a description has several.
	relation string
}

// uriKey is a key of a URI, and where its value is kept: a *place, a list of columns as *[]string, or a *string.
type uriKey struct {
	name string
	to   any
}

// keys are the keys that tables have beside those of edges, in the order of identities.
func (s *spec) keys() []uriKey {
	return []uriKey{
		{"nodes", &s.nodes},
		{"id", &s.id},
		{"features", &s.features},
		{"categories", &s.categories},
		{"plain", &s.plain},
		{"nulls", &s.Nulls},
		{"label", &s.label},
		{"labels", &s.labels},
		{"split", &s.split},
		{"splits", &s.splits},
		{"relation", &s.relation},
	}
}

// Keys are the keys of a URI.
var Keys = func() (names []string) {
	for _, k := range (&spec{}).keys() {
		if k.name != "nulls" { // is among those that are shared
			names = append(names, k.name)
		}
	}
	return append(names, SharedKeys...)
}()

// headed are the tables that may have a header.
var headed = []string{"edges", "nodes", "labels", "splits"}

// parse reads the part of a table: URI behind the colon.
func parse(rest string) (s spec, err error) {
	text, query, _ := strings.Cut(rest, "?")
	if text == "" {
		return s, graph.BadURI("table: needs the table of edges: table:EDGES?src=COLUMN&dst=COLUMN")
	}
	if s.edges, err = parsePlace("EDGES", text); err != nil {
		return s, err
	}
	params, err := graph.ParseParams(query, "&", Keys)
	if err != nil {
		return s, err
	}
	for _, p := range params {
		if err := s.set(p.Key, p.Value); err != nil {
			return s, err
		}
	}
	return s, s.check()
}

// set takes a key of the URI.
func (s *spec) set(key, text string) (err error) {
	if slices.Contains(SharedKeys, key) {
		return s.Set(key, text, headed)
	}
	i := slices.IndexFunc(s.keys(), func(k uriKey) bool { return k.name == key })
	switch to := s.keys()[i].to.(type) {
	case *place:
		*to, err = parsePlace(key, text)
	case *[]string:
		*to, err = columnList(key, text)
	case *string:
		*to, err = graph.PathOf(text)
	}
	if key == "split" && strings.Contains(text, ",") {
		if s.masks, err = columnList(key, text); err == nil && len(s.masks) != 3 {
			err = graph.BadURI("split=%s: name one column, or three with the masks of training, validation and test", text)
		}
	}
	return err
}

// columnList reads the names of columns with commas between them.
func columnList(key, text string) (list []string, err error) {
	seen := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		names, err := columns(part)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if name == "" || seen[name] {
				return nil, graph.BadURI("%s=%s: write the names of columns with commas between them, each once", key, text)
			}
			seen[name] = true
		}
		list = append(list, names...)
	}
	return list, nil
}

// NameList spells names of columns as a URI has them.
func NameList(names []string) string {
	escaped := make([]string, len(names))
	for i, name := range names {
		escaped[i] = strings.ReplaceAll(graph.EscapePath(name), ",", "%2C")
	}
	return strings.Join(escaped, ",")
}

// labelNames are the columns that label names.
func (s *spec) labelNames() []string { return s.namesOf("label", s.label) }

// namesOf are the columns that the key label or split names, nil if it names none.
func (s *spec) namesOf(key, name string) []string {
	switch {
	case key == "label" && s.answers != nil:
		return s.answers
	case key == "split" && s.masks != nil:
		return s.masks
	case name == "":
		return nil
	}
	return []string{name}
}

// numbered is a range of columns: x0..x127.
var numbered = regexp.MustCompile(`^(.*?)(\d{1,9})\.\.(.*?)(\d{1,9})$`)

// mostNumbered is the largest number of columns of a range.
const mostNumbered = 1 << 16

// columns are the columns that a part of features= names: x0..x3 are x0, x1, x2 and x3, and x08..x10 are x08, x09 and
// x10. Anything else is one name, as is x0%2E%2Ex3.
func columns(part string) ([]string, error) {
	m := numbered.FindStringSubmatch(part)
	if m == nil || m[1] != m[3] {
		name, err := graph.PathOf(part)
		return []string{name}, err
	}
	stem, err := graph.PathOf(m[1])
	if err != nil {
		return nil, err
	}
	first, _ := strconv.Atoi(m[2])
	last, _ := strconv.Atoi(m[4])
	if last < first || last-first >= mostNumbered {
		return nil, graph.BadURI("features=%s: a range leads from a number to a larger one, over %d columns at most", part, mostNumbered)
	}
	digits := 1
	if strings.HasPrefix(m[2], "0") {
		digits = len(m[2])
	}
	var names []string
	for i := first; i <= last; i++ {
		names = append(names, fmt.Sprintf("%s%0*d", stem, digits, i))
	}
	return names, nil
}

func (s *spec) check() error {
	switch {
	case s.Nulls != "" && len(s.features) == 0:
		return graph.BadURI("nulls=%s says what null features are: name their columns with features=", s.Nulls)
	case len(s.features)+len(s.categories) > 0 && !s.nodes.given():
		return graph.BadURI("features= and categories= name columns of the table of nodes: give it with nodes=")
	case slices.ContainsFunc(s.plain, func(name string) bool { return !slices.Contains(s.features, name) }):
		return graph.BadURI("plain= names columns that features= names, too")
	case slices.ContainsFunc(s.categories, func(name string) bool { return slices.Contains(s.features, name) }):
		return graph.BadURI("categories= and features= name a column twice: a column is one of the two")
	case s.label != "" && !s.nodes.given() && !s.labels.given():
		return graph.BadURI("label= names a column of the table of nodes or of labels: give it with nodes= or labels=")
	case s.split != "" && !s.nodes.given() && !s.splits.given():
		return graph.BadURI("split= names a column of the table of nodes or of splits: give it with nodes= or splits=")
	}
	return s.Check()
}

// identity spells the URI with base names, keys in fixed order.
func (s *spec) identity(noFeatures bool) string {
	parts := s.Identity()
	for _, k := range s.keys() {
		value := ""
		switch of := k.to.(type) {
		case *place:
			value = of.identity()
		case *[]string:
			if !noFeatures {
				value = NameList(*of)
			}
		case *string:
			value = graph.EscapePath(*of)
		}
		if value != "" {
			parts = append(parts, k.name+"="+value)
		}
	}
	if s.Directed {
		parts = append(parts, "directed=true")
	}
	parts = append(parts, s.Form.Identity()...)
	text := "table:" + s.edges.identity()
	if len(parts) > 0 {
		text += "?" + strings.Join(parts, "&")
	}
	return text
}
