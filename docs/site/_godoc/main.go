// Godoc prints the documentation of a package of this module as Markdown, for docs/site/build.py: go run docs/site/_godoc/main.go DIR.
package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"log"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: go run docs/site/_godoc/main.go DIR")
	}
	set := token.NewFileSet()
	names, err := filepath.Glob(filepath.Join(os.Args[1], "*.go"))
	if err != nil {
		log.Fatal(err)
	}
	var files []*ast.File
	for _, name := range names {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		if err != nil {
			log.Fatal(err)
		}
		// Files of other build tags declare the same names again.
		if !strings.Contains(name, "nohooks") {
			files = append(files, f)
		}
	}
	path, err := filepath.Rel(".", filepath.Join("ndls", os.Args[1]))
	if err != nil {
		log.Fatal(err)
	}
	p, err := doc.NewFromFiles(set, files, path)
	if err != nil {
		log.Fatal(err)
	}
	w := &writer{set, p}
	fmt.Printf("# Package %s\n\n    import %q\n\n%s\n", p.Name, path, w.text(p.Doc, 2))
	w.examples(p.Examples)
	w.values("Constants", p.Consts)
	w.values("Variables", p.Vars)
	if len(p.Funcs) > 0 {
		fmt.Print("## Functions\n\n")
		w.functions(p.Funcs)
	}
	for _, t := range p.Types {
		fmt.Printf("## type %s\n\n", t.Name)
		w.declared(t.Decl, t.Doc)
		for _, v := range append(t.Consts, t.Vars...) {
			w.declared(v.Decl, v.Doc)
		}
		w.examples(t.Examples)
		w.functions(t.Funcs)
		w.functions(t.Methods)
	}
}

type writer struct {
	set *token.FileSet
	p   *doc.Package
}

// text returns the Markdown of a comment, whose headings have a level.
func (w *writer) text(s string, level int) string {
	printer := w.p.Printer()
	printer.HeadingLevel = level
	printer.HeadingID = func(*comment.Heading) string { return "" }
	printer.DocLinkURL = func(*comment.DocLink) string { return "" }
	return string(printer.Markdown(w.p.Parser().Parse(s)))
}

func (w *writer) declared(declaration ast.Decl, about string) {
	fmt.Print("```go\n")
	if err := format.Node(os.Stdout, w.set, declaration); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("\n```\n\n%s\n", w.text(about, 4))
}

func (w *writer) values(title string, values []*doc.Value) {
	if len(values) > 0 {
		fmt.Printf("## %s\n\n", title)
	}
	for _, v := range values {
		w.declared(v.Decl, v.Doc)
	}
}

func (w *writer) functions(functions []*doc.Func) {
	for _, f := range functions {
		receiver := f.Recv
		if receiver != "" {
			receiver = "(" + receiver + ") "
		}
		fmt.Printf("### func %s%s\n\n", receiver, f.Name)
		w.declared(f.Decl, f.Doc)
		w.examples(f.Examples)
	}
}

func (w *writer) examples(examples []*doc.Example) {
	for _, e := range examples {
		fmt.Printf("Example:\n\n```go\n")
		if err := format.Node(os.Stdout, w.set, e.Code); err != nil {
			log.Fatal(err)
		}
		fmt.Printf("\n```\n\n%s\n", e.Doc)
	}
}
