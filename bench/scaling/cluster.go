package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ndls/catalog"
	"ndls/coordinator"
	"ndls/internal/control"
	"ndls/internal/storage"
	"ndls/internal/storage/storagetest"
	"ndls/stage/registry"
)

// fate holds what happens to machines, and the settings of the coordinator.
type fate struct {
	lease, checkpoint time.Duration
	// slow is the standard deviation of the logarithm of a worker's slowness.
	slow float64
	// mtbf is the mean time between failures of a machine, 0 for never. replace is the time until
	// another one stands in.
	mtbf, replace time.Duration
	seed          uint64
}

// tally holds the cost of a phase. Seconds are of workers, except for wall.
type tally struct {
	stage control.Stage
	part  control.Part
	wall  float64
	// busy is all time with a task; of that died went down with machines, and
	// doubled was spent on what another attempt finished.
	busy, died, doubled float64
	// units that were to be done, that were done, and that came to nothing.
	planned         int
	done, lost      float64
	read, written   int64
	leases, records int
}

// add adds what tables show of another one.
func (t *tally) add(o tally) {
	t.wall += o.wall
	t.busy += o.busy
	t.died += o.died
	t.doubled += o.doubled
	t.read += o.read
	t.written += o.written
	t.leases += o.leases
	t.records += o.records
}

// cluster is a coordinator and its workers on a simulated clock.
type cluster struct {
	job
	fate
	svc   *coordinator.Scheduler
	store *counted
	plans map[string]string // hashes of the plan, by stage
	turn  chan struct{}     // held by the idle worker that asks for a task

	computing atomic.Int64 // workers that compute

	mu       sync.Mutex
	number   uint64 // of the phase
	phase    phase
	tasks    map[string]*task
	attempts []*attempt
	now      *tally
}

// task holds the rest of a task by its checkpoints.
type task struct {
	index, pieces int
	attempts      int
	saved         checkpoint
	file          string // of the checkpoint
}

// checkpoint is a state that an attempt saved after it had spent some seconds.
type checkpoint struct {
	units int
	by    *attempt
	spent float64
}

// attempt is one lease of a task.
type attempt struct {
	base  checkpoint // it goes on from
	spent float64
	done  float64 // units
	// counted and used are the parts of these that went into the result.
	counted, used float64
	died          bool
}

// counted is a store that counts records of the journal.
type counted struct {
	storage.Store
	records int
}

func (c *counted) CreateNew(ctx context.Context, name string) (storage.Writer, error) {
	c.records++
	return c.Store.CreateNew(ctx, name)
}

// simulate runs the phases of a job.
func simulate(j job, f fate) (tallies []tally, err error) {
	// A bubble of time needs a test that it belongs to; this one is none.
	synctest.Test(new(testing.T), func(*testing.T) { tallies, err = run(j, f) })
	return tallies, err
}

func run(j job, f fate) ([]tally, error) {
	ctx := context.Background()
	c := &cluster{job: j, fate: f, store: &counted{Store: storagetest.NewMem()}, turn: make(chan struct{}, 1)}
	journal, err := coordinator.OpenJournal(ctx, c.store)
	if err != nil {
		return nil, err
	}
	cat, err := catalog.Open(ctx, c.store)
	if err != nil {
		return nil, err
	}
	c.plans = registry.Hashes(j.plan)
	c.svc, err = coordinator.NewScheduler(ctx, journal, cat, j.plan, coordinator.Options{
		Version: version, Lease: f.lease, Checkpoint: f.checkpoint, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	var workers sync.WaitGroup
	for i := range j.workers {
		workers.Go(func() { c.place(i) })
	}
	defer workers.Wait()
	defer c.svc.End(ctx)
	synctest.Wait()
	var all []tally
	for _, p := range j.phases() {
		t, err := c.do(ctx, p)
		if err != nil {
			return all, err
		}
		all = append(all, t)
	}
	return all, nil
}

const version = "simulated"

// do has the coordinator see to a phase.
func (c *cluster) do(ctx context.Context, p phase) (tally, error) {
	t := tally{stage: p.stage, part: p.part}
	c.mu.Lock()
	c.number++
	c.phase, c.tasks, c.attempts, c.now = p, map[string]*task{}, nil, &t
	var tasks []control.Task
	first := 0
	for i, pieces := range p.tasks {
		x := control.Task{Stage: p.stage, Part: p.part, First: first, Last: first + pieces}
		if p.part == control.Whole {
			x.Last = 0
		}
		first += pieces
		tasks = append(tasks, x)
		c.tasks[x.ID()] = &task{index: i, pieces: pieces}
		t.planned += pieces * p.piece.units
	}
	c.mu.Unlock()
	begun, records := time.Now(), c.store.records
	if _, err := c.svc.Run(ctx, tasks); err != nil {
		return t, err
	}
	t.wall = time.Since(begun).Seconds()
	// Those that were late learn it when they renew.
	time.Sleep(c.lease)
	synctest.Wait()
	t.records = c.store.records - records
	t.leases = len(c.attempts)
	for _, a := range c.attempts {
		t.busy += a.spent
		t.done += a.done
		t.lost += a.done - a.used
		if a.died {
			t.died += a.spent - a.counted
		} else {
			t.doubled += a.spent - a.counted
		}
	}
	return t, nil
}

// place runs one machine after the other as a worker.
func (c *cluster) place(i int) {
	// No two workers do something at the same instant, nor with the coordinator.
	time.Sleep(time.Duration(i+1) * time.Microsecond)
	for turn := 0; ; turn++ {
		w := &worker{cluster: c, name: fmt.Sprintf("%d.%d", i, turn), late: time.Duration(i+1) * time.Microsecond}
		if w.join() != nil {
			return
		}
		if !w.serve() {
			return
		}
		time.Sleep(c.replace)
	}
}

// worker is a machine.
type worker struct {
	*cluster
	name string
	warm bool // it has a copy of the graph
	late time.Duration
}

func (w *worker) join() error {
	_, err := w.svc.Join(context.Background(), control.Hello{Worker: w.name, Version: version})
	return err
}

// serve takes tasks until the run has ended, or the machine dies, which it reports.
func (w *worker) serve() (died bool) {
	for {
		w.turn <- struct{}{}
		l, err := w.svc.Next(context.Background(), w.name)
		<-w.turn
		if errors.Is(err, control.ErrRefused) && w.join() == nil {
			continue // it waited so long for its turn that it was forgotten
		}
		if err != nil {
			return false
		}
		time.Sleep(w.late) // so that it does not renew when the coordinator looks at leases
		if w.work(l) {
			return true
		}
	}
}

// work is one attempt at a task. It ends when the task, the lease or the machine does.
func (w *worker) work(l control.Lease) (died bool) {
	id := l.Task.ID()
	w.mu.Lock()
	t, p := w.tasks[id], w.phase
	a := &attempt{base: t.saved}
	w.attempts = append(w.attempts, a)
	draw := rand.New(rand.NewPCG(w.seed, w.number<<32|uint64(t.index)<<16|uint64(t.attempts)))
	t.attempts++
	w.mu.Unlock()
	r := &running{worker: w, attempt: a, task: t, phase: p, lease: l, slowness: math.Exp(w.slow * draw.NormFloat64()), begun: time.Now()}
	r.renewal, r.dies = r.begun.Add(l.TTL/3), time.Time{}
	if w.mtbf > 0 {
		r.dies = r.begun.Add(time.Duration(draw.ExpFloat64() * float64(w.mtbf)))
	}
	if r.execute() {
		o := control.Outcome{Report: &control.StageReport{Stage: p.stage, Seconds: time.Since(r.begun).Seconds()}}
		if w.svc.Finish(context.Background(), l.Fencing, o) == nil {
			w.settle(a, t)
		}
	}
	return a.died
}

// settle counts what went into the result: an attempt, and those whose checkpoints
// it and they went on from, up to there.
func (c *cluster) settle(a *attempt, t *task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	end := checkpoint{t.pieces * c.phase.piece.units, a, a.spent}
	for ; end.by != nil; end = end.by.base {
		end.by.counted, end.by.used = end.spent, float64(end.units-end.by.base.units)
	}
}
