package smooth

import (
	"fmt"
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

// Depth is the largest K of a node that counts no hop after the given one. The rule depends
// on K.
func (r Rule) Depth(hop int) int {
	if r.count(hop+1) == hop+1 {
		return hop + 1
	}
	return hop
}

// DefaultAlpha is the residual share of the authors' released code.
const DefaultAlpha = 0.15

// rules is the registry of rules: a new rule is one line. alpha and depth are those of
// [NewRule].
var rules = []struct {
	name string
	// dependent is true where the hops of a node depend on its K.
	dependent bool
	// least is the smallest depth.
	least int
	make  func(alpha float64, depth int) Rule
}{
	{"ndls", true, 0, ndls},
	{"ndls-reference", true, 0, ndlsReference},
	{"sgc", false, 0, sgc},
	{"s2gc", false, 1, s2gc},
	{"gbp", false, 0, gbp},
}

// Names lists the rules.
func Names() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// DependentNames lists the rules whose hops depend on K of the node.
func DependentNames() (names []string) {
	for _, r := range rules {
		if r.dependent {
			names = append(names, r.name)
		}
	}
	return names
}

// NewRule returns the rule of that name. alpha in [0, 1] is the residual share
// of ndls-reference and s2gc and the decay of gbp; depth is the number of hops K
// of sgc, s2gc (there at least 1) and gbp.
func NewRule(name string, alpha float64, depth int) (Rule, error) {
	if !(alpha >= 0 && alpha <= 1) {
		return Rule{}, fmt.Errorf("alpha %g is outside [0, 1]", alpha)
	}
	for _, r := range rules {
		if r.name != name {
			continue
		}
		if depth < r.least {
			return Rule{}, fmt.Errorf("%d hops are too few for %s", depth, name)
		}
		rule := r.make(alpha, depth)
		rule.Name, rule.NodeDependent = r.name, r.dependent
		return rule, nil
	}
	return Rule{}, fmt.Errorf("unknown rule %q; there are %v", name, Names())
}

func one(int) float64  { return 1 }
func none(int) float64 { return 0 }

// upTo counts hops 0 to depth, whatever K.
func upTo(depth int) func(int) int { return func(int) int { return depth + 1 } }

// share divides by the number of hops.
func share(count int) float64 { return 1 / float64(count) }

// ndls is the average of hops 0 to K (equation 7 of the paper).
func ndls(float64, int) Rule {
	return Rule{count: func(k int) int { return k + 1 }, weight: one, factor: share, residual: none}
}

// ndlsReference is what the authors' released code computes: hop K is not counted. A node
// with K = 0 keeps its row; so does one with K = 1, whose average holds hop 0 alone.
func ndlsReference(alpha float64, _ int) Rule {
	return Rule{
		count: func(k int) int { return max(k, 1) }, weight: one,
		factor:   func(count int) float64 { return (1 - alpha) / float64(count) },
		residual: func(int) float64 { return alpha },
	}
}

// sgc is the last hop alone.
func sgc(_ float64, depth int) Rule {
	last := func(hop int) float64 {
		if hop == depth {
			return 1
		}
		return 0
	}
	return Rule{count: upTo(depth), weight: last, factor: one, residual: none}
}

// s2gc is the average of hops 1 to depth, and a share of hop 0.
func s2gc(alpha float64, depth int) Rule {
	return Rule{
		count: upTo(depth), weight: func(hop int) float64 { return float64(min(hop, 1)) },
		factor:   func(count int) float64 { return (1 - alpha) / float64(count-1) },
		residual: func(int) float64 { return alpha },
	}
}

// gbp weighs hop k by α·(1 − α)^k.
func gbp(alpha float64, depth int) Rule {
	decay := func(hop int) float64 {
		w := alpha
		for range hop {
			w *= 1 - alpha
		}
		return w
	}
	return Rule{count: upTo(depth), weight: decay, factor: one, residual: none}
}
