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
	// ErrState reports a state from which work cannot go on: it is damaged, of
	// another version, or of something else.
	ErrState = errors.New("no state to go on from")
)

// Checkpoints say when the state of column blocks is saved, and which one work
// goes on from. The zero value saves nothing and begins at the beginning.
type Checkpoints struct {
	// Identity stands for what decides on the rows and is not in the graph's
	// sizes and the engine's options: edges, input columns, components.
	Identity string
	// Due says, after each hop that another one follows, whether to save now.
	Due func() bool
	// Stop says, at the same times, whether to save and end with ErrStopped.
	Stop func() bool
	// Save keeps what write writes, the state at that hop. Work waits for it, and
	// ends with its error.
	Save func(ctx context.Context, hop int, write func(io.Writer) error) error

	// From is a state that Save was given, or nil.
	From io.Reader
	// Resumed, unless nil, is told the hop that From is of, or why work begins at
	// the beginning all the same; that wraps ErrState where it is not an error of
	// From itself.
	Resumed func(hop int, why error)
}

// After is called after each hop that another one follows. All workers of the group
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

// Begin reads c.From, if that is not nil, and says whether all workers of the group go
// on from their states. header reads where a state is: first its hop, then all else
// that must be the same for all workers. If every worker holds a state of the same
// place, body loads it on all of them; body may exchange values. If any worker cannot
// load its state, Begin returns false on all workers, and each has to set up everything
// anew. The error is that of the exchange.
func (g Graph) Begin(ctx context.Context, c Checkpoints, header func(*StateReader) (place []int, err error), body func(*StateReader) error) (bool, error) {
	var r *StateReader
	var place []int
	var why error
	if c.From != nil {
		if r, why = NewStateReader(c.From); why == nil {
			place, why = header(r)
		}
		if why != nil {
			place = nil
		}
	}
	taken, err := group.Same(ctx, g.Group, place)
	if err == nil && taken {
		if why = body(r); why != nil {
			place = nil
		}
		taken, err = group.Same(ctx, g.Group, place)
	}
	if err != nil {
		return false, fmt.Errorf("going on from states: %w", err)
	}
	if c.From != nil && c.Resumed != nil {
		hop := 0
		if taken {
			hop = place[0]
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
	// Row is the first row of a part, and All the rows of its graph; they are 0
	// where all rows are here.
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
