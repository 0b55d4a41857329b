package figure

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Hops says how many nodes take how many hops: nodes by K, in ascending order of K.
type Hops struct {
	// Name is the name of the graph.
	Name string
	// Histogram lists [K, nodes].
	Histogram [][2]int64
	// Capped is the share of nodes that had not settled at the last K.
	Capped float64
}

// nodes counts the nodes.
func (h Hops) nodes() (n int64) {
	for _, b := range h.Histogram {
		n += b[1]
	}
	return n
}

const (
	wide = 6.4 * vg.Inch
	high = 4.2 * vg.Inch
)

// CDF draws for each graph the share of nodes with at most so many hops.
func CDF(title string, graphs []Hops) (Picture, error) {
	p := newPlot(title, "local smoothing iteration K (hops)", "share of nodes with at most K hops (%)")
	last := int64(1)
	for _, h := range graphs {
		if len(h.Histogram) > 0 {
			last = max(last, h.Histogram[len(h.Histogram)-1][0])
		}
	}
	for i, h := range graphs {
		n, sum := h.nodes(), int64(0)
		if n == 0 {
			return Picture{}, fmt.Errorf("%s has no nodes to draw", h.Name)
		}
		points := plotter.XYs{{X: 0, Y: 0}}
		for _, b := range h.Histogram {
			k := float64(b[0])
			before := 100 * float64(sum) / float64(n)
			sum += b[1]
			points = append(points, plotter.XY{X: k, Y: before}, plotter.XY{X: k, Y: 100 * float64(sum) / float64(n)})
		}
		points = append(points, plotter.XY{X: float64(last), Y: 100})
		name := h.Name
		if h.Capped > 0 {
			name = fmt.Sprintf("%s (%.1f %% not settled)", name, 100*h.Capped)
		}
		if err := line(p, points, name, solid(i)); err != nil {
			return Picture{}, err
		}
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, float64(last)*1.02, 0, 102
	p.Y.Tick.Marker = plot.ConstantTicks(ticks(100))
	p.X.Tick.Marker = plot.ConstantTicks(ticks(float64(last)))
	p.Legend.XOffs, p.Legend.YOffs = -vg.Points(10), vg.Points(10)
	return Picture{Name: "k-cdf", plot: p, width: wide, height: high}, nil
}

// ticks are labelled marks from 0 to hi: about five, at whole numbers of 1, 2 or 5 times a power
// of ten.
func ticks(hi float64) (list []plot.Tick) {
	step := 1.0
	for i := 0; hi/step > 6; i++ {
		step *= []float64{2, 2.5, 2}[i%3]
	}
	for x := 0.0; x <= hi; x += step {
		list = append(list, plot.Tick{Value: x, Label: fmt.Sprintf("%g", x)})
	}
	return list
}

// A Bucket is the nodes whose degrees are from Lo to Hi, and how K is spread among them: its mean, and the smallest
// K that a tenth, half and nine tenths of them do not exceed.
type Bucket struct {
	Lo, Hi, Nodes            int64
	Mean                     float64
	Tenth, Median, Ninetieth int
}

// middle returns the place at which a bucket is drawn, on a logarithmic axis.
func (b Bucket) middle() float64 { return math.Sqrt(float64(max(b.Lo, 1)) * float64(max(b.Hi, 1))) }

// KByDegree draws the mean and the spread of K over the degree of the node. Buckets ascend;
// nodes without edges are left out: a logarithmic axis has no 0, and their K is 0.
func KByDegree(title string, buckets []Bucket) (Picture, error) {
	p := newPlot(title, "degree of the node", "local smoothing iteration K (hops)")
	var mean, median, low, high90 plotter.XYs
	most := 1.0
	var marks []plot.Tick
	for _, b := range buckets {
		if b.Lo < 1 || b.Nodes == 0 {
			continue
		}
		x := b.middle()
		mean = append(mean, plotter.XY{X: x, Y: b.Mean})
		median = append(median, plotter.XY{X: x, Y: float64(b.Median)})
		low = append(low, plotter.XY{X: x, Y: float64(b.Tenth)})
		high90 = append(high90, plotter.XY{X: x, Y: float64(b.Ninetieth)})
		most = max(most, b.Mean, high90[len(high90)-1].Y)
		label := fmt.Sprint(b.Lo)
		if b.Hi > b.Lo {
			label = fmt.Sprintf("%d–%d", b.Lo, b.Hi)
		}
		marks = append(marks, plot.Tick{Value: x, Label: label})
	}
	if len(mean) == 0 {
		return Picture{}, fmt.Errorf("no node of the graph has an edge")
	}
	band := append(plotter.XYs{}, low...)
	for i := len(high90) - 1; i >= 0; i-- {
		band = append(band, high90[i])
	}
	if len(mean) > 1 {
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return Picture{}, err
		}
		area.Color, area.LineStyle.Width = light, 0
		p.Add(area)
		p.Legend.Add("middle 80 % of the nodes", area)
	}
	if err := line(p, median, "median", draw.LineStyle{Color: palette[1], Width: vg.Points(2), Dashes: []vg.Length{vg.Points(5), vg.Points(3)}}); err != nil {
		return Picture{}, err
	}
	if err := line(p, mean, "mean", solid(0)); err != nil {
		return Picture{}, err
	}
	dots, err := plotter.NewScatter(mean)
	if err != nil {
		return Picture{}, err
	}
	dots.GlyphStyle = draw.GlyphStyle{Color: palette[0], Radius: vg.Points(3), Shape: draw.CircleGlyph{}}
	p.Add(dots)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(thinned(marks))
	p.X.Min, p.X.Max = mean[0].X/1.25, mean[len(mean)-1].X*1.25
	p.Y.Min, p.Y.Max = 0, 1.4*most // room for the legend
	p.Y.Tick.Marker = plot.ConstantTicks(ticks(p.Y.Max))
	p.Legend.Top = true
	p.Legend.XOffs, p.Legend.YOffs = -vg.Points(10), -vg.Points(6)
	return Picture{Name: "k-degree", plot: p, width: wide, height: high}, nil
}

// mostLabels is the largest number of labels of degrees.
const mostLabels = 9

// thinned leaves out labels where there are too many.
func thinned(marks []plot.Tick) []plot.Tick {
	every := (len(marks) + mostLabels - 1) / mostLabels
	for i := range marks {
		if i%every != 0 {
			marks[i].Label = ""
		}
	}
	return marks
}
