package progress

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// courseAt is a stage of which a share was done after some seconds.
func courseAt(s Stage, first, share float64) *course {
	c := &course{Stage: s, started: time.Unix(1000, 0)}
	if share > 0 {
		c.seen, c.first, c.share = true, first, share
	}
	return c
}

func at(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// TestTimeLeft goes from the plan to what is measured.
func TestTimeLeft(t *testing.T) {
	for _, c := range []struct {
		name         string
		planned      float64
		first, share float64
		after        float64
		want         float64
		plan, ok     bool
	}{
		{"at first the plan", 100, 0, 0, 10, 90, true, true},
		{"longer than the plan, nothing measured", 100, 0, 0, 120, 0, true, false},
		{"nothing planned, nothing measured", 0, 0, 0, 10, 0, true, false},
		{"nothing planned", 0, 0, 0.5, 10, 10, false, true},
		{"measured", 100, 0, 0.5, 200, 200, false, true},
		{"a tenth measured: half of each", 100, 0, 0.1, 10, 90, false, true},
		{"twice as slow as planned, a tenth measured", 100, 0, 0.1, 20, 130, false, true},
		{"an earlier attempt has done half", 100, 0.5, 0.75, 10, 10, false, true},
		{"too little to measure", 100, 0, 0.001, 10, 90, true, true},
		{"the plan is over", 10, 0, 0.1, 20, 180, false, true},
	} {
		left, plan, ok := courseAt(Stage{Planned: c.planned}, c.first, c.share).left(at(c.after))
		if ok != c.ok || plan != c.plan || ok && (left < c.want-1e-6 || left > c.want+1e-6) {
			t.Errorf("%s: %g, plan %v, %v; want %g, %v, %v", c.name, left, plan, ok, c.want, c.plan, c.ok)
		}
	}
}

func TestLines(t *testing.T) {
	meter := func(what string, count, total int64, unit string) *Meter {
		m := &Meter{what: what, total: total, unit: unit, started: at(0)}
		m.Add(count)
		return m
	}
	bounded := meter("lsi", 13_900_000, 356_400_000, "edges")
	bounded.Within("hop 7 of at most 200")
	train := meter("hops", 9, 20, "hops")
	for _, c := range []struct {
		name  string
		c     *course
		m     *Meter
		width int
		want  string
	}{
		{"a stage and its part", courseAt(Stage{"smooth", 100, 600}, 0, 0.45), train, 200, "[=========           ] smooth 45% (9 of 20 hops), 9 hops/min, 1m10s left; job ~11m"},
		{"without the bar", courseAt(Stage{"smooth", 100, 600}, 0, 0.45), train, 55, "smooth 45% (9 of 20 hops), 1m10s left; job ~11m"},
		{"in 40 columns", courseAt(Stage{"smooth", 100, 600}, 0, 0.45), train, 40, "smooth 45%, 1m10s left; job ~11m"},
		{"the plan", courseAt(Stage{"partition", 600, 600}, 0, 0), meter("writing sorted edges", 5, 10, "edges"), 80, "partition: writing sorted edges 50% 5 of 10 edges, ~9m00s left; job ~19m"},
		{"in 40 columns, without the stage", courseAt(Stage{"partition", 600, 600}, 0, 0), meter("writing sorted edges", 5, 10, "edges"), 40, "writing sorted edges 50%, ~9m00s left"},
		{"a bound", courseAt(Stage{"lsi", 100, 600}, 0, 0), bounded, 60, "lsi hop 7 of at most 200, 13.9M edges, ~40s left; job ~11m"},
		{"a bound in 40 columns", courseAt(Stage{"lsi", 100, 600}, 0, 0), bounded, 40, "hop 7 of at most 200, ~40s left"},
		{"longer than the plan", courseAt(Stage{"lsi", 10, 600}, 0, 0), bounded, 60, "lsi hop 7 of at most 200, 13.9M edges; job > 10m"},
		{"no plan", courseAt(Stage{"lsi", 0, -1}, 0, 0), bounded, 60, "lsi hop 7 of at most 200, 13.9M edges, 231.7k edges/s"},
		{"a stage alone", courseAt(Stage{"train", 0, -1}, 0, 0), nil, 60, "train for 1m00s"},
	} {
		if got := describe(c.c, c.m, at(60)).fit(c.width); got != c.want {
			t.Errorf("%s:\n%q, want\n%q", c.name, got, c.want)
		}
		for width := range 120 {
			if n := utf8.RuneCountInString(describe(c.c, c.m, at(60)).fit(width)); n > max(width-1, 0) {
				t.Errorf("%s: %d characters on %d columns", c.name, n, width)
			}
		}
	}
}

func TestRough(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "1s", 1.4: "1s", 59: "59s", 60: "1m00s", 64: "1m00s", 66: "1m10s", 594: "9m50s", 600: "10m", 3500: "58m", 3599: "1h00m", 5400: "1h30m", 172_800: "2d00h", 1e12: "1000d",
	} {
		if got := rough(seconds); got != want {
			t.Errorf("%g s: %s, want %s", seconds, got, want)
		}
	}
}

// TestShares: nested parts tell how much of a stage is done.
func TestShares(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, wide)
	defer d.Close()
	ctx, _ := WithWatch(WithSink(context.Background(), d))
	end := Begin(ctx, Stage{Name: "smooth", Planned: 100, After: -1})
	ctx = Shared(ctx)
	share := func() float64 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.show(time.Now())
		return d.course().share
	}
	outer := EnterRange(ctx, 0, 0.5)
	inner := Enter(ctx, 1, 2) // from 0.25 to 0.5
	m := StartPart(ctx, "hops", 4, "hops")
	m.Add(1)
	if got := share(); got != 0.3125 {
		t.Errorf("share %g in the inner part", got)
	}
	StartPart(Aside(ctx), "predict", 1, "rows").Add(1) // beside the work
	if got := share(); got != 0.3125 {
		t.Errorf("share %g by a meter beside the work", got)
	}
	m.Add(1)
	if got := share(); got != 0.375 {
		t.Errorf("share %g while a younger meter is beside the work", got)
	}
	m.Add(2)
	m.Done()
	inner()
	outer()
	leave := EnterRange(ctx, 0.5, 1)
	Start(ctx, "choosing", 1, "passes").Add(1)
	if got := share(); got != 0.5 {
		t.Errorf("share %g after half of it", got)
	}
	leave()
	StartPart(ctx, "hops", 4, "hops").Add(4) // in no part
	if got := share(); got != 0.5 {
		t.Errorf("share %g by a meter of no part", got)
	}
	end()
	if d.course() != nil {
		t.Error("the stage has not ended")
	}
	Enter(context.Background(), 0, 1)()
	Begin(context.Background(), Stage{})()
}

// TestPlainLinesBecomeRare: a job of hours does not fill a log.
func TestPlainLinesBecomeRare(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, nil)
	defer d.Close()
	m := d.Start("slow", 100, "rows")
	m.Add(1)
	begin := d.begun
	d.mu.Lock()
	for second := 1; second <= 10*3600; second++ {
		d.show(begin.Add(time.Duration(second) * time.Second))
	}
	d.mu.Unlock()
	lines := strings.Count(out.String(), "\n")
	if lines < 100 || lines > 180 {
		t.Errorf("%d lines in ten hours", lines)
	}
	if first, _, _ := strings.Cut(out.String(), "\n"); !strings.HasPrefix(first, "slow 1% 1 of 100 rows") {
		t.Errorf("the first line is %q", first)
	}
}
