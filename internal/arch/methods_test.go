package arch

import (
	"go/ast"
	"go/token"
	"path/filepath"
	"testing"
)

// mostMethods is the largest number of methods of a type. A type with more holds several ideas: give each a type of its own, which may
// embed the first.
const mostMethods = 40

// TestMethods counts the methods of each type.
func TestMethods(t *testing.T) {
	methods := map[string]map[string]bool{} // by folder and type; files for several processors repeat a method
	eachFile(t, func(file string, parsed *ast.File, _ *token.FileSet) {
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			of := filepath.Dir(file) + "." + receiver(f.Recv.List[0].Type)
			if methods[of] == nil {
				methods[of] = map[string]bool{}
			}
			methods[of][f.Name.Name] = true
		}
	})
	if len(methods) < 500 {
		t.Fatalf("found %d types with methods", len(methods))
	}
	for of, names := range methods {
		if len(names) > mostMethods {
			t.Errorf("%s has %d methods; the most are %d", of, len(names), mostMethods)
		}
	}
}

// receiver returns the name of the type of a receiver.
func receiver(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.StarExpr:
		return receiver(x.X)
	case *ast.IndexExpr:
		return receiver(x.X)
	case *ast.IndexListExpr:
		return receiver(x.X)
	case *ast.Ident:
		return x.Name
	}
	return "?"
}
