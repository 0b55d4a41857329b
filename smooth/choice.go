package smooth

import (
	"fmt"
	"io"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
)

// choice is the header of a stored choice. Nodes is its number of rows.
type choice struct {
	Of      string  `json:"of"`
	Nodes   int64   `json:"nodes"`
	Lasts   bool    `json:"lasts"`
	Settles bool    `json:"settles"`
	Sample  int64   `json:"sample"`
	Mean    float64 `json:"mean"`
	Trials  int     `json:"trials"`
}

// choiceOf names the part of the program that wrote a choice.
const choiceOf = "choice"

// mostSample bounds the rows of the sample that a header may claim.
const mostSample = 1 << 24

// Write writes a choice for n rows, as a state of package hops.
func (c *Choice) Write(w io.Writer, n int64) error {
	return c.write(w, n, c.Last != nil, func(put func(last []uint16) error) error { return put(c.Last.S) })
}

// WriteWith is Write with the last hops that lasts passes to put, in ascending order of row. If
// lasts is nil, it writes none.
func (c *Choice) WriteWith(w io.Writer, n int64, lasts func(put func(last []uint16) error) error) error {
	return c.write(w, n, lasts != nil, lasts)
}

func (c *Choice) write(w io.Writer, n int64, has bool, lasts func(put func(last []uint16) error) error) error {
	head := choice{
		Of: choiceOf, Nodes: n, Lasts: has, Settles: c.Settles, Sample: int64(len(c.Exact) / packed.PanelColumns),
		Mean: c.Mean, Trials: c.Trials,
	}
	out, err := hops.NewStateWriter(w, head)
	if err != nil {
		return err
	}
	if has {
		if err := lasts(func(last []uint16) error { return out.Put(mem.AsBytes(last)) }); err != nil {
			return err
		}
	}
	if err := out.Put(mem.AsBytes(c.Exact)); err != nil {
		return err
	}
	return out.Close()
}

// ReadChoice reads what Write wrote for n rows. It passes the last hops of rows first, first+1, …
// to lasts and does not keep them. If there are none, it does not call lasts.
func ReadChoice(r io.Reader, n int64, lasts func(first int64, last []uint16) error) (*Choice, error) {
	in, err := hops.NewStateReader(r)
	if err != nil {
		return nil, err
	}
	var head choice
	if err := in.Header(&head); err != nil {
		return nil, err
	}
	if head.Of != choiceOf || head.Nodes != n || head.Sample < 0 || head.Sample > mostSample {
		return nil, fmt.Errorf("the choice %+v cannot serve %d nodes: %w", head, n, hops.ErrState)
	}
	if head.Lasts {
		buf := make([]uint16, min(n, packed.StripRows))
		for first := int64(0); first < n; first += packed.StripRows {
			part := buf[:min(n-first, packed.StripRows)]
			if err := in.Fill(mem.AsBytes(part)); err != nil {
				return nil, err
			}
			if err := lasts(first, part); err != nil {
				return nil, err
			}
		}
	}
	c := &Choice{Settles: head.Settles, Mean: head.Mean, Trials: head.Trials}
	if head.Sample > 0 {
		c.Exact = make([]float32, head.Sample*packed.PanelColumns)
	}
	if err := in.Fill(mem.AsBytes(c.Exact)); err != nil {
		return nil, err
	}
	return c, in.End()
}
