package smooth

import (
	"fmt"
	"hash/crc32"
	"io"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
)

// state is the header of a state: its subject and its progress.
type state struct {
	hops.Origin
	// Counted is a checksum of the weights by hop and row.
	Counted uint32 `json:"counted"`
	Targets int64  `json:"targets"`
	First   int    `json:"first"`
	Last    int    `json:"last"`
	Hop     int    `json:"hop"`
	// Degree is the number of passes of a recurrence, whose state also has the rows one pass earlier.
	Degree int `json:"degree,omitempty"`
	// Plain is the number of hops before it, whose states have no earlier rows.
	Plain int `json:"plain,omitempty"`
	// Kept is the last hop whose rows are kept: rows of targets are computed up to it.
	Kept int `json:"kept,omitempty"`
}

// saving saves the state of a smoother and reads it back.
type saving struct{ *Smoother }

func (s *Smoother) saving() saving { return saving{s} }

// state returns the header for panels [first, last) at hop 0.
func (s saving) state(first, last int, c hops.Checkpoints) state {
	degree := 0
	if s.ends != nil {
		degree = s.hops
	}
	return state{
		Degree: degree, Plain: s.plain, Origin: s.g.Origin("smooth", c, s.o.Layout.Precision),
		Counted: s.counted(), Targets: s.o.Targets.Len(), First: first, Last: last, Kept: s.o.kept(),
	}
}

func (s *Smoother) counted() uint32 {
	sum := crc32.Update(0, seal.Castagnoli, mem.AsBytes(s.counts.S))
	if !s.o.Targets.All() {
		sum = crc32.Update(sum, seal.Castagnoli, mem.AsBytes(s.o.Targets.set.S))
	}
	sum = crc32.Update(sum, seal.Castagnoli, mem.AsBytes(s.ends))
	sum = crc32.Update(sum, seal.Castagnoli, mem.AsBytes(s.weights))
	return crc32.Update(sum, seal.Castagnoli, mem.AsBytes(s.finals))
}

// save writes the block's rows and sums.
func (s saving) save(w io.Writer, of state) error {
	out, err := hops.NewStateWriter(w, of)
	if err != nil {
		return err
	}
	panels := of.Last - of.First
	if err := out.Block(s.rows, panels); err != nil {
		return err
	}
	if s.ends != nil && of.Hop > s.plain {
		if err := out.Before(s.rows, panels); err != nil {
			return err
		}
	}
	if err := s.eachSum(func(lo int64) error {
		return s.sums.with(0, lo, read, func(rows []float32) error {
			return out.Panels(mem.AsBytes(rows), s.o.Layout.Columns*sumBytes, packed.PanelColumns*sumBytes, panels)
		})
	}); err != nil {
		return err
	}
	return out.Close()
}

// mostPanels bounds the panels that a header may claim.
const mostPanels = 1 << 20

// header reads the header of a state. The state must have at least the wanted panels.
func (s saving) header(r *hops.StateReader, want state) (of state, err error) {
	if err := r.Header(&of); err != nil {
		return of, err
	}
	same := of
	same.First, same.Last, same.Hop = want.First, want.Last, want.Hop
	switch {
	case same != want:
		return of, fmt.Errorf("the state belongs to %+v, this run is %+v: %w", of, want, hops.ErrState)
	case of.First < 0 || of.First > want.First || of.Last < want.Last || of.Last > mostPanels || of.Hop < 1 || of.Hop > s.hops:
		return of, fmt.Errorf("the state has panels [%d, %d) at hop %d, this run needs [%d, %d) up to hop %d: %w",
			of.First, of.Last, of.Hop, want.First, want.Last, s.hops, hops.ErrState)
	}
	return of, nil
}

// resume sets the block to the hop of a state.
func (s saving) resume(r *hops.StateReader, of, want state) error {
	held, first, last := of.Last-of.First, want.First-of.First, want.Last-of.First
	if err := r.Block(s.rows, held, first, last); err != nil {
		return err
	}
	if s.ends != nil && of.Hop > s.plain {
		if err := r.Before(s.rows, held, first, last); err != nil {
			return err
		}
	}
	if err := s.eachSum(func(lo int64) error {
		return s.sums.with(0, lo, change, func(rows []float32) error {
			return r.Panels(mem.AsBytes(rows), s.o.Layout.Columns*sumBytes, packed.PanelColumns*sumBytes, held, first, last)
		})
	}); err != nil {
		return err
	}
	return r.End()
}
