package smooth

import (
	"fmt"
	"io"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// choice is the header of a choice that is written.
type choice struct {
	Of      string  `json:"of"`
	Nodes   int64   `json:"nodes"`
	Lasts   bool    `json:"lasts"`
	Settles bool    `json:"settles"`
	Sample  int64   `json:"sample"`
	Mean    float64 `json:"mean"`
	Trials  int     `json:"trials"`
	Edges   int64   `json:"edges"`
}

// choiceOf names the program's part that wrote a choice.
const choiceOf = "choice"

// mostSample bounds the rows of the sample that a header may claim.
const mostSample = 1 << 24

// Write writes a choice for a graph of n nodes, as a state of package hops.
func (c *Choice) Write(w io.Writer, n int64) error {
	head := choice{
		Of: choiceOf, Nodes: n, Lasts: c.Last != nil, Settles: c.Settles, Sample: int64(len(c.Exact) / packed.PanelColumns),
		Mean: c.Mean, Trials: c.Trials, Edges: c.EdgesStreamed,
	}
	out, err := hops.NewStateWriter(w, head)
	if err != nil {
		return err
	}
	if c.Last != nil {
		if err := out.Put(mem.AsBytes(c.Last.S)); err != nil {
			return err
		}
	}
	if err := out.Put(mem.AsBytes(c.Exact)); err != nil {
		return err
	}
	return out.Close()
}

// ReadChoice reads what Write wrote. The caller frees the choice.
func ReadChoice(r io.Reader, b *mem.Budget, n int64) (_ *Choice, err error) {
	in, err := hops.NewStateReader(r)
	if err != nil {
		return nil, err
	}
	var head choice
	if err := in.Header(&head); err != nil {
		return nil, err
	}
	if head.Of != choiceOf || head.Nodes != n || head.Sample < 0 || head.Sample > mostSample {
		return nil, fmt.Errorf("a choice %+v for %d nodes: %w", head, n, hops.ErrState)
	}
	c := &Choice{Settles: head.Settles, Mean: head.Mean, Trials: head.Trials, Stats: hops.Stats{EdgesStreamed: head.Edges}}
	defer func() {
		if err != nil {
			c.Free()
		}
	}()
	if head.Lasts {
		if c.Last, err = mem.Alloc[uint16](b, n, "last hops of rows"); err != nil {
			return nil, err
		}
		if err := in.Fill(mem.AsBytes(c.Last.S)); err != nil {
			return nil, err
		}
	}
	if head.Sample > 0 {
		c.Exact = make([]float32, head.Sample*packed.PanelColumns)
	}
	if err := in.Fill(mem.AsBytes(c.Exact)); err != nil {
		return nil, err
	}
	return c, in.End()
}
