package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/packed"
	"ndls/ring"
	"ndls/spmv"
)

// leaveTime bounds how long a worker that is done waits for others to have heard it.
const leaveTime = 10 * time.Second

// errBroken marks work that another worker of the gang has ended.
var errBroken = errors.New("the gang is broken")

// Blocks is how a worker gives rows to others, and gets theirs.
type Blocks struct {
	// Hall is what the worker's server gives out, Wire what that listens on.
	Hall *ring.Hall
	Wire *blocks.Wire
	// Dial reaches the server of another worker.
	Dial func(address string) (*blocks.Client, error)
}

// gangs is what a worker needs to be in gangs.
type gangs struct {
	Blocks
	// gather waits for the gang of the present lease.
	gather  func(context.Context) (control.Gang, error)
	clients map[string]*blocks.Client
}

func (g *gangs) close() {
	if g == nil {
		return
	}
	for _, c := range g.clients {
		_ = c.Close()
	}
	clear(g.clients)
}

// reach gives clients of all members but this one.
func (g *gangs) reach(of control.Gang) (peers []*blocks.Client, err error) {
	for w, address := range of.Peers {
		c := g.clients[address]
		if c == nil && w != of.Self {
			if c, err = g.Dial(address); err != nil {
				return nil, err
			}
			g.clients[address] = c
		}
		peers = append(peers, c)
	}
	return peers, nil
}

// span is the rows of a graph of n that the task is about.
func (j *job) span(n int64) (lo, hi int64) {
	if j.task.Part != control.Intervals {
		return 0, n
	}
	return min(int64(j.task.First)*packed.StripRows, n), min(int64(j.task.Last)*packed.StripRows, n)
}

// inGang takes the place of the task among those that share n rows, and works there.
// All members have committed what they made when it returns without an error.
func (j *job) inGang(ctx context.Context, n int64, work func(context.Context) error) error {
	if j.gangs == nil {
		return j.noPart()
	}
	g, err := j.gangs.gather(ctx)
	if err != nil {
		return err
	}
	r, err := j.enter(ctx, g, n)
	if err != nil {
		return err
	}
	before := j.gangs.Wire.Bytes()
	defer func() {
		j.ring = nil
		j.report.NetworkBytes += j.gangs.Wire.Bytes() - before
		if g.Self > 0 {
			j.report.Passes = 0 // all members make the same
		}
	}()
	j.ring = r
	if err = work(ctx); err == nil {
		_, err = r.Gather([]float64{0})
	}
	if err != nil && !errors.Is(err, hops.ErrStopped) {
		r.Close(err)
		return broken(err)
	}
	leaving, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	// Who is told to stop has told the others to save. Who has not heard that this
	// worker is done finds all done when it tries again.
	_ = r.Leave(leaving)
	return broken(err)
}

// enter makes the worker's ring.
func (j *job) enter(ctx context.Context, g control.Gang, n int64) (*ring.Ring, error) {
	o := ring.Options{Plan: j.plan.Hash(), Gang: control.Stage(fmt.Sprintf("%s/%d", j.task.Stage, g.Number)), Self: g.Self}
	for _, strip := range g.Borders {
		o.Borders = append(o.Borders, min(int64(strip)*packed.StripRows, n))
	}
	lo, hi := j.span(n)
	if g.Self < 0 || g.Self+1 >= len(o.Borders) || o.Borders[g.Self] != lo || o.Borders[g.Self+1] != hi || o.Borders[len(o.Borders)-1] != n {
		return nil, fmt.Errorf("worker: %s is no place in the gang of strips %v", j.task.ID(), g.Borders)
	}
	var err error
	if o.Peers, err = j.gangs.reach(g); err != nil {
		return nil, err
	}
	r, err := ring.New(ctx, o)
	if err != nil {
		return nil, err
	}
	j.gangs.Hall.Enter(r)
	return r, nil
}

// broken marks errors that say something of other workers alone.
func broken(err error) error {
	for _, theirs := range []error{blocks.ErrRetry, blocks.ErrPast, blocks.ErrNotHeld, hops.ErrStopped} {
		if errors.Is(err, theirs) {
			return fmt.Errorf("worker: %w: %w", errBroken, err)
		}
	}
	return err
}

// least is the smallest x of all members.
func (j *job) least(x int) (int, error) {
	if j.ring == nil {
		return x, nil
	}
	all, err := j.ring.Gather([]float64{float64(x)})
	for _, other := range all {
		x = min(x, int(other[0]))
	}
	return x, err
}

// agree is r for as many columns as all members have room for: each for as many as
// leave its rows in memory, or for the least.
func (j *job) agree(r hops.Room, plan func(hops.Room) (spmv.Layout, error)) (hops.Room, error) {
	if j.ring == nil {
		return r, nil
	}
	r = r.Agreed((r.Columns + spmv.Granule - 1) / spmv.Granule * spmv.Granule)
	if j.res.BlockColumns > 0 {
		r.Asked = min(r.Asked, max(j.res.BlockColumns/spmv.Granule, 1)*spmv.Granule)
	}
	for ; r.Asked > spmv.Granule; r.Asked -= spmv.Granule {
		if l, err := plan(r); err == nil && l.Place == spmv.Resident {
			break
		}
	}
	columns, err := j.least(r.Asked)
	return r.Agreed(columns), err
}
