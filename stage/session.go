package stage

import (
	"context"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/shards"
	"ndls/smooth"
)

// session holds what a [Session] keeps open.
type session struct {
	opened  *graph
	rows    *smooth.Targets
	inputID *mem.Array[uint32]
	truth   *labelled
	counter *counter
	k       *mem.Array[uint16]
	kOf     int
	limit   *limits
}

// Release closes and frees everything; later calls open it again.
func (x *Session) Release() {
	if x.opened != nil {
		x.opened.close()
	}
	if x.rows != nil {
		x.rows.Free()
	}
	x.inputID.Free()
	if x.truth != nil {
		x.truth.free()
	}
	x.counter.free(x.Budget)
	x.k.Free()
	if x.limit != nil {
		x.limit.free()
	}
	x.session = session{}
}

// Close releases everything and ends the budget.
func (x *Session) Close() {
	x.Release()
	x.Budget.Close()
}

// graph opens the stored graph, in the first direction of hops, unless it is open.
func (env *Env) graph(ctx context.Context) (engine, error) {
	return env.graphOf(ctx, env.Plan.Directions()[0])
}

// graphOf opens the stored graph for hops in a direction, unless it is open.
func (env *Env) graphOf(ctx context.Context, direction string) (_ engine, err error) {
	if env.opened != nil && (env.opened.direction != direction || env.opened.stream == nil) {
		env.opened.close()
		env.opened = nil
	}
	if env.opened == nil {
		if env.opened, err = env.openGraph(ctx, direction); err != nil {
			return engine{}, err
		}
	} else if err := env.opened.follow(ctx, env); err != nil {
		env.opened.close()
		env.opened = nil
		return engine{}, err
	}
	if !env.Task.Shares() {
		env.Group = group.Solo(env.opened.summary.Nodes)
	} else if err := env.opened.list(ctx, env); err != nil {
		return engine{}, err
	}
	return engine{env, env.opened}, nil
}

// targets returns the rows of smoothed features that the plan asks for.
func (env *Env) targets(ctx context.Context, s shards.Summary) (_ *smooth.Targets, err error) {
	if env.rows == nil {
		env.rows, err = env.targetRows().findTargets(ctx, s)
	}
	return env.rows, err
}

// limitsOf returns the stationary rows of the features.
func (env *Env) limitsOf(ctx context.Context, t *smooth.Targets) (_ *limits, err error) {
	if env.limit == nil {
		env.limit, err = env.findLimits(ctx, t)
	}
	return env.limit, err
}

// targetIDs returns the input id of each target, in order of node.
func (env *Env) targetIDs(ctx context.Context, s shards.Summary, t *smooth.Targets) (_ *mem.Array[uint32], err error) {
	if env.inputID == nil {
		env.inputID, err = env.targetRows().readTargetIDs(ctx, s, t)
	}
	return env.inputID, err
}

// table returns the number of hops of each node. It calls find unless the table with the key of is held already.
func (env *Env) table(of int, find func() (*mem.Array[uint16], error)) ([]uint16, error) {
	if env.k != nil && env.kOf == of {
		return env.k.S, nil
	}
	env.k.Free()
	env.k = nil
	k, err := find()
	if err != nil {
		return nil, err
	}
	env.k, env.kOf = k, of
	return k.S, nil
}
