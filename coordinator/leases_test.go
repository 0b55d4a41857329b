package coordinator

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"ndls/internal/control"
)

// epoch is the time at which tests begin.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const testTTL = 30 * time.Second

func columnTasks(n int) (tasks []control.Task) {
	for i := range n {
		tasks = append(tasks, control.Task{Stage: control.Smooth, Part: control.Columns, First: i, Last: i + 1})
	}
	return tasks
}

func phaseEvent(tasks []control.Task) event {
	return event{Fact: phase, Stage: tasks[0].Stage, Workers: 2, Tasks: partsOf(tasks)}
}

// model is leases with what a coordinator around them would remember.
type model struct {
	*leases
	now     time.Time
	journal []event
	// As a simple bookkeeper sees it:
	tasks    []control.Task
	holder   map[uint64]string // open leases and their tasks
	finished map[string]int    // accepted reports
	given    uint64
}

func newModel(tasks []control.Task) *model {
	m := &model{leases: newLeases(testTTL), now: epoch, tasks: tasks, holder: map[uint64]string{}, finished: map[string]int{}}
	m.do(phaseEvent(tasks))
	return m
}

func (m *model) do(e event) {
	if err := m.apply(m.now, e); err != nil {
		panic(err)
	}
	m.journal = append(m.journal, e)
}

func (m *model) grantTo(worker string) (uint64, bool) {
	e, ok := m.grant(m.now, worker)
	if !ok {
		return 0, false
	}
	if e.Fencing <= m.given {
		panic(fmt.Sprintf("lease %d after %d", e.Fencing, m.given))
	}
	m.given = e.Fencing
	m.do(e)
	m.holder[e.Fencing] = e.Task
	return e.Fencing, true
}

func (m *model) expireAll() {
	for _, e := range m.expire(m.now) {
		m.do(e)
		delete(m.holder, e.Fencing)
	}
}

// finishWith gives an outcome to a lease and checks that it counts if and only if
// the lease is open.
func (m *model) finishWith(fencing uint64, o control.Outcome) error {
	failed := m.failed != nil
	e, err := m.finish(m.now, fencing, o)
	id, open := m.holder[fencing]
	if (err == nil) != (open && !failed) || err != nil && !errors.Is(err, control.ErrLeaseLost) {
		return fmt.Errorf("finish of lease %d, open %v: %v", fencing, open, err)
	}
	if err != nil {
		return nil
	}
	m.do(e)
	delete(m.holder, fencing)
	if o.Report != nil {
		if m.finished[id]++; m.finished[id] > 1 {
			return fmt.Errorf("task %s was done twice", id)
		}
		for f, other := range m.holder {
			if other == id {
				delete(m.holder, f)
			}
		}
	}
	return nil
}

// restart reads the journal again, from a snapshot if that is asked for.
func (m *model) restart(compact bool) error {
	before := text(m.state())
	if compact {
		m.journal = []event{{Fact: snapshot, State: m.state()}}
	}
	// What is read has been JSON.
	var events []event
	if err := json.Unmarshal([]byte(text(m.journal)), &events); err != nil {
		return err
	}
	m.leases = newLeases(testTTL)
	for _, e := range events {
		if err := m.apply(m.now, e); err != nil {
			return err
		}
	}
	if after := text(m.state()); after != before {
		return fmt.Errorf("state after replay:\n%s\nbefore:\n%s", after, before)
	}
	return nil
}

func text(v any) string { return string(must(json.Marshal(v))) }

func reported(seconds float64) control.Outcome {
	return control.Outcome{Report: &control.StageReport{Stage: control.Smooth, Rows: 1, Seconds: seconds}}
}

// TestLeasesAtRandom lets workers do anything in any order, restarts included.
func TestLeasesAtRandom(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := newModel(columnTasks(rapid.IntRange(1, 5).Draw(r, "tasks")))
		worker := rapid.SampledFrom([]string{"a", "b", "c", "d"})
		anyLease := func() uint64 { return rapid.Uint64Range(0, m.given+1).Draw(r, "lease") }
		check := func(err error) {
			if err != nil {
				r.Fatal(err)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"grant": func(r *rapid.T) { m.grantTo(worker.Draw(r, "worker")) },
			"renew": func(r *rapid.T) {
				f := anyLease()
				err := m.renew(m.now, f, control.Progress{Done: 2, Saved: 1})
				if _, open := m.holder[f]; (err == nil) != (open && m.failed == nil) {
					r.Fatalf("renewal of lease %d, open %v: %v", f, open, err)
				}
			},
			"commit": func(r *rapid.T) {
				f := anyLease()
				_, err := m.held(f)
				if _, open := m.holder[f]; (err == nil) != (open && m.failed == nil) {
					r.Fatalf("commit under lease %d, open %v: %v", f, open, err)
				}
			},
			"done":  func(r *rapid.T) { check(m.finishWith(anyLease(), reported(1))) },
			"drain": func(r *rapid.T) { check(m.finishWith(anyLease(), control.Outcome{Kind: control.Drained})) },
			"fail": func(r *rapid.T) {
				check(m.finishWith(anyLease(), control.Outcome{Kind: control.Retry, Reason: "disk"}))
			},
			"unable": func(r *rapid.T) {
				f := anyLease()
				x := m.open[f]
				check(m.finishWith(f, control.Outcome{Kind: control.Unable, Reason: "memory"}))
				if x != nil && m.failed == nil && (m.may(x.worker, x.task) || !m.may("last", x.task)) {
					r.Fatalf("%s may have %s again, or a fresh worker may not", x.worker, x.task.ID())
				}
			},
			"time": func(r *rapid.T) {
				m.now = m.now.Add(time.Duration(rapid.IntRange(1, 40).Draw(r, "seconds")) * time.Second)
				m.expireAll()
			},
			"dead":    func(r *rapid.T) { m.shorten(m.now, worker.Draw(r, "worker")) },
			"restart": func(r *rapid.T) { check(m.restart(rapid.Bool().Draw(r, "compact"))) },
			"": func(r *rapid.T) {
				if len(m.open) != len(m.holder) {
					r.Fatalf("%d leases open, %d expected", len(m.open), len(m.holder))
				}
				for _, task := range m.leases.tasks {
					if len(task.leases) > maxLeases || task.report != nil && len(task.leases) > 0 || (task.report != nil) != (m.finished[task.ID()] == 1) {
						r.Fatalf("task %s has %d leases, report %v, %d accepted", task.ID(), len(task.leases), task.report, m.finished[task.ID()])
					}
				}
			},
		})
		// From wherever that led, the phase ends.
		for step := 0; !m.done() && m.failed == nil; step++ {
			if step > 100*len(m.tasks) {
				r.Fatal("the phase does not end")
			}
			m.now = m.now.Add(2 * testTTL)
			m.expireAll()
			if f, ok := m.grantTo("last"); ok {
				check(m.finishWith(f, reported(1)))
			}
		}
		if f := m.failed; f != nil && (m.byID[f.Task] == nil || f.Reason == "") {
			r.Fatalf("given up without a reason: %+v", f)
		}
		if got := len(m.reports()); m.failed == nil && got != len(m.tasks) {
			r.Fatalf("%d reports of %d tasks", got, len(m.tasks))
		}
	})
}

// TestBudgets gives up after losses with 5 workers, 20 losses, or 3 failures, with the task and the last
// reason, and begins anew when asked to run again.
func TestBudgets(t *testing.T) {
	lose := func(m *model, _ uint64) {
		m.now = m.now.Add(testTTL + time.Second)
		m.expireAll()
	}
	fail := func(reason string, kind control.Kind) func(*model, uint64) {
		return func(m *model, f uint64) {
			if err := m.finishWith(f, control.Outcome{Kind: kind, Reason: reason}); err != nil {
				panic(err)
			}
		}
	}
	for _, tc := range []struct {
		name   string
		worker string // the same one each time, "" for another each time
		end    func(*model, uint64)
		times  int
		reason string
	}{
		{"losses with one worker", "w", lose, 20, "was lost 20 times, last with worker w: no sign of life for 31 s"},
		{"losses with others", "", lose, 5, "was lost with 5 different workers, last with worker w5: no sign of life for 31 s"},
		{"failures", "w", fail("no space left", control.Retry), 3, "failed 3 times, last: no space left"},
		{"a failure for good", "w", fail("bad data", control.Fatal), 1, "bad data"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newModel(columnTasks(2))
			for n := 1; m.failed == nil; n++ {
				f, ok := m.grantTo(cmp.Or(tc.worker, fmt.Sprint("w", n)))
				if !ok || n > tc.times {
					t.Fatalf("attempt %d of %d, granted %v", n, tc.times, ok)
				}
				if n%2 == 0 {
					if err := m.restart(true); err != nil { // counts outlive the coordinator
						t.Fatal(err)
					}
				}
				tc.end(m, f)
			}
			if m.failed.Task != "smooth/columns/0-1" || m.failed.Reason != tc.reason {
				t.Errorf("given up: %+v", m.failed)
			}
			if _, ok := m.grantTo("w"); ok {
				t.Error("a task was given out after that")
			}
			if len(m.losses) != tc.times {
				t.Errorf("losses %+v", m.losses)
			}
			m.do(phaseEvent(m.tasks))
			if f, ok := m.grantTo("w"); !ok {
				t.Error("no second chance")
			} else if tc.end(m, f); tc.times > 1 && m.failed != nil {
				t.Errorf("the counts of the attempt before hold on: %+v", m.failed)
			}
		})
	}
}

func TestDrainCostsNothing(t *testing.T) {
	m := newModel(columnTasks(1))
	for range 20 {
		f, _ := m.grantTo("w")
		if err := m.finishWith(f, control.Outcome{Kind: control.Drained}); err != nil {
			t.Fatal(err)
		}
	}
	if m.failed != nil || len(m.losses) > 0 {
		t.Errorf("failed %+v, losses %+v", m.failed, m.losses)
	}
}

func TestOverdueTaskHasTwoWorkers(t *testing.T) {
	m := newModel(columnTasks(4))
	var last uint64
	for range 4 {
		last, _ = m.grantTo("slow")
	}
	m.now = m.now.Add(20 * time.Second)
	for f := range last - 1 {
		if err := m.finishWith(f+1, reported(20)); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := m.grantTo("fast"); ok {
		t.Fatal("a task was taken for overdue after once the median")
	}
	for range 2 {
		m.now = m.now.Add(15 * time.Second)
		if err := m.renew(m.now, last, control.Progress{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, ok := m.grantTo("slow"); ok {
		t.Error("a worker got its own task a second time")
	}
	second, ok := m.grantTo("fast")
	if !ok {
		t.Fatal("a task that takes more than twice the median is not leased again")
	}
	if _, ok := m.grantTo("third"); ok {
		t.Error("three workers have the same task")
	}
	if err := m.finishWith(second, reported(5)); err != nil {
		t.Fatal(err)
	}
	if err := m.finishWith(last, reported(80)); err != nil { // refused, as the model wants it
		t.Fatal(err)
	}
	if !m.done() || len(m.losses) > 0 {
		t.Errorf("done %v, losses %+v", m.done(), m.losses)
	}
}

// TestStragglerByTimeLeft gives a task to a second worker that still takes longer than a new
// attempt, long before it takes twice the median, and none that is nearly done.
func TestStragglerByTimeLeft(t *testing.T) {
	for _, tc := range []struct {
		name  string
		left  []float64 // of three tasks that run for 10 s, while one took 100 s
		again int       // which of them another worker has a try at, -1 for none
	}{
		{"nothing is known of them", []float64{0, 0, 0}, -1},
		{"all go as the first did", []float64{90, 95, 85}, -1},
		{"one takes four times as long", []float64{90, 400, 85}, 1},
		{"the slowest of two that are slow", []float64{300, 90, 900}, 2},
		{"a little slower", []float64{90, 105, 90}, -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := newModel(columnTasks(4))
			first, _ := m.grantTo("first")
			leases := make([]uint64, 3)
			m.now = m.now.Add(90 * time.Second)
			for i := range leases {
				leases[i], _ = m.grantTo(fmt.Sprint("w", i))
			}
			m.now = m.now.Add(10 * time.Second)
			if err := m.finishWith(first, reported(100)); err != nil {
				t.Fatal(err)
			}
			for i, left := range tc.left {
				if err := m.renew(m.now, leases[i], control.Progress{Left: left}); err != nil {
					t.Fatal(err)
				}
			}
			f, ok := m.grantTo("first")
			if ok != (tc.again >= 0) {
				t.Fatalf("a second attempt: %v", ok)
			}
			if ok && m.open[f].task != m.open[leases[tc.again]].task {
				t.Errorf("the second attempt is at %s", m.open[f].task.ID())
			}
		})
	}
}

// TestShortTasksHaveOneWorker: what ends within a lease is left alone, however slow.
func TestShortTasksHaveOneWorker(t *testing.T) {
	m := newModel(columnTasks(2))
	first, _ := m.grantTo("first")
	slow, _ := m.grantTo("slow")
	m.now = m.now.Add(time.Second)
	if err := m.finishWith(first, reported(1)); err != nil {
		t.Fatal(err)
	}
	if err := m.renew(m.now, slow, control.Progress{Left: testTTL.Seconds() - 1}); err != nil {
		t.Fatal(err)
	}
	if _, ok := m.grantTo("first"); ok {
		t.Error("it has a second worker")
	}
}

func TestWorkersGetWhatTheyHold(t *testing.T) {
	m := newModel(columnTasks(6))
	m.hold("b", piece{control.Columns, 4})
	m.hold("c", piece{control.Rows, 0}) // of another part
	for _, tc := range []struct{ worker, want string }{
		{"a", "smooth/columns/0-1"}, {"b", "smooth/columns/4-5"}, {"b", "smooth/columns/1-2"}, {"c", "smooth/columns/2-3"},
	} {
		f, _ := m.grantTo(tc.worker)
		if got := m.holder[f]; got != tc.want {
			t.Errorf("worker %s got %s, want %s", tc.worker, got, tc.want)
		}
	}
	// Whoever had a task before is asked first.
	for f, id := range m.holder {
		if id == "smooth/columns/2-3" || id == "smooth/columns/0-1" {
			if err := m.finishWith(f, control.Outcome{Kind: control.Drained}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f, _ := m.grantTo("c"); m.holder[f] != "smooth/columns/2-3" {
		t.Errorf("worker c got %s", m.holder[f])
	}
}

// A member that is seen dead loses its lease within seconds; one that flaps, but
// renews in time, keeps it.
func TestDeadMembers(t *testing.T) {
	m := newModel(columnTasks(2))
	dead, _ := m.grantTo("dead")
	flaps, _ := m.grantTo("flaps")
	for range 60 {
		m.now = m.now.Add(time.Second)
		m.shorten(m.now, "flaps")
		if m.now.Sub(epoch) == 20*time.Second {
			m.shorten(m.now, "dead")
		}
		if m.now.Sub(epoch)%heartbeat(testTTL) == 0 {
			if err := m.renew(m.now, flaps, control.Progress{}); err != nil {
				t.Fatal(err)
			}
		}
		m.expireAll()
		_, open := m.holder[dead]
		if want := m.now.Sub(epoch) <= 25*time.Second; open != want {
			t.Fatalf("after %v the dead member's lease is open: %v", m.now.Sub(epoch), open)
		}
	}
}

// The work after the last commit, up to the last sign of life, is lost.
func TestLossIsSinceTheCheckpoint(t *testing.T) {
	m := newModel(columnTasks(1))
	f, _ := m.grantTo("w")
	for i := range int64(6) { // 10, 20 ... 60 s; a checkpoint is committed at 40 s
		m.now = m.now.Add(10 * time.Second)
		saved := int64(0)
		if i >= 3 {
			saved = 35
		}
		if i == 3 {
			m.do(event{Fact: committed, Fencing: f, At: m.now})
		}
		if err := m.renew(m.now, f, control.Progress{What: "hops", Done: 10 * (i + 1), Total: 100, Saved: saved, Unit: "hops"}); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.open[f].rate; got != 1 {
		t.Errorf("rate %v", got)
	}
	m.now = m.now.Add(testTTL + time.Second)
	m.expireAll()
	want := Loss{Task: "smooth/columns/0-1", Worker: "w", Reason: "no sign of life for 31 s", SecondsLost: 20, UnitsLost: 25, Unit: "hops"}
	if !slices.Equal(m.losses, []Loss{want}) {
		t.Errorf("losses %+v, want %+v", m.losses, want)
	}
}

// TestUnable gives a task to those that have not failed it for want of memory or
// disk, across restarts, and gives it up when nobody is left.
func TestUnable(t *testing.T) {
	m := newModel(columnTasks(2))
	lack := func(worker string) {
		t.Helper()
		f, ok := m.grantTo(worker)
		if !ok {
			t.Fatalf("nothing for %s", worker)
		}
		if err := m.finishWith(f, control.Outcome{Kind: control.Unable, Reason: "no space left on " + worker}); err != nil {
			t.Fatal(err)
		}
	}
	lack("small")
	lack("small")
	if err := m.restart(true); err != nil {
		t.Fatal(err)
	}
	if f, ok := m.grantTo("small"); ok {
		t.Fatalf("lease %d of a task that the worker cannot do", f)
	}
	if e, stuck := m.stuck([]string{"small", "large"}); stuck {
		t.Fatalf("given up with a worker left: %+v", e)
	}
	if e, stuck := m.stuck(nil); stuck {
		t.Fatalf("given up while nobody is there: %+v", e)
	}
	f, ok := m.grantTo("large")
	if !ok {
		t.Fatal("nothing for the large worker")
	}
	if err := m.finishWith(f, reported(1)); err != nil {
		t.Fatal(err)
	}
	lack("large")
	e, stuck := m.stuck([]string{"small", "large"})
	if !stuck || e.Task != "smooth/columns/1-2" {
		t.Fatalf("not given up: %+v", e)
	}
	m.do(e)
	if err := m.restart(true); err != nil {
		t.Fatal(err)
	}
	if err := m.failed.kind(); !errors.Is(err, control.ErrUnable) || !errors.Is(err, ErrTask) || !strings.Contains(m.failed.Reason, "no space left on large") {
		t.Errorf("given up with %+v: %v", m.failed, err)
	}
	if len(m.losses) != 3 {
		t.Errorf("losses %+v", m.losses)
	}
}

// TestUnableForThePhase spares a worker, and the run, the tasks that are like
// those it cannot do.
func TestUnableForThePhase(t *testing.T) {
	m := newModel(columnTasks(10))
	n := 0
	for ; ; n++ {
		f, ok := m.grantTo("small")
		if !ok {
			break
		}
		if err := m.finishWith(f, control.Outcome{Kind: control.Unable, Reason: "memory"}); err != nil {
			t.Fatal(err)
		}
	}
	if n != failureBudget {
		t.Errorf("%d tasks were tried", n)
	}
	m.do(event{Fact: phase, Stage: control.Smooth, Workers: 2, Tasks: []part{{Part: control.Rows, Last: 1}}})
	if _, ok := m.grantTo("small"); !ok {
		t.Error("nothing in the next phase")
	}
}

// TestLossOverARestart: what was saved when is known to the next coordinator.
func TestLossOverARestart(t *testing.T) {
	for _, compact := range []bool{false, true} {
		m := newModel(columnTasks(2))
		f, _ := m.grantTo("a")
		m.now = m.now.Add(10 * time.Second)
		m.do(event{Fact: committed, Fencing: f, At: m.now})
		m.now = m.now.Add(7 * time.Second)
		m.grantTo("b") // the last that is written down
		m.now = m.now.Add(time.Hour)
		if err := m.restart(compact); err != nil {
			t.Fatal(err)
		}
		m.replayed()
		m.now = m.now.Add(testTTL + time.Second)
		m.expireAll()
		if len(m.losses) != 2 || m.losses[0].SecondsLost != 7 || m.losses[1].SecondsLost != 0 {
			t.Errorf("losses %+v, want 7 s of a, 0 of b", m.losses)
		}
	}
}

// TestSnapshotHasTheWholeState begins with a snapshot of which every field is set, and writes the same snapshot.
func TestSnapshotHasTheWholeState(t *testing.T) {
	saved := time.Unix(1_700_000_000, 0)
	want := &state{
		Fencing: 9, Stage: control.Smooth, Catalog: 7, Discards: 2, Workers: 3, Earlier: []control.StageReport{{Stage: control.Smooth, Rows: 5}},
		Tasks: []taskState{
			{part: partOf(columnTasks(1)[0]), Losses: 2, LostWith: []string{"a", "b"}, Failures: 3, Unable: []string{"c"}},
			{part: partOf(columnTasks(2)[1]), Report: &control.StageReport{Stage: control.Smooth}},
		},
		Open:   []openLease{{"smooth/columns/0-1", "d", 8, saved, "address"}},
		Losses: []Loss{{Task: "smooth/columns/0-1", Worker: "a"}}, Failed: &givenUp{Task: "smooth/columns/0-1", Reason: "boom"},
		Broken: []int{4}, Breaks: map[int]int{4: 1}, Unfit: []string{"e"}, Strikes: map[string]int{"a": 2},
	}
	for v, i := reflect.ValueOf(*want), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("field %s is not set", v.Type().Field(i).Name)
		}
	}
	l := newLeases(testTTL)
	if err := l.restore(saved.Add(time.Hour), *want); err != nil {
		t.Fatal(err)
	}
	if got := l.state(); !reflect.DeepEqual(got, want) {
		t.Errorf("the state is %+v, want %+v", got, want)
	}
}

// TestTimeAhead takes a time ahead of the clock for now.
func TestTimeAhead(t *testing.T) {
	l, now := newLeases(testTTL), time.Unix(1_700_000_000, 0)
	for at, want := range map[time.Time]time.Time{now.Add(time.Hour): now, {}: now, now.Add(-time.Minute): now.Add(-time.Minute)} {
		if got := l.note(now, at); !got.Equal(want) {
			t.Errorf("%v is taken for %v, want %v", at, got, want)
		}
	}
	if !l.heard.Equal(now) {
		t.Errorf("heard last at %v", l.heard)
	}
}

func TestImpossibleEvents(t *testing.T) {
	for _, e := range []event{
		{Fact: "gossip"},
		{Fact: leased, Task: "smooth/columns/7-8", Fencing: 9},
		{Fact: leased, Task: "smooth/columns/0-1", Fencing: 1},
		{Fact: ended, Fencing: 7, Outcome: &control.Outcome{Kind: control.Drained}},
		{Fact: ended, Fencing: 1},
		{Fact: lost, Fencing: 1},
		{Fact: unable, Task: "smooth/columns/0-1"},
		{Fact: snapshot, State: &state{Fencing: 1, Open: []openLease{{Task: "lsi", Worker: "w", Fencing: 1}}}},
	} {
		m := newModel(columnTasks(2))
		m.grantTo("w")
		if err := m.apply(m.now, e); err == nil || !strings.Contains(err.Error(), "cannot") {
			t.Errorf("%+v: error %v", e, err)
		}
	}
}
