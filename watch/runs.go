package watch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/page"
)

// Listed is a run directory in a list of runs.
type Listed struct {
	// Run is the name of the run directory, State says in words how far it is, and Dataset names its data set.
	Run     string `json:"run"`
	Dataset string `json:"dataset,omitempty"`
	State   string `json:"state"`
	// Working reports whether a process works on it now, Problem says what is missing or damaged, or why it has failed.
	Working bool   `json:"working"`
	Problem string `json:"problem,omitempty"`
	// Valid and Test are accuracies, after label smoothing where there is one; nil where there are none.
	Valid *control.Spread `json:"valid,omitempty"`
	Test  *control.Spread `json:"test,omitempty"`
	// Bytes is the size of the committed files, Changed the time of the last write of the record.
	Bytes   int64     `json:"bytes"`
	Changed time.Time `json:"changed,omitzero"`
}

// Folder says which runs a list shows, and makes the page of one, or of several side by side.
type Folder struct {
	Runs   func(context.Context) ([]Listed, error)
	Report func(ctx context.Context, w io.Writer, runs ...string) error
	// Hosts are names by which requests may call this host, beside localhost, its own name and IP addresses.
	Hosts []string
}

// listing is the page of a list of runs.
type listing struct {
	Runs []Listed
	// By is the column by which they are sorted, Failed why they cannot be listed.
	By, Failed string
}

// order is a column by which runs are sorted.
type order struct {
	By, Name string
	compare  func(a, b Listed) int
}

// orders are the columns, the one that is taken without a choice first.
var orders = []order{
	{"test", "test, %", func(a, b Listed) int { return cmp.Compare(mean(b.Test), mean(a.Test)) }},
	{"valid", "valid, %", func(a, b Listed) int { return cmp.Compare(mean(b.Valid), mean(a.Valid)) }},
	{"dataset", "data set", func(a, b Listed) int { return cmp.Compare(a.Dataset, b.Dataset) }},
	{"state", "state", func(a, b Listed) int { return cmp.Compare(a.State, b.State) }},
	{"size", "size", func(a, b Listed) int { return cmp.Compare(b.Bytes, a.Bytes) }},
	{"changed", "changed", func(a, b Listed) int { return b.Changed.Compare(a.Changed) }},
}

// mean is a mean, less than all others where there is none.
func mean(s *control.Spread) float64 {
	if s == nil {
		return -1
	}
	return s.Mean
}

// sorted lists runs by a column, those that are equal in it by name.
func sorted(runs []Listed, by string) listing {
	i := max(slices.IndexFunc(orders, func(o order) bool { return o.By == by }), 0)
	slices.SortStableFunc(runs, func(a, b Listed) int { return cmp.Or(orders[i].compare(a, b), cmp.Compare(a.Run, b.Run)) })
	return listing{Runs: runs, By: orders[i].By}
}

// Sorted reports whether runs are sorted by a column.
func (l listing) Sorted(o order) bool { return l.By == o.By }

// Orders are the columns by which runs can be sorted.
func (l listing) Orders() []order { return orders }

// Link is the address of the page of a run.
func (x Listed) Link() string {
	return "/report?run=" + strings.ReplaceAll(url.QueryEscape(x.Run), "+", "%20")
}

// Kind is the class of the row of a run.
func (x Listed) Kind() string {
	switch {
	case x.Working:
		return "now"
	case x.Problem != "":
		return "failed"
	}
	return "done"
}

// spread is an accuracy in percent.
func spread(s *control.Spread) string {
	text := strconv.FormatFloat(100*s.Mean, 'f', 2, 64)
	if s.Std > 0 {
		text += " ± " + strconv.FormatFloat(100*s.Std, 'f', 2, 64)
	}
	return text
}

// when is a time in words, "" where it is not known.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2 January, 15:04 UTC")
}

// The template of the list calls listFunctions and listMethods.
var (
	listFunctions = page.Funcs{
		"bytes": functions["bytes"], "utc": functions["utc"], "css": functions["css"], "share": functions["share"], "spread": spread,
		"when": when,
		"js":   func() (page.Raw, error) { b, err := files.ReadFile("runs.js"); return page.Raw(b), err },
	}
	listMethods = map[string][]any{
		"Kind": {Listed.Kind}, "Link": {Listed.Link}, "Orders": {listing.Orders}, "Sorted": {listing.Sorted},
	}
)

var lists = page.Once("runs", files, "runs.html.tmpl", listFunctions, listMethods)

// NewList serves a list of runs: as a page at /, whose list is at /list, too, and as JSON at /runs. Both take by=, the
// column by which they are sorted. /report?run=A&run=B is the page of some of these runs, and of no other.
//
// It answers requests alone that name this host, as the page of a run does.
func NewList(f Folder) http.Handler {
	mux := http.NewServeMux()
	template := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			runs, err := f.Runs(r.Context())
			l := sorted(runs, r.URL.Query().Get("by"))
			if err != nil {
				l.Failed = failure.Text(err)
			}
			var text bytes.Buffer
			if err := lists().Execute(&text, name, l); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			answer(w, text.Bytes())
		}
	}
	mux.HandleFunc("GET /{$}", template("page"))
	mux.HandleFunc("GET /list", template("list"))
	mux.HandleFunc("GET /runs", func(w http.ResponseWriter, r *http.Request) {
		runs, err := f.Runs(r.Context())
		if err != nil {
			http.Error(w, failure.Text(err), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(sorted(runs, r.URL.Query().Get("by")).Runs)
	})
	mux.HandleFunc("GET /report", func(w http.ResponseWriter, r *http.Request) {
		text, status, err := f.page(r.Context(), r.URL.Query()["run"])
		if err != nil {
			http.Error(w, failure.Text(err), status)
			return
		}
		answer(w, text)
	})
	return Options{Hosts: f.Hosts}.guarded(mux)
}

// page makes the page of some of the runs.
func (f Folder) page(ctx context.Context, asked []string) ([]byte, int, error) {
	runs, err := f.Runs(ctx)
	if err != nil {
		return nil, http.StatusInternalServerError, err
	}
	if len(asked) == 0 {
		return nil, http.StatusBadRequest, errors.New("choose a run")
	}
	for _, name := range asked {
		if !slices.ContainsFunc(runs, func(x Listed) bool { return x.Run == name }) {
			return nil, http.StatusNotFound, errors.New("the list has no run " + strconv.Quote(name))
		}
	}
	var text bytes.Buffer
	if err := f.Report(ctx, &text, asked...); err != nil {
		return nil, http.StatusNotFound, err
	}
	return text.Bytes(), http.StatusOK, nil
}

// answer writes a page, which loads nothing from elsewhere.
func answer(w http.ResponseWriter, text []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	_, _ = w.Write(text)
}
