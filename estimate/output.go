package estimate

import (
	"cmp"
	"slices"
	"strconv"

	"ndls/fastrp"
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/smooth"
)

// Output says what the smooth stage writes for each target: the row that its rule adds up,
// and rows of hops. A row has the values of the features, then those of label columns.
type Output struct {
	// Sums says that the rule adds hops up to a row.
	Sums bool
	// Keep are the hops that are written, in ascending order. Joins says that the row of a
	// target is made of all of them, in place of one for each hop.
	Keep  []int
	Joins bool
	// Directions are those of the hops. Where there are two, a row that hops add up to has the
	// values of either, one behind the other, and the hops of the second one, without hop 0,
	// follow those of the first.
	Directions []string
	// Features is the number of feature columns, Classes that of label columns, 0 without
	// them. Labels are propagated in so many Parts.
	Features, Classes, Parts int
}

// OutputOf is what the smooth stage writes under plan p, of a graph with so many features and
// classes. The plan is valid.
func OutputOf(p control.Plan, features, classes int) Output {
	if p.Embeds() {
		e := Projection(p)
		return Output{Keep: e.Kept(), Joins: true, Features: e.Dimensions, Directions: p.Directions()}
	}
	o := Output{Sums: true, Features: features, Directions: p.Directions()}
	o.Keep, _ = control.ParseHops(p.Smooth.KeepHops)
	if rule, err := smooth.NewRule(p.Smooth.Rule, p.Smooth.Alpha, p.Smooth.Hops); err == nil && !rule.Sums() {
		o.Sums, o.Joins, o.Keep = false, rule.Weighs(), nil
		for hop := range p.Smooth.Hops + 1 {
			o.Keep = append(o.Keep, hop)
		}
	}
	if p.Smooth.LabelColumns > 0 {
		o.Classes, o.Parts = classes, p.Smooth.LabelColumns
	}
	return o
}

// Projection is the embedding that a plan with --rule fastrp asks for. The plan is valid.
func Projection(p control.Plan) fastrp.Projection {
	o := p.Smooth
	weights, _ := fastrp.ParseWeights(cmp.Or(o.HopWeights, control.DefaultHopWeights))
	return fastrp.Projection{
		Dimensions: cmp.Or(o.Dimensions, control.DefaultDimensions), Weights: weights, DegreePower: o.DegreePower,
		Sparsity: cmp.Or(o.Sparsity, control.DefaultSparsity), Seed: p.Seed,
	}
}

// Width is the number of values of a row at one hop.
func (o Output) Width() int { return o.Features + o.Classes }

// SumWidth is the number of values of the row that the rule adds up.
func (o Output) SumWidth() int { return len(o.Directions) * o.Width() }

// hop0 is how many of the hops that are kept are hop 0, which has no direction: 0 or 1.
func (o Output) hop0() int {
	if len(o.Keep) > 0 && o.Keep[0] == 0 {
		return 1
	}
	return 0
}

// Lists is the number of hops that are written, of all directions.
func (o Output) Lists() int { return len(o.Directions)*(len(o.Keep)-o.hop0()) + o.hop0() }

// List is the place of a hop of a direction among those that are written; ok is false where it
// is not written.
func (o Output) List(direction, hop int) (list int, ok bool) {
	i, ok := slices.BinarySearch(o.Keep, hop)
	if direction == 0 || !ok {
		return i, ok
	}
	return direction*(len(o.Keep)-o.hop0()) + i, hop > 0
}

// HopNames are the names of the hops that are written, without what all names of hops begin
// with.
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

// FeaturePanels and LabelPanels are the panels of the columns that make hops: of features,
// then of labels in parts. Panels are both.
func (o Output) FeaturePanels() int { return packed.Panels(o.Features) }

// LabelPanels is described at FeaturePanels.
func (o Output) LabelPanels() int { return packed.Panels(o.Parts * o.Classes) }

// Panels is described at FeaturePanels.
func (o Output) Panels() int { return o.FeaturePanels() + o.LabelPanels() }

// Rows is how many rows of tiles are written for each target.
func (o Output) Rows() int {
	return o.SumRows() + o.Lists()
}

// SumRows is how many of them are for what the rule adds up: one for each direction. They come
// first.
func (o Output) SumRows() int {
	if o.Sums {
		return len(o.Directions)
	}
	return 0
}

// Trained is the number of values that a model takes: of the rule's row, or of all hops where
// the rule adds up none.
func (o Output) Trained() int {
	if o.Sums || o.Joins {
		return o.SumWidth()
	}
	return o.Lists() * o.Width()
}

// Last is the last hop that is kept, 0 where none is.
func (o Output) Last() int {
	if len(o.Keep) == 0 {
		return 0
	}
	return o.Keep[len(o.Keep)-1]
}

// Output is what the smooth stage writes.
func (s *Sheet) Output() Output { return OutputOf(s.Plan, s.Features, s.Classes) }
