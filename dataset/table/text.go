package table

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"

	"ndls/dataset/column"
	"ndls/dataset/graph"
	"ndls/dataset/source"
)

// Text says how a file of text is read whose ids are the numbers of nodes.
type Text struct {
	source.Form
	// Part is the name of the file in the key header= of a URI.
	Part string
	// List says that the file holds numbers alone: each line is a row, also of columns with any number of blanks between
	// them, and one whose first field is no number is a header.
	List bool
	// Known are names of columns: a first line with one of them is a header.
	Known []string
	// Bare says that there is no header, whatever the first line is. Delimiter separates the columns, if it is not 0.
	Bare      bool
	Delimiter byte
	// Advice says what to do where a row has other columns than the first one.
	Advice string
}

// openText looks at the first lines. Lines that begin with # or % are comments.
func openText(ctx context.Context, src *source.Source, t *Text) (_ *csvFile, err error) {
	l, err := source.OpenLines(ctx, src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	c := &csvFile{cuts: cuts{src: src, whole: true}, plain: t.Plain, comments: true, advice: t.Advice}
	line, s, stated, err := l.First()
	if err == io.EOF {
		c.empty = true
		return c, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case t.Delimiter != 0:
		s = source.Separator(t.Delimiter)
	case !t.List && !stated:
		s = source.Separator(source.TableSeparator(line, " "))
	}
	if c.separator = s.Byte(); t.List {
		c.list = &s
	}
	r := c.recordsOf(l)
	first, err := r.Fields(line)
	if err != nil {
		return nil, err
	}
	if t.Part == "edges" && withData.Match(line) {
		return nil, attributes(r.Where())
	}
	c.header = titlesOf(first)
	if c.headed = t.heads(c.header); !c.headed {
		one := c.header[0]
		c.begin = l.Begin
		c.number(r)
		if len(c.header) > 1 || t.List || t.Part == "" {
			return c, nil
		}
		return c, t.checkFirst(r, one)
	}
	c.skip, c.begin = l.Number(), l.At+int64(l.Pos)
	next, err := r.Record()
	switch c.empty = err == io.EOF; {
	case c.empty:
		return c, nil
	case err == nil && len(next) != len(c.header):
		err = c.otherWidth(r, next)
	}
	return c, err
}

// heads reports whether the fields of the first line are the names of columns.
func (t *Text) heads(first []string) bool {
	has, stated := t.Header(t.Part)
	known := slices.ContainsFunc(first, func(name string) bool {
		return slices.ContainsFunc(t.Known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	switch {
	case t.Bare:
		return false
	case stated:
		return has
	case !t.List && len(first) == 1:
		return known
	}
	return known || !startsLikeNumber(first[0])
}

// startsLikeNumber tells a field of a row from a name.
func startsLikeNumber(field string) bool {
	return field != "" && (field[0] >= '0' && field[0] <= '9' || field[0] == '-' || field[0] == '+' || field[0] == '.')
}

// checkFirst refuses a first line of text over numbers, which may be a header that is not known. It is for files with
// one value a line.
func (t *Text) checkFirst(r *source.Records, first string) error {
	isNumber := func(text string) bool {
		_, ok := graph.Number([]byte(text), 64)
		return ok
	}
	if _, stated := t.Header(""); stated || column.NoLabel(first) || graph.IsMissing(first) || isNumber(first) {
		return nil
	}
	where, found := r.Where(), false
	for range sampledLines {
		record, err := r.Record()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if text := string(record[0]); !column.NoLabel(text) {
			if found = true; !isNumber(text) {
				return nil
			}
		}
	}
	if !found {
		return nil
	}
	return graph.BadData(where, "is %s, and numbers follow: if it is the name of the column, write header=true in the URI, and otherwise header=false", graph.Shorten([]byte(first)))
}

// withData is a line of NetworkX with the attributes of an edge, of which {} are none.
var withData = regexp.MustCompile(`^\S+\s+\S+\s+\{\s*['"]`)

// attributes is the error for such a line.
func attributes(where string) error {
	return graph.BadData(where, "has the attributes of an edge, as networkx.write_edgelist writes them: write the list with data=False, or with data=[\"weight\"] and weight=3 in the URI")
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

func holdsOf(text []byte) holds {
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

// idColumns are the columns whose first sampledLines rows can be node ids: plain whole numbers if there are any two of
// them, or else those with a fraction of zeros, too.
func (c *csvFile) idColumns(ctx context.Context) (found []int, err error) {
	r, err := c.records(ctx, 0, want{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	kinds := make([]holds, len(c.header))
	for range sampledLines {
		record, err := r.Record()
		if err == io.EOF {
			break
		}
		if err == nil && len(record) != len(kinds) {
			err = c.otherWidth(r, record)
		}
		if err != nil {
			return nil, err
		}
		for i, field := range record {
			kinds[i] = max(kinds[i], holdsOf(bytes.TrimSpace(field)))
		}
	}
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
	return found, nil
}
