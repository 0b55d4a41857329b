package main

import (
	"context"
	"fmt"
	"time"

	"ndls/catalog"
	"ndls/internal/control"
)

// running is an attempt while it runs.
type running struct {
	*worker
	*attempt
	task     *task
	phase    phase
	lease    control.Lease
	slowness float64
	begun    time.Time
	renewal  time.Time
	dies     time.Time // zero: never
	saved    int
}

// execute does what is left of a task, and reports whether it came to the end.
func (r *running) execute() bool {
	p := r.phase
	p.piece = p.of(r.task.index)
	rate := r.rate(len(p.tasks))
	at := r.base.units
	r.saved = at
	if !r.spend(p.beside) || !r.compute(p.asks) || !r.move(p.open.read, 0, rate) || !r.warm && !r.move(p.cold.read, 0, rate) {
		return false
	}
	r.warm = r.warm || p.cold.read > 0
	for units := p.piece.units; at < r.task.pieces*units; {
		if !r.move(p.piece.read, 0, rate) {
			return false
		}
		saves := time.Now().Add(duration(p.between(rate, r.checkpoint.Seconds())))
		for left := units - at%units; left > 0; left-- {
			if !r.unit(p.piece) {
				return false
			}
			at++
			due := p.piece.state > 0 && left > 1 && !time.Now().Before(saves)
			if due && !(r.spend(p.save(rate)) && r.save(at)) {
				return false
			}
			if due {
				r.count(0, p.piece.state)
				saves = time.Now().Add(duration(p.between(rate, r.checkpoint.Seconds())))
			}
		}
		if !r.move(0, p.piece.written, rate) || !r.commit(at) {
			return false
		}
	}
	return r.empty(rate)
}

// empty does the pieces of a task that has no units.
func (r *running) empty(rate float64) bool {
	if r.phase.piece.units > 0 {
		return true
	}
	for i := range r.task.pieces {
		piece := r.phase.of(r.task.index)
		if !r.move(piece.read, piece.written, rate) || !r.commit(i) {
			return false
		}
	}
	return true
}

// move takes bytes from the store or brings them there.
func (r *running) move(read, written int64, rate float64) bool {
	r.count(read, written)
	return r.spend(seconds(read+written, rate))
}

func (r *running) count(read, written int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.read += read
	r.now.written += written
}

// unit computes, while rows of others arrive, and then waits for them.
func (r *running) unit(w work) bool {
	takes := r.takesUnit(w) * r.slowness
	if takes == 0 {
		r.done++
		return true
	}
	before := r.spent
	ok := r.compute(r.computes(w)*r.slowness) && r.spend(max(takes-w.waits*r.slowness-(r.spent-before), 0)) && r.spend(w.waits*r.slowness)
	r.done += min((r.spent-before)/takes, 1)
	return ok
}

// quantum is the time that workers compute before they count how many share the cores.
const quantum = 0.05

// compute is spend for work that takes a core. Workers that are more than the cores of their
// machine share them.
func (r *running) compute(left float64) bool {
	if r.cores == 0 {
		return r.spend(left)
	}
	r.computing.Add(1)
	defer r.computing.Add(-1)
	for left > 0 {
		slower := max(float64(r.computing.Load())/float64(r.cores), 1)
		step := min(left*slower, quantum)
		if !r.spend(step) {
			return false
		}
		left -= step / slower
		if left < 1e-9 {
			break
		}
	}
	return true
}

// spend lets time pass, in which the lease is renewed. It reports whether machine and
// lease are still there.
func (r *running) spend(s float64) bool {
	for end := time.Now().Add(duration(s)); ; {
		next := end
		if r.renewal.Before(next) {
			next = r.renewal
		}
		if !r.dies.IsZero() && r.dies.Before(next) {
			next, r.died = r.dies, true
		}
		wait := time.Until(next)
		time.Sleep(wait)
		r.spent += wait.Seconds()
		switch {
		case r.died:
			return false
		case next.Equal(end):
			return true
		}
		r.renewal = next.Add(r.lease.TTL / 3)
		p := control.Progress{What: "hops", Unit: "hops", Done: int64(r.base.units) + int64(r.done), Saved: int64(r.saved)}
		p.Left = r.left()
		if r.svc.Renew(context.Background(), r.lease.Fencing, p) != nil {
			return false
		}
	}
}

// left returns the time that the task still needs, by the work done so far, 0 if none was done.
func (r *running) left() float64 {
	total := float64(r.task.pieces * r.phase.piece.units)
	if r.done == 0 {
		return 0
	}
	return r.spent * (total - float64(r.base.units) - r.done) / r.done
}

func duration(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// save commits a checkpoint, from which other attempts go on, in place of the last.
func (r *running) save(units int) bool {
	path := fmt.Sprintf("checkpoints/%s/hop-%d-%x", r.lease.Task.ID(), units, r.lease.Fencing)
	change := control.Change{Added: []catalog.Entry{r.entry(catalog.Entry{Kind: catalog.KindCheckpoint, Path: path, Bytes: r.phase.piece.state, Interval: catalog.NotApplicable})}, Delete: true}
	r.mu.Lock()
	if r.task.file != "" {
		change.Removed = []string{r.task.file}
	}
	r.mu.Unlock()
	if r.svc.Commit(context.Background(), r.lease.Fencing, change) != nil {
		return false
	}
	r.note(units, path)
	return true
}

// entry names the stage and the plan that a file is of.
func (r *running) entry(e catalog.Entry) catalog.Entry {
	e.Stage = string(r.phase.stage)
	e.Plan = r.plans[e.Stage]
	return e
}

// commit lists the files of a piece that is done.
func (r *running) commit(at int) bool {
	var change control.Change
	for i := range r.phase.piece.files {
		path := fmt.Sprintf("smoothed/tiles/tile-%05d-%05d.f32", at, i)
		change.Added = append(change.Added, r.entry(catalog.Entry{Kind: catalog.KindSmoothedTile, Path: path, Interval: int32(i)}))
	}
	if r.svc.Commit(context.Background(), r.lease.Fencing, change) != nil {
		return false
	}
	if r.phase.piece.state > 0 {
		r.note(at, "")
	}
	return true
}

// note makes a state the one to go on from, if it is the furthest. A piece that is done
// needs no file for that.
func (r *running) note(units int, file string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.saved = units
	if file != "" {
		r.task.file = file
	}
	if units > r.task.saved.units {
		r.task.saved = checkpoint{units, r.attempt, r.spent}
	}
}
