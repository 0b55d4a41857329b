package smooth

import (
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
)

// history holds the rows T_j Z of all targets, of which [Smoother.Prefix] makes rows for each depth.
type history struct {
	rows *mem.Array[float32] // by j, then by target
	// weights holds the weights w_j, by j, then by count.
	weights [][]float32
	// counts and sums belong to the strip whose sums are computed.
	counts []uint16
	sums   *mem.Array[float32]
}

// historyBytes returns the memory of the history of a block of n rows with up to so many hops.
func historyBytes(n int64, o Options) int64 {
	passes := int64(o.Passes(o.Depths))
	if passes >= int64(o.Depths) {
		return 0
	}
	columns := int64(o.Layout.Columns)
	return (passes+1)*(o.Targets.size*columns+int64(o.Depths)+2)*4 + min(n, packed.StripRows)*(columns*4+2) + 3*4096
}

// newHistory allocates a history.
func (s *Smoother) newHistory() (h *history, err error) {
	h = &history{}
	columns, n := int64(s.o.Layout.Columns), s.o.Targets.Len()
	if h.rows, err = mem.Alloc[float32](s.g.Budget, int64(s.hops+1)*n*columns, "rows of all passes"); err != nil {
		return nil, err
	}
	most := min(s.n, packed.StripRows)
	if h.sums, err = mem.Alloc[float32](s.g.Budget, most*columns, "sums of a strip"); err != nil {
		h.free()
		return nil, err
	}
	h.counts = make([]uint16, most)
	for t := s.newTurns(); ; t.to(t.Degree() + 1) {
		weights := make([]float32, len(t.weight))
		copy(weights, t.weight)
		if h.weights = append(h.weights, weights); t.Degree() == s.hops {
			return h, nil
		}
	}
}

// free may be called on nil.
func (h *history) free() {
	if h != nil {
		h.rows.Free()
		h.sums.Free()
	}
}

// of returns the rows T_j Z of the targets from number first on.
func (h *history) of(s *Smoother, j int, first int64) []float32 {
	n := s.o.Targets.Len()
	return h.rows.S[(int64(j)*n+first)*int64(s.o.Layout.Columns) : int64(j+1)*n*int64(s.o.Layout.Columns)]
}

// keep copies rows first, first+1, … of T_j Z, which are a strip.
func (h *history) keep(s *Smoother, j int, first int64, rows []float32) {
	columns := int64(s.o.Layout.Columns)
	to := h.of(s, j, s.o.Targets.Before(first))
	s.o.Targets.each(first, first+int64(len(rows))/columns, func(i int64) {
		copy(to[:columns], rows[(i-first)*columns:])
		to = to[columns:]
	})
}

// with passes the sums of the targets of the strip that starts at row lo to use, as if no node counted more than most hops.
func (h *history) with(s *Smoother, lo int64, most int, use func(sums []float32) error) error {
	columns, first := s.o.Layout.Columns, s.o.Targets.Before(lo)
	n := 0
	s.o.Targets.each(lo, min(lo+packed.StripRows, s.n), func(i int64) {
		h.counts[n] = uint16(min(int(s.counts.S[i]), most))
		n++
	})
	if n == 0 {
		return nil
	}
	sums := h.sums.S[:n*columns]
	_ = share.Ranges(s.g.Threads, n, hopRows, func(from, to int) error {
		part := sums[from*columns : to*columns]
		clear(part)
		for j, weights := range h.weights {
			s.g.Kernel.AddWeighed(part, h.of(s, j, first)[from*columns:to*columns], h.counts[from:to], weights)
		}
		return nil
	})
	return use(sums)
}
