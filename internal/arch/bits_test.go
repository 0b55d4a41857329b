package arch

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// roundedOtherwise are the functions of package math whose last bits depend on the processor.
var roundedOtherwise = []string{
	"Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cbrt", "Cos", "Cosh", "Erf", "Erfc", "Erfcinv", "Erfinv", "Exp", "Exp2", "Expm1", "Gamma", "Hypot",
	"Lgamma", "Log", "Log10", "Log1p", "Log2", "Pow", "Sin", "Sincos", "Sinh", "Tan", "Tanh",
}

// besideBits are the folders and files that may use them, and why.
var besideBits = map[string]string{
	"estimate":           "plans",
	"partition/cost.go":  "plans",
	"group/lists.go":     "plans",
	"internal/testgraph": "serves tests",
}

// TestBitsAreTheSameEverywhere finds functions that would give other bytes on other processors.
func TestBitsAreTheSameEverywhere(t *testing.T) {
	used := map[string]bool{}
	eachFile(t, func(path string, file *ast.File, set *token.FileSet) {
		for call, name := range calls(file) {
			pkg, function, _ := strings.Cut(name, ":")
			if pkg != "math" || !slices.Contains(roundedOtherwise, function) {
				continue
			}
			allowed := false
			for place := range besideBits {
				if within(path, place) {
					allowed, used[place] = true, true
				}
			}
			if !allowed {
				t.Errorf("%s: math.%s; call package internal/elementary, whose bits do not depend on the processor", set.Position(call.Pos()), function)
			}
		}
	})
	for place := range besideBits {
		if !used[place] {
			t.Errorf("%s needs no exception any more", place)
		}
	}
}
