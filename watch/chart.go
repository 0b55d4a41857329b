package watch

import (
	"fmt"
	"strings"
)

// The size of a chart, and where its axes cross, in units of its view box.
const (
	chartWidth, chartHeight = 360, 190
	chartLeft, chartBottom  = 42, 152
	chartRight, chartTop    = 350, 12
)

// chart is a chart of a share by hop or by epoch, as SVG draws it.
type chart struct {
	Width, Height            int
	Left, Right, Top, Bottom int
	// Line are the points of the curve, Area those of what lies below it.
	Line, Area string
	X, Y       []tick
	// XName and YName label the axes.
	XName, YName string
	Says         string
}

// tick is a mark of an axis.
type tick struct {
	At   float64
	Text string
}

// Filling is how K fills, nil where fewer than two hops are known.
func (s State) Filling() *chart {
	return curve(s.Settled, "%.1f %% of the nodes have their K after hop %d, and %.1f %% after hop %d. The numbers are in the table below.", "hop", "% of the nodes")
}

// Learning is how the training under way learns, nil where fewer than two epochs are known.
func (s State) Learning() *chart {
	points := make([]Settled, len(s.Learned))
	for i, x := range s.Learned {
		points[i] = Settled{x.Epoch, x.Valid}
	}
	return curve(points, "%.1f %% of the validation nodes are classified right at best after epoch %d, and %.1f %% after epoch %d.", "epoch", "% of the validation nodes")
}

// curve draws shares by hop, or by epoch; says describes the first and the last of them.
func curve(points []Settled, says, xName, yName string) *chart {
	n := len(points)
	if n < 2 {
		return nil
	}
	first, last := points[0], points[n-1]
	c := &chart{
		XName: xName, YName: yName,
		Width: chartWidth, Height: chartHeight, Left: chartLeft, Right: chartRight, Top: chartTop, Bottom: chartBottom,
		Says: fmt.Sprintf(says, 100*first.Share, first.Hop, 100*last.Share, last.Hop),
	}
	x := func(hop int) float64 {
		return chartLeft + (chartRight-chartLeft)*float64(hop-first.Hop)/float64(last.Hop-first.Hop)
	}
	y := func(share float64) float64 { return chartBottom - (chartBottom-chartTop)*min(max(share, 0), 1) }
	var line strings.Builder
	for _, p := range points {
		fmt.Fprintf(&line, "%.1f,%.1f ", x(p.Hop), y(p.Share))
	}
	c.Line = strings.TrimSpace(line.String())
	c.Area = fmt.Sprintf("%.1f,%d %s %.1f,%d", x(first.Hop), chartBottom, c.Line, x(last.Hop), chartBottom)
	for _, share := range []float64{0, 0.25, 0.5, 0.75, 1} {
		c.Y = append(c.Y, tick{y(share), fmt.Sprintf("%.0f", 100*share)})
	}
	step := stepOf(last.Hop - first.Hop)
	for hop := (first.Hop + step - 1) / step * step; hop <= last.Hop; hop += step {
		c.X = append(c.X, tick{x(hop), fmt.Sprint(hop)})
	}
	return c
}

// stepOf is the distance between marks of an axis: 1, 2 or 5 times a power of ten, so that there are few of them.
func stepOf(length int) int {
	const most = 6
	for step := 1; ; step *= 10 {
		for _, times := range []int{1, 2, 5} {
			if length <= most*step*times {
				return step * times
			}
		}
	}
}
