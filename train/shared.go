package train

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"

	"ndls/group"
	"ndls/internal/mem"
)

// join prepares the workers of a group to train together. Each takes its pieces of a step, and its
// pieces of the validation rows, or all of these if the measure needs them in one place.
func (f *fitting) join(g group.Group) {
	f.group, f.workers = g, g.Size()
	if f.options.needsAll() {
		return
	}
	p := cutStep(f.validation)
	first, last := p.of(g.Self(), f.workers)
	f.validFrom = p.at(first)
	f.valid = f.valid.some(f.validFrom, p.at(last))
}

// together reports whether several workers train the same model.
func (f *fitting) together() bool { return f.workers > 1 }

// share returns the beginning of a worker's share of n things, which are shared evenly.
func share(n int64, worker, workers int) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(worker))
	at, _ := bits.Div64(hi, lo, uint64(workers))
	return int64(at)
}

// most returns the largest share.
func most(n int64, workers int) int64 { return (n + int64(workers) - 1) / int64(workers) }

// of returns the pieces [lo, hi) of a worker.
func (p pieces) of(worker, workers int) (lo, hi int) {
	return int(share(int64(p.count), worker, workers)), int(share(int64(p.count), worker+1, workers))
}

// ownRows returns the largest number of rows of a step for one worker.
func (f *fitting) ownRows() int64 { return cutStep(f.stepRows()).most(f.workers) }

// most returns the largest number of rows for one of so many workers.
func (p pieces) most(workers int) (rows int64) {
	for w := range workers {
		lo, hi := p.of(w, workers)
		rows = max(rows, p.at(hi)-p.at(lo))
	}
	return rows
}

// mostSums returns the largest number of gradients that a worker adds up at a time. The last step
// of an epoch has no more pieces than the others.
func (f *fitting) mostSums() (sums int) {
	for count := 1; count <= cutStep(f.stepRows()).count; count *= 2 {
		for w := range f.workers {
			_, n := nodesOf(pieces{count: count}.of(w, f.workers))
			sums = max(sums, n)
		}
	}
	return sums
}

// lossValues returns the number of float32 values of the losses that follow a gradient when workers
// train together.
func (f *fitting) lossValues() int {
	if f.together() {
		return 2
	}
	return 0
}

// received returns the largest number of values of other workers' sums that a worker receives in a
// step.
func (f *fitting) received() (values int64) {
	for count := 1; count <= cutStep(f.stepRows()).count; count *= 2 {
		all, least := 0, math.MaxInt
		for w := range f.workers {
			nodes, _ := nodesOf(pieces{count: count}.of(w, f.workers))
			all, least = all+len(nodes), min(least, len(nodes))
		}
		values = max(values, int64(all-least))
	}
	return values * (most((f.numParams()+valueUnit-1)/valueUnit, f.workers)*valueUnit + valueUnit)
}

// stateValues returns the number of values of the optimiser's state and of the gradients.
func (f *fitting) stateValues() int64 {
	n := f.numParams()
	values := 2*n + int64(f.mostSums())*(n+int64(f.lossValues()))
	if f.together() {
		values += n + int64(f.lossValues()) + f.received()
	}
	return values
}

// valueUnit is the unit of the shares of a gradient, in values: a cache line.
const valueUnit = 16

// added returns the values [lo, hi) of a gradient that a worker adds up. The last worker adds the
// losses too.
func (f *fitting) added(worker int) (lo, hi int) {
	n := int(f.numParams())
	lines := int64(units(n, valueUnit))
	lo = min(int(share(lines, worker, f.workers))*valueUnit, n)
	if worker == f.workers-1 {
		return lo, n + f.lossValues()
	}
	return lo, min(int(share(lines, worker+1, f.workers))*valueUnit, n)
}

// shared holds what a worker needs to train with others.
type shared struct {
	swap     group.Swap
	result   []float32 // the gradient of a step
	received []float32 // memory for the sums of others
}

// exchange runs work, in which workers swap values.
func (t *trainer) exchange(ctx context.Context, work func(context.Context) error) error {
	err := t.group.Exchange(ctx, func(ctx context.Context, swap group.Swap) error {
		t.shared.swap = swap
		return work(ctx)
	})
	if err == nil {
		err = group.Barrier(ctx, t.group) // no other worker reads values after this
	}
	t.group.Unexpose(err)
	return err
}

// sum is the gradient of a node: the values that a worker adds up.
type sum struct {
	node
	values []float32
}

// step makes a step with the gradient of the samples of all workers. Each worker sends the others
// those values of its nodes that they add up, adds up its own by the tree, and sends them the
// result. Each then makes the whole step by itself.
func (t *trainer) step() error {
	x, self := t.shared, t.group.Self()
	end := len(t.model.params)
	for i := range t.adding.nodes {
		putLoss(t.sums[i][end:], t.losses[i])
	}
	all := make([][]sum, t.workers)
	lo, hi := t.added(self)
	rest := x.received
	for w := range all {
		nodes, _ := nodesOf(t.adding.of(w, t.workers))
		for i, n := range nodes {
			if w == self {
				all[w] = append(all[w], sum{n, t.sums[i][lo:hi]})
				continue
			}
			all[w] = append(all[w], sum{n, rest[:hi-lo]})
			rest = rest[hi-lo:]
		}
	}
	err := x.swap(func(w int) (values [][]float32) {
		lo, hi := t.added(w)
		for i := range t.adding.nodes {
			values = append(values, t.sums[i][lo:hi])
		}
		return values
	}, func(w int) (values [][]float32) {
		for _, s := range all[w] {
			values = append(values, s.values)
		}
		return values
	})
	if err != nil {
		return err
	}
	copy(x.result[lo:hi], t.addUp(all, min(hi, end)-lo))
	part := func(w int) [][]float32 {
		lo, hi := t.added(w)
		return [][]float32{x.result[lo:hi]}
	}
	if err := x.swap(func(int) [][]float32 { return part(self) }, part); err != nil {
		return err
	}
	t.loss += getLoss(x.result[end:])
	step := t.adam.next(t.rate, t.options.WeightDecay)
	t.net.finish(func(lo, hi int) { t.adam.move(t.kernel, step, t.model.params, x.result, lo, hi) })
	return nil
}

// addUp adds the nodes of one worker after the other until one is left, and returns its values. The
// first values, as many as gradients says, are gradients; losses follow.
func (t *trainer) addUp(all [][]sum, gradients int) []float32 {
	var nodes []node
	var values [][]float32
	for _, sums := range all {
		for _, s := range sums {
			nodes, values = join(append(nodes, s.node)), append(values, s.values)
			for len(values) > len(nodes) {
				n := len(values)
				to, from := values[n-2], values[n-1]
				t.kernel.Sum(to[:gradients], from[:gradients])
				if gradients < len(to) {
					putLoss(to[gradients:], getLoss(to[gradients:])+getLoss(from[gradients:]))
				}
				values = values[:n-1]
			}
		}
	}
	return values[0]
}

// putLoss writes a sum of losses to values, which are its bits, and getLoss reads it.
func putLoss(values []float32, loss float64) {
	binary.LittleEndian.PutUint64(mem.AsBytes(values), math.Float64bits(loss))
}

func getLoss(values []float32) float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(mem.AsBytes(values)))
}
