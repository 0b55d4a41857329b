package smooth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ndls/hops"
	"ndls/internal/failure"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// span is a range of panels.
type span struct{ first, last int }

// session runs panels block by block in one engine, with checkpoints of each
// block, and puts the targets' columns in out.
func session(t testing.TB, g testgraph.Graph, c config, rule Rule, x []float64, k []int, blocks []span,
	checkpoints func(span) hops.Checkpoints, out []float32,
) (stats hops.Stats, err error) {
	t.Helper()
	s, free := engine(t, g, c, rule, k)
	defer free()
	for _, block := range blocks {
		base := block.first * 16
		rows := columnsOf(x, len(g.Adj), base, c.columns)
		blockStats, err := s.Continue(context.Background(), rows, block.first, block.last, checkpoints(block))
		stats.Add(blockStats)
		if err != nil {
			return stats, err
		}
		columns := (block.last - block.first) * 16
		row := 0
		if err := s.Output(0, columns, rows, func(part []float32) error {
			for ; len(part) > 0; part = part[columns:] {
				copy(out[row*width+base:row*width+min(base+columns, width)], part)
				row++
			}
			return nil
		}); err != nil {
			return stats, err
		}
	}
	return stats, nil
}

// cut divides the columns into blocks of so many panels.
func cut(panels int) (blocks []span) {
	const all = (width + 15) / 16
	for first := 0; first < all; first += panels {
		blocks = append(blocks, span{first, min(first+panels, all)})
	}
	return blocks
}

// ways are layouts that share nothing but the result.
var ways = []config{
	{threads: 1, kernel: "go", columns: 48},
	{threads: 3, columns: 16, place: spmv.Spilled, spilled: true, pruned: true},
	{threads: 2, columns: 32, place: spmv.External, spilled: true},
	{threads: 3, columns: 16, place: spmv.External},
	{threads: 1, columns: 32, pruned: true},
}

// way is one of them for the case c.
func way(i int, c config) config {
	w := ways[i%len(ways)]
	w.r, w.component, w.precision, w.targets = c.r, c.component, c.precision, c.targets
	w.tolerance, w.standing = c.tolerance, c.standing
	return w
}

var cases = []struct {
	name string
	rule string
	c    config
}{
	{"exact", "ndls", config{}},
	{"exact float16", "ndls", config{precision: spmv.Float16}},
	{"float16, some targets", "ndls-reference", config{precision: spmv.Float16, targets: []int64{3, 0, 64, 199}}},
	{"residual, some targets", "ndls-reference", config{targets: []int64{199, 7}}},
	{"one depth", "sgc", config{}},
	{"weights of last hops", "appnp by node", config{}},
	{"few polynomials", "ndls", config{tolerance: 0.1}},
	{"few polynomials, float16, some targets", "ndls-reference", config{tolerance: 0.1, precision: spmv.Float16, targets: []int64{199, 7, 64}}},
	{"few polynomials, one depth", "appnp", config{tolerance: 0.1}},
	{"rows of last hops, some targets", "sgc by node", config{targets: []int64{199, 7, 64}}},
}

// saved is a state that was saved.
type saved struct {
	of  span
	hop int
	raw []byte
}

// keepAll saves after every hop.
func keepAll(to *[]saved) func(span) hops.Checkpoints {
	return func(s span) hops.Checkpoints {
		return hops.Checkpoints{
			Identity: "test", Due: func() bool { return true },
			Save: func(_ context.Context, hop int, write func(io.Writer) error) error {
				var raw bytes.Buffer
				err := write(&raw)
				*to = append(*to, saved{s, hop, raw.Bytes()})
				return err
			},
		}
	}
}

// TestContinue goes on from every state of every layout in all others.
func TestContinue(t *testing.T) {
	g := testgraph.Random(200, 400, 5)
	n := len(g.Adj)
	x, k := input(n), make([]int, n)
	for i := range k {
		k[i] = i * i % 7
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.c.r, c.c.component = 0.5, true
			rule := mustRule(t, c.rule, defaultAlpha, 6)
			want := smoothed(t, g, way(0, c.c), rule, x, k)
			out := make([]float32, len(want))
			for i := range ways {
				var states []saved
				from := way(i, c.c)
				if _, err := session(t, g, from, rule, x, k, cut(from.columns/16), keepAll(&states), out); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(out, want) {
					t.Fatalf("%+v: saving shows", from)
				}
				for at, s := range states {
					to := way(i+1+at%(len(ways)-1), c.c)
					clear(out)
					if err := goOn(t, g, to, rule, x, k, s, out); err != nil {
						t.Fatalf("%+v from %+v at hop %d: %v", to, from, s.hop, err)
					}
					if !sameColumns(out, want, s.of) {
						t.Errorf("%+v from %+v at hop %d: other bits", to, from, s.hop)
					}
				}
			}
		})
	}
}

// goOn runs the panels of a state from it, in blocks as wide as c says.
func goOn(t *testing.T, g testgraph.Graph, c config, rule Rule, x []float64, k []int, s saved, out []float32) error {
	var blocks []span
	for first := s.of.first; first < s.of.last; first += c.columns / 16 {
		blocks = append(blocks, span{first, min(first+c.columns/16, s.of.last)})
	}
	hop := -1
	_, err := session(t, g, c, rule, x, k, blocks, func(span) hops.Checkpoints {
		return hops.Checkpoints{Identity: "test", From: bytes.NewReader(s.raw), Resumed: func(at int, err error) {
			if hop = at; err != nil {
				t.Errorf("the state at hop %d is refused: %v", s.hop, err)
			}
		}}
	}, out)
	if hop != s.hop {
		t.Errorf("went on from hop %d, not %d", hop, s.hop)
	}
	return err
}

// sameColumns compares the columns of some panels.
func sameColumns(a, b []float32, s span) bool {
	lo, hi := s.first*16, min(s.last*16, width)
	for row := 0; row < len(a); row += width {
		if !slices.Equal(a[row+lo:row+hi], b[row+lo:row+hi]) {
			return false
		}
	}
	return true
}

// TestRelay stops each engine after a hop, or some; the next one has another
// layout. A state does not depend on who wrote it.
func TestRelay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(rt, "n")
		g := testgraph.Random(n, rapid.IntRange(0, 3*n).Draw(rt, "m"), rapid.Uint64().Draw(rt, "seed"))
		x := input(n)
		k := rapid.SliceOfN(rapid.IntRange(0, 6), n, n).Draw(rt, "k")
		c := config{
			r: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "r"), component: rapid.Bool().Draw(rt, "component"),
			tolerance: rapid.SampledFrom([]float64{0, 0.1}).Draw(rt, "tolerance"),
			precision: rapid.SampledFrom([]spmv.Precision{spmv.Float32, spmv.Float16}).Draw(rt, "precision"),
		}
		rule, err := NewRule(rapid.SampledFrom([]string{"ndls", "ndls-reference"}).Draw(rt, "rule"), defaultAlpha, 0)
		if err != nil {
			rt.Fatal(err)
		}
		want := smoothed(t, g, way(0, c), rule, x, k)
		out := make([]float32, len(want))
		block := span{0, 1} // the narrowest: every way can take it up
		var state []byte
		for runs := 0; ; runs++ {
			if runs > 20 {
				rt.Fatal("no end")
			}
			left := rapid.IntRange(0, 5).Draw(rt, "hops")
			_, err := session(t, g, way(rapid.IntRange(0, len(ways)-1).Draw(rt, "way"), c), rule, x, k, []span{block}, func(span) hops.Checkpoints {
				cp := hops.Checkpoints{
					Identity: "test", Stop: func() bool { left--; return left < 0 },
					Save: func(_ context.Context, _ int, write func(io.Writer) error) error {
						var raw bytes.Buffer
						err := write(&raw)
						state = raw.Bytes()
						return err
					},
				}
				if state != nil {
					cp.From = bytes.NewReader(state)
					cp.Resumed = func(_ int, err error) {
						if err != nil {
							rt.Fatal(err)
						}
					}
				}
				return cp
			}, out)
			if err == nil {
				break
			}
			if !errors.Is(err, hops.ErrStopped) {
				rt.Fatal(err)
			}
		}
		if !sameColumns(out, want, block) {
			rt.Errorf("%+v: other bits", c)
		}
	})
}

// TestContinueStrips has several strips, whose rows are not in the order of memory
// in a state.
func TestContinueStrips(t *testing.T) {
	g := testgraph.Random(2*packed.StripRows+50, 40000, 5)
	n := len(g.Adj)
	x, k := input(n), make([]int, n)
	for i := range k {
		k[i] = i % 3
	}
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := config{r: 0.5, targets: []int64{1, 2*packed.StripRows + 3, 9}}
	var states []saved
	first := way(0, c)
	want := make([]float32, len(c.targets)*width)
	if _, err := session(t, g, first, rule, x, k, cut(3), keepAll(&states), want); err != nil {
		t.Fatal(err)
	}
	for at, s := range states {
		out := make([]float32, len(want))
		if err := goOn(t, g, way(2-at%2, c), rule, x, k, s, out); err != nil || !slices.Equal(out, want) {
			t.Errorf("from hop %d: other bits, error %v", s.hop, err)
		}
	}
}

// TestRefusedStates: what is damaged or of something else is told, and work begins
// at the beginning.
func TestRefusedStates(t *testing.T) {
	g := testgraph.Random(200, 400, 5)
	x, k := input(200), lsi(200)
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := config{r: 0.5, threads: 2, columns: 48}
	var states []saved
	want := make([]float32, 200*width)
	if _, err := session(t, g, c, rule, x, k, cut(3), keepAll(&states), want); err != nil {
		t.Fatal(err)
	}
	good := states[4].raw
	flipped := func(at int) []byte {
		raw := slices.Clone(good)
		raw[at] ^= 4
		return raw
	}
	type change struct {
		name     string
		raw      []byte
		identity string
		c        func(*config)
		blocks   []span
	}
	changes := []change{
		{name: "empty"},
		{name: "longer", raw: append(slices.Clone(good), 0)},
		{name: "another identity", raw: good, identity: "other"},
		{name: "another precision", raw: good, c: func(c *config) { c.precision = spmv.Float16 }},
		{name: "another tolerance", raw: good, c: func(c *config) { c.tolerance = 0.1 }},
		{name: "other targets", raw: good, c: func(c *config) { c.targets = []int64{4, 5} }},
		{name: "other panels", raw: firstPanel(t, g, c, rule, x, k), blocks: []span{{0, 3}}},
	}
	for at := 0; at < len(good); at += 1 + at {
		changes = append(changes, change{name: fmt.Sprintf("cut off at %d", at), raw: good[:at]}, change{name: fmt.Sprintf("flipped at %d", at), raw: flipped(at)})
	}
	changes = append(changes, change{name: "cut off at the end", raw: good[:len(good)-1]}, change{name: "flipped at the end", raw: flipped(len(good) - 1)})
	for _, ch := range changes {
		t.Run(ch.name, func(t *testing.T) {
			c, blocks := c, cut(3)
			if ch.c != nil {
				ch.c(&c)
			}
			if ch.blocks != nil {
				blocks = ch.blocks
			}
			identity := ch.identity
			if identity == "" {
				identity = "test"
			}
			n := 200
			if c.targets != nil {
				n = len(c.targets)
			}
			fresh, out := make([]float32, n*width), make([]float32, n*width)
			none := func(span) hops.Checkpoints { return hops.Checkpoints{} }
			if _, err := session(t, g, c, rule, x, k, blocks, none, fresh); err != nil {
				t.Fatal(err)
			}
			told := error(nil)
			if _, err := session(t, g, c, rule, x, k, blocks, func(span) hops.Checkpoints {
				return hops.Checkpoints{Identity: identity, From: bytes.NewReader(ch.raw), Resumed: func(_ int, err error) { told = err }}
			}, out); err != nil {
				t.Fatal(err)
			}
			if !errors.Is(told, hops.ErrState) {
				t.Errorf("the reason is %v", told)
			}
			if !slices.Equal(out, fresh) {
				t.Error("a refused state shows")
			}
		})
	}
}

// firstPanel is a state of panel 0 alone.
func firstPanel(t *testing.T, g testgraph.Graph, c config, rule Rule, x []float64, k []int) []byte {
	var states []saved
	if _, err := session(t, g, c, rule, x, k, []span{{0, 1}}, keepAll(&states), make([]float32, len(x))); err != nil {
		t.Fatal(err)
	}
	return states[2].raw
}

// TestFailingSave ends the run with the error of who saves.
func TestFailingSave(t *testing.T) {
	g := testgraph.Path(30)
	rule, err := NewRule("sgc", 0, 5)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	c := config{threads: 1, columns: 48}
	stats, err := session(t, g, c, rule, input(30), lsi(30), cut(3), func(span) hops.Checkpoints {
		return hops.Checkpoints{
			Due:  func() bool { return true },
			Save: func(_ context.Context, _ int, write func(io.Writer) error) error { return write(failing{full}) },
		}
	}, make([]float32, 30*width))
	if !errors.Is(err, full) || stats.Passes != 1 {
		t.Errorf("%d passes, error %v", stats.Passes, err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// FuzzResume gives a smoother headers and bodies with right checksums.
func FuzzResume(f *testing.F) {
	g := testgraph.Path(20)
	x, k := input(20), lsi(20)
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		f.Fatal(err)
	}
	c := config{threads: 1, columns: 16}
	var states []saved
	if _, err := session(f, g, c, rule, x, k, []span{{0, 1}}, keepAll(&states), make([]float32, 20*width)); err != nil {
		f.Fatal(err)
	}
	r, err := hops.NewStateReader(bytes.NewReader(states[0].raw))
	if err != nil {
		f.Fatal(err)
	}
	var header json.RawMessage
	if err := r.Header(&header); err != nil {
		f.Fatal(err)
	}
	body := make([]byte, 20*16*4+20*16*4)
	f.Add([]byte(header), body)
	f.Add(bytes.Replace(header, []byte(`"last":1`), []byte(`"last":1048576`), 1), body)
	f.Add([]byte("{}"), []byte{})
	f.Fuzz(func(t *testing.T, header, body []byte) {
		var raw bytes.Buffer
		w, err := hops.NewStateWriter(&raw, json.RawMessage(header))
		if err != nil {
			return // no JSON
		}
		if err := errors.Join(w.Put(body), w.Close()); err != nil {
			t.Fatal(err)
		}
		if _, err := session(t, g, c, rule, x, k, []span{{0, 1}}, func(span) hops.Checkpoints {
			return hops.Checkpoints{Identity: "test", From: &raw, Resumed: func(hop int, err error) {
				if err != nil && !errors.Is(err, hops.ErrState) {
					t.Errorf("the reason is %v", err)
				}
			}}
		}, make([]float32, 20*width)); err != nil && !errors.Is(err, spmv.ErrConservation) && !errors.Is(err, failure.ErrData) {
			t.Error(err)
		}
	})
}
