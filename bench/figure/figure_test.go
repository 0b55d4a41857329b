package figure

import (
	"bytes"
	"image/png"
	"math"
	"slices"
	"strings"
	"testing"
)

var histogram = [][2]int64{{0, 10}, {1, 20}, {3, 40}, {9, 30}}

// TestPictures draws each figure, and looks for what a reader needs.
func TestPictures(t *testing.T) {
	cdf, err := CDF("hops", []Hops{{"a", histogram, 0}, {"b", histogram[:2], 0.25}})
	if err != nil {
		t.Fatal(err)
	}
	degree, err := KByDegree("degrees", []Bucket{{0, 0, 10, 0, 0, 0, 0}, {1, 1, 100, 4.1, 0, 3, 9}, {2, 3, 90, 4.5, 1, 3, 9}, {4, 7, 70, 5.6, 3, 3, 9}})
	if err != nil {
		t.Fatal(err)
	}
	network, err := Network("club", Graph{
		Labels: []string{"1", "2", "3"}, K: []int64{2, 5, 7}, Class: []int{0, 1, 1}, Classes: []string{"left", "right"}, Edges: [][2]int{{0, 1}, {1, 2}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		picture Picture
		texts   []string
	}{
		{cdf, []string{"hops", "share of nodes", ">a<", "25.0 % not settled"}},
		{degree, []string{"degree of the node", "mean", "median", "80 % of the nodes", "4–7"}},
		{network, []string{"club", "left", "right", ">2<", ">5<", ">7<"}},
	} {
		var svg, image, again bytes.Buffer
		for _, w := range []struct {
			to     *bytes.Buffer
			format string
		}{{&svg, "svg"}, {&image, "png"}, {&again, "png"}} {
			if err := c.picture.Write(w.to, w.format); err != nil {
				t.Fatal(err)
			}
		}
		for _, text := range c.texts {
			if !strings.Contains(svg.String(), text) {
				t.Errorf("%s has no %q", c.picture.Name, text)
			}
		}
		if !bytes.Equal(image.Bytes(), again.Bytes()) {
			t.Errorf("%s: another picture the second time", c.picture.Name)
		}
		if decoded, err := png.Decode(&image); err != nil || decoded.Bounds().Dx() != int(math.Round(6.4*dotsPerInch)) {
			t.Errorf("%s: %v, %v", c.picture.Name, decoded.Bounds(), err)
		}
	}
	if err := cdf.Write(&bytes.Buffer{}, "gif"); err == nil {
		t.Error("a gif was written")
	}
}

func TestNothingToDraw(t *testing.T) {
	if _, err := CDF("", []Hops{{Name: "empty"}}); err == nil {
		t.Error("a graph without nodes was drawn")
	}
	if _, err := KByDegree("", []Bucket{{0, 0, 100, 4.1, 0, 3, 9}}); err == nil {
		t.Error("a graph without edges was drawn")
	}
	if _, err := Network("", Graph{K: []int64{1}}); err == nil {
		t.Error("a node without a name was drawn")
	}
}

func TestTicks(t *testing.T) {
	for hi, want := range map[float64]string{1: "0 1", 5: "0 1 2 3 4 5", 23: "0 5 10 15 20", 100: "0 20 40 60 80 100", 189: "0 50 100 150", 200: "0 50 100 150 200", 1000: "0 200 400 600 800 1000"} {
		var labels []string
		for _, tick := range ticks(hi) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("to %v: %s, want %s", hi, got, want)
		}
	}
}

// TestLayout has two cliques with a bridge: the ends of its edges are nearer than other nodes.
func TestLayout(t *testing.T) {
	var edges [][2]int
	for i := range 10 {
		for j := range i {
			if i/5 == j/5 {
				edges = append(edges, [2]int{j, i})
			}
		}
	}
	edges = append(edges, [2]int{4, 5})
	x, y := Layout(10, edges)
	x2, y2 := Layout(10, edges)
	if !slices.Equal(x, x2) || !slices.Equal(y, y2) {
		t.Error("another place the second time")
	}
	inside, between := 0.0, math.Inf(1)
	for i := range 10 {
		for j := range i {
			d := math.Hypot(x[i]-x[j], y[i]-y[j])
			if d < 0.02 {
				t.Errorf("nodes %d and %d are at one place", i, j)
			}
			if i/5 == j/5 {
				inside += d / 20
			} else {
				between = min(between, d)
			}
		}
		if x[i] < 0 || x[i] > 1 || y[i] < 0 || y[i] > 1 {
			t.Errorf("node %d is at (%v, %v)", i, x[i], y[i])
		}
	}
	if between < inside/2 {
		t.Errorf("mean distance in a clique %v, least between cliques %v", inside, between)
	}
}
