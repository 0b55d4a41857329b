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
	// ErrStopped reports that work ended between two hops because it was told to.
	ErrStopped = errors.New("stopped between two hops")
	// ErrState reports a state that cannot be resumed: it is damaged, of another
	// version, or of other work.
	ErrState = errors.New("this state cannot be resumed")
)

// Checkpoints say when the state of column blocks is saved, and which state work
// resumes from. The zero value saves nothing and starts from hop 0.
type Checkpoints struct {
	// Identity is a digest of all that determines the rows, beside the graph's sizes
	// and the engine's options: edges, input columns, components.
	Identity string
	// Due is asked after each hop but the last, and says whether to save now.
	Due func() bool
	// Stop is asked at the same times. If it returns true the state is saved and the
	// work ends with ErrStopped.
	Stop func() bool
	// Save stores what write writes, the state at that hop. The engine waits until
	// Save returns, and ends with its error.
	Save func(ctx context.Context, hop int, write func(io.Writer) error) error

	// From is a state that Save was given, or nil.
	From io.Reader
	// Resumed, if it is not nil, is called with the hop of From, or with the reason
	// why work starts from hop 0 in spite of it. The reason wraps ErrState unless it is
	// an error of reading From.
	Resumed func(hop int, why error)
}

// After saves and stops as c asks. An engine calls it after each hop but the last. All workers of the group
// save if one of them has to, and all stop if one of them has to.
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

// Begin reads c.From, if that is not nil, and says whether all workers of the group
// resume from their states. header returns the position of a state: first its hop, then
// all else that must be the same for all workers. If every worker holds a state of the
// same position, body loads it on all of them; body may exchange values. If any worker
// cannot load its state, Begin returns false on all workers, and all start from hop 0:
// what header and body did is then void. The error is that of the exchange.
func (g Graph) Begin(ctx context.Context, c Checkpoints, header func(*StateReader) (position []int, err error), body func(*StateReader) error) (bool, error) {
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

// Origin says what a state is of, as far as all engines have it in common.
type Origin struct {
	Engine    string `json:"engine"`
	Identity  string `json:"identity"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"`
	Precision string `json:"precision"`
	// Row is the first row of this worker, and All the number of rows of the graph.
	// Both are 0 if this worker has all rows.
	Row int64 `json:"row,omitempty"`
	All int64 `json:"all,omitempty"`
}

// Origin is that of a state of an engine.
func (g Graph) Origin(engine string, c Checkpoints, p spmv.Precision) Origin {
	o := Origin{Engine: engine, Identity: c.Identity, Nodes: g.Source.NumNodes(), Edges: NumEdges(g.Source), Precision: p.String()}
	if first, last, all := g.Group.Range(); last-first < all {
		o.Row, o.All = first, all
	}
	return o
}
