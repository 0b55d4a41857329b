package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"ndls/internal/control"
	"ndls/internal/page/pagetest"
)

// shelf is a folder of four runs: two that are complete, one at work and one that is damaged.
func shelf() Folder {
	return Folder{
		Runs: func(context.Context) ([]Listed, error) {
			return []Listed{
				{Run: "runs/a b&c", Dataset: "karate:", State: "complete", Test: &control.Spread{Mean: .5}, Valid: &control.Spread{Mean: .9}, Bytes: 1 << 20, Changed: time.Unix(0, 0)},
				{Run: "runs/<b>", Dataset: "cora", State: "complete", Test: &control.Spread{Mean: .75, Std: .01}, Valid: &control.Spread{Mean: .8}, Bytes: 3 << 20},
				{Run: "runs/now", Dataset: "cora", State: "in lsi", Working: true},
				{Run: "runs/bad", State: "damaged", Problem: "run.json is damaged"},
			}, nil
		},
		Report: func(_ context.Context, w io.Writer, runs ...string) error {
			_, err := fmt.Fprintf(w, "page of %q", runs)
			return err
		},
	}
}

// TestList shows runs, sorted by the column that is asked for, and takes no name for markup.
func TestList(t *testing.T) {
	h := NewList(shelf())
	named := regexp.MustCompile(`name="run" value="([^"]*)"`)
	for by, want := range map[string][]string{
		"": {"runs/&lt;b&gt;", "runs/a b&amp;c", "runs/bad", "runs/now"}, "valid": {"runs/a b&amp;c", "runs/&lt;b&gt;", "runs/bad", "runs/now"},
		"size": {"runs/&lt;b&gt;", "runs/a b&amp;c", "runs/bad", "runs/now"}, "state": {"runs/&lt;b&gt;", "runs/a b&amp;c", "runs/bad", "runs/now"},
		"dataset": {"runs/bad", "runs/&lt;b&gt;", "runs/now", "runs/a b&amp;c"}, "changed": {"runs/a b&amp;c", "runs/&lt;b&gt;", "runs/bad", "runs/now"},
	} {
		var got []string
		for _, m := range named.FindAllStringSubmatch(get(h, "/?by="+by).Body.String(), -1) {
			got = append(got, m[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %q: %v, want %v", by, got, want)
		}
	}
	answer := get(h, "/")
	text := answer.Body.String()
	for _, want := range []string{
		`<a href="/report?run=runs%2Fa%20b%26c">runs/a b&amp;c</a>`, "75.00 ± 1.00", `<tr class="now">`, `<span class="trouble">run.json is damaged</span>`,
		"3.0 MiB", "1 January, 00:00 UTC", `<a href="/?by=test" aria-current="true">`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the list lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "<b>") || !strings.Contains(answer.Header().Get("Content-Security-Policy"), "default-src 'none'") {
		t.Error("a name is taken for markup, or the page may load what it likes")
	}
	if list := get(h, "/list").Body.String(); !strings.Contains(text, strings.TrimSpace(list)) {
		t.Errorf("the list that the page loads is another one:\n%s", list)
	}
	var runs []Listed
	if err := json.Unmarshal(get(h, "/runs?by=size").Body.Bytes(), &runs); err != nil || len(runs) != 4 || runs[0].Bytes != 3<<20 {
		t.Errorf("%v, %v", runs, err)
	}
}

// TestListedPages gives pages of runs that are listed, and of no other folder.
func TestListedPages(t *testing.T) {
	h := NewList(shelf())
	for _, tc := range []struct {
		path, want string
		status     int
	}{
		{"/report?run=runs%2Fa%20b%26c", `page of ["runs/a b&c"]`, http.StatusOK},
		{"/report?run=runs%2Fnow&run=runs%2Fbad", `page of ["runs/now" "runs/bad"]`, http.StatusOK},
		{"/report?run=/etc", "the list has no run", http.StatusNotFound},
		{"/report", "choose a run", http.StatusBadRequest},
		{"/else", "", http.StatusNotFound},
	} {
		if a := get(h, tc.path); a.Code != tc.status || !strings.Contains(a.Body.String(), tc.want) {
			t.Errorf("%s: status %d, %s", tc.path, a.Code, a.Body)
		}
	}
	broken := shelf()
	broken.Runs = func(context.Context) ([]Listed, error) { return nil, errors.New("the folder is gone") }
	if text := get(NewList(broken), "/").Body.String(); !strings.Contains(text, "the folder is gone") {
		t.Errorf("the page does not say why nothing is listed:\n%s", text)
	}
	if a := get(NewList(broken), "/runs"); a.Code != http.StatusInternalServerError {
		t.Errorf("status %d", a.Code)
	}
}

// TestListIsThatOfHTMLTemplate compares bytes, and the methods that the template may call with those that it is given.
func TestListIsThatOfHTMLTemplate(t *testing.T) {
	source, err := files.ReadFile("runs.html.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	p := pagetest.Page{Source: string(source), Funcs: listFunctions, Methods: listMethods}
	p.Complete(t, reflect.TypeFor[listing]())
	runs, _ := shelf().Runs(t.Context())
	p.Same(t, "page", sorted(runs, "size"))
	p.Same(t, "page", listing{Failed: "no <folder>"})
}
