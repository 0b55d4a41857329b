package dataset

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// MaxFeatures is the largest width of a feature row.
const MaxFeatures = 1 << 20

// Options says what to leave out of a dataset.
type Options struct {
	// NoFeatures leaves the features out, and does not open their files.
	NoFeatures bool
}

// scheme is a kind of URI.
type scheme struct {
	name, form string
	open       func(ctx context.Context, rest string, o Options) (Dataset, error)
	about      string // for users
}

// schemes are the known kinds of URI, in the order in which help lists them.
var schemes = []scheme{
	{"edges", "edges:FILE?features=F&labels=L&splits=S", openEdges, aboutEdges},
	{"npz", "npz:FILE", openNPZ, aboutNPZ},
	{"ogb", "ogb:DIR", openOGB, aboutOGB},
	{"planetoid", "planetoid:DIR/NAME", openPlanetoid, aboutPlanetoid},
	{"karate", "karate:", openKarate, aboutKarate},
	{"synthetic", "synthetic:nodes=N,edges=M,…", openSynthetic, aboutSynthetic},
	{"papers100m", "papers100m:scale=1/N,seed=S", openPapers, aboutPapers},
}

// Open opens the dataset that uri names; [Formats] describes the forms.
// It reads what is needed to fill Info: headers, and label files once. Errors
// are [ErrURI], [ErrData], or those of the file system.
func Open(ctx context.Context, uri string, o Options) (Dataset, error) {
	name, rest, ok := strings.Cut(uri, ":")
	var forms []string
	for _, s := range schemes {
		if ok && s.name == name {
			return s.open(ctx, rest, o)
		}
		forms = append(forms, s.form)
	}
	return nil, badURI("%q is no dataset: the known forms are %s; `ndls help datasets` describes them", uri, strings.Join(forms, " · "))
}

// pathOf undoes percent-encoding in the file part of a URI.
func pathOf(text string) (string, error) {
	path, err := url.PathUnescape(text)
	if err != nil {
		return "", badURI("%q: %v; write a percent sign in a file name as %%25", text, err)
	}
	return path, nil
}

// escapePath is the reverse of pathOf for a path inside a query.
func escapePath(path string) string {
	return strings.NewReplacer("%", "%25", "?", "%3F", "&", "%26", "#", "%23").Replace(path)
}

// param is one key of a URI and its value.
type param struct{ key, value string }

// parseParams splits key=value pairs and checks the keys.
func parseParams(text, separator string, known []string) ([]param, error) {
	if text == "" {
		return nil, nil
	}
	var params []param
	for _, part := range strings.Split(text, separator) {
		key, value, ok := strings.Cut(part, "=")
		if !slices.Contains(known, key) {
			return nil, badURI("unknown key %q: the known ones are %s", key, strings.Join(known, ", "))
		}
		if !ok || value == "" {
			return nil, badURI("key %q needs a value: %s=…", key, key)
		}
		if slices.ContainsFunc(params, func(p param) bool { return p.key == key }) {
			return nil, badURI("key %q is given twice", key)
		}
		params = append(params, param{key, value})
	}
	return params, nil
}

// parseCount reads a number of things from min to max.
func parseCount(key, value string, min, max int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < min || n > max {
		return 0, badURI("%s=%s: a whole number from %d to %d is needed", key, value, min, max)
	}
	return n, nil
}

// stem is a file's base name without its extensions.
func stem(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".")
	return name
}

// noStream is the reader of a part that a dataset does not have.
func noStream(what, name string) error {
	return fmt.Errorf("%s has no %s", name, what)
}
