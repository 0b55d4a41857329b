package train

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"

	"ndls/group"
	"ndls/internal/mem"
)

// lossValues is how many values of float32 the loss takes that follows the gradient from worker to
// worker.
const lossValues = 2

// join has the workers of a group train together: each takes its share of the rows of a step, and of
// the validation rows.
func (f *fitting) join(g group.Group) {
	first, last, n := g.Range()
	f.group, f.mine, f.of = g, last-first, n
	f.valid = f.valid.some(f.own(f.validation))
}

// together says whether several workers train the same model.
func (f *fitting) together() bool { return f.of > 0 }

// own is which of so many rows, [lo, hi), this worker takes: its share of them, in the order of workers.
func (f *fitting) own(rows int64) (lo, hi int64) {
	if !f.together() {
		return 0, rows
	}
	first, last, n := f.group.Range()
	return share(rows, first, n), share(rows, last, n)
}

// most is the largest number of them.
func (f *fitting) most(rows int64) int64 {
	if !f.together() {
		return rows
	}
	return min(share(rows, f.mine, f.of)+1, rows)
}

// share is rows·part/of, rounded down.
func share(rows, part, of int64) int64 {
	hi, lo := bits.Mul64(uint64(rows), uint64(part))
	n, _ := bits.Div64(hi, lo, uint64(of))
	return int64(n)
}

// stateValues is the number of values of the optimiser's state and of the gradient, of which workers
// that train together have two, with the loss behind each.
func (f *fitting) stateValues() int64 {
	n := numParams(f.dims)
	if f.together() {
		return 2*n + 2*(n+lossValues)
	}
	return 3 * n
}

// A section is the parameters of inputs [top, bottom) of a layer, and after the last input the
// biases: what goes from worker to worker at a time. The parameters are [lo, hi) of all.
type section struct{ layer, top, bottom, lo, hi int }

const (
	// sectionRows is the least number of inputs of a section that are not a layer's last: whole tiles of every kernel,
	// since workers with other kernels have the same sections.
	sectionRows = 12
	// sectionBytes is about how large a section is. A smaller one costs more messages, a larger one
	// has workers wait longer for the first.
	sectionBytes = 64 << 10
)

// sectionsOf cuts the parameters of a network into sections, in their order.
func sectionsOf(dims []int) (all []section) {
	at := 0
	for l := range len(dims) - 1 {
		in, out := dims[l], dims[l+1]
		step := max(sectionBytes/(4*out*sectionRows), 1) * sectionRows
		for top := 0; top < in; top += step {
			s := section{layer: l, top: top, bottom: min(top+step, in), lo: at}
			if at += (s.bottom - top) * out; s.bottom == in {
				at += out
			}
			s.hi = at
			all = append(all, s)
		}
	}
	return all
}

// addSection adds the gradient of a microbatch of n rows to a section of grad.
func (w *network) addSection(grad []float32, n int, s section) {
	across := w.across(s.layer)
	first := s.top / w.kernel.Rows() * across
	w.threads.share(units(s.bottom-s.top, w.kernel.Rows())*across, func(i int) {
		w.addPart(grad, n, s.layer, first+i, false, nil)
	})
}

// moveSection calls move with the parameters of a section, some at a time, and prepares the weights for
// products.
func (w *network) moveSection(s section, move func(lo, hi int)) {
	out := w.dims[s.layer+1]
	w.threads.share(units(s.bottom-s.top, sectionRows), func(i int) {
		top := s.top + i*sectionRows
		bottom := min(top+sectionRows, s.bottom)
		lo, hi := s.lo+(top-s.top)*out, s.lo+(bottom-s.top)*out
		if bottom == s.bottom {
			hi = s.hi // with the biases
		}
		move(lo, hi)
		w.packRows(s.layer, top, bottom)
	})
}

// part ends a run of workers that train together: before its memory is freed, no other reads it any more.
func (t *trainer) part(ctx context.Context, failed error) (err error) {
	if !t.together() {
		return nil
	}
	if failed == nil {
		err = group.Barrier(ctx, t.group)
	}
	t.group.Unexpose(errors.Join(failed, err))
	return err
}

// learnOwn takes those of consecutive samples of a step through the network and back that are this
// worker's. After the last sample of the step, the workers take it together.
func (t *trainer) learnOwn(ctx context.Context, p microbatch) error {
	from := t.batch - t.left
	if lo, hi := max(t.lo, from), min(t.hi, from+int64(p.len())); lo < hi {
		_, own := p.cut(int(lo - from))
		own, _ = own.cut(int(hi - lo))
		t.through(own, t.position+lo-from, int(lo-t.lo), int(t.hi-t.lo))
	}
	t.left -= int64(p.len())
	t.position += int64(p.len())
	if t.left > 0 {
		return ctx.Err()
	}
	return t.step(ctx)
}

// step takes a step with the gradient of the samples of all workers. Each adds that of its own to what
// the workers before it have added, so that every value receives the rows in their order, and so does
// the sum of losses. Each then takes the whole step by itself.
func (t *trainer) step(ctx context.Context) error {
	t.grads[0], t.grads[1] = t.grads[1], t.grads[0]
	grad, n := t.grads[0], int(t.hi-t.lo)
	sections := sectionsOf(t.dims)
	var ends []int
	for _, s := range sections {
		ends = append(ends, s.hi)
	}
	ends = append(ends, len(grad))
	loss := mem.AsBytes(grad[len(t.model.params):])
	first, _, _ := t.group.Range()
	step := t.adam.next(t.rate, t.options.WeightDecay)
	err := t.group.HandOn(ctx, grad, ends, func(part int) {
		if part < len(sections) {
			t.net.addSection(grad, n, sections[part])
			return
		}
		sum := math.Float64frombits(binary.LittleEndian.Uint64(loss))
		if first == 0 {
			sum = t.loss
		}
		for _, x := range t.net.sum[:n] {
			sum += x
		}
		binary.LittleEndian.PutUint64(loss, math.Float64bits(sum))
	}, func(part int) {
		if part < len(sections) {
			t.net.moveSection(sections[part], func(lo, hi int) { t.adam.move(t.kernel, step, t.model.params, grad, lo, hi) })
			return
		}
		t.loss = math.Float64frombits(binary.LittleEndian.Uint64(loss))
	})
	if err == nil {
		t.net.packSome(func(int) bool { return false }) // the others are prepared
	}
	return err
}
