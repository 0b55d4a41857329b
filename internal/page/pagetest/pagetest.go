// Package pagetest holds what pages are compared with.
package pagetest

import (
	"bytes"
	"html/template"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ndls/internal/page"
)

// Page is a page as a package gives it to page.New.
type Page struct {
	Source  string
	Funcs   page.Funcs
	Methods map[string][]any
	// Fields are names that templates have for fields alone, though a type has a method of the name.
	Fields []string
}

// Same fails the test unless a template that is filled with data has the bytes that html/template writes.
func (p Page) Same(t testing.TB, name string, data any) {
	t.Helper()
	ours, err := page.New(name, p.Source, p.Funcs, p.Methods)
	if err != nil {
		t.Fatal(err)
	}
	var got, want bytes.Buffer
	if err := ours.Execute(&got, name, data); err != nil {
		t.Fatal(err)
	}
	theirs, err := template.New(name).Funcs(p.standard()).Parse(p.Source)
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.ExecuteTemplate(&want, name, data); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(got.Bytes(), want.Bytes()) {
		return
	}
	at := 0
	for at < min(got.Len(), want.Len()) && got.Bytes()[at] == want.Bytes()[at] {
		at++
	}
	around := func(b []byte) []byte { return b[max(at-60, 0):min(at+60, len(b))] }
	t.Errorf("template %s differs from html/template at byte %d: %q, want %q", name, at, around(got.Bytes()), around(want.Bytes()))
}

// standard are the functions with the types that html/template has for text that is not escaped.
func (p Page) standard() template.FuncMap {
	funcs := template.FuncMap{}
	for name, f := range p.Funcs {
		v := reflect.ValueOf(f)
		if v.Type().Out(0) != reflect.TypeFor[page.Raw]() {
			funcs[name] = f
			continue
		}
		funcs[name] = func(args ...string) any {
			var in []reflect.Value
			for _, a := range args {
				in = append(in, reflect.ValueOf(a))
			}
			text := v.Call(in)[0].String()
			if name == "css" {
				return template.CSS(text)
			}
			return template.JS(text)
		}
	}
	return funcs
}

// Complete fails the test if a type that templates can reach from types has a method that they may call, and that is
// not given to them: one with a name that is in a template, and is not the name of a field of the type.
func (p Page) Complete(t testing.TB, types ...reflect.Type) {
	t.Helper()
	words := map[string]bool{}
	for _, action := range regexp.MustCompile(`(?s)\{\{.*?\}\}`).FindAllString(p.Source, -1) {
		for _, name := range regexp.MustCompile(`\.[A-Z]\w*`).FindAllString(action, -1) {
			words[strings.TrimPrefix(name, ".")] = !slices.Contains(p.Fields, strings.TrimPrefix(name, "."))
		}
	}
	seen := map[reflect.Type]bool{}
	var visit func(x reflect.Type)
	visit = func(x reflect.Type) {
		if seen[x] {
			return
		}
		seen[x] = true
		for i := range x.NumMethod() {
			m := x.Method(i)
			if x.Kind() == reflect.Interface || !words[m.Name] {
				continue
			}
			given := false
			for _, f := range p.Methods[m.Name] {
				of := reflect.TypeOf(f).In(0)
				given = given || of == x || x.Kind() == reflect.Pointer && of == x.Elem()
			}
			if !given {
				t.Errorf("templates may call the method %s of %s, which they are not given", m.Name, x)
			}
			for j := range m.Type.NumOut() {
				visit(m.Type.Out(j))
			}
		}
		switch x.Kind() {
		case reflect.Struct:
			for i := range x.NumField() {
				if f := x.Field(i); f.IsExported() && (words[f.Name] || slices.Contains(p.Fields, f.Name)) || f.Anonymous {
					visit(f.Type)
				}
			}
			visit(reflect.PointerTo(x))
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			visit(x.Elem())
		}
	}
	for _, x := range types {
		visit(x)
	}
	for name, list := range p.Methods {
		if len(list) == 0 || !words[name] {
			t.Errorf("no template calls a method %s", name)
		}
	}
}
