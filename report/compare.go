package report

import "ndls/internal/control"

// compared is a measure on the nodes of a split, of each run.
type compared struct {
	Measure string
	Cells   []comparedCell
}

// comparedCell is the measure of a run: Spread is nil where the run does not have it, and Best marks the highest mean.
type comparedCell struct {
	*control.Spread
	Best bool
}

// Compared returns the measures of several runs, side by side. The best mean on validation and on test nodes is marked
// where one run alone has it.
func (v *view) Compared() (list []compared) {
	for _, m := range []struct {
		name string
		of   func(*control.AccuracyReport) control.SplitAccuracy
	}{
		{"accuracy before label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Base }},
		{"accuracy after label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Smoothed }},
		{"macro F1 before label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Base.MacroF1 }},
		{"macro F1 after label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Smoothed.MacroF1 }},
		{"ROC AUC before label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Base.AUC }},
		{"ROC AUC after label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Smoothed.AUC }},
		{"average precision before label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Base.Precision }},
		{"average precision after label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Smoothed.Precision }},
		{"R² before label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Base.Determination }},
		{"R² after label smoothing", func(a *control.AccuracyReport) control.SplitAccuracy { return a.Metrics.Smoothed.Determination }},
	} {
		for _, split := range []struct {
			nodes string
			of    func(control.SplitAccuracy) *control.Spread
			marks bool
		}{
			{"training nodes", func(s control.SplitAccuracy) *control.Spread { return s.Train }, false},
			{"validation nodes", func(s control.SplitAccuracy) *control.Spread { return s.Valid }, true},
			{"test nodes", func(s control.SplitAccuracy) *control.Spread { return s.Test }, true},
		} {
			row, best, runs, equals := compared{Measure: m.name + ", " + split.nodes}, -1, 0, 0
			for i, r := range v.Runs {
				var x *control.Spread
				if r.Accuracy != nil {
					x = split.of(m.of(r.Accuracy))
				}
				row.Cells = append(row.Cells, comparedCell{Spread: x})
				if x == nil {
					continue
				}
				runs++
				switch {
				case best < 0 || x.Mean > row.Cells[best].Mean:
					best, equals = i, 1
				case x.Mean == row.Cells[best].Mean:
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
