package smooth

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"ndls/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
)

// pilotState is the header of a state of choosing: its subject and its progress. Until all passes
// are made, the panel's rows, the sums and the weights follow; after that, the exact rows of the
// sample. The codes of all hops made come last, strip by strip.
type pilotState struct {
	Work  pilotWork `json:"work"`
	Pass  int       `json:"pass"`
	Exact int       `json:"exact"` // values of the sample
	// Rows, Largest, Heaviest and Densest hold the bits of float64 values.
	Rows     uint64  `json:"rows"`
	Largest  uint64  `json:"largest"`
	Heaviest uint64  `json:"heaviest"`
	Densest  uint64  `json:"densest"`
	Trials   []trial `json:"trials"`
}

// pilotWork holds everything that determines a choice.
type pilotWork struct {
	hops.Origin
	Counted uint32  `json:"counted"`
	Share   float64 `json:"share"`
	Panels  int     `json:"panels"`
	Last    int     `json:"last"`
	Early   int     `json:"early"`
}

func (p *pilot) work() pilotWork {
	sum := crc32.Update(p.s.counted(), seal.Castagnoli, nil)
	if !p.all.All() {
		sum = crc32.Update(sum, seal.Castagnoli, mem.AsBytes(p.all.set.S))
	}
	return pilotWork{
		Origin:  p.g.Origin("choose", p.checkpoints, p.o.Layout.Precision),
		Counted: sum, Share: p.share, Panels: p.panels, Last: p.last, Early: p.early,
	}
}

// after saves a state, or stops, as the checkpoints ask. Passes and trials number the states.
func (p *pilot) after(ctx context.Context) error {
	return p.g.After(ctx, p.checkpoints, p.pass+len(p.trials), p.save)
}

func (p *pilot) save(w io.Writer) error {
	out, err := hops.NewStateWriter(w, pilotState{
		Work: p.begun, Pass: p.pass, Exact: len(p.exact),
		Rows: math.Float64bits(p.counts.rows), Largest: math.Float64bits(p.counts.largest),
		Heaviest: math.Float64bits(p.counts.heaviest), Densest: math.Float64bits(p.counts.densest),
		Trials: p.trials,
	})
	if err != nil {
		return err
	}
	if p.pass == p.passes() {
		err = out.Put(mem.AsBytes(p.exact))
	} else {
		err = p.saveRows(out)
	}
	if err != nil {
		return err
	}
	if err := p.eachCode(out.Put, p.codes.read, nil); err != nil {
		return err
	}
	return out.Close()
}

// saveRows writes rows, sums and weights.
func (p *pilot) saveRows(out *hops.StateWriter) error {
	if err := out.Block(p.s.rows, nil, 1); err != nil {
		return err
	}
	if err := p.s.eachStrip(func(lo int64) error {
		return p.s.sums.with(0, lo, read, func(rows []float32) error { return out.Put(mem.AsBytes(rows)) })
	}); err != nil {
		return err
	}
	return out.Put(mem.AsBytes(p.weight.S))
}

// eachCode moves the codes of a state: for each strip the codes of errors up to the present hop,
// then the codes of influences from their present hop on.
func (p *pilot) eachCode(state func([]byte) error, before, after func(codes []byte, first int64, hop, part int) error) error {
	return p.codes.with(func(buf, _ []byte) error {
		for first := int64(0); first < p.codes.n; first += packed.StripRows {
			for _, part := range []struct{ part, hop, last int }{
				{sizePart, 1, p.fore()},
				{flowPart, max(p.back(), 1), p.last},
			} {
				rows := min(p.codes.n-first, packed.StripRows)
				for hop := part.hop; hop <= part.last; hop++ {
					if before != nil {
						if err := before(buf[:p.codes.stride()], first, hop, part.part); err != nil {
							return err
						}
					}
					if err := state(buf[:rows]); err != nil {
						return err
					}
					if after != nil {
						if err := after(buf[:p.codes.stride()], first, hop, part.part); err != nil {
							return err
						}
					}
				}
			}
		}
		return nil
	})
}

// resume continues from a state if all workers have a state of the same pass.
func (p *pilot) resume(ctx context.Context) (bool, error) {
	p.begun = p.work()
	var of pilotState
	return p.g.Begin(ctx, p.checkpoints, func(r *hops.StateReader) ([]int, error) {
		if err := r.Header(&of); err != nil {
			return nil, err
		}
		whole := of.Pass == p.passes()
		switch {
		case of.Work != p.begun:
			return nil, fmt.Errorf("the state belongs to %+v, this choice is %+v: %w", of.Work, p.begun, hops.ErrState)
		case of.Pass < 1 || of.Pass > p.passes() || !whole && (of.Exact != 0 || len(of.Trials) > 0) ||
			whole && int64(of.Exact) != p.o.Targets.Len()*packed.PanelColumns:
			return nil, fmt.Errorf("the state is at pass %d of %d with %d values of a sample, which is impossible: %w", of.Pass, p.passes(), of.Exact, hops.ErrState)
		}
		return []int{of.Pass + len(of.Trials), of.Pass}, nil
	}, func(r *hops.StateReader) error {
		p.pass = of.Pass
		p.counts = counts{
			math.Float64frombits(of.Rows), math.Float64frombits(of.Largest),
			math.Float64frombits(of.Heaviest), math.Float64frombits(of.Densest),
		}
		p.scale()
		err := p.load(ctx, r, of)
		if err != nil {
			p.exact, p.trials = nil, nil
		}
		return err
	})
}

// load reads the part of a state after its header.
func (p *pilot) load(ctx context.Context, r *hops.StateReader, of pilotState) error {
	if of.Pass == p.passes() {
		p.exact, p.trials = make([]float32, of.Exact), of.Trials
		if err := r.Fill(mem.AsBytes(p.exact)); err != nil {
			return err
		}
	} else if err := p.loadRows(ctx, r); err != nil {
		return err
	}
	if err := p.eachCode(r.Fill, nil, p.codes.write); err != nil {
		return err
	}
	return r.End()
}

// loadRows reads rows, sums and weights. It makes the stationary rows again from hop 0.
func (p *pilot) loadRows(ctx context.Context, r *hops.StateReader) error {
	if err := p.s.fill(ctx, p.rows.put); err != nil {
		return err
	}
	if err := r.Block(p.s.rows, nil, 1, 0, 1); err != nil {
		return err
	}
	if err := p.s.eachStrip(func(lo int64) error {
		return p.s.sums.with(0, lo, replace, func(rows []float32) error { return r.Fill(mem.AsBytes(rows)) })
	}); err != nil {
		return err
	}
	return r.Fill(mem.AsBytes(p.weight.S))
}
