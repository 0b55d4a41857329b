package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ndls/group"
	"ndls/group/remote"
	"ndls/hops"
	"ndls/internal/control"
	"ndls/internal/control/blocks"
	"ndls/internal/packed"
	"ndls/spmv"
)

// leaveTime bounds how long a worker that is done waits for others to have heard it.
const leaveTime = 10 * time.Second

// errBroken marks work that another worker of the gang has ended.
var errBroken = errors.New("the gang is broken")

// Blocks is how a worker gives rows to others, and gets theirs.
type Blocks struct {
	// Registry answers the requests of other workers, which come to Wire.
	Registry *remote.Registry
	Wire     *blocks.Wire
	// Dial reaches the server of another worker.
	Dial func(address string) (*blocks.Client, error)
}

// errAlone is why a worker that has no Blocks cannot share rows.
var errAlone = errors.New("this worker does not share rows with others")

// gangs is what a worker needs to be in gangs.
type gangs struct {
	Blocks
	// gather waits for the gang of the present lease.
	gather  func(context.Context) (control.Gang, error)
	clients map[string]*blocks.Client
}

// noGangs are those of a worker that has no Blocks.
func noGangs() *gangs {
	return &gangs{gather: func(context.Context) (control.Gang, error) { return control.Gang{}, errAlone }}
}

func (g *gangs) close() {
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
	if j.task.Part != control.Strips {
		return 0, n
	}
	return min(int64(j.task.First)*packed.StripRows, n), min(int64(j.task.Last)*packed.StripRows, n)
}

// inGang takes the place of the task among those that share n rows, and works there.
// All members have committed what they made when it returns without an error.
func (j *job) inGang(ctx context.Context, n int64, work func(context.Context) error) error {
	g, err := j.gangs.gather(ctx)
	if errors.Is(err, errAlone) {
		return j.noPart()
	}
	if err != nil {
		return err
	}
	m, err := j.enter(g, n)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { m.Close(context.Cause(ctx)) })()
	before := j.gangs.Wire.Bytes()
	defer func() {
		j.group = group.Solo(n)
		j.report.NetworkBytes += j.gangs.Wire.Bytes() - before
		if g.Self > 0 {
			j.report.Passes = 0 // all members make the same
		}
	}()
	j.group = m
	if err = work(ctx); err == nil {
		err = group.Barrier(ctx, m)
	}
	if err != nil && !errors.Is(err, hops.ErrStopped) {
		m.Close(err)
		return broken(err)
	}
	leaving, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	// A worker that is told to stop has already had the others save. One that misses
	// the last values of this worker tries again, and finds that all is done.
	_ = m.Leave(leaving)
	return broken(err)
}

// enter makes the worker a member of the gang.
func (j *job) enter(g control.Gang, n int64) (*remote.Member, error) {
	o := remote.Options{Plan: j.plan.Hash(), Name: control.Stage(fmt.Sprintf("%s/%d", j.task.Stage, g.Number)), Self: g.Self}
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
	m, err := remote.New(o)
	if err != nil {
		return nil, fmt.Errorf("worker: %s: %w", j.task.ID(), err)
	}
	j.gangs.Registry.Enter(m)
	return m, nil
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

// agree is c for as many columns as all members have the memory for. Each wants as many
// as leave its rows in memory, or the least, and all take the smallest number.
func (j *job) agree(ctx context.Context, c hops.Capacity, plan func(hops.Capacity) (spmv.Layout, error)) (hops.Capacity, error) {
	if c.Others == 0 {
		return c, nil
	}
	c = c.Agreed(packed.Panels(c.Columns) * packed.PanelColumns)
	if j.res.BlockColumns > 0 {
		c.Asked = min(c.Asked, max(j.res.BlockColumns/packed.PanelColumns, 1)*packed.PanelColumns)
	}
	for ; c.Asked > packed.PanelColumns; c.Asked -= packed.PanelColumns {
		if l, err := plan(c); err == nil && l.Residency == spmv.Resident {
			break
		}
	}
	columns, err := group.Min(ctx, j.group, c.Asked)
	return c.Agreed(columns), err
}
