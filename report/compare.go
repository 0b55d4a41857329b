package report

import (
	"slices"
	"strconv"
	"strings"

	"ndls/internal/control"
)

// measured is a measure of a run, before or after label smoothing.
type measured struct {
	name string
	unit float64 // multiplies the values that are shown
	of   control.SplitAccuracy
}

// nodesOf are the parts of the nodes on which models are measured.
var nodesOf = []struct {
	nodes string
	of    func(control.SplitAccuracy) *control.Spread
	marks bool // the better run is marked there
}{
	{"training nodes", func(s control.SplitAccuracy) *control.Spread { return s.Train }, false},
	{"validation nodes", func(s control.SplitAccuracy) *control.Spread { return s.Valid }, true},
	{"test nodes", func(s control.SplitAccuracy) *control.Spread { return s.Test }, true},
}

// measuresOf lists the measures of a run, with the names of steps where labels are smoothed or with always.
func measuresOf(a *control.AccuracyReport, always bool) (list []measured) {
	if a == nil {
		return nil
	}
	for _, f := range a.Figures() {
		before := f.Name
		if always || f.Smoothed != (control.SplitAccuracy{}) || a.Smoothed != (control.SplitAccuracy{}) {
			before += " before label smoothing"
		}
		list = append(list, measured{before, f.Unit, f.Base})
		if f.Smoothed != (control.SplitAccuracy{}) {
			list = append(list, measured{f.Name + " after label smoothing", f.Unit, f.Smoothed})
		}
	}
	return list
}

// shown returns a mean and its deviation in words, with two digits after the point for shares in per cent and four for others.
func (m measured) shown(s *control.Spread) string {
	if s == nil {
		return "–"
	}
	digits := 4
	if m.unit == 100 {
		digits = 2
	}
	text := strconv.FormatFloat(m.unit*s.Mean, 'f', digits, 64)
	if s.Std > 0 {
		text += " ± " + strconv.FormatFloat(m.unit*s.Std, 'f', digits, 64)
	}
	return text
}

// measure is a row of the table of one run: training, validation and test nodes.
type measure struct {
	Name  string
	Cells []string
}

// Measures lists the measures of the run.
func (r Named) Measures() (list []measure) {
	for _, m := range measuresOf(r.Accuracy, false) {
		row := measure{Name: m.name}
		for _, split := range nodesOf {
			row.Cells = append(row.Cells, m.shown(split.of(m.of)))
		}
		list = append(list, row)
	}
	return list
}

// compared is a measure on the nodes of a split, of each run.
type compared struct {
	Measure string
	Cells   []comparedCell
}

// comparedCell is the measure of a run. Best marks the best mean.
type comparedCell struct {
	Shown string
	Best  bool
}

// Compared returns the measures of several runs, side by side. The best mean on validation and on test nodes is marked
// where one run alone has it.
func (v *view) Compared() (list []compared) {
	var names []string
	of := make([]map[string]measured, len(v.Runs))
	for i, r := range v.Runs {
		of[i] = map[string]measured{}
		for _, m := range measuresOf(r.Accuracy, true) {
			of[i][m.name] = m
			if !slices.Contains(names, m.name) {
				names = append(names, m.name)
			}
		}
	}
	for _, name := range names {
		less := strings.HasPrefix(name, control.MeanErrorName) // is better
		for _, split := range nodesOf {
			row, best, runs, equals := compared{Measure: name + ", " + split.nodes}, -1, 0, 0
			var leader *control.Spread
			for i := range v.Runs {
				m := of[i][name]
				x := split.of(m.of)
				row.Cells = append(row.Cells, comparedCell{Shown: m.shown(x)})
				if x == nil {
					continue
				}
				runs++
				switch {
				case best < 0 || x.Mean != leader.Mean && (x.Mean < leader.Mean) == less:
					best, leader, equals = i, x, 1
				case x.Mean == leader.Mean:
					equals++
				}
			}
			if split.marks && runs > 1 && equals == 1 {
				row.Cells[best].Best = true
			}
			if runs > 0 {
				list = append(list, row)
			}
		}
	}
	return list
}
