package estimate

import (
	"cmp"
	"slices"
	"strconv"

	"ndls/fastrp"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/smooth"
)

// Output describes what the smooth stage writes for each target: the row that its rule adds up, and
// rows of hops. A row has the values of the features, then those of label columns.
type Output struct {
	// Sums says that the rule adds hops up to a row.
	Sums bool
	// Keep lists the hops that are written, in ascending order. Joins says that one row of a target
	// holds all of them, instead of one row for each hop.
	Keep  []int
	Joins bool
	// Directions lists the directions of the hops. With two directions, a row that hops add up to
	// holds the values of the first and then those of the second. The hops of the second direction,
	// without hop 0, follow those of the first.
	Directions []string
	// Features is the number of feature columns, Classes the number of label columns of a split, 0
	// without labels. The labels of each of so many Splits are propagated in so many Parts.
	Features, Classes, Parts, Splits int
}

// OutputOf returns what the smooth stage writes under plan p for a graph with so many features and
// classes. The plan is valid.
func OutputOf(p plan.Options, features, classes int) Output {
	if p.Embeds() {
		e := Projection(p)
		return Output{Keep: e.Kept(), Joins: true, Features: e.Dimensions, Directions: p.Directions()}
	}
	o := Output{Sums: true, Features: features, Directions: p.Directions()}
	o.Keep, _ = plan.ParseHops(p.Smooth.KeepHops)
	if rule, err := smooth.NewRule(p.Smooth.Rule, p.Smooth.Alpha, p.Smooth.Hops); err == nil && !rule.Sums() {
		o.Sums, o.Joins, o.Keep = false, rule.Weighs(), nil
		for hop := range p.Smooth.Hops + 1 {
			o.Keep = append(o.Keep, hop)
		}
	}
	if p.Smooth.LabelColumns > 0 {
		o.Classes, o.Parts, o.Splits = classes, p.Smooth.LabelColumns, p.NumSplits()
	}
	return o
}

// Projection returns the embedding that a plan with --rule fastrp asks for. The plan is valid.
func Projection(p plan.Options) fastrp.Projection {
	o := p.Smooth
	weights, _ := fastrp.ParseWeights(cmp.Or(o.HopWeights, plan.DefaultHopWeights))
	return fastrp.Projection{
		Dimensions: cmp.Or(o.Dimensions, plan.DefaultDimensions), Weights: weights, DegreePower: o.DegreePower,
		Sparsity: cmp.Or(o.Sparsity, plan.DefaultSparsity), Seed: p.Seed,
	}
}

// Width returns the number of values of a row at one hop.
func (o Output) Width() int { return o.Features + o.Splits*o.Classes }

// SumWidth returns the number of values of the row that the rule adds up.
func (o Output) SumWidth() int { return len(o.Directions) * o.Width() }

// hop0 returns 1 if hop 0, which has no direction, is among the kept hops, else 0.
func (o Output) hop0() int {
	if len(o.Keep) > 0 && o.Keep[0] == 0 {
		return 1
	}
	return 0
}

// Lists returns the number of written hops of all directions.
func (o Output) Lists() int { return len(o.Directions)*(len(o.Keep)-o.hop0()) + o.hop0() }

// List returns the place of a hop of a direction among the written hops; ok is false if it is not
// written.
func (o Output) List(direction, hop int) (list int, ok bool) {
	i, ok := slices.BinarySearch(o.Keep, hop)
	if direction == 0 || !ok {
		return i, ok
	}
	return direction*(len(o.Keep)-o.hop0()) + i, hop > 0
}

// HopNames returns the names of the written hops without their common beginning.
func (o Output) HopNames() (names []string) {
	for d, direction := range o.Directions {
		for _, hop := range o.Keep {
			switch {
			case len(o.Directions) == 1 || d == 0 && hop == 0:
				names = append(names, strconv.Itoa(hop))
			case hop > 0:
				names = append(names, strconv.Itoa(hop)+"_"+direction)
			}
		}
	}
	return names
}

// LabelColumns returns the number of columns of labels that are propagated: of each split, part and
// class.
func (o Output) LabelColumns() int { return o.Splits * o.Parts * o.Classes }

// FeaturePanels returns the number of panels of the features, LabelPanels the number of panels of
// labels in parts, and Panels the sum of both.
func (o Output) FeaturePanels() int { return packed.Panels(o.Features) }

// LabelPanels is described at FeaturePanels.
func (o Output) LabelPanels() int { return packed.Panels(o.LabelColumns()) }

// Panels is described at FeaturePanels.
func (o Output) Panels() int { return o.FeaturePanels() + o.LabelPanels() }

// Rows returns the number of rows of tiles for each target.
func (o Output) Rows() int {
	return o.SumRows() + o.Lists()
}

// SumRows returns the number of these rows that hold sums of the rule: one for each direction. They
// come first.
func (o Output) SumRows() int {
	if o.Sums {
		return len(o.Directions)
	}
	return 0
}

// Trained returns the number of values that a model reads: those of the rule's row, or those of all
// hops if the rule adds up none.
func (o Output) Trained() int {
	if o.Sums || o.Joins {
		return o.SumWidth()
	}
	return o.Lists() * o.Width()
}

// Last returns the last kept hop, 0 if none is kept.
func (o Output) Last() int {
	if len(o.Keep) == 0 {
		return 0
	}
	return o.Keep[len(o.Keep)-1]
}

// Output returns what the smooth stage writes.
func (s *Sheet) Output() Output { return OutputOf(s.Plan, s.Features, s.Classes) }
