package graph

import (
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ndls/internal/meant"
)

// MaxFeatures is the largest width of a feature row, MaxSparse that of one that lists what is
// not zero.
const (
	MaxFeatures = 1 << 20
	MaxSparse   = 1 << 24
)

// Options says what to leave out of a dataset.
type Options struct {
	// NoFeatures leaves the features out, and does not open their files.
	NoFeatures bool
	// Missing says that a feature may be missing: then it is NaN. Otherwise it is refused.
	Missing bool
	// Answers says that nodes have labels or numbers in place of a class.
	Answers Answers
}

// Answers says what a dataset has in place of one class for each node.
type Answers uint8

// These are the kinds of answers.
const (
	// Classes are the default: one class for each node.
	Classes Answers = iota
	// Labels are columns of 0 and 1, Numbers columns of any numbers.
	Labels
	Numbers
)

// PathOf undoes percent-encoding in the file part of a URI.
func PathOf(text string) (string, error) {
	path, err := url.PathUnescape(text)
	if err != nil {
		return "", BadURI("%q: %v; write a percent sign in a file name as %%25", text, err)
	}
	return path, nil
}

// EscapePath is the reverse of pathOf for a path inside a query.
func EscapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3F", "&", "%26", "#", "%23").Replace(path)
}

// Param is one key of a URI and its value.
type Param struct{ Key, Value string }

// ParseParams splits key=value pairs and checks the keys.
func ParseParams(text, separator string, known []string) ([]Param, error) {
	if text == "" {
		return nil, nil
	}
	var params []Param
	for _, part := range strings.Split(text, separator) {
		key, value, ok := strings.Cut(part, "=")
		if !slices.Contains(known, key) {
			return nil, BadURI("unknown key %q: the known ones are %s%s", key, strings.Join(known, ", "), meant.Hint(key, known))
		}
		if !ok || value == "" {
			return nil, BadURI("key %q needs a value: %s=…", key, key)
		}
		if slices.ContainsFunc(params, func(p Param) bool { return p.Key == key }) {
			return nil, BadURI("key %q is given twice", key)
		}
		params = append(params, Param{key, value})
	}
	return params, nil
}

// ParseCount reads a number of things from least to most.
func ParseCount(key, value string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < least || n > most {
		return 0, BadURI("%s=%s: a whole number from %d to %d is needed", key, value, least, most)
	}
	return n, nil
}

// ParseBool reads true or false.
func ParseBool(key, value string) (bool, error) {
	if value != "true" && value != "false" {
		return false, BadURI("%s=%s: true or false is needed", key, value)
	}
	return value == "true", nil
}

// Stem is a file's base name without its extensions.
func Stem(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}

// NoStream is the reader of a part that a dataset does not have.
func NoStream(what, name string) error {
	return fmt.Errorf("%s has no %s", name, what)
}

// Target is the file or folder that a URI names, and its options.
type Target struct {
	// Path is the file or folder, Base its name in identities.
	Path, Base string
	Params     []Param
}

// ParseTarget splits PATH?key=value&…; form is the form that the user should have typed.
func ParseTarget(form, rest string, keys ...string) (t Target, err error) {
	file, query, options := strings.Cut(rest, "?")
	if file == "" {
		return t, BadURI("%s: a path is missing behind the colon", form)
	}
	if t.Path, err = PathOf(file); err != nil {
		return t, err
	}
	absolute, err := filepath.Abs(t.Path)
	if err != nil {
		return t, err
	}
	t.Base = EscapePath(filepath.Base(absolute))
	if options && len(keys) == 0 {
		return t, BadURI("%s takes no options: %q; write a question mark in a file name as %%3F", form, query)
	}
	t.Params, err = ParseParams(query, "&", keys)
	return t, err
}
