package smooth

import (
	"errors"
	"fmt"
)

// Rule says what the hops of a node add up to:
//
//	factor(count) · (Σ_{k < count-1} weight(k) X^(k)  +  final(count-1) X^(count-1))  +  residual(count) · X^(0)
//
// where count is the number of hops, hop 0 included, that the rule counts for a node with LSI K.
type Rule struct {
	Name string
	// NodeDependent says that count depends on K.
	NodeDependent bool
	// Walk says that hops use D̃⁻¹Ã, whatever r is.
	Walk bool
	// changes says that the caller changes rows between hops.
	changes bool
	form    form
	count   func(k int) int
	weight  func(hop int) float64
	// final returns the weight of the last counted hop; it is nil if that is weight.
	final    func(hop int) float64
	factor   func(count int) float64
	residual func(count int) float64
}

// form names the way in which a rule makes rows of hops.
type form uint8

const (
	// adds sums the hops to a row.
	adds form = iota
	// lists writes the hops side by side.
	lists
	// weighs makes the row of all hops together, which decide the weight of each.
	weighs
	// embeds lets package fastrp make the row of single hops.
	embeds
)

// Sums reports whether hops add up to an output row, one after the other. The rules sign, nafs and
// fastrp add up nothing: their result is the hops themselves ([Options.Keep]).
func (r Rule) Sums() bool { return r.form == adds }

// Weighs reports whether the row of a node is made after all its hops are there (nafs).
func (r Rule) Weighs() bool { return r.form == weighs }

// Repeats reports whether hops are listed, and hops after the last one of a node repeat it.
func (r Rule) Repeats() bool { return r.form == lists && r.NodeDependent }

// holds reports whether each target has a running sum. Under a rule that repeats hops the sum is
// the row of the last hop.
func (r Rule) holds() bool { return r.Sums() || r.Repeats() }

// held returns the number of hops that are added to the running sum of a node with LSI K.
func (r Rule) held(k int) int {
	if r.holds() {
		return r.count(k)
	}
	return 0
}

// last returns the weight of a hop that is the last one of its node.
func (r Rule) last(hop int) float64 {
	if r.final != nil {
		return r.final(hop)
	}
	return r.weight(hop)
}

// counts reports whether a hop is added to the sums of some nodes.
func (r Rule) counts(hop int) bool {
	return r.weight(hop) != 0 || r.last(hop) != 0 && (r.NodeDependent || hop+1 == r.count(0))
}

// Residual reports whether a share of X^(0) is added.
func (r Rule) Residual() bool { return r.residual(1) != 0 }

// Depth returns the largest K of a node that counts no hop after the given one. The rule depends on
// K.
func (r Rule) Depth(hop int) int {
	if r.count(hop+1) == hop+1 {
		return hop + 1
	}
	return hop
}

// rules is the registry of rules: a new rule is one line. alpha and depth are the parameters of
// [NewRule].
var rules = []struct {
	name string
	// dependent says that the hops of a node depend on its K.
	dependent bool
	// least is the smallest depth.
	least int
	make  func(alpha float64, depth int) Rule
	// takes says which of these two parameters the rule reads.
	takes Takes
}{
	{"ndls", true, 0, ndls, Takes{}},
	{"ndls-reference", true, 0, ndlsReference, Takes{Alpha: true}},
	{"sgc", false, 0, sgc, Takes{Depth: true}},
	{"s2gc", false, 1, s2gc, Takes{Alpha: true, Depth: true}},
	{"gbp", false, 0, gbp, Takes{Alpha: true, Depth: true}},
	{"appnp", false, 0, appnp, Takes{Alpha: true, Depth: true}},
	{"sign", false, 0, sign, Takes{Depth: true}},
	{"nafs", false, 0, nafs, Takes{Depth: true}},
	{"fastrp", false, 0, fastrp, Takes{}},
}

// Takes says which parameters of [NewRule] a rule reads.
type Takes struct{ Alpha, Depth bool }

// NamesThat lists the rules for which take returns true.
func NamesThat(take func(Takes) bool) (names []string) {
	for _, r := range rules {
		if take(r.takes) {
			names = append(names, r.name)
		}
	}
	return names
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

// NewRule returns the rule of that name. alpha in [0, 1] is the residual share of ndls-reference
// and s2gc, the decay of gbp and the restart of appnp. depth is the number of hops of sgc, s2gc
// (there at least 1), gbp, appnp, sign and nafs. [NamesThat] lists the rules that read either.
func NewRule(name string, alpha float64, depth int) (Rule, error) {
	if !(alpha >= 0 && alpha <= 1) {
		return Rule{}, fmt.Errorf("alpha %g is outside [0, 1]", alpha)
	}
	for _, r := range rules {
		if r.name != name {
			continue
		}
		if depth < r.least {
			return Rule{}, fmt.Errorf("%d hops are too few for the rule %s", depth, name)
		}
		rule := r.make(alpha, depth)
		rule.Name, rule.NodeDependent = r.name, r.dependent
		return rule, nil
	}
	return Rule{}, fmt.Errorf("unknown rule %q; the rules are %v", name, Names())
}

func one(int) float64  { return 1 }
func none(int) float64 { return 0 }

// total keeps the sum.
func total(int) float64 { return 1 }

// upTo counts hops 0 to depth, whatever K.
func upTo(depth int) func(int) int { return func(int) int { return depth + 1 } }

// average divides by the number of hops.
func average(count int) float64 { return 1 / float64(count) }

// ndls is the average of hops 0 to K (equation 7 of the paper).
func ndls(float64, int) Rule {
	return Rule{count: func(k int) int { return k + 1 }, weight: one, factor: average, residual: none}
}

// ndlsReference computes the rule of the authors' released code: hop K is not counted. A node with
// K = 0 keeps its row; so does one with K = 1, whose average holds hop 0 alone.
func ndlsReference(alpha float64, _ int) Rule {
	return Rule{
		count: func(k int) int { return max(k, 1) }, weight: one,
		factor:   func(count int) float64 { return (1 - alpha) / float64(count) },
		residual: func(int) float64 { return alpha },
	}
}

// sgc takes the last hop alone.
func sgc(_ float64, depth int) Rule {
	return Rule{count: upTo(depth), weight: none, final: one, factor: total, residual: none}
}

// s2gc averages hops 1 to depth, and adds a share of hop 0. A node that counts hop 0 alone keeps
// its row.
func s2gc(alpha float64, depth int) Rule {
	return Rule{
		count: upTo(depth), weight: func(hop int) float64 { return float64(min(hop, 1)) }, final: one,
		factor:   func(count int) float64 { return (1 - alpha) / float64(max(count-1, 1)) },
		residual: func(int) float64 { return alpha },
	}
}

// decay returns (1 − α)^hop, times first.
func decay(first, alpha float64, hop int) float64 {
	for range hop {
		first *= 1 - alpha
	}
	return first
}

// gbp weighs hop k by α·(1 − α)^k. If a node counts fewer hops than depth, their weights are scaled
// to the sum of all weights.
func gbp(alpha float64, depth int) Rule {
	sum := func(count int) (sum float64) {
		for hop := range count {
			sum += decay(alpha, alpha, hop)
		}
		return sum
	}
	return Rule{
		count: upTo(depth), weight: func(hop int) float64 { return decay(alpha, alpha, hop) },
		factor: func(count int) float64 {
			if alpha == 0 || count == depth+1 {
				return 1
			}
			return sum(depth+1) / sum(count)
		},
		residual: none,
	}
}

// appnp computes personalised PageRank after depth steps Z ← (1 − α) Â Z + α X from Z = X: hop k
// weighs α·(1 − α)^k, and the last one (1 − α)^k. The weights of any number of hops add up to 1.
func appnp(alpha float64, depth int) Rule {
	return Rule{
		count: upTo(depth), weight: func(hop int) float64 { return decay(alpha, alpha, hop) },
		final: func(hop int) float64 { return decay(1, alpha, hop) }, factor: total, residual: none,
	}
}

// sign lists hops 0 to depth.
func sign(_ float64, depth int) Rule {
	return Rule{form: lists, count: upTo(depth), weight: one, factor: total, residual: none}
}

// nafs adds hops up after all of them are there ([Blend]).
func nafs(_ float64, depth int) Rule {
	return Rule{form: weighs, count: upTo(depth), weight: none, factor: total, residual: none}
}

// fastrp adds up nothing here: package fastrp makes its rows of single hops.
func fastrp(float64, int) Rule {
	return Rule{form: embeds, Walk: true, count: upTo(0), weight: none, factor: total, residual: none}
}

// WithResidual returns the rule ndls with the hops (1 − share)·X^(k) + share·X^(0).
func (r Rule) WithResidual(share float64) (Rule, error) {
	if r.Name != "ndls" {
		return r, errors.New("only ndls takes it")
	}
	r.factor = func(count int) float64 { return (1 - share) / float64(count) }
	r.residual = func(int) float64 { return share }
	return r, nil
}

// ByNode returns the rule with min(K, depth) hops of each node in place of depth. The row of a node
// with K ≥ depth does not change.
func (r Rule) ByNode() (Rule, error) {
	switch {
	case r.NodeDependent:
		return r, errors.New("which counts K hops of each node in any case")
	case r.form == embeds:
		return r, errors.New("which weighs the hops of all nodes alike")
	}
	all := r.count(0)
	r.NodeDependent, r.count = true, func(k int) int { return min(k+1, all) }
	return r, nil
}

// Weights returns the weights of hops 0, 1, … in the row of a node with LSI K, factor and residual
// included. The rule must add hops up.
func (r Rule) Weights(k int) []float64 {
	count := r.count(k)
	w := make([]float64, count)
	factor := r.factor(count)
	for hop := range w {
		w[hop] = factor * r.weight(hop)
	}
	w[count-1] = factor * r.last(count-1)
	w[0] += r.residual(count)
	return w
}

// Hops returns the number of hops that the row of a node with LSI K needs.
func (r Rule) Hops(k int) int { return r.count(k) - 1 }
