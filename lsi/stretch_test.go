package lsi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"testing"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// TestStretches finds K by panels, in stretches and with blocks of any cut, and compares it and the
// distances with those of one run.
func TestStretches(t *testing.T) {
	testkit.NotUnderRace(t, "TestBlocksThreadsAndKernelsDoNotShow and TestPolynomialsFindK start the same goroutines")
	const kmax = 11
	for _, g := range []testgraph.Graph{testgraph.Small()[3], testgraph.SmallWeighted()[0], testgraph.Random(70_000, 200_000, 5)} {
		n := g.Source().NumNodes()
		ids := make([]uint32, n)
		for i := range ids {
			ids[i] = uint32(7 * i)
		}
		probes := map[string]Probe{"sketch": Signs(3, ids, 72)}
		if n < 200 {
			probes["identity"] = Identity(n)
		}
		for name, probe := range probes {
			for _, precision := range []spmv.Precision{spmv.Float32, spmv.Float16} {
				t.Run(fmt.Sprintf("%s/%s/%v", g.Name, name, precision), func(t *testing.T) {
					s := setup{r: 0.5, component: true, threads: 2, precision: precision}
					h := prepare(t, g, s, budget(t))
					o := Options{Epsilon: 0.05, Kmax: kmax, Looser: []float64{0.2}, Sample: []int64{0, n / 2, n - 1}}
					o.Layout = layout(packed.Panels(probe.Columns())*packed.PanelColumns, spmv.Resident)
					o.Layout.Precision = precision
					want, _, err := Run(t.Context(), h, probe, o)
					if err != nil {
						t.Fatal(err)
					}
					defer want.Free()
					for _, columns := range []int{16, 32, 64} {
						o.Layout.Columns = columns
						got := inStretches(t, h, probe, o, [][]int{{0, 3, 5, kmax}, {0, kmax}}[columns/64])
						if !slices.EqualFunc(got.Columns(), want.Columns(), slices.Equal[[]uint16]) {
							t.Errorf("blocks of %d columns make another K", columns)
						}
						if !reflect.DeepEqual(got.Distances(), want.distances) {
							t.Errorf("blocks of %d columns make distances %v, one run %v", columns, got.Distances(), want.distances)
						}
						got.Free()
					}
				})
			}
		}
	}
}

// inStretches finds K in stretches that end with some hops. Each has two tasks, the second first.
func inStretches(t *testing.T, g hops.Graph, probe Probe, o Options, ends []int) *Finder {
	t.Helper()
	f, _ := stretchesUpTo(t, g, probe, o, ends)
	f.End()
	return f
}

// stretchesUpTo also returns the rows at the end.
func stretchesUpTo(t *testing.T, g hops.Graph, probe Probe, o Options, ends []int) (*Finder, map[int][]byte) {
	t.Helper()
	panels := packed.Panels(probe.Columns())
	n := g.Source.NumNodes()
	f, err := NewFinder(g.Budget, g.State, probe.Sketch(), o, 0, n)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[int][]byte{}
	from := -1
	for _, to := range ends {
		squares, next := map[[2]int][]float64{}, map[int][]byte{}
		for _, part := range [][2]int{{panels / 2, panels}, {0, panels / 2}} {
			x := Stretch{
				First: part[0], Last: part[1], From: from, To: to,
				Rows: func(panel int) []Saved { return cutRows(t, rows[panel], o.Layout.Precision, part[0] == 0) },
				Squares: func(panel, hop int, x []float64) error {
					squares[[2]int{panel, hop}] = slices.Clone(x[:n])
					return nil
				},
				Save: func(_ context.Context, panel int, write func(io.Writer) error) error {
					var b bytes.Buffer
					err := write(&b)
					next[panel] = b.Bytes()
					return err
				},
			}
			begins := probe
			if x.From >= 0 {
				begins = nil
			}
			if _, err := x.Run(t.Context(), g, begins, o); err != nil {
				t.Fatal(err)
			}
		}
		for hop := from + 1; hop <= to; hop++ {
			if err := f.Hop(hop, panels, func(panel int, x []float64) error { copy(x, squares[[2]int{panel, hop}]); return nil }); err != nil {
				t.Fatal(err)
			}
		}
		rows, from = maps.Clone(next), to
	}
	return f, rows
}

// TestStretchesWithPolynomials finds K by panels, in stretches of which polynomials make the last, and compares it with that of one run.
func TestStretchesWithPolynomials(t *testing.T) {
	fewAlways(t)
	const n, kmax = 4000, 100
	probe := Signs(3, ids(n), 72)
	panels := packed.Panels(probe.Columns())
	for _, x := range []struct {
		g         testgraph.Graph
		precision spmv.Precision
		epsilon   float64
		standing  float64
	}{
		{testgraph.Random(n, 2*n, 7), spmv.Float32, 0.005, 0},
		{testgraph.Random(n, 2*n, 7), spmv.Float16, 0.005, 0},
		{withPath(n-60, 60), spmv.Float16, 0.15, 0.005},
	} {
		g, precision := x.g, x.precision
		h := prepare(t, g, setup{r: 0.5, component: true, threads: 2}, budget(t))
		o := Options{Epsilon: x.epsilon, Standing: x.standing, Kmax: kmax, Tolerance: 0.01, Looser: []float64{0.2}, Sample: []int64{0, n / 2, n - 1}}
		o.Layout = layout(panels*packed.PanelColumns, spmv.Resident)
		o.Layout.Precision = precision
		want, stats, err := Run(t.Context(), h, probe, o)
		if err != nil {
			t.Fatal(err)
		}
		defer want.Free()
		if stats.Polynomials == 0 || (stats.Moving > 0) != (x.standing > 0) {
			t.Fatalf("%d passes for polynomials of %d rows", stats.Polynomials, stats.Moving)
		}
		for _, columns := range []int{16, 32} {
			o.Layout.Columns = columns
			f, rows := stretchesUpTo(t, h, probe, o, []int{3, plainHops})
			if left := f.Left(); !o.Few(plainHops, n, f.Before(), left) {
				t.Fatalf("polynomials do not pay with %d nodes left of %d", left, f.Before())
			}
			products := map[int]*bytes.Buffer{}
			for _, part := range [][2]int{{panels / 2, panels}, {0, panels / 2}} {
				x := Stretch{
					First: part[0], Last: part[1], From: plainHops, To: kmax,
					Rows: func(panel int) []Saved { return cutRows(t, rows[panel], precision, part[0] == 0) },
					Open: func(i int64) bool { return Unsettled(f.Columns()[0][i]) },
					Products: func(_ context.Context, panel int, write func(io.Writer, int64, int64) error) error {
						products[panel] = &bytes.Buffer{}
						return write(products[panel], 0, n)
					},
					Save: func(_ context.Context, _ int, write func(io.Writer) error) error { return write(io.Discard) },
				}
				got, err := x.Run(t.Context(), h, nil, o)
				if err != nil {
					t.Fatal(err)
				}
				if got.Polynomials != stats.Polynomials || got.Moving != stats.Moving {
					t.Errorf("%d passes for polynomials of %d rows, not %d of %d", got.Polynomials, got.Moving, stats.Polynomials, stats.Moving)
				}
			}
			if err := f.Few(t.Context(), h.Budget, h.Group, plainHops, panels, precision, func(panel int, x []float64) error {
				_, err := io.ReadFull(products[panel], mem.AsBytes(x))
				return err
			}); err != nil {
				t.Fatal(err)
			}
			f.End()
			if !slices.EqualFunc(f.Columns(), want.Columns(), slices.Equal[[]uint16]) || !reflect.DeepEqual(f.Distances(), want.distances) ||
				!slices.Equal(uncertain(f.Table), uncertain(want)) {
				t.Errorf("%v: blocks of %d columns make another table", precision, columns)
			}
			f.Free()
		}
	}
}

// cutRows is the rows of a panel in one file, or in several, with rows that two of them have, and others that the
// graph does not have.
func cutRows(t *testing.T, state []byte, p spmv.Precision, several bool) (files []Saved) {
	t.Helper()
	open := func(state []byte) func() (io.ReadCloser, error) {
		return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(state)), nil }
	}
	r, err := hops.NewStateReader(bytes.NewReader(state))
	if err != nil {
		t.Fatal(err)
	}
	var h stretched
	if err := r.Header(&h); err != nil {
		t.Fatal(err)
	}
	n, size := h.Nodes, packed.PanelColumns*p.Bytes()
	if !several {
		return []Saved{{Rows: n, Open: open(state)}}
	}
	all := make([]byte, n*size)
	if err := r.Fill(all); err != nil {
		t.Fatal(err)
	}
	foreign := bytes.Repeat([]byte{0x77}, int(3*size))
	for _, x := range [][2]int64{{-3, n / 3}, {n / 4, n / 2}, {n / 2, n - 1}, {n - 1, n + 3}} {
		h.Nodes = x[1] - x[0]
		var b bytes.Buffer
		w, err := hops.NewStateWriter(&b, h)
		if err != nil {
			t.Fatal(err)
		}
		if x[0] < 0 {
			err = w.Put(foreign)
		}
		err = errors.Join(err, w.Put(all[max(x[0], 0)*size:min(x[1], n)*size]))
		if x[1] > n {
			err = errors.Join(err, w.Put(foreign))
		}
		if err = errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		files = append(files, Saved{First: x[0], Rows: h.Nodes, Open: open(b.Bytes())})
	}
	return files
}

// TestStretchLacksRows refuses files of rows between which some are missing, and one whose rows are of another hop.
func TestStretchLacksRows(t *testing.T) {
	g := testgraph.Random(1000, 3000, 5)
	s := setup{r: 0.5, threads: 1, precision: spmv.Float32}
	h := prepare(t, g, s, budget(t))
	o := Options{Layout: layout(packed.PanelColumns, spmv.Resident)}
	probe := Signs(3, make([]uint32, 1000), packed.PanelColumns)
	var state bytes.Buffer
	x := Stretch{
		Last: 1, From: -1, To: 1, Squares: func(int, int, []float64) error { return nil },
		Save: func(_ context.Context, _ int, write func(io.Writer) error) error { return write(&state) },
	}
	if _, err := x.Run(t.Context(), h, probe, o); err != nil {
		t.Fatal(err)
	}
	files := cutRows(t, state.Bytes(), spmv.Float32, true)
	for name, tc := range map[string]struct {
		files []Saved
		from  int
	}{
		"none":          {nil, 1},
		"a gap":         {slices.Delete(slices.Clone(files), 1, 2), 1},
		"the end lacks": {files[:3], 1},
		"another hop":   {files, 2},
	} {
		x := x
		x.From, x.To = tc.from, tc.from+1
		x.Rows = func(int) []Saved { return tc.files }
		if _, err := x.Run(t.Context(), h, nil, o); !errors.Is(err, hops.ErrState) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
