package registry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// TestEveryKindIsOfAStage finds each kind that the catalogue names in the registry: a
// file of another kind would be verified by nobody, and stay for ever.
func TestEveryKindIsOfAStage(t *testing.T) {
	found := 0
	f, err := parser.ParseFile(token.NewFileSet(), "../../catalog/entry.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Kind") || len(spec.Values) == 0 {
			return true
		}
		name, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if KindOf(name).Name != name {
			t.Errorf("no stage writes files of kind %q (%s)", name, spec.Names[0].Name)
		}
		return true
	})
	if found < 15 || found != len(kinds) {
		t.Errorf("the catalogue names %d kinds, stages %d", found, len(kinds))
	}
}
