package smooth

import (
	"fmt"
	"slices"
)

// Rule says what the hops of a node add up to:
//
//	factor(count) · Σ_{k < count} weight(k) X^(k)  +  residual(count) · X^(0)
//
// where count is the number of hops the rule uses for a node with LSI K.
type Rule struct {
	Name string
	// NodeDependent is true where count depends on K.
	NodeDependent bool
	count         func(k int) int
	weight        func(hop int) float64
	factor        func(count int) float64
	residual      func(count int) float64
}

// Residual says whether a share of X^(0) is added.
func (r Rule) Residual() bool { return r.residual(1) != 0 }

// DefaultAlpha is the residual share of the authors' released code.
const DefaultAlpha = 0.15

// Names lists the rules.
func Names() []string { return []string{"ndls", "ndls-reference", "sgc", "s2gc", "gbp"} }

// NewRule returns the rule of that name. alpha in [0, 1] is the residual share
// of ndls-reference and s2gc and the decay of gbp; depth is the number of hops K
// of sgc, s2gc (there at least 1) and gbp.
func NewRule(name string, alpha float64, depth int) (Rule, error) {
	if !slices.Contains(Names(), name) {
		return Rule{}, fmt.Errorf("unknown rule %q; there are %v", name, Names())
	}
	if !(alpha >= 0 && alpha <= 1) {
		return Rule{}, fmt.Errorf("alpha %g is outside [0, 1]", alpha)
	}
	if depth < 0 || name == "s2gc" && depth < 1 {
		return Rule{}, fmt.Errorf("%d hops are too few for %s", depth, name)
	}
	one := func(int) float64 { return 1 }
	none := func(int) float64 { return 0 }
	all := func(int) int { return depth + 1 }
	switch name {
	case "ndls":
		return Rule{
			name, true,
			func(k int) int { return k + 1 },
			one,
			func(count int) float64 { return 1 / float64(count) },
			none,
		}, nil
	case "ndls-reference":
		return Rule{
			name, true,
			// A node with K = 0 keeps its row; so does one with K = 1, whose
			// average holds hop 0 alone.
			func(k int) int { return max(k, 1) },
			one,
			func(count int) float64 { return (1 - alpha) / float64(count) },
			func(int) float64 { return alpha },
		}, nil
	case "sgc":
		last := func(hop int) float64 {
			if hop == depth {
				return 1
			}
			return 0
		}
		return Rule{name, false, all, last, one, none}, nil
	case "s2gc":
		later := func(hop int) float64 { return float64(min(hop, 1)) }
		return Rule{
			name, false, all, later,
			func(count int) float64 { return (1 - alpha) / float64(count-1) },
			func(int) float64 { return alpha },
		}, nil
	default: // gbp
		decay := func(hop int) float64 {
			w := alpha
			for range hop {
				w *= 1 - alpha
			}
			return w
		}
		return Rule{name, false, all, decay, one, none}, nil
	}
}
