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
	"ndls/stage"
)

// leaveTime bounds the time that a worker waits, after its work, for others to confirm it.
const leaveTime = 10 * time.Second

// errBroken marks work that another worker of the gang has ended.
var errBroken = errors.New("the gang is broken")

// Blocks holds the means by which a worker sends rows to others and reads theirs.
type Blocks struct {
	// Registry answers the requests of other workers, which come to Wire.
	Registry *remote.Registry
	Wire     *blocks.Wire
	// Dial reaches the server of another worker.
	Dial func(address string) (*blocks.Client, error)
}

// errAlone reports that a worker without Blocks cannot share rows.
var errAlone = errors.New("this worker does not share rows with others")

// gangs holds what a worker needs to be in gangs.
type gangs struct {
	Blocks
	// gather waits for the gang of the present lease.
	gather  func(context.Context) (control.Gang, error)
	clients map[string]*blocks.Client
}

// noGangs returns the gangs of a worker without Blocks.
func noGangs() *gangs {
	return &gangs{gather: func(context.Context) (control.Gang, error) { return control.Gang{}, errAlone }}
}

func (g *gangs) close() {
	for _, c := range g.clients {
		_ = c.Close()
	}
	clear(g.clients)
}

// reach returns clients of all members but this one.
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

// peers holds the workers that share the rows of a task's graph.
type peers struct {
	*stage.Env
	gangs *gangs
}

// Work implements stage.Peers.
func (p peers) Work(ctx context.Context, n int64, work func(context.Context) error) error {
	g, err := p.gangs.gather(ctx)
	if errors.Is(err, errAlone) {
		return p.NoPart()
	}
	if err != nil {
		return err
	}
	m, err := p.enter(g, n)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { m.Close(context.Cause(ctx)) })()
	before := p.gangs.Wire.Bytes()
	defer func() {
		p.Group = group.Solo(n)
		p.Report.NetworkBytes += p.gangs.Wire.Bytes() - before
		if g.Self > 0 {
			p.Report.Passes = 0 // all members make the same passes
		}
	}()
	p.Group = m
	if err = work(ctx); err == nil {
		err = group.Barrier(ctx, m)
	}
	if err != nil && !errors.Is(err, hops.ErrStopped) {
		m.Close(err)
		return broken(err)
	}
	leaving, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	// A worker that is told to stop has already made the others save. A member that misses the last
	// values of this worker tries again, and finds that all is done.
	_ = m.Leave(leaving)
	return broken(err)
}

// enter makes the worker a member of the gang.
func (p peers) enter(g control.Gang, n int64) (*remote.Member, error) {
	o := remote.Options{Plan: p.Plan.Hash(), Name: control.Stage(fmt.Sprintf("%s/%d", p.Task.Stage, g.Number)), Self: g.Self}
	for _, strip := range g.Borders {
		o.Borders = append(o.Borders, min(int64(strip)*packed.StripRows, n))
	}
	lo, hi := p.Span(n)
	if g.Self < 0 || g.Self+1 >= len(o.Borders) || o.Borders[g.Self] != lo || o.Borders[g.Self+1] != hi || o.Borders[len(o.Borders)-1] != n {
		return nil, fmt.Errorf("%s is not a task of the gang with strips %v", p.Task.ID(), g.Borders)
	}
	var err error
	if o.Peers, err = p.gangs.reach(g); err != nil {
		return nil, err
	}
	m, err := remote.New(o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Task.ID(), err)
	}
	p.gangs.Registry.Enter(m)
	return m, nil
}

// broken marks errors that concern other workers alone.
func broken(err error) error {
	for _, theirs := range []error{blocks.ErrRetry, blocks.ErrPast, blocks.ErrNotHeld, hops.ErrStopped} {
		if errors.Is(err, theirs) {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	return err
}
