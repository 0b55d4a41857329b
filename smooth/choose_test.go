package smooth

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"testing"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/testgraph"
	"ndls/internal/testkit"
	"ndls/spmv"
)

// choosing is a panel for which last hops are chosen.
type choosing struct {
	g      testgraph.Graph
	k      []int
	x      []float64
	share  float64
	panels int
	c      config
	// early, unless nil, replaces how many passes influences are ahead.
	early *int
}

// slow is a graph that mixes slowly, in which few rows count late hops.
func slow() choosing {
	const n = 40_000
	e := make([][2]int, 0, 2*n)
	for i := range n - 1 {
		e = append(e, [2]int{i, i + 1})
	}
	for i := 0; i+700 < n; i += 3 {
		e = append(e, [2]int{i, i + 1 + (i*31)%600})
	}
	k := make([]int, n)
	for i := range k {
		k[i] = 2 + i%5
	}
	targets := []int64{}
	for i := int64(0); i < n; i += 40 {
		targets = append(targets, i)
		if i%4000 == 0 {
			k[i] = 24
		}
	}
	return choosing{
		g: testgraph.New("slow", n, e), k: k, x: input(n), share: 0.01, panels: 12,
		c: config{r: 0.5, component: true, kernel: "auto", threads: 2, targets: targets},
	}
}

// choose makes the choice with checkpoints.
func (c choosing) choose(t testing.TB, points hops.Checkpoints) (last []uint16, made *Choice, err error) {
	t.Helper()
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if b.Free() != b.Limit() {
			t.Error("memory is not given back")
		}
		b.Close()
	}()
	g, free := graph(t, c.g, c.c, b)
	defer free()
	n := int64(len(c.g.Adj))
	rule, err := NewRule("ndls", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	targets, err := NewTargets(b, n)
	if err != nil {
		t.Fatal(err)
	}
	defer targets.Free()
	for _, i := range c.c.targets {
		targets.Add(i)
	}
	targets.Finish()
	o := Options{
		Rule: rule, K: func(i int64) int { return c.k[i] }, Targets: targets, Settled: true, Chooses: true, SpilledSums: c.c.spilled,
		Layout: spmv.Layout{Columns: 16, Precision: c.c.precision, Residency: c.c.place, Window: packed.StripRows, Accumulators: 1},
	}
	x := func(put func([]float32) error) error {
		row := make([]float32, 16)
		for i := range int(n) {
			for j := range Combinations {
				row[j] = float32(c.x[i*width+j])
			}
			row[Combinations] = 0
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	}
	p := &pilot{all: targets, g: g, o: o, share: c.share, panels: c.panels, checkpoints: points}
	defer p.free()
	if err := p.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c.early != nil {
		p.early = *c.early
	} else if p.early == 0 {
		t.Error("every hop needs most edges")
	}
	if !p.worth() {
		t.Fatal("no row settles")
	}
	if err := p.prepare(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if err = p.run(t.Context()); err == nil {
		made, err = p.settle(t.Context())
	}
	if err != nil {
		return nil, nil, err
	}
	defer made.Free()
	if made.Last != nil {
		last = slices.Clone(made.Last.S)
	}
	return last, made, nil
}

// TestChoose: the choice does not depend on threads, kernels, where rows are, or how far
// influences are ahead, and the deviation is below the share. Nor do weights that are all 1
// change it.
func TestChoose(t *testing.T) {
	base := slow()
	weighted := base
	weighted.g = base.g.RandomWeights(10, 3)
	for _, c := range []choosing{base, weighted} {
		t.Run(c.g.Name, func(t *testing.T) { testChoose(t, c) })
	}
}

func testChoose(t *testing.T, base choosing) {
	want, first, err := base.choose(t, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	if !first.Settles || !(first.Mean > 0 && first.Mean <= base.share) {
		t.Errorf("%+v", first)
	}
	edges := func(last []uint16) (sum int64) {
		for i, f := range last {
			sum += int64(f) * int64(len(base.g.Adj[i]))
		}
		return sum
	}
	if whole := 24 * edges(slices.Repeat([]uint16{1}, len(want))); edges(want) > whole/2 {
		t.Errorf("%d of %d edges are read", edges(want), whole)
	}
	none := 0
	ways := map[string]func(*choosing){
		"all columns together": func(c *choosing) { c.early = &none },
		"five threads, twin":   func(c *choosing) { c.c.threads, c.c.kernel = 5, "go" },
		"external":             func(c *choosing) { c.c.place, c.c.spilled = spmv.External, true },
		"spilled":              func(c *choosing) { c.c.place = spmv.Spilled },
	}
	if base.g.Weights == nil {
		ways["weights of 1"] = func(c *choosing) { c.g = c.g.Weighted(func(_, _ uint32) float32 { return 1 }) }
	}
	for name, change := range ways {
		t.Run(name, func(t *testing.T) {
			c := base
			change(&c)
			got, made, err := c.choose(t, hops.Checkpoints{})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, want) || made.Mean != first.Mean || !slices.Equal(made.Exact, first.Exact) {
				t.Errorf("another choice, with a deviation of %g, not %g", made.Mean, first.Mean)
			}
			if c.early != nil && made.EdgesStreamed <= first.EdgesStreamed {
				t.Errorf("%d edges are read, %d with influences ahead", made.EdgesStreamed, first.EdgesStreamed)
			}
		})
	}
}

// TestLimits compares how many edges a limit reads with the last hops that are chosen for it.
func TestLimits(t *testing.T) {
	c := slow()
	b, err := mem.NewBudget(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	g, free := graph(t, c.g, c.c, b)
	defer free()
	const last = 40 // more than are read at a time
	p := &pilot{g: g, last: last, unit: 1}
	if p.codes, err = newCodes(g, last); err != nil {
		t.Fatal(err)
	}
	defer p.free()
	n := int64(len(c.g.Adj))
	buf, err := mem.Alloc[byte](b, codesOfStrip, "codes")
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Free()
	for first := int64(0); first < n; first += packed.StripRows {
		for hop := 1; hop <= last; hop++ {
			for part := range 2 {
				for k := range buf.S {
					i := first + int64(k)
					buf.S[k] = byte(max(255-hop*int(2+i%9)-int(i*int64(part+1)%17), 0))
				}
				if err := p.codes.write(buf.S, first, hop, part); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	bounds, edges, err := p.limits(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lasts := make([]uint16, n)
	for limit := 0; limit <= mostLimit; limit += 30 {
		if err := p.choose(limit, lasts); err != nil {
			t.Fatal(err)
		}
		want := 0.0
		for i, f := range lasts {
			want += float64(f) * float64(len(c.g.Adj[i]))
		}
		if edges[limit] != want {
			t.Errorf("limit %d: %g edges, not %g", limit, edges[limit], want)
		}
		if limit > 0 && !(bounds[limit] >= bounds[limit-1]) {
			t.Errorf("limit %d: a bound of %g after %g", limit, bounds[limit], bounds[limit-1])
		}
	}
	if math.IsInf(bounds[mostLimit], 0) || bounds[mostLimit] <= 0 {
		t.Errorf("bound %g", bounds[mostLimit])
	}
}

// TestChooseGoesOn stops a choice after every pass and every trial, and lets another way of
// computing go on: the choice is the same.
func TestChooseGoesOn(t *testing.T) {
	testkit.Slow(t, "it stops at every hop")
	plain := slow()
	weighted := plain
	weighted.g = plain.g.RandomWeights(10, 3)
	for _, c := range []choosing{plain, weighted} {
		t.Run(c.g.Name, func(t *testing.T) { testChooseGoesOn(t, c) })
	}
}

func testChooseGoesOn(t *testing.T, base choosing) {
	base.share = 0.0006 // takes more than one trial
	base.panels = 100
	want, first, err := base.choose(t, hops.Checkpoints{})
	if err != nil {
		t.Fatal(err)
	}
	var state []byte
	stops := 0
	for {
		c := base
		switch stops % 3 {
		case 1:
			c.c.place, c.c.threads = spmv.External, 3
		case 2:
			c.c.kernel, c.c.spilled = "go", true
		}
		points := hops.Checkpoints{
			Identity: "test", Stop: func() bool { return true },
			Save: func(_ context.Context, _ int, write func(io.Writer) error) error {
				var raw bytes.Buffer
				err := write(&raw)
				state = raw.Bytes()
				return err
			},
		}
		if state != nil {
			points.From = bytes.NewReader(state)
			points.Resumed = func(_ int, why error) {
				if why != nil {
					t.Fatalf("after %d stops: %v", stops, why)
				}
			}
		}
		got, made, err := c.choose(t, points)
		if errors.Is(err, hops.ErrStopped) {
			if stops++; stops > 200 {
				t.Fatal("no end")
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) || made.Mean != first.Mean || made.Trials != first.Trials {
			t.Errorf("another choice after %d stops: %d trials, deviation %g, not %d and %g", stops, made.Trials, made.Mean, first.Trials, first.Mean)
		}
		break
	}
	if stops < 24+first.Trials || first.Trials < 2 {
		t.Errorf("%d stops, %d trials", stops, first.Trials)
	}
	// A state of other work, and one that is damaged, is refused, and the choice begins anew.
	for name, change := range map[string]func(*choosing){
		"another share":   func(c *choosing) { c.share /= 2 },
		"another sample":  func(c *choosing) { c.c.targets = c.c.targets[1:] },
		"other precision": func(c *choosing) { c.c.precision = spmv.Float16 },
		"damage":          func(*choosing) { state[len(state)/2] ^= 1 },
	} {
		c := base
		change(&c)
		var why error
		if _, _, err := c.choose(t, hops.Checkpoints{Identity: "test", From: bytes.NewReader(state), Resumed: func(_ int, err error) { why = err }}); err != nil {
			t.Fatal(name, err)
		}
		if !errors.Is(why, hops.ErrState) {
			t.Errorf("%s: the state is refused with %v", name, fmt.Sprint(why))
		}
	}
}
