package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"testing"
)

// namesNoStage lists the folders that know stages by their interface alone.
var namesNoStage = []string{"coordinator", "placement", "worker"}

// TestStagesAreNamedInStage finds stages by name, other than the partition, which begins a run directory.
func TestStagesAreNamedInStage(t *testing.T) {
	names := map[string]bool{}
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		if path == "internal/control/stage.go" {
			for _, name := range constants(file, "Stage") {
				names[name] = name != "Partition"
			}
		}
	})
	if len(names) < 8 {
		t.Fatalf("package control names %d stages", len(names))
	}
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		if !slices.ContainsFunc(namesNoStage, func(folder string) bool { return within(path, folder) }) {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if x, ok := n.(*ast.SelectorExpr); ok && names[x.Sel.Name] {
				if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "control" {
					t.Errorf("%s: control.%s; make what is done for it a method of the stage", set.Position(x.Pos()), x.Sel.Name)
				}
			}
			return true
		})
	})
}

// constants lists the constants of a type in a file.
func constants(file *ast.File, of string) (names []string) {
	for _, d := range file.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, s := range group.Specs {
			if x := s.(*ast.ValueSpec); x.Type != nil {
				if id, ok := x.Type.(*ast.Ident); ok && id.Name == of {
					names = append(names, x.Names[0].Name)
				}
			}
		}
	}
	return names
}
