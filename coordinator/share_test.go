package coordinator

import (
	"context"
	"maps"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/stage"
	"ndls/steps"
)

// TestShareOfTasks: the share of a phase equals that of its tasks that are done, with what is known of those under way.
func TestShareOfTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4)
		s := c.start()
		ctx, w := progress.WithWatch(t.Context())
		ctx, cancel := context.WithCancel(progress.Shared(ctx))
		defer progress.Begin(ctx, progress.Stage{Name: "smooth", Planned: 1000, After: 100})()
		leave := progress.EnterRange(ctx, 0, 0.5)
		var running sync.WaitGroup
		running.Go(func() { _, _ = s.Run(ctx, c.tasks) })
		course := func() progress.Course {
			time.Sleep(1100 * time.Millisecond) // until it was looked
			x, _ := w.Course(time.Now())
			return x
		}
		near := func(what string, got, want float64) {
			t.Helper()
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%s: %g, want about %g", what, got, want)
			}
		}
		var leases []control.Lease
		next := func(name string) {
			t.Helper()
			l, err := s.Next(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
		}
		for _, name := range []string{"a", "b"} {
			if _, err := s.Join(ctx, control.Hello{Worker: name, Version: "1", Memory: 1 << 30, Threads: 4}); err != nil {
				t.Fatal(err)
			}
			next(name)
		}
		if x := course(); x.Share != nil || !x.Planned {
			t.Errorf("before anything is known: %+v", x)
		}
		renew := func(i int, left float64) {
			t.Helper()
			if err := s.Renew(ctx, leases[i].Fencing, control.Progress{What: "hops", Unit: "hops", Left: left}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(10 * time.Second)
		renew(0, 10)
		x := course() // a is in the middle of one task of four, b says nothing; the phase is half of the stage
		near("the share while one worker tells", x.Done(), 0.5*2*(12.1/21.1)/4)
		time.Sleep(9 * time.Second)
		renew(1, 0)
		if err := s.Finish(ctx, leases[0].Fencing, control.Outcome{Report: &control.StageReport{Stage: control.Smooth, Seconds: 20}}); err != nil {
			t.Fatal(err)
		}
		x = course() // b is taken to be as far as a task that is done allows
		near("the share with a task done", x.Done(), 0.5*(1+0.9)/4)
		if x.Left == nil || x.JobLeft == nil || x.Planned {
			t.Fatalf("times are not known, or those of the plan: %+v", x)
		}
		near("seconds left", x.Remaining(), x.Seconds*(1-x.Done())/x.Done())
		near("seconds left of the job", x.JobRemaining(), x.Remaining()+100)
		cancel()
		for i := range leases[1:] {
			_ = s.Finish(context.Background(), leases[1+i].Fencing, control.Outcome{Report: &control.StageReport{Stage: control.Smooth}})
		}
		running.Wait()
		leave()
	})
}

// TestShareAtTheEnd: a phase that is over is all done.
func TestShareAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1)
		s := c.start()
		ctx, w := progress.WithWatch(t.Context())
		ctx = progress.Shared(ctx)
		defer progress.Begin(ctx, progress.Stage{Name: "smooth"})()
		defer progress.EnterRange(ctx, 0, 0.5)()
		var running sync.WaitGroup
		running.Go(func() {
			if _, err := s.Run(ctx, c.tasks); err != nil {
				t.Error(err)
			}
		})
		if _, err := s.Join(ctx, control.Hello{Worker: "a", Version: "1", Memory: 1 << 30, Threads: 4}); err != nil {
			t.Fatal(err)
		}
		l, err := s.Next(ctx, "a")
		if err == nil {
			err = s.Finish(ctx, l.Fencing, control.Outcome{Report: &control.StageReport{Stage: control.Smooth, Seconds: 1}})
		}
		if running.Wait(); err != nil {
			t.Fatal(err)
		}
		if x, _ := w.Course(time.Now()); x.Done() != 0.5 {
			t.Errorf("%g of the stage is done after its first half", x.Done())
		}
	})
}

// counted is a scheduler that notes between which shares of the stage each phase lies.
type counted struct {
	*fake
	watch  *progress.Watch
	phases map[control.Part]float64
}

func (c *counted) Workers() int { return 2 }

func (c *counted) Run(ctx context.Context, tasks []control.Task) ([]control.StageReport, error) {
	m := progress.StartPart(ctx, "tasks", int64(len(tasks)), "tasks")
	defer m.Done()
	m.Tell(0)
	m.Tell(1)
	x, _ := c.watch.Course(time.Now())
	c.phases[tasks[0].Part] = x.Done()
	return []control.StageReport{{Stage: tasks[0].Stage}}, nil
}

// counting is a job in a stage of that name, and what counts its phases.
func counting(t *testing.T, name string) (context.Context, *Job, *counted, func()) {
	ctx, w := progress.WithWatch(t.Context())
	ctx = progress.Shared(ctx)
	end := progress.Begin(ctx, progress.Stage{Name: name})
	j, f := setup(t, newCluster(t, 1).store, shards.Summary{})
	c := &counted{fake: f, watch: w, phases: map[control.Part]float64{}}
	j.Tasks = c
	return ctx, j, c, end
}

// TestStepsShareAStage: where it is known how many steps there are, the first one is nearly all of the stage.
func TestStepsShareAStage(t *testing.T) {
	for _, tc := range []struct {
		name       string
		once, step bool
		want       map[control.Part]float64
	}{
		{"a step, then the whole", true, true, map[control.Part]float64{control.Models: 0.95, control.Whole: 1}},
		{"the whole at once", true, false, map[control.Part]float64{control.Whole: 1}},
		{"no one knows how many", false, true, map[control.Part]float64{control.Models: 0, control.Whole: 0}},
	} {
		ctx, j, c, end := counting(t, "train")
		next := tc.step
		_, err := j.runSteps(ctx, control.Train, stage.Steps{Once: tc.once, Next: func(context.Context, *catalog.Catalog) (left steps.Left, err error) {
			if next {
				left = steps.Left{Step: string(control.Models), Pieces: []steps.Piece{{First: 0, Last: 1}, {First: 1, Last: 2}}, Count: func(int) int { return 2 }}
			}
			next = false
			return left, nil
		}}, nil)
		if end(); err != nil {
			t.Fatal(err)
		}
		if !maps.Equal(c.phases, tc.want) {
			t.Errorf("%s: after each step %v of the stage is done, want %v", tc.name, c.phases, tc.want)
		}
	}
}

// TestPhasesShareAStage: columns are nearly all of a stage, and rows the rest.
func TestPhasesShareAStage(t *testing.T) {
	for _, tc := range []struct {
		name string
		cut  []control.Part
		want map[control.Part]float64
	}{
		{"columns and rows", []control.Part{control.Columns, control.Rows}, map[control.Part]float64{control.Columns: 0.95, control.Rows: 1}},
		{"a choice before", []control.Part{control.Choose, control.Strips, control.Rows}, map[control.Part]float64{control.Choose: 0.05 / 1.05, control.Strips: 1 / 1.05, control.Rows: 1}},
		{"what is left are rows", []control.Part{control.Rows}, map[control.Part]float64{control.Rows: 1}},
	} {
		phases := [][]control.Task{}
		for _, part := range tc.cut {
			phases = append(phases, []control.Task{{Stage: control.Smooth, Part: part}})
		}
		ctx, j, c, end := counting(t, "smooth")
		if _, err := j.inPhases(ctx, phases); err != nil {
			t.Fatal(err)
		}
		end()
		for part, want := range tc.want {
			if got := c.phases[part]; math.Abs(got-want) > 1e-9 {
				t.Errorf("%s: %g of the stage is done after %s, want %g", tc.name, got, part, want)
			}
		}
	}
}
