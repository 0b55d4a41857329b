package progress

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestWatch(t *testing.T) {
	var out bytes.Buffer
	d := NewDisplay(&out, wide)
	defer d.Close()
	for name, ctx := range map[string]context.Context{"alone": context.Background(), "passed on": WithSink(context.Background(), d)} {
		ctx, w := WithWatch(ctx)
		now := func(what string, done, total int64, unit string) {
			t.Helper()
			if got, want := w.Now(), (Work{What: what, Done: done, Total: total, Unit: unit}); got != want {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		now("", 0, 0, "")
		outer := Start(ctx, "sort", 10, "rows")
		outer.Add(4)
		inner := Start(ctx, "hops", 3, "hops")
		inner.Add(1)
		now("hops", 1, 3, "hops")
		bounded := Start(ctx, "lsi", 100, "edges")
		bounded.Within("hop 1 of at most 10")
		if got, want := w.Now(), (Work{What: "lsi", Unit: "edges", Where: "hop 1 of at most 10"}); got != want {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		bounded.Done()
		inner.Done()
		now("sort", 4, 10, "rows")
		outer.Done()
		now("", 0, 0, "")
	}
}

// TestCourse says how a stage goes: by its plan at first, then by its share, and what is not known is absent.
func TestCourse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := WithWatch(t.Context())
		ctx = Shared(ctx)
		if _, ok := w.Course(time.Now()); ok {
			t.Error("a course without a stage")
		}
		end := Begin(ctx, Stage{Name: "lsi", Planned: 100, After: -1})
		time.Sleep(10 * time.Second)
		x, ok := w.Course(time.Now())
		if !ok || x.Stage != "lsi" || x.Seconds != 10 || x.Share != nil || x.Remaining() != 90 || !x.Planned || x.JobLeft != nil {
			t.Errorf("by the plan alone: %+v", x)
		}
		leave := Enter(ctx, 0, 1)
		m := StartPart(ctx, "lsi", 4, "edges")
		m.Add(2)
		m.Settle(Settled{Hop: 3, Share: 0.5})
		time.Sleep(10 * time.Second)
		if now := w.Now(); now.Settled != (Settled{Hop: 3, Share: 0.5}) {
			t.Errorf("%+v", now)
		}
		w.Course(time.Now())
		m.Add(1)
		time.Sleep(10 * time.Second)
		x, _ = w.Course(time.Now())
		if x.Done() != 0.75 || x.Planned || x.Remaining() <= 0 {
			t.Errorf("by what was measured: %+v", x)
		}
		m.Done()
		leave()
		end()
		if _, ok := w.Course(time.Now()); ok {
			t.Error("a course after the stage")
		}
		defer Begin(ctx, Stage{Name: "smooth", Planned: 5, After: 7})()
		if x, _ = w.Course(time.Now()); x.JobRemaining() != 12 || x.Share != nil {
			t.Errorf("the next stage: %+v", x)
		}
		time.Sleep(time.Minute)
		if x, _ = w.Course(time.Now()); x.Left != nil || x.JobLeft != nil {
			t.Errorf("longer than planned: %+v", x)
		}
	})
}

// TestTasksTellOfAStage: who knows how far tasks are says so, and what was done before does not count as work of this
// attempt.
func TestTasksTellOfAStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w := WithWatch(t.Context())
		ctx = Shared(ctx)
		defer Begin(ctx, Stage{Name: "smooth", After: 7})()
		course := func() Course {
			x, ok := w.Course(time.Now())
			if !ok {
				t.Fatal("no course")
			}
			return x
		}
		leave := EnterRange(ctx, 0, 0.5)
		m := StartPart(ctx, "tasks", 4, "tasks")
		m.Add(2)
		m.Tell(0.5)
		time.Sleep(time.Second)
		m.Tell(0.5)
		if x := course(); x.Share != nil || x.Left != nil {
			t.Errorf("nothing was done, and it is known that %+v", x)
		}
		time.Sleep(9 * time.Second)
		m.Tell(0.75)
		// 0.375 of the stage are done, an eighth of it in ten seconds.
		if x := course(); x.Done() != 0.375 || x.Remaining() != 50 || x.JobRemaining() != 57 || x.Planned {
			t.Errorf("half of what was left of the tasks: %+v", x)
		}
		m.Tell(0.7) // a task was lost
		if x := course(); x.Done() != 0.375 {
			t.Errorf("share %g after a loss", x.Done())
		}
		m.Tell(1)
		m.Done()
		leave()
		leave = EnterRange(ctx, 0.5, 1)
		m = StartPart(ctx, "tasks", 2, "tasks")
		m.Tell(0)
		if x := course(); x.Done() != 0.5 {
			t.Errorf("share %g after the first phase", x.Done())
		}
		m.Tell(0.5)
		if x := course(); x.Done() != 0.75 {
			t.Errorf("share %g in the second phase", x.Done())
		}
		m.Done()
		leave()
		var none *Meter
		none.Tell(1)
	})
}
