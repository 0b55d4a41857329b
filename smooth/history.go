package smooth

import (
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/share"
)

// history makes the rows of all targets for each depth ([Smoother.Prefix]) from their rows T_j Z,
// which are layers of the smoother's sums.
type history struct {
	// weights holds the weights w_j, by j, then by count.
	weights [][]float32
	// counts and sums belong to the strip whose sums are computed.
	counts []uint16
	sums   *mem.Array[float32]
}

// layers returns the number of layers of sums. A history has one for each T_j Z.
func (o Options) layers() int {
	if passes := o.Passes(o.Depths); passes < o.Depths {
		return passes + 1
	}
	return 1
}

// historyBytes returns the memory of a history of a block of n rows, without the rows T_j Z.
func historyBytes(n int64, o Options) int64 {
	return int64(o.layers())*(int64(o.Depths)+2)*4 + min(n, packed.StripRows)*(int64(o.Layout.Columns)*sumBytes+2) + 3*4096
}

// newHistory allocates a history.
func (s *Smoother) newHistory() (h *history, err error) {
	h = &history{}
	most := min(s.n, packed.StripRows)
	if h.sums, err = mem.Alloc[float32](s.g.Budget, most*int64(s.o.Layout.Columns), "sums of a strip"); err != nil {
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
		h.sums.Free()
	}
}

// keep copies rows first, first+1, … of T_j Z, which are a strip.
func (s *Smoother) keep(j int, first int64, rows []float32) error {
	columns := int64(s.o.Layout.Columns)
	return s.sums.with(j, first, replace, func(to []float32) error {
		s.o.Targets.each(first, first+int64(len(rows))/columns, func(i int64) {
			copy(to[:columns], rows[(i-first)*columns:])
			to = to[columns:]
		})
		return nil
	})
}

// with passes the sums of the targets of the strip that starts at row lo to use, as if no node counted more than most hops.
func (h *history) with(s *Smoother, lo int64, most int, use func(sums []float32) error) error {
	columns, n := s.o.Layout.Columns, 0
	s.o.Targets.each(lo, min(lo+packed.StripRows, s.n), func(i int64) {
		h.counts[n] = uint16(min(int(s.counts.S[i]), most))
		n++
	})
	if n == 0 {
		return nil
	}
	sums := h.sums.S[:n*columns]
	clear(sums)
	for j, weights := range h.weights[:min(int(s.most[lo>>packed.StripShift]), len(h.weights))] {
		if err := s.sums.with(j, lo, read, func(rows []float32) error {
			return share.Ranges(s.g.Threads, n, hopRows, func(from, to int) error {
				s.g.Kernel.AddWeighed(sums[from*columns:to*columns], rows[from*columns:to*columns], h.counts[from:to], weights)
				return nil
			})
		}); err != nil {
			return err
		}
	}
	return use(sums)
}
