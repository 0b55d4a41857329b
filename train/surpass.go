package train

import (
	"context"
	"fmt"
	"math"

	"ndls/internal/mem"
)

// hardest orders the validation rows: first come the rows that the weights predicted wrongly, or
// nearly so, when they were last computed. Weights that are not better than the best so far fail on
// as many rows, and mostly on the same ones. So a few rows are enough to see that.
type hardest struct {
	order *mem.Array[int64]
	rank  *mem.Array[uint8] // of each row: 0 where the weights were wrong
	// most is the number of rows that the best weights so far predict rightly, -1 before the first
	// epoch.
	most int
}

// hardestRanks is the number of ranks, rankWidth the width of one in units of logits.
const (
	hardestRanks = 64
	rankWidth    = 1.0 / 8
)

// hardestBytes returns the memory for the order of so many rows, which are streamed or in memory.
func hardestBytes(rows int64, streamed bool) int64 {
	if streamed {
		return 0
	}
	return 9*rows + 2*4096
}

func newHardest(b *mem.Budget, rows int64) (h *hardest, err error) {
	h = &hardest{most: -1}
	if h.order, err = mem.Alloc[int64](b, rows, "the order of validation rows"); err == nil {
		h.rank, err = mem.Alloc[uint8](b, rows, "the order of validation rows")
	}
	if err != nil {
		h.free()
		return nil, fmt.Errorf("train: %w", err)
	}
	return h, nil
}

func (h *hardest) free() {
	if h != nil {
		h.order.Free()
		h.rank.Free()
	}
}

// sort puts the rows in order of their ranks.
func (h *hardest) sort() {
	var place [hardestRanks + 1]int
	for _, rank := range h.rank.S {
		place[rank+1]++
	}
	for i := range hardestRanks {
		place[i+1] += place[i]
	}
	for row, rank := range h.rank.S {
		h.order.S[place[rank]] = int64(row)
		place[rank]++
	}
}

// rankOf returns the rank of a row with these logits: 0 if, and only if, they predict the wrong
// class.
func rankOf(logits []float32, label int32) uint8 {
	if Argmax(logits) != label {
		return 0
	}
	margin := float32(math.MaxFloat32)
	for class, z := range logits {
		if int32(class) != label {
			margin = min(margin, logits[label]-z)
		}
	}
	return uint8(1 + min(margin/rankWidth, hardestRanks-2))
}

// roundParts is the number of rounds into which many validation rows are cut. After each round it
// is checked whether the rest can be left out.
const roundParts = 64

// surpass computes validation rows until it is clear that the weights predict fewer of them rightly
// than the best so far. Only if they predict at least as many does e get their accuracy and their
// loss. All logits must be finite, so that losses are.
func (t *trainer) surpass(ctx context.Context, e *Epoch) error {
	h, net, width := t.hardest, t.net, t.dims[0]
	h.sort()
	rows := microbatch{&t.problem, width, t.valid.values.S, t.valid.places.S, h.order.S}
	unit := int(net.threads) * takenRows
	step := min(unit*units(rows.len(), roundParts*unit), net.rows)
	wrong := 0
	for count := rows.len(); rows.len() > 0; {
		if count-wrong < h.most {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		var p microbatch
		p, rows = rows.cut(min(step, rows.len()))
		net.pool.rows(p.len(), func(thread, lo, hi int) {
			for i := lo; i < hi; i++ {
				if x := net.x[i*width : (i+1)*width]; net.standard {
					net.standardise(x, p.row(i))
				} else {
					copy(x, p.row(i))
				}
			}
			net.forward(thread, net.x[lo*width:hi*width], lo, hi, nil)
			for i := lo; i < hi; i++ {
				h.rank.S[p.index[i]] = rankOf(net.logits(i), p.label(i))
			}
		})
		for _, row := range p.index {
			if h.rank.S[row] == 0 {
				wrong++
			}
		}
	}
	right := len(h.order.S) - wrong
	if right < h.most {
		return nil
	}
	h.most = right
	return t.validate(ctx, e)
}

// mostLogit is far below overflow, also after the roundings of a sum.
const mostLogit = 1e30

// bounded reports whether the weights are so small that no value of a validation row overflows. A
// sum of n products and a bias, with weights of magnitude at most w and inputs of at most x, is at
// most w·(1 + n·x). A value of a normalised row of n is at most √n, times a gain and with a shift.
func (t *trainer) bounded() bool {
	w, x := float64(t.largest), float64(t.reach)
	if t.standard {
		x = (x + float64(magnitude(t.model.mean))) * float64(magnitude(t.model.inverse))
	}
	for l := range t.model.layers() {
		if x = w * (1 + float64(float64(t.dims[l])*x)); !(x < mostLogit) {
			return false
		}
		if t.normalises(l) {
			x = w * (1 + math.Sqrt(float64(t.dims[l+1])))
		}
	}
	return true
}

// magnitude returns the largest magnitude of values, NaN if one of them is NaN.
func magnitude(values []float32) float32 {
	most := uint32(0)
	for _, v := range values {
		most = max(most, math.Float32bits(v)&^(1<<31))
	}
	return math.Float32frombits(most)
}
