package source

import (
	"bytes"
	"io"
	"unicode/utf8"

	"ndls/dataset/graph"
)

// maxQuoted is the longest record with quotes.
const maxQuoted = maxLine

// Records reads the records of CSV text, as RFC 4180 has them. A field in quotes may hold separators, line ends and,
// written twice, quotes. Blanks around a field in quotes are no part of it. Empty lines are no records.
type Records struct {
	*Lines
	Separator byte
	// Plain says that a quote is a letter like any other.
	Plain bool
	// Comments says that lines that begin with # or % are no records.
	Comments bool
	// List says that a record is a line, which the separator cuts. A quote that does not begin a field, or has no
	// second one in the line, is a letter.
	List *Separator

	line   int64 // where the record begins, of those that are read
	fields [][]byte
	raw    []byte // line of a list
	text   []byte // of a record with quotes, without them
	ends   []int  // of fields in text
}

// Begun is the line in which the record begins, of those that are read; see [Lines.WhereOf].
func (r *Records) Begun() int64 { return r.line }

// Raw is the line of a list from which the record is.
func (r *Records) Raw() []byte { return r.raw }

// Line is the line in which the record begins.
func (r *Records) Line() int64 { return r.Number() - r.number + r.line }

// Where names that line.
func (r *Records) Where() string { return r.at(r.Line()) }

// Record returns the fields of the next record, valid until the next call, or io.EOF.
func (r *Records) Record() ([][]byte, error) {
	line, err := r.begin()
	if err != nil {
		return nil, err
	}
	return r.Fields(line)
}

// begin returns the first line of the next record.
func (r *Records) begin() ([]byte, error) {
	if r.Comments {
		return r.Data()
	}
	for {
		if line, err := r.Next(); err != nil || len(line) > 0 {
			return line, err
		}
	}
}

// Fields returns the fields of the record that begins with the current line.
func (r *Records) Fields(line []byte) ([][]byte, error) {
	r.line, r.fields = r.number, r.fields[:0]
	if r.List != nil {
		r.raw = line
		for more := true; more; {
			var field []byte
			field, line, more = r.List.Cut(line)
			r.fields = append(r.fields, graph.Unquote(field))
		}
		return r.fields, nil
	}
	if !r.Plain && bytes.IndexByte(line, '"') >= 0 {
		return r.quoted(line)
	}
	for {
		i := bytes.IndexByte(line, r.Separator)
		if i < 0 {
			r.fields = append(r.fields, line)
			return r.fields, nil
		}
		r.fields = append(r.fields, line[:i])
		line = line[i+1:]
	}
}

// quoted reads a record some of whose fields are in quotes. It copies them, because line ends inside of quotes lead to
// the next line.
func (r *Records) quoted(line []byte) (_ [][]byte, err error) {
	r.text, r.ends = r.text[:0], r.ends[:0]
	for more := true; more; {
		inner := line
		if r.Separator != ' ' && r.Separator != '\t' {
			inner = bytes.TrimLeft(line, " \t")
		}
		if len(inner) > 0 && inner[0] == '"' {
			line, err = r.unquote(inner[1:])
		} else {
			end := bytes.IndexByte(line, r.Separator)
			if end < 0 {
				end = len(line)
			}
			if bytes.IndexByte(line[:end], '"') >= 0 {
				return nil, graph.BadData(r.Lines.Where(), "a quote is inside of a field: put the field into quotes, and write a quote inside of them twice; quotes=false in the URI takes quotes as letters")
			}
			r.text = append(r.text, line[:end]...)
			line = line[end:]
		}
		if err != nil {
			return nil, err
		}
		r.ends = append(r.ends, len(r.text))
		if more = len(line) > 0; more {
			line = line[1:] // the separator
		}
	}
	start := 0
	for _, end := range r.ends {
		r.fields = append(r.fields, r.text[start:end])
		start = end
	}
	return r.fields, nil
}

// unquote copies a field behind its opening quote, and returns what follows the closing one: nothing, or the separator
// and more.
func (r *Records) unquote(line []byte) (rest []byte, err error) {
	opened := r.Number()
	for {
		i := bytes.IndexByte(line, '"')
		if i < 0 {
			if len(r.text)+len(line) > maxQuoted {
				return nil, r.open(opened)
			}
			r.text = append(append(r.text, line...), '\n')
			switch line, err = r.Next(); {
			case err == io.EOF:
				return nil, graph.BadData(r.at(opened), "a quote opens and does not close: correct the quotes; quotes=false in the URI takes quotes as letters")
			case r.long:
				return nil, r.open(opened)
			case err != nil:
				return nil, err
			}
			continue
		}
		r.text = append(r.text, line[:i]...)
		if line = line[i+1:]; len(line) == 0 || line[0] != '"' {
			break
		}
		r.text = append(r.text, '"')
		line = line[1:]
	}
	if len(r.text) > maxQuoted {
		return nil, r.open(opened)
	}
	if len(line) > 0 && line[0] == r.Separator {
		return line, nil
	}
	if line = bytes.TrimLeft(line, " \t"); len(line) > 0 && line[0] != r.Separator {
		return nil, graph.BadData(r.Lines.Where(), "text follows the closing quote of a field: write a quote inside of quotes twice, not behind a backslash; quotes=false in the URI takes quotes as letters")
	}
	return line, nil
}

// open is the error for a quote that opens in a line and has no end in sight.
func (r *Records) open(line int64) error {
	return graph.BadData(r.at(line), "a quote opens and does not close within %d MiB: correct the quotes; quotes=false in the URI takes quotes as letters", maxQuoted>>20)
}

// TableSeparator finds what separates the columns of a table whose first line is given: the first of commas, tabs,
// semicolons and bars that it has outside of quotes, or else one of others, or else a comma.
func TableSeparator(line []byte, others string) byte {
	inside := false
	outside := make([]byte, 0, min(len(line), 1<<10))
	for _, c := range line {
		if c == '"' {
			inside = !inside
		} else if !inside && c < utf8.RuneSelf {
			outside = append(outside, c)
		}
	}
	for _, c := range []byte(",\t;|" + others) {
		if bytes.IndexByte(outside, c) >= 0 {
			return c
		}
	}
	return ','
}
