package reproduce

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"ndls"
)

// significant is the largest p-value, adjusted for the number of comparisons of a table, at which one method is ahead of another.
const significant = 0.05

// A comparison compares a method with hops by node with another one, on a data set under a condition.
type comparison struct {
	ours, other line
	// best says that the other method has the best validation accuracy of all others.
	best        bool
	valid, test difference
}

// place names the data set and the condition.
func (c comparison) place() string { return c.ours.place() }

// place names the data set and the condition of a line.
func (l line) place() string { return strings.TrimSpace(l.Outcome.Set + " " + l.Outcome.Condition) }

// A difference of two mean accuracies, as a share, with its standard error and p-values of Student's t-test: that of this comparison
// alone, and that adjusted for all comparisons of the table by Holm's method.
type difference struct {
	mean, deviation, p, adjusted float64
}

// verdict says in words how the first method compares with the second one.
func (d difference) verdict() string {
	switch {
	case d.adjusted > significant:
		return "level with"
	case d.mean > 0:
		return "ahead of"
	}
	return "behind"
}

// word is the verdict in a word.
func (d difference) word() string { return strings.Fields(d.verdict())[0] }

// comparisons compare, for each data set and condition, the method with hops by node that has the best validation accuracy with each
// other method.
func comparisons(lines []line) (all []comparison) {
	var places []string
	for _, l := range lines {
		if slices.Contains(places, l.place()) {
			continue
		}
		places = append(places, l.place())
		var ours *line
		var others []line
		for i, m := range lines {
			switch {
			case m.Aside || m.place() != l.place() || m.figures().Valid == nil || m.figures().Test == nil:
			case !m.Ours:
				others = append(others, m)
			case ours == nil || m.figures().Valid.Mean > ours.figures().Valid.Mean:
				ours = &lines[i]
			}
		}
		if ours == nil || len(others) == 0 {
			continue
		}
		best := slices.MaxFunc(others, func(a, b line) int { return cmp.Compare(a.figures().Valid.Mean, b.figures().Valid.Mean) })
		for _, o := range others {
			all = append(all, comparison{
				ours: *ours, other: o, best: o.Name == best.Name,
				valid: compare(*ours, o, validOf), test: compare(*ours, o, testOf),
			})
		}
	}
	adjust(all, func(c *comparison) *difference { return &c.valid })
	adjust(all, func(c *comparison) *difference { return &c.test })
	return all
}

// adjust sets the p-values adjusted for the number of comparisons: Holm, A simple sequentially rejective multiple test procedure, 1979.
func adjust(all []comparison, of func(*comparison) *difference) {
	var d []*difference
	for i := range all {
		d = append(d, of(&all[i]))
	}
	slices.SortStableFunc(d, func(a, b *difference) int { return cmp.Compare(a.p, b.p) })
	least := 0.0
	for i, x := range d {
		least = max(least, min(1, float64(len(d)-i)*x.p))
		x.adjusted = least
	}
}

// compare compares two methods. Splits count if both have them, and are compared one by one. Models of a single split are independent.
func compare(a, b line, of func(line, Model) *float64) difference {
	x, y := means(a, of), means(b, of)
	if len(x) == 1 || len(x) != len(y) {
		return unpaired(slices.Concat(x...), slices.Concat(y...))
	}
	var d []float64
	for i := range x {
		d = append(d, stat.Mean(x[i], nil)-stat.Mean(y[i], nil))
	}
	return paired(d, a.Outcome.overlap())
}

// paired tests differences of random splits. Splits of the same nodes are not independent: the variance of their mean equals the
// one of independent splits, and overlap times the variance of one split more.
func paired(d []float64, overlap float64) difference {
	mean, deviation := stat.MeanStdDev(d, nil)
	n := float64(len(d))
	found := tested(mean, deviation*math.Sqrt(1/n+overlap), n-1)
	if mean != 0 && deviation < sameDifference {
		found.p = math.Exp2(1 - n)
		found.adjusted = found.p
	}
	return found
}

// sameDifference is the deviation below which all splits differ by the same number of nodes. This tells nothing of the deviation between
// other splits; the two-sided sign test holds for any.
const sameDifference = 1e-9

// overlap returns what the variance of a mean over random splits gains because splits overlap. It is the number of test nodes over that of
// training nodes (Nadeau and Bengio, Inference for the generalization error, 2003, section 3), which takes the share of the test nodes for
// the correlation of two splits. Where fewer nodes train than are tested, two splits have few training nodes in common and nearly all test
// nodes, so that the nodes of the graph are the population: then it is the inverse.
func (o Outcome) overlap() float64 {
	if o.Train == 0 || o.Test == 0 {
		return 0
	}
	ratio := float64(o.Test) / float64(o.Train)
	return min(ratio, 1/ratio)
}

// unpaired is Welch's test of two independent samples.
func unpaired(x, y []float64) difference {
	mean := stat.Mean(x, nil) - stat.Mean(y, nil)
	a, b := squaredError(x), squaredError(y)
	freedom := math.Inf(1)
	if a+b > 0 {
		freedom = (a + b) * (a + b) / (a*a/float64(max(len(x)-1, 1)) + b*b/float64(max(len(y)-1, 1)))
	}
	return tested(mean, math.Sqrt(a+b), freedom)
}

// squaredError returns the squared standard error of the mean of x, 0 for one number.
func squaredError(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	return stat.Variance(x, nil) / float64(len(x))
}

// tested is the two-sided test of a mean with so many degrees of freedom.
func tested(mean, deviation, freedom float64) difference {
	d := difference{mean: mean, deviation: deviation, p: 1}
	switch {
	case mean == 0 || freedom < 1:
	case deviation == 0:
		d.p = 0
	default:
		d.p = 2 * distuv.StudentsT{Mu: 0, Sigma: 1, Nu: freedom}.CDF(-math.Abs(mean)/deviation)
	}
	d.adjusted = d.p
	return d
}

// verdicts say for each data set and condition how the best method with hops by node compares with the best one of the others.
func verdicts(all []comparison) (notes []string) {
	for _, c := range all {
		if c.best {
			notes = append(notes, fmt.Sprintf("%s: by validation, %s is %s %s (%s), and on test nodes %s (%s).", c.place(), c.ours.Name,
				c.valid.verdict(), c.other.Name, pair(c.ours.figures().Valid, c.other.figures().Valid),
				c.test.word(), pair(c.ours.figures().Test, c.other.figures().Test)))
		}
	}
	return notes
}

// comparisonTable prints comparisons.
func (g grid) comparisonTable(all []comparison) Table {
	t := Table{
		Name: g.name + "-comparisons", Title: g.name + ": the best method with hops by node, by validation, against each other one. Differences are in points, ± their standard error, by split; random splits are corrected for their overlap (Nadeau and Bengio), p-values for the number of comparisons (Holm). Ahead and behind: p at most 0.05.",
		Header: []string{"data set", "condition", "method", "against", "validation", "p", "is", "test", "p", "is"},
	}
	points := func(d difference) []string {
		return []string{fmt.Sprintf("%+.2f ± %.2f", 100*d.mean, 100*d.deviation), strconv.FormatFloat(d.adjusted, 'g', 2, 64), d.word()}
	}
	for _, c := range all {
		t.Rows = append(t.Rows, slices.Concat([]string{c.ours.Outcome.Set, c.ours.Outcome.Condition, c.ours.Name, c.other.Name}, points(c.valid), points(c.test)))
	}
	return t
}

// splitTable has the figures of each model.
func (g grid) splitTable(lines []line) Table {
	t := Table{
		Name: g.name + "-splits", Title: g.name + ": accuracy of each model", Long: true,
		Header: []string{"data set", "condition", "method", "split", "model", "validation", "test"},
	}
	text := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', -1, 64)
	}
	for _, l := range lines {
		for _, m := range l.Outcome.Models {
			t.Rows = append(t.Rows, []string{
				l.Outcome.Set, l.Outcome.Condition, l.Name, strconv.Itoa(m.Split), strconv.Itoa(m.Run), text(validOf(l, m)), text(testOf(l, m)),
			})
		}
	}
	return t
}

func pair(a, b *ndls.Spread) string { return percent(a) + " against " + percent(b) }

func validOf(l line, m Model) *float64 {
	if l.After {
		return m.SmoothedValid
	}
	return m.Valid
}

func testOf(l line, m Model) *float64 {
	if l.After {
		return m.SmoothedTest
	}
	return m.Test
}

// means are the mean figures of each split, or, of a single split, the figures of each model.
func means(l line, of func(line, Model) *float64) (splits [][]float64) {
	splits = make([][]float64, l.Outcome.Splits)
	for _, m := range l.Outcome.Models {
		if v := of(l, m); v != nil {
			splits[m.Split] = append(splits[m.Split], *v)
		}
	}
	return splits
}
