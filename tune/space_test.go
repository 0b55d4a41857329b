package tune

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ndls"
)

func parsed(t testing.TB, dimensions ...string) Space {
	t.Helper()
	s, err := ParseSpace(dimensions...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseSpace(t *testing.T) {
	s := parsed(t, "epsilon=0.01,0.03", "lr=log:0.001:0.1", "dropout=0:0.8", "hidden=16:64", "rule=ndls,sgc", "hop-weights=0,1;0,0,1", "depth=,node", "label-depth=auto,3")
	if got := fmt.Sprint(s.strings()); got != "[epsilon=0.01,0.03 lr=log:0.001:0.1 dropout=0:0.8 hidden=16:64 rule=ndls,sgc hop-weights=0,1;0,0,1 depth=,node label-depth=auto,3]" {
		t.Error(got)
	}
	if !s.smoothsLabels() || parsed(t, "lr=0.1,0.2").smoothsLabels() {
		t.Error("options of label smoothing are not told from others")
	}
	for _, c := range []struct{ text, want string }{
		{"epsilom=1,2", "A search can try lsi, probes, directions, epsilon"},
		{"runs=1,2", "is the same for all trials"},
		{"normalize=l1,none", "is the same for all trials"},
		{"seed=1,2", "is the same for all trials"},
		{"lr", "write NAME=VALUE"},
		{"lr=", `--lr "" is no number`},
		{"hidden=16,x", `--hidden "x" is no whole number`},
		{"lr=0.1,0.1", "given twice"},
		{"lr=0.1:0.01", "must be the smaller one"},
		{"lr=log:0:0.1", "numbers above 0"},
		{"lr=low:high", "is no range"},
		{"lr=log:0.1", `no number`},
		{"lr=0:inf", "is no range"},
		{"lr=nan:1", "is no range"},
		{"hidden=1.5:8", "is a whole number"},
		{"cs-correct-alpha=0,0.5", "above 0"},
		{"sparsity=0:3", "above 0"},
	} {
		if _, err := ParseSpace(c.text); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := ParseSpace("lr=0.1,0.2", "lr=0.3"); err == nil || !strings.Contains(err.Error(), "given twice") {
		t.Error(err)
	}
	if err := Default().check(); err != nil {
		t.Error(err)
	}
}

// FuzzParseSpace reads dimensions. What is accepted is printed as it is read, and draws values
// that its option takes.
func FuzzParseSpace(f *testing.F) {
	for _, text := range []string{"lr=log:0.001:0.1", "epsilon=0.01,0.03", "hidden=16:64", "rule=ndls,sgc", "hop-weights=0,1;1", "kmax=log:1:2147483648", "alpha=0x1p-3:1e300", "depth=,node", "=", "lr=1e-320:1e308"} {
		f.Add(text, uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		s, err := ParseSpace(text)
		if err != nil {
			if !errors.Is(err, ndls.ErrOption) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseSpace(s[0].String())
		if err != nil || again[0].String() != s[0].String() {
			t.Fatalf("%q is printed as %q: %v", text, s[0], err)
		}
		drawn := s.draw(seed, 0)
		o := ndls.DefaultOptions()
		if err := o.Set(drawn[0].Name, drawn[0].Value); err != nil {
			t.Fatal(err)
		}
		if s[0].Values != nil {
			if !slices.Contains(s[0].Values, drawn[0].Value) {
				t.Fatalf("%s draws %s", s[0], drawn[0].Value)
			}
			return
		}
		if x, err := strconv.ParseFloat(drawn[0].Value, 64); err != nil || x < s[0].Lo || x > s[0].Hi {
			t.Fatalf("%s draws %s: %v", s[0], drawn[0].Value, err)
		}
	})
}

// TestDraw draws values that fill their range, and depend on the seed, the attempt and the name alone.
func TestDraw(t *testing.T) {
	s := parsed(t, "lr=log:0.001:0.1", "dropout=0:0.8", "hidden=16:19", "epsilon=0.01,0.03")
	const draws = 4000
	below, least, most, hidden := 0, 1.0, 0.0, map[string]int{}
	for attempt := range uint64(draws) {
		drawn := s.draw(7, attempt)
		lr, _ := strconv.ParseFloat(drawn[0].Value, 64)
		if lr < 0.01 {
			below++
		}
		x, _ := strconv.ParseFloat(drawn[1].Value, 64)
		least, most = min(least, x), max(most, x)
		hidden[drawn[2].Value]++
		if alone := s[:1].draw(7, attempt); alone[0] != drawn[0] {
			t.Fatalf("lr is %s, and without the others %s", drawn[0].Value, alone[0].Value)
		}
	}
	if below < draws*45/100 || below > draws*55/100 {
		t.Errorf("%d of %d rates are in the lower half of their logarithms", below, draws)
	}
	if least > 0.01 || most < 0.79 {
		t.Errorf("dropout from %g to %g", least, most)
	}
	for _, x := range []string{"16", "17", "18", "19"} {
		if hidden[x] < draws/5 {
			t.Errorf("%v", hidden)
		}
	}
	if fmt.Sprint(s.draw(7, 0)) == fmt.Sprint(s.draw(8, 0)) || fmt.Sprint(s.draw(7, 0)) == fmt.Sprint(s.draw(7, 1)) {
		t.Error("another seed or attempt draws the same")
	}
}

// TestSettle leaves options out that decide nothing beside the others.
func TestSettle(t *testing.T) {
	base := ndls.DefaultOptions()
	base.Smooth.Hops, base.Smooth.Residual = 3, 0.2
	for _, c := range []struct {
		drawn    string
		smoothed bool
		want     string
		check    func(o ndls.Options) bool
	}{
		{"rule=ndls hops=5 residual=0.1", false, " --rule ndls --residual 0.1", func(o ndls.Options) bool { return o.Smooth.Hops == 3 && o.Smooth.Residual == 0.1 }},
		{"rule=sgc hops=5 residual=0.1 epsilon=0.1", false, " --rule sgc --hops 5", func(o ndls.Options) bool {
			return o.Smooth.Hops == 5 && o.Smooth.Residual == 0 && o.LSI.Epsilon == base.LSI.Epsilon
		}},
		{"rule=sgc epsilon=0.1", true, " --epsilon 0.1 --rule sgc", func(o ndls.Options) bool { return o.LSI.Epsilon == 0.1 && o.Smooth.Residual == 0 }},
		{"rule=sgc depth=node epsilon=0.1", false, " --epsilon 0.1 --rule sgc --depth node", nil},
		{"rule=ndls depth=node", false, " --rule ndls", func(o ndls.Options) bool { return o.Smooth.Depth == "" }},
		{"layers=1 hidden=32 dropout=0.5 lr=0.1", false, " --layers 1 --lr 0.1", nil},
		{"label-rule=ndls cs-scale=1 label-epsilon=0.1", true, " --label-rule ndls --label-epsilon 0.1", func(o ndls.Options) bool { return o.Labels.CorrectScale == "" }},
		{"label-rule=cs cs-scale=1 label-epsilon=0.1", true, " --label-rule cs --cs-scale 1", func(o ndls.Options) bool { return o.Labels.Epsilon == 0 }},
		{"label-depth=3 label-kmax=10", true, " --label-depth 3", func(o ndls.Options) bool { return o.Labels.Kmax == base.Labels.Kmax }},
	} {
		var drawn []Setting
		for _, x := range strings.Fields(c.drawn) {
			name, value, _ := strings.Cut(x, "=")
			drawn = append(drawn, Setting{name, value})
		}
		o, counted, err := settle(base, drawn, c.smoothed)
		if err != nil || words(counted) != c.want {
			t.Errorf("%s: %q, want %q, %v", c.drawn, words(counted), c.want, err)
		}
		if err := ndls.CheckOptions(o); err != nil {
			t.Errorf("%s: %v", c.drawn, err)
		}
		if c.check != nil && !c.check(o) {
			t.Errorf("%s: %+v", c.drawn, o)
		}
	}
}

// TestOptions names options that exist, each once.
func TestOptions(t *testing.T) {
	names := Names()
	for i, name := range names {
		if ndls.OptionType(name) == "" || slices.Contains(names[:i], name) {
			t.Errorf("%s is no option, or is listed twice", name)
		}
	}
}

func drawnBy(t *testing.T, c Config) (list []string, err error) {
	t.Helper()
	c.Base.Dataset = "karate:"
	s, err := newSearch(c)
	if err != nil {
		return nil, err
	}
	for _, x := range s.trials {
		list = append(list, words(x.Settings))
	}
	return list, nil
}

// TestTrials draws trials: no two with the same settings, the first ones of a longer search, and all
// combinations of a grid.
func TestTrials(t *testing.T) {
	space := parsed(t, "rule=ndls,sgc", "hops=2,4", "lr=0.01,0.02")
	grid, err := drawnBy(t, Config{Space: space, Search: Grid})
	if err != nil || fmt.Sprint(grid) != "[ --rule ndls --lr 0.01  --rule ndls --lr 0.02  --rule sgc --hops 2 --lr 0.01  --rule sgc --hops 2 --lr 0.02  --rule sgc --hops 4 --lr 0.01  --rule sgc --hops 4 --lr 0.02]" {
		t.Errorf("%q, %v", grid, err)
	}
	random, err := drawnBy(t, Config{Space: space, Trials: 100})
	if err != nil {
		t.Fatal(err)
	}
	if len(random) != len(grid) {
		t.Errorf("%d trials of %d combinations", len(random), len(grid))
	}
	fewer, err := drawnBy(t, Config{Space: space, Trials: 3})
	if err != nil || !slices.Equal(fewer, random[:3]) {
		t.Errorf("%q are not the first of %q, %v", fewer, random, err)
	}
	slices.Sort(random)
	slices.Sort(grid)
	if !slices.Equal(random, grid) {
		t.Errorf("%q, and the grid is %q", random, grid)
	}
	for _, c := range []struct {
		c    Config
		want string
	}{
		{Config{Space: space, Search: Grid, Trials: 5}, "the grid has 8 combinations"},
		{Config{Space: parsed(t, "lr=0.1:0.2"), Search: Grid}, "is a range"},
		{Config{Space: space, Search: "bayes"}, "neither random nor grid"},
		{Config{Space: space, Score: "test"}, "neither base, smoothed nor loss"},
		{Config{Space: parsed(t, "label-rule=ndls,cs"), Score: Base}, "leave out one of the two"},
		{Config{Space: Space{}}, "nothing to try"},
		{Config{Space: space, Trials: -1}, "--trials -1"},
		{Config{Space: parsed(t, "lr=-1,0.1")}, "--lr -1 is not a finite number above 0"},
		{Config{Space: parsed(t, "rule=ndls,sagn"), Search: Grid}, "none of"},
		{Config{Base: ndls.Config{SoftLabels: "x"}, Space: space}, "--soft-labels"},
		{Config{Base: ndls.Config{TrainOn: []string{"x"}}, Space: space}, "--train-on"},
		{Config{Base: ndls.Config{Workers: ndls.Workers{Processes: 2}}, Space: space}, "--workers"},
		{Config{Base: ndls.Config{Discard: true}, Space: space}, "choose another --run"},
		{Config{Base: ndls.Config{Options: func(o *ndls.Options) { o.DropFeatures = true }}, Space: space}, "--keep-features=false"},
		{Config{Base: ndls.Config{Options: func(o *ndls.Options) { o.Smooth.Targets = "labelled" }}, Space: parsed(t, "label-kmax=3,4")}, "--targets labelled"},
	} {
		if _, err := drawnBy(t, c.c); !errors.Is(err, ndls.ErrOption) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestStarts begins with what is published of each rule, as far as it is tried.
func TestStarts(t *testing.T) {
	base := ndls.DefaultOptions()
	first := func(s Space) (list []string) {
		for _, start := range s.starts(base) {
			list = append(list, words(start))
		}
		return list
	}
	got := first(parsed(t, "rule=sgc,ndls,sign", "hops=3,8,20", "epsilon=0.01:0.02", "lr=log:0.001:0.1", "dropout=0.1,0.4", "label-rule=cs,cs-nd"))
	want := []string{
		" --rule sgc --hops 3 --epsilon 0.02 --lr 0.01 --dropout 0.4 --label-rule cs",
		" --rule ndls --hops 8 --epsilon 0.02 --lr 0.01 --dropout 0.4 --label-rule cs",
		" --rule sign --hops 8 --epsilon 0.02 --lr 0.01 --dropout 0.4 --label-rule cs",
		" --rule sgc --hops 3 --epsilon 0.02 --lr 0.1 --dropout 0.1 --label-rule cs",
		" --rule ndls --hops 8 --epsilon 0.02 --lr 0.1 --dropout 0.4 --label-rule cs",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	// What a plan leaves open begins with its default.
	got = first(parsed(t, "label-rule=cs-nd,ndls", "cs-scale=0.5,auto", "cs-correct-alpha=0.5,0.8", "cs-correct-hops=10,50", "cs-smooth-alpha=0.1,0.8", "label-epsilon=0.1,0.03", "hop-weights=1;0,0,1,1,1,1", "dimensions=8,128"))
	want = []string{" --label-rule ndls --cs-scale auto --cs-correct-alpha 0.8 --cs-correct-hops 50 --cs-smooth-alpha 0.8 --label-epsilon 0.03 --hop-weights 0,0,1,1,1,1 --dimensions 128"}
	if !slices.Equal(got[:1], want) {
		t.Errorf("%q, want %q", got[:1], want)
	}
	// The default space has what is published of each rule, to the last digit.
	for rule, known := range published {
		base.Smooth.Rule = rule
		starts := Default().starts(base)
		if len(starts) != 2 {
			t.Fatalf("%s has %d starts", rule, len(starts))
		}
		for _, x := range starts[1] {
			want, ok := known.rule[x.Name]
			if !ok {
				want, ok = known.network[x.Name]
			}
			if ok && x.Value != want {
				t.Errorf("%s: %s is %s, and %s is published", rule, x.Name, x.Value, want)
			}
		}
	}
}
