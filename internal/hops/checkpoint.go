package hops

import (
	"context"
	"errors"
	"fmt"
	"io"

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

// After is called after each hop that another one follows.
func (c Checkpoints) After(ctx context.Context, hop int, write func(io.Writer) error) error {
	stop := c.Stop != nil && c.Stop()
	if c.Save != nil && (stop || c.Due != nil && c.Due()) {
		if err := c.Save(ctx, hop, write); err != nil {
			return fmt.Errorf("hops: saving the state at hop %d: %w", hop, err)
		}
	}
	if stop {
		return fmt.Errorf("hops: hop %d: %w", hop, ErrStopped)
	}
	return nil
}

// Begin lets read take in From, if there is one, and says whether it did. Where it
// failed everything has to be set up anew.
func (c Checkpoints) Begin(read func(*StateReader) (hop int, err error)) bool {
	if c.From == nil {
		return false
	}
	hop, err := 0, error(nil)
	r, err := NewStateReader(c.From)
	if err == nil {
		hop, err = read(r)
	}
	if c.Resumed != nil {
		c.Resumed(hop, err)
	}
	return err == nil
}

// Origin says what a state is of, as far as all engines have it in common.
type Origin struct {
	Engine    string `json:"engine"`
	Identity  string `json:"identity"`
	Nodes     int64  `json:"nodes"`
	Edges     int64  `json:"edges"`
	Precision string `json:"precision"`
}

// Origin is that of a state of an engine.
func (g Graph) Origin(engine string, c Checkpoints, p spmv.Precision) Origin {
	return Origin{engine, c.Identity, g.Source.NumNodes(), NumEdges(g.Source), p.String()}
}
