package source

import (
	"slices"
	"strings"

	"ndls/dataset/graph"
)

// Form is how the text files of a dataset are read, where its URI says so. The zero value is UTF-8, with quotes, and
// with headers where a reader finds them.
type Form struct {
	Encoding *Encoding
	// Plain says that a quote is a letter like any other.
	Plain  bool
	header []string // the files that have one; nil where the URI does not say
	// missing are the words that stand for no value.
	missing map[string]bool
	keys    []string // as identities have them
}

// FormKeys are the keys of a URI that a Form takes.
var FormKeys = []string{"header", "missing", "encoding", "quotes"}

// Set takes a key of a URI; parts are the files that may have a header.
func (f *Form) Set(key, text string, parts []string) (err error) {
	value, err := graph.PathOf(text)
	if err != nil {
		return err
	}
	switch key {
	case "encoding":
		f.Encoding, err = EncodingOf(value)
	case "quotes":
		var quotes bool
		quotes, err = graph.ParseBool(key, value)
		f.Plain = !quotes
	case "header":
		f.header, err = headersOf(value, parts)
	case "missing":
		f.missing = map[string]bool{}
		for _, part := range strings.Split(text, ",") {
			word, err := graph.PathOf(part)
			if err != nil {
				return err
			}
			f.missing[strings.TrimSpace(word)] = true
		}
	}
	f.keys = append(f.keys, key+"="+graph.EscapePath(value))
	return err
}

// headersOf reads the value of header=: true for all files, false for none, or a list of those that have one.
func headersOf(value string, parts []string) ([]string, error) {
	switch value {
	case "true":
		return parts, nil
	case "false":
		return []string{}, nil
	}
	list := strings.Split(value, ",")
	for _, part := range list {
		if !slices.Contains(parts, part) {
			return nil, graph.BadURI("header=%s: write true, false, or those that have a header, of %s, with commas between them", value, strings.Join(parts, ", "))
		}
	}
	return list, nil
}

// Identity lists the keys that were set, in fixed order.
func (f *Form) Identity() []string { return slices.Sorted(slices.Values(f.keys)) }

// Header reports whether a file has a header; stated is false where the URI does not say.
func (f *Form) Header(part string) (has, stated bool) {
	return slices.Contains(f.header, part), f.header != nil
}

// Missing reports whether a value stands for none.
func (f *Form) Missing(value []byte) bool { return f.missing[string(value)] }

// HasMissing reports whether there are such values.
func (f *Form) HasMissing() bool { return f.missing != nil }
