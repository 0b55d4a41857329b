package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"ndls/internal/byhop"
	"ndls/internal/control"
)

// chart is a chart and the table under it: a line of the table for each x, a column for each
// series.
type chart struct {
	ID, Title string
	// Says describes the chart for readers who do not see it.
	Says string
	// Kind is how series are drawn: "lines", "steps", "bars", or "ranges": each line of the table holds for all of x from X
	// to To, and is drawn as a bar over them, or, of several series, as a level.
	Kind string
	// X and Y are the names of the axes, with their units. LogX has a logarithmic axis of X, FromZero one of Y that begins
	// at 0, as amounts need it.
	X, Y           string
	LogX, FromZero bool
	// Series are the names of the columns, Lines the table. The last Counts of the series are numbers of nodes, which are
	// written and not drawn.
	Series []string
	Counts int
	Lines  []line
}

// line is a line of a table: numbers for the chart, NaN where a series has none, and their text.
type line struct {
	X float64
	// To is the end of a range, and X elsewhere.
	To     float64
	Text   string
	Values []float64
}

// number is how a page shows a number.
func number(x float64) string {
	switch size := math.Abs(x); {
	case math.IsNaN(x):
		return "–"
	case x == math.Trunc(x) && size < 1e15:
		return strconv.FormatFloat(x, 'f', 0, 64)
	case size >= 100:
		return strconv.FormatFloat(x, 'f', 1, 64)
	case size >= 0.1:
		return strconv.FormatFloat(x, 'f', 2, 64)
	}
	return strconv.FormatFloat(x, 'g', 3, 64)
}

// table gathers lines by x: series are added one after the other.
type table struct {
	lines  []line
	at     map[[2]float64]int
	series int
}

// add adds a series: point gives x, its text and the value of each of n points, whose x ascend.
func (t *table) add(n int, point func(i int) (x float64, text string, y float64)) {
	t.addRanges(n, func(i int) (x, to float64, text string, y float64) {
		x, text, y = point(i)
		return x, x, text, y
	})
}

// addRanges is add for values that hold for all x up to the one named to. Ranges of two series are in one line of the
// table where they are the same.
func (t *table) addRanges(n int, point func(i int) (x, to float64, text string, y float64)) {
	if t.at == nil {
		t.at = map[[2]float64]int{}
	}
	for i := range n {
		x, to, text, y := point(i)
		k, ok := t.at[[2]float64{x, to}]
		if !ok {
			k = len(t.lines)
			t.at[[2]float64{x, to}] = k
			t.lines = append(t.lines, line{X: x, To: to, Text: text})
		}
		l := &t.lines[k]
		for len(l.Values) < t.series {
			l.Values = append(l.Values, math.NaN())
		}
		l.Values = append(l.Values, y)
	}
	t.series++
}

// done are the lines in ascending order of x, each with all series.
func (t *table) done() []line {
	for i := range t.lines {
		for len(t.lines[i].Values) < t.series {
			t.lines[i].Values = append(t.lines[i].Values, math.NaN())
		}
	}
	sortLines(t.lines)
	return t.lines
}

// span is a range of K that one line of a table stands for.
func span(largest int64) int64 { return largest/MaxRows + 1 }

// spanText is "3", or "4–6".
func spanText(from, to int64) string {
	if from == to {
		return strconv.FormatInt(from, 10)
	}
	return fmt.Sprintf("%d–%d", from, to)
}

// histogramOfK is the share of nodes by K, or of those up to each K.
func (v *view) histogramOfK(cumulative bool) *chart {
	c := &chart{
		ID: "k-histogram", Kind: "bars", X: "K, hops", Y: "nodes, %", Title: "How K is spread",
		Says: "Share of the nodes by K, the number of hops after which a node's influence row is close to the stationary one.",
	}
	if cumulative {
		c.ID, c.Kind, c.Y, c.Title = "k-cdf", "steps", "nodes up to K, %", "Share of nodes up to each K"
		c.Says = "Share of the nodes whose K is at most the number on the axis."
	} else if v.Several {
		c.Kind = "lines"
	}
	largest := int64(0)
	for _, r := range v.Runs {
		if l := r.LSI; l != nil {
			largest = max(largest, int64(l.Max))
		}
	}
	step := span(largest)
	var t table
	for _, r := range v.Runs {
		if r.LSI == nil || len(r.LSI.Histogram) == 0 {
			continue
		}
		c.Series = append(c.Series, r.series("nodes, %"))
		counts, total := make([]int64, largest/step+1), int64(0)
		for _, h := range r.LSI.Histogram {
			counts[h[0]/step] += h[1]
			total += h[1]
		}
		so := int64(0)
		t.add(len(counts), func(i int) (float64, string, float64) {
			n := counts[i]
			if so += n; cumulative {
				n = so
			}
			from, to := int64(i)*step, int64(i+1)*step-1
			if cumulative {
				from = to
			}
			return float64(from), spanText(from, to), 100 * float64(n) / float64(total)
		})
	}
	c.Lines = t.done()
	return c.orNothing()
}

// orNothing is nil for a chart without lines.
func (c *chart) orNothing() *chart {
	if len(c.Lines) == 0 {
		return nil
	}
	return c
}

// Counted reports whether a series has numbers of nodes.
func (c *chart) Counted(series int) bool { return series >= len(c.Series)-c.Counts }

// KHistogram, KCDF and those below are the charts of the page, nil where no run has their numbers.
func (v *view) KHistogram() *chart { return v.histogramOfK(false) }

// KCDF is the share of nodes up to each K.
func (v *view) KCDF() *chart { return v.histogramOfK(true) }

// rangeText is the text of a range of degrees.
func rangeText(r control.Range) string { return spanText(r.From, r.To) }

// Degrees is how the degrees of nodes are spread.
func (v *view) Degrees() *chart {
	c := &chart{
		ID: "degrees", Kind: "ranges", LogX: true, FromZero: true, X: "degree", Y: "nodes, %", Title: "How degrees are spread",
		Says: "Share of the nodes by degree, in ranges from a power of two to below the next.",
	}
	var t table
	for _, r := range v.Runs {
		if r.Findings.Degrees == nil {
			continue
		}
		list, total := r.Findings.Degrees.Degrees, int64(0)
		for _, x := range list {
			total += x.Count
		}
		c.Series = append(c.Series, r.series("nodes, %"))
		t.addRanges(len(list), func(i int) (x, to float64, text string, y float64) {
			return float64(list[i].From), float64(list[i].To), rangeText(list[i]), 100 * float64(list[i].Count) / float64(max(total, 1))
		})
	}
	c.Lines = t.done()
	return c.orNothing()
}

// KByDegree is K by degree: the mean, and of one run the range that has the middle 80 % of the nodes.
func (v *view) KByDegree() *chart {
	c := &chart{
		ID: "k-degree", Kind: "ranges", LogX: true, FromZero: true, X: "degree", Y: "K, hops", Title: "K by degree",
		Says: "K of the nodes by degree, in ranges from a power of two to below the next: the mean, and the values that a tenth of the nodes are below and above.",
	}
	var t table
	for _, r := range v.Runs {
		if r.LSI == nil || len(r.LSI.ByDegree) == 0 {
			continue
		}
		list := r.LSI.ByDegree
		add := func(name string, of func(control.DegreeK) float64) {
			c.Series = append(c.Series, r.series(name))
			t.addRanges(len(list), func(i int) (x, to float64, text string, y float64) {
				return float64(list[i].From), float64(list[i].To), spanText(list[i].From, list[i].To), of(list[i])
			})
		}
		add("mean K", func(x control.DegreeK) float64 { return x.Mean })
		if !v.Several {
			add("10 %", func(x control.DegreeK) float64 { return float64(x.Tenth) })
			add("median", func(x control.DegreeK) float64 { return float64(x.Median) })
			add("90 %", func(x control.DegreeK) float64 { return float64(x.Ninetieth) })
		}
	}
	c.Lines = t.done()
	return c.orNothing()
}

// Distances returns the chart of the distances of sampled nodes to the stationary row, by hop.
func (v *view) Distances() *chart {
	if v.Several || v.Runs[0].LSI == nil || len(v.Runs[0].LSI.Sample) == 0 {
		return nil
	}
	l := v.Runs[0].LSI
	c := &chart{
		ID: "distances", Kind: "lines", X: "hops", Y: "distance", Title: "Distance to the stationary row, of a sample of nodes",
		Says: fmt.Sprintf("Distance of the influence row of %d nodes to the stationary row, by hop. A node's K is the first hop at which its distance is below ε = %g.", len(l.Sample), l.Epsilon),
	}
	var t table
	longest := 0
	for _, s := range l.Sample {
		longest = max(longest, len(s.Distance))
		c.Series = append(c.Series, fmt.Sprintf("node %s, degree %d, K = %d", s.Node, s.Degree, s.K))
		t.add(len(s.Distance), func(i int) (float64, string, float64) { return float64(i), strconv.Itoa(i), s.Distance[i] })
	}
	c.Series = append(c.Series, "ε")
	t.add(longest, func(i int) (float64, string, float64) { return float64(i), strconv.Itoa(i), l.Epsilon })
	c.Lines = t.done()
	return c.orNothing()
}

// Depth is the validation accuracy by depth of label smoothing.
func (v *view) Depth() *chart {
	c := &chart{
		ID: "depth", Kind: "lines", X: "depth, hops", Y: "validation accuracy, %", Title: "Depth of label smoothing",
		Says: "Share of the validation nodes that are classified right, by the depth of label smoothing. Depth 0 leaves soft labels as they are.",
	}
	var t table
	for _, r := range v.Runs {
		if r.LabelDepth == nil || len(r.LabelDepth.Curve) == 0 {
			continue
		}
		list := r.LabelDepth.Curve
		add := func(name string, of func(control.DepthAccuracy) float64) {
			c.Series = append(c.Series, r.series(name))
			t.add(len(list), func(i int) (float64, string, float64) {
				return float64(list[i].Depth), strconv.Itoa(list[i].Depth), 100 * of(list[i])
			})
		}
		add("model of the predictions", func(x control.DepthAccuracy) float64 { return x.Valid })
		if !v.Several {
			add("mean over all models", func(x control.DepthAccuracy) float64 { return x.Mean })
		}
	}
	c.Lines = t.done()
	return c.orNothing()
}

// learning is a figure of training by epoch: of each model of one run, or of the first of several.
func (v *view) learning(c *chart, of func(control.LearningPoint) float64) *chart {
	var t table
	for _, r := range v.Runs {
		if r.Accuracy == nil {
			continue
		}
		for _, m := range r.Accuracy.Models {
			if len(m.Curve) == 0 || v.Several && m.Split+m.Run > 0 {
				continue
			}
			c.Series = append(c.Series, r.series(modelName(r.Accuracy, m)))
			t.add(len(m.Curve), func(i int) (float64, string, float64) {
				p := m.Curve[i]
				return float64(p.Epoch), strconv.Itoa(p.Epoch), of(p)
			})
		}
	}
	c.Lines = t.done()
	return c.orNothing()
}

func modelName(a *control.AccuracyReport, m control.ModelAccuracy) string {
	if a.Splits > 1 {
		return fmt.Sprintf("split %d, model %d", m.Split, m.Run)
	}
	return fmt.Sprintf("model %d", m.Run)
}

// Loss is the loss of training by epoch.
func (v *view) Loss() *chart {
	return v.learning(&chart{
		ID: "loss", Kind: "lines", X: "epoch", Y: "loss of the training nodes", Title: "Training: loss",
		Says: "Mean loss of the training nodes by epoch.",
	}, func(p control.LearningPoint) float64 { return p.Loss })
}

// Valid is the best validation accuracy so far by epoch.
func (v *view) Valid() *chart {
	return v.learning(&chart{
		ID: "valid", Kind: "steps", X: "epoch", Y: "best so far, %", Title: "Training: validation",
		Says: "Best validation accuracy up to each epoch; for numbers it is R². An epoch is validated only until it is clear that it is not the best.",
	}, func(p control.LearningPoint) float64 { return 100 * p.Valid })
}

// countedNodes is the least number of nodes of a range: with fewer a share says little.
const countedNodes = 20

// united puts ranges together with those that follow until each has enough nodes; what is left at the end goes to the last.
func united(list []control.RangeRight) (all []control.RangeRight) {
	for _, x := range list {
		if n := len(all); n > 0 && all[n-1].Nodes < countedNodes {
			last := &all[n-1]
			last.To, last.Nodes, last.Right = x.To, last.Nodes+x.Nodes, last.Right+x.Right
			continue
		}
		all = append(all, x)
	}
	if n := len(all); n > 1 && all[n-1].Nodes < countedNodes {
		last, before := all[n-1], &all[n-2]
		before.To, before.Nodes, before.Right = last.To, before.Nodes+last.Nodes, before.Right+last.Right
		all = all[:n-1]
	}
	return all
}

// counted is a chart of the share of test nodes that are classified right, with the numbers of nodes.
func (v *view) counted(c *chart, of func(*control.BreakdownReport) []control.RangeRight) *chart {
	c.Kind, c.Y, c.FromZero = "ranges", "right on test nodes, %", true
	var t table
	var counts []string
	add := func(value func(control.RangeRight) float64, name func(Named) string, to *[]string) {
		for _, r := range v.Runs {
			if r.Accuracy == nil || r.Accuracy.Breakdown == nil {
				continue
			}
			list := united(of(r.Accuracy.Breakdown))
			if len(list) == 0 {
				continue
			}
			*to = append(*to, name(r))
			t.addRanges(len(list), func(i int) (x, to float64, text string, y float64) {
				return float64(list[i].From), float64(list[i].To), spanText(list[i].From, list[i].To), value(list[i])
			})
		}
	}
	add(func(x control.RangeRight) float64 { return 100 * float64(x.Right) / float64(max(x.Nodes, 1)) },
		func(r Named) string { return r.series("right, %") }, &c.Series)
	add(func(x control.RangeRight) float64 { return float64(x.Nodes) }, func(r Named) string {
		if v.Several {
			return r.Name + ", nodes"
		}
		return "nodes"
	}, &counts)
	c.Series, c.Counts = append(c.Series, counts...), len(counts)
	c.Lines = t.done()
	return c.orNothing()
}

// ByDegree and ByK are the shares of test nodes that are classified right, by degree and by K.
func (v *view) ByDegree() *chart {
	return v.counted(&chart{
		ID: "right-degree", LogX: true, X: "degree", Title: "Test accuracy by degree",
		Says: "Share of the test nodes that are classified right, by degree, in ranges from a power of two to below the next; ranges with few nodes are put together.",
	}, func(b *control.BreakdownReport) []control.RangeRight { return b.Degrees })
}

// ByK is described at ByDegree.
func (v *view) ByK() *chart {
	return v.counted(&chart{
		ID: "right-k", X: "K, hops", Title: "Test accuracy by K",
		Says: "Share of the test nodes that are classified right, by K. Ranges with few nodes are put together.",
	}, func(b *control.BreakdownReport) []control.RangeRight { return b.K })
}

// stages returns the stages of all runs, in the order in which they appear.
func (v *view) stages() (names []control.Stage) {
	for _, r := range v.Runs {
		for _, s := range r.Stages {
			if !slices.Contains(names, s.Name) {
				names = append(names, s.Name)
			}
		}
	}
	return names
}

// Hops are the charts of what the passes of each hop took, for each stage that makes hops: their seconds, the rows that
// they read in a second, beside what the host does at most, and the bytes that went between memory and disk meanwhile.
func (v *view) Hops() (list []*chart) {
	for _, name := range v.stages() {
		seconds := &chart{
			ID: "hops-" + string(name), Kind: "lines", FromZero: true, X: "hop", Y: "seconds", Title: "Passes of " + string(name) + ", by hop",
			Says: "Seconds of all passes over the edges for each hop of the stage.",
		}
		rows := &chart{
			ID: "rows-" + string(name), Kind: "lines", FromZero: true, X: "hop", Y: "GB of rows a second",
			Title: "Rows that passes of " + string(name) + " read, by hop",
			Says:  "Bytes of rows that passes have read for the edges of each hop, from memory or disk, in a second.",
		}
		disk := &chart{
			ID: "disk-" + string(name), Kind: "lines", FromZero: true, X: "hop", Y: "GB",
			Title: "Files that passes of " + string(name) + " read and wrote, by hop",
			Says:  "Bytes of the run directory and of scratch files that were read and written during all passes for each hop. What is read and written before the first hop and after the last one is not among them.",
		}
		var times, rates, moved table
		for _, r := range v.Runs {
			for _, s := range r.Stages {
				if s.Name != name || len(s.Hops) < 2 {
					continue
				}
				add := func(c *chart, to *table, name string, of func(byhop.Hop) float64) {
					c.Series = append(c.Series, name)
					to.add(len(s.Hops), func(i int) (float64, string, float64) {
						h := s.Hops[i]
						return float64(h.Hop), strconv.Itoa(h.Hop), of(h)
					})
				}
				add(seconds, &times, r.series("seconds"), func(h byhop.Hop) float64 { return h.Seconds })
				p := s.passed()
				if p.Rows > 0 {
					add(rows, &rates, r.series("GB a second"), func(h byhop.Hop) float64 { return float64(h.Rows) / 1e9 / max(h.Seconds, 1e-9) })
				}
				if limit := r.Limits.Rows(s.rowBytes()) / 1e9; p.Rows > 0 && limit > 0 && !v.Several {
					add(rows, &rates, limitSeries, func(byhop.Hop) float64 { return limit })
				}
				if p.Read+p.Written > 0 {
					add(disk, &moved, r.series("read, GB"), func(h byhop.Hop) float64 { return float64(h.Read) / 1e9 })
					add(disk, &moved, r.series("written, GB"), func(h byhop.Hop) float64 { return float64(h.Written) / 1e9 })
				}
			}
		}
		seconds.Lines, rows.Lines, disk.Lines = times.done(), rates.done(), moved.done()
		for _, c := range []*chart{seconds.orNothing(), rows.orNothing(), disk.orNothing()} {
			if c != nil {
				list = append(list, c)
			}
		}
	}
	return list
}

// limitSeries is the name of what the host does at most.
const limitSeries = "limit of the host"
