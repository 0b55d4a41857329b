package page_test

import (
	"strings"
	"testing"

	"ndls/internal/page"
	"ndls/internal/page/pagetest"
)

type inner struct{ Deep string }

type subject struct {
	inner
	Name   string
	Inner  inner
	Share  *float64
	Absent *float64
	Count  int64
	List   []subject
	Map    map[string]string
	Any    any
}

func (s subject) Twice(n int64) int64 { return s.Count * n }

func (s *subject) Self() *subject { return s }

var funcs = page.Funcs{
	"half": func(x float64) float64 { return x / 2 },
	"raw":  func() (page.Raw, error) { return "body{color:red}", nil },
	"fail": func() (string, error) { return "", errNone },
}

type none struct{}

func (none) Error() string { return "there is nothing" }

var errNone = none{}

var methods = map[string][]any{"Twice": {subject.Twice}, "Self": {(*subject).Self}}

func sample() *subject {
	half := 0.5
	return &subject{
		inner: inner{"d"}, Name: `<a href="x">&'+`, Inner: inner{"e"}, Share: &half, Count: 3, Map: map[string]string{"b": "2", "a": "<1>"}, Any: 1.5,
		List: []subject{{Name: "x", Count: 1}, {Name: "y", Count: 2, List: []subject{{Name: "z"}}}},
	}
}

// TestAsHTMLTemplate fills templates of every kind as html/template does.
func TestAsHTMLTemplate(t *testing.T) {
	for _, source := range []string{
		`<p title="{{.Name}}">{{.Name}}</p><title>{{.Name}}</title>`,
		`<p>{{.Inner.Deep}} {{.Deep}} {{.Count}} {{.Any}} {{.Share}}</p>`,
		`{{if .Name}}a{{else if .Count}}b{{else}}c{{end}}{{if .Absent}}a{{else if .Count}}b{{else}}c{{end}}{{if not .Absent}}d{{end}}`,
		`{{with .Share}}{{half .}} {{$.Name}}{{else}}none{{end}}{{with .Absent}}{{half .}}{{else}}none{{end}}`,
		`{{range .List}}<i>{{.Name}}{{range .List}}{{.Name}}{{else}}-{{end}}</i>{{end}}`,
		`{{range $i, $x := .List}}{{$i}}{{$x.Name}}{{$.Count}}{{end}}{{range $x := .List}}{{$x.Count}}{{end}}`,
		`{{range $k, $v := .Map}}{{$k}}={{$v}};{{end}}{{index .Map "a"}}{{index .Map "none"}}{{with index .List 1}}{{.Name}}{{end}}`,
		`{{$c := .Count}}{{with .Inner}}{{$c}}{{$d := .Deep}}{{$d}}{{end}}{{$c}}`,
		`{{.Twice 2}} {{.Self.Twice .Count}} {{range .List}}{{.Twice 3}}{{end}} {{len .List}} {{printf "%.2f %s" .Any .Name}}`,
		`{{if and .Name .Count}}a{{end}}{{if or .Absent .Share}}b{{end}}{{if eq .Count 3}}c{{end}}{{if ne .Name "x"}}d{{end}}{{eq .Any 1.5}}`,
		`{{define "row"}}<td>{{.}}</td>{{end}}{{range .List}}{{template "row" .Name}}{{end}}{{template "row" .Any}}`,
		`<style>{{raw}}</style><b style="--share:{{half .Any}};width:{{.Count}}%">x</b>`,
	} {
		source = strings.ReplaceAll(source, "{{raw}}", "{{css}}")
		p := pagetest.Page{Source: source, Funcs: page.Funcs{"half": funcs["half"], "css": funcs["raw"]}, Methods: methods}
		p.Same(t, "x", sample())
	}
}

// TestMistakes are told, where they are met.
func TestMistakes(t *testing.T) {
	for source, want := range map[string]string{
		"{{.None}}": "no field or method None", "{{.Absent.X}}": "X", "{{half .Name}}": "half takes no string", "{{half}}": "0 arguments",
		"{{fail}}": "there is nothing", "{{template `none`}}": "there is none", "{{.Name | printf `%s`}}": "not supported", "{{index .List 9}}": "no element 9",
		"{{range .Count}}{{end}}": "no range", "{{eq .Name 1}}": "not compared", "{{.List.Name}}": "no field",
	} {
		p, err := page.New("x", source, funcs, methods)
		if err == nil {
			err = p.Execute(&strings.Builder{}, "x", sample())
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", source, err, want)
		}
	}
	if _, err := page.New("x", "{{none}}", funcs, nil); err == nil {
		t.Error("a function that there is not is parsed")
	}
}
