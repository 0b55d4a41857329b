package figure

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Formats lists the formats of a picture.
var Formats = []string{"png", "svg"}

// dotsPerInch is the resolution of a PNG.
const dotsPerInch = 160

// margin is the free space around a plot.
const margin = vg.Length(10)

// Picture is a plot with a size.
type Picture struct {
	// Name is the name of its files, without the format.
	Name          string
	plot          *plot.Plot
	width, height vg.Length
}

// Write writes the picture in one of the [Formats].
func (p Picture) Write(w io.Writer, format string) error {
	var canvas interface {
		vg.CanvasSizer
		io.WriterTo
	}
	switch format {
	case "png":
		canvas = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(dotsPerInch))}
	case "svg":
		canvas = vgsvg.New(p.width, p.height)
	default:
		return fmt.Errorf("a picture is written as png or svg, not as %q", format)
	}
	c := draw.New(canvas)
	c.SetColor(color.White)
	c.Fill(c.Path())
	p.plot.Draw(draw.Crop(c, margin, -margin, margin, -margin))
	_, err := canvas.WriteTo(w)
	return err
}

// palette are the colours of Okabe and Ito.
var palette = []color.Color{
	color.RGBA{0, 114, 178, 255},
	color.RGBA{213, 94, 0, 255},
	color.RGBA{0, 158, 115, 255},
	color.RGBA{204, 121, 167, 255},
	color.RGBA{230, 159, 0, 255},
	color.RGBA{86, 180, 233, 255},
}

var faint = color.Gray{225}

// newPlot is a plot with a grid, a title and labels of the axes.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding, p.X.Label.Padding, p.Y.Label.Padding = vg.Points(8), vg.Points(4), vg.Points(4)
	p.Title.TextStyle.Font.Size = vg.Points(13)
	p.X.Padding, p.Y.Padding = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = faint, faint
	p.Add(grid)
	p.Legend.Padding = vg.Points(3)
	p.BackgroundColor = color.White
	return p
}

// line draws points, with a name in the legend unless that is "".
func line(p *plot.Plot, points plotter.XYs, name string, style draw.LineStyle) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.LineStyle = style
	p.Add(l)
	if name != "" {
		p.Legend.Add(name, l)
	}
	return nil
}

func solid(i int) draw.LineStyle {
	return draw.LineStyle{Color: palette[i%len(palette)], Width: vg.Points(2)}
}
