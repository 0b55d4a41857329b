package hops

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ndls/group"
	"ndls/spmv"
)

var (
	// ErrStopped reports that work ended between two hops because Stop asked for it.
	ErrStopped = errors.New("stopped between two hops")
	// ErrState reports a state that cannot be resumed: it is damaged, or belongs to another version or other work.
	ErrState = errors.New("this state cannot be resumed")
)

// Checkpoints says when the state of column blocks is saved, and from which state work resumes. The zero value saves nothing and starts
// from hop 0.
type Checkpoints struct {
	// Identity is a digest of everything that determines the rows, beside the graph's sizes and the engine's options: edges, input columns,
	// components.
	Identity string
	// Due is called after each hop except the last, and reports whether to save now.
	Due func() bool
	// Stop is called at the same times. If it returns true, the state is saved and the work ends with ErrStopped.
	Stop func() bool
	// Save stores the state at a hop, which write writes. The engine waits until Save returns, and ends with its error.
	Save func(ctx context.Context, hop int, write func(io.Writer) error) error

	// From reads a state that Save stored, or is nil.
	From io.Reader
	// Resumed, if not nil, is called with the hop of From, or with the reason why work starts from hop 0 in spite of it. The reason wraps
	// ErrState unless reading From failed.
	Resumed func(hop int, why error)
}

// After saves and stops as c requires. An engine calls it after each hop except the last. If one worker of the group has to save, all save;
// if one has to stop, all stop.
func (g Graph) After(ctx context.Context, c Checkpoints, hop int, write func(io.Writer) error) error {
	const save, stop = 1, 2
	wish := 0
	if c.Stop != nil && c.Stop() {
		wish = stop
	} else if c.Due != nil && c.Due() {
		wish = save
	}
	wish, err := group.Max(ctx, g.Group, wish)
	if err != nil {
		return fmt.Errorf("hop %d: %w", hop, err)
	}
	if c.Save != nil && wish >= save {
		if err := c.Save(ctx, hop, write); err != nil {
			return fmt.Errorf("saving the state at hop %d: %w", hop, err)
		}
	}
	if wish == stop {
		return fmt.Errorf("hop %d: %w", hop, ErrStopped)
	}
	return nil
}

// Begin reads c.From, if not nil, and reports whether all workers of the group resume from their states. header returns the position of a
// state: first its hop, then everything else that must be equal on all workers. If every worker has a state of the same position, body
// loads it on all of them; body may exchange values. If any worker cannot load its state, Begin returns false on all workers, all start
// from hop 0, and the effects of header and body are void. An error comes from the exchange.
func (g Graph) Begin(ctx context.Context, c Checkpoints, header func(*StateReader) (position []int, err error),
	body func(*StateReader) error,
) (bool, error) {
	var r *StateReader
	var position []int
	var why error
	if c.From != nil {
		if r, why = NewStateReader(c.From); why == nil {
			position, why = header(r)
		}
		if why != nil {
			position = nil
		}
	}
	taken, err := group.Same(ctx, g.Group, position)
	if err == nil && taken {
		if why = body(r); why != nil {
			position = nil
		}
		taken, err = group.Same(ctx, g.Group, position)
	}
	if err != nil {
		return false, fmt.Errorf("resuming from states: %w", err)
	}
	if c.From != nil && c.Resumed != nil {
		hop := 0
		if taken {
			hop = position[0]
		} else if why == nil {
			why = fmt.Errorf("other workers have no state of the same hop: %w", ErrState)
		}
		c.Resumed(hop, why)
	}
	return taken, nil
}

// Origin describes what a state belongs to, as far as all engines have it in common.
type Origin struct {
	Engine    string `json:"engine"`
	Identity  string `json:"identity"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"`
	Precision string `json:"precision"`
	// Row is the first row of this worker, and All the number of rows of the graph. Both are 0 if this worker has all rows.
	Row int64 `json:"row,omitempty"`
	All int64 `json:"all,omitempty"`
}

// Origin returns the origin of a state of an engine.
func (g Graph) Origin(engine string, c Checkpoints, p spmv.Precision) Origin {
	o := Origin{Engine: engine, Identity: c.Identity, Nodes: g.Source.NumNodes(), Edges: NumEdges(g.Source), Precision: p.String()}
	if first, last, all := g.Group.Range(); last-first < all {
		o.Row, o.All = first, all
	}
	return o
}
