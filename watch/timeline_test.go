package watch

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"ndls/coordinator"
	"ndls/internal/control"
)

// TestTimeline shows who did what when, marks what was lost, puts many short tasks together, and stays small.
func TestTimeline(t *testing.T) {
	f := running()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(worker string, stage control.Stage, from, to float64, how string) {
		at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
		f.history = append(f.history, coordinator.Span{Worker: worker, Stage: stage, Task: string(stage) + "/x", Begin: at(from), End: at(to), How: how})
	}
	add("a", control.Partition, 0, 25, "done")
	add("b", control.LSI, 25, 50, "lost")
	for i := range 100 {
		add("a", control.LSI, 25+float64(i)*0.5, 25.4+float64(i)*0.5, "done")
	}
	add("b", control.LSI, 75, 100, "under way")
	line := State{Status: f.Status(), History: f.history}.Timeline()
	if len(line.Rows) != 2 || len(line.Rows[0].Pieces) != 2 || len(line.Rows[1].Pieces) != 2 || !line.Lost || fmt.Sprint(line.Stages) != "[{partition 0} {lsi 1}]" {
		t.Fatalf("%+v", line)
	}
	a, b := line.Rows[0], line.Rows[1]
	if a.Says != "a had 101 tasks in 1 min 4 s" || b.Says != "b had 2 tasks in 50 s, of which 1 were lost or failed" {
		t.Errorf("%q, %q", a.Says, b.Says)
	}
	if p := b.Pieces[0]; p.From != 0.25 || p.Width != 0.25 || !p.Lost || p.Says != "lsi/x: 25 s, lost" {
		t.Errorf("what was lost: %+v", p)
	}
	if p := a.Pieces[1]; p.Says != "lsi: several tasks" || p.From != 0.25 || p.Width < 0.49 || p.Width > 0.5 {
		t.Errorf("short tasks: %+v", p)
	}
	page := get(New(f, Options{}), "/").Body.String()
	for _, want := range []string{"Who did what when", `<i class="c1 lost" style="left:25.0%;width:25.0%" title="lsi/x: 25 s, lost"></i>`, "lost or failed</span>", `aria-label="a had 101 tasks in 1 min 4 s"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	f.history = nil
	for i := range coordinator.MostSpans + 100 {
		add(fmt.Sprintf("host-%d", i), control.LSI, float64(i), float64(i)+500, "under way")
	}
	line = State{Status: f.Status(), History: f.history}.Timeline()
	if len(line.Rows) != mostRows || line.More != len(f.history)-mostRows {
		t.Errorf("%d rows, %d more", len(line.Rows), line.More)
	}
	if event := encode(newWatcher(f, Options{}).state()); len(event) > 40_000 {
		t.Errorf("an event of %d bytes", len(event))
	}
	if (State{}).Timeline() != nil {
		t.Error("a time line without tasks")
	}
}

// TestLearned follows a training, and begins anew with the next model.
func TestLearned(t *testing.T) {
	f := running()
	w := newWatcher(f, Options{})
	at := func(epoch int, valid float64) State {
		s := *f.status.Load()
		s.Stage = control.Train
		s.Workers[1].Progress.Hop, s.Workers[1].Progress.Settled = epoch, valid
		f.status.Store(&s)
		return w.state()
	}
	at(1, 0.2)
	at(5, 0.5)
	if s := at(9, 0.6); fmt.Sprint(s.Learned) != "[{1 0.2} {5 0.5} {9 0.6}]" || s.Settled != nil || s.Learning() == nil {
		t.Errorf("learned %v, settled %v", s.Learned, s.Settled)
	}
	if s := at(1, 0.3); fmt.Sprint(s.Learned) != "[{1 0.3}]" {
		t.Errorf("the next model: %v", s.Learned)
	}
}
