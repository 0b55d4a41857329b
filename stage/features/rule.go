package features

import (
	"cmp"

	"ndls/fastrp"
	"ndls/internal/failure"
	"ndls/plan"
	"ndls/smooth"
	"ndls/stage"
)

// ValidateEmbedding checks the options of fastrp, which no other rule has.
func ValidateEmbedding(p plan.Options) error {
	if !p.Embeds() {
		return nil
	}
	o := p.Smooth
	if o.KeepHops != "" || o.LabelColumns != 0 {
		return failure.Of(failure.ErrOption, "--rule %s makes rows of the edges alone: leave --keep-hops and --label-columns out", plan.FastRP)
	}
	if o.Sparsity != 0 && o.Sparsity < 1 {
		return failure.Of(failure.ErrOption, "--sparsity %g is below 1, with which no entry of a random row is zero", o.Sparsity)
	}
	if _, err := fastrp.ParseWeights(cmp.Or(o.HopWeights, plan.DefaultHopWeights)); err != nil {
		return failure.Of(failure.ErrOption, "--hop-weights %s: %w", o.HopWeights, err)
	}
	return nil
}

// RuleOf returns the rule by which a plan smooths features. Its error wraps [failure.ErrOption].
func RuleOf(p plan.Options) (smooth.Rule, error) {
	o := p.Smooth
	rule, err := smooth.NewRule(o.Rule, o.Alpha, o.Hops)
	if err != nil {
		return rule, failure.Of(failure.ErrOption, "--rule %s with --hops %d: %w", o.Rule, o.Hops, err)
	}
	if o.Residual != 0 {
		if rule, err = rule.WithResidual(o.Residual); err != nil {
			return rule, failure.Of(failure.ErrOption, "--residual with --rule %s: %w; the share of a node's own row is --alpha in ndls-reference, s2gc and appnp", o.Rule, err)
		}
	}
	if o.Depth == plan.NodeDepth {
		if rule, err = rule.ByNode(); err != nil {
			return rule, failure.Of(failure.ErrOption, "--depth %s with --rule %s, %w: leave --depth out", o.Depth, o.Rule, err)
		}
	}
	return rule, nil
}

// ValidateBlend refuses options that do not fit a rule which makes rows once all their hops exist.
func ValidateBlend(p plan.Options) error {
	switch {
	case p.Smooth.KeepHops != "":
		return failure.Of(failure.ErrOption, "--keep-hops with --rule %s, whose hops go once rows are made of them: leave --keep-hops out, or write the hops in a run with --rule sign", p.Smooth.Rule)
	case p.Smooth.LabelColumns != 0:
		return failure.Of(failure.ErrOption, "--label-columns with --rule %s, whose weights are made of the distances of features: leave --label-columns out", p.Smooth.Rule)
	case p.DropFeatures:
		return failure.Of(failure.ErrOption, "--keep-features=false with --rule %s, which reads the features again for the stationary rows when hops are there: leave --keep-features=false out", p.Smooth.Rule)
	}
	return nil
}

// followsLSI reports whether the rule of features reads K of each node, or weighs hops by distances from the stationary state that options
// of lsi choose.
func followsLSI(p plan.Options) bool {
	rule, err := RuleOf(p)
	return err == nil && !stage.Directed(p) && (rule.NodeDependent || rule.Weighs())
}
