package figure

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/plot/palette/moreland"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Graph is a small graph with the hops of its nodes.
type Graph struct {
	// Labels are shown in the nodes.
	Labels []string
	// K are the hops of the nodes, Class their classes, which decide the shape.
	K     []int64
	Class []int
	// Classes are the names of the classes.
	Classes []string
	Edges   [][2]int
}

// rounds is the number of times that nodes are moved, and step the largest move in the first round,
// as a share of the side of the square.
const (
	rounds = 600
	step   = 0.1
)

// Layout places the nodes of a graph in a square of side 1, by the forces of Fruchterman and
// Reingold: nodes repel each other, edges pull, and moves get smaller. Nodes begin on a circle.
func Layout(nodes int, edges [][2]int) (x, y []float64) {
	x, y = make([]float64, nodes), make([]float64, nodes)
	for i := range nodes {
		angle := 2 * math.Pi * float64(i) / float64(nodes)
		x[i], y[i] = math.Cos(angle)/2, math.Sin(angle)/2
	}
	ideal := math.Sqrt(1 / float64(max(nodes, 1)))
	dx, dy := make([]float64, nodes), make([]float64, nodes)
	for round := range rounds {
		clear(dx)
		clear(dy)
		pull := func(i, j int, force func(d float64) float64) {
			a, b := x[i]-x[j], y[i]-y[j]
			d := max(math.Hypot(a, b), 1e-9)
			f := force(d) / d
			dx[i], dy[i] = dx[i]+a*f, dy[i]+b*f
			dx[j], dy[j] = dx[j]-a*f, dy[j]-b*f
		}
		for i := range nodes {
			for j := range i {
				pull(i, j, func(d float64) float64 { return ideal * ideal / d })
			}
		}
		for _, e := range edges {
			pull(e[0], e[1], func(d float64) float64 { return -d * d / ideal })
		}
		most := step * float64(rounds-round) / rounds
		for i := range nodes {
			d := max(math.Hypot(dx[i], dy[i]), 1e-9)
			x[i] += dx[i] / d * min(d, most)
			y[i] += dy[i] / d * min(d, most)
		}
	}
	spread(x)
	spread(y)
	for range apartRounds {
		keepApart(x, y)
	}
	spread(x)
	spread(y)
	return x, y
}

// apart is the least distance of nodes, as a share of the side of the square, and apartRounds the
// number of times that they are moved for it.
const (
	apart       = 0.07
	apartRounds = 100
)

// keepApart moves nodes that are nearer to each other than apart, each by half of what is missing.
func keepApart(x, y []float64) {
	for i := range x {
		for j := range i {
			a, b := x[i]-x[j], y[i]-y[j]
			d := max(math.Hypot(a, b), 1e-9)
			if d < apart {
				f := (apart - d) / d / 2
				x[i], y[i] = x[i]+a*f, y[i]+b*f
				x[j], y[j] = x[j]-a*f, y[j]-b*f
			}
		}
	}
}

// spread moves numbers to [0, 1].
func spread(v []float64) {
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, a := range v {
		lo, hi = min(lo, a), max(hi, a)
	}
	for i := range v {
		v[i] = (v[i] - lo) / max(hi-lo, 1e-9)
	}
}

// light fills areas behind lines.
var light = color.RGBA{205, 225, 240, 255}

// shapes lists the shapes of the nodes, by class.
var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}}

// Network draws a small graph: the colour of a node is its K, which is also beside its name.
func Network(title string, g Graph) (Picture, error) {
	if len(g.K) == 0 || len(g.K) != len(g.Labels) || len(g.K) != len(g.Class) {
		return Picture{}, fmt.Errorf("a graph of %d nodes with %d names and %d classes cannot be drawn", len(g.K), len(g.Labels), len(g.Class))
	}
	x, y := Layout(len(g.K), g.Edges)
	p := newPlot(title, "", "")
	p.HideAxes()
	for _, e := range g.Edges {
		l, err := plotter.NewLine(plotter.XYs{{X: x[e[0]], Y: y[e[0]]}, {X: x[e[1]], Y: y[e[1]]}})
		if err != nil {
			return Picture{}, err
		}
		l.LineStyle = draw.LineStyle{Color: color.Gray{190}, Width: vg.Points(0.7)}
		p.Add(l)
	}
	lo, hi := g.K[0], g.K[0]
	for _, k := range g.K {
		lo, hi = min(lo, k), max(hi, k)
	}
	colours := moreland.ExtendedBlackBody()
	colours.SetMin(float64(lo) - 0.45*float64(hi-lo+1)) // the darkest colours hide the numbers
	colours.SetMax(float64(hi) + 0.25*float64(hi-lo+1))
	for i := range g.K {
		c, err := colours.At(float64(g.K[i]))
		if err != nil {
			return Picture{}, err
		}
		for _, ring := range []struct {
			colour color.Color
			radius vg.Length
		}{{color.Gray{60}, 10.6}, {c, 10}} {
			dot, err := plotter.NewScatter(plotter.XYs{{X: x[i], Y: y[i]}})
			if err != nil {
				return Picture{}, err
			}
			dot.GlyphStyle = draw.GlyphStyle{Color: ring.colour, Radius: vg.Points(float64(ring.radius)), Shape: shapes[g.Class[i]%len(shapes)]}
			p.Add(dot)
		}
		names, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: x[i], Y: y[i]}}, Labels: []string{fmt.Sprint(g.K[i])}})
		if err != nil {
			return Picture{}, err
		}
		names.TextStyle[0].XAlign, names.TextStyle[0].YAlign = text.XCenter, text.YCenter
		names.TextStyle[0].Font.Size = vg.Points(9)
		names.TextStyle[0].Color = ink(c)
		p.Add(names)
	}
	for i, name := range g.Classes {
		p.Legend.Add(name, glyph{draw.GlyphStyle{Color: color.Gray{120}, Radius: vg.Points(5), Shape: shapes[i%len(shapes)]}})
	}
	p.Legend.Add("number and colour: K")
	p.Legend.Top, p.Legend.Left = true, true
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = -0.06, 1.06, -0.06, 1.06
	return Picture{Name: "network", plot: p, width: 6.4 * vg.Inch, height: 5.6 * vg.Inch}, nil
}

// ink is a colour that can be read on another one.
func ink(on color.Color) color.Color {
	r, g, b, _ := on.RGBA()
	if 299*r+587*g+114*b > 500*0xffff {
		return color.Black
	}
	return color.White
}

// glyph is a shape in the legend.
type glyph struct{ draw.GlyphStyle }

// Thumbnail implements plot.Thumbnailer.
func (g glyph) Thumbnail(c *draw.Canvas) {
	c.DrawGlyph(g.GlyphStyle, vg.Point{X: (c.Min.X + c.Max.X) / 2, Y: (c.Min.Y + c.Max.Y) / 2})
}
