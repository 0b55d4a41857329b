package train

import (
	"context"

	"ndls/internal/mem"
	"ndls/internal/rng"
)

// Training is one run, an epoch at a time: the caller decides when it ends.
type Training struct{ t *trainer }

// Begin reads and checks the rows of p, and prepares the run of o with that number. Free returns
// its memory.
func Begin(ctx context.Context, p Problem, o Options, run int, res Resources) (_ *Training, err error) {
	f, err := newFitting(p, o, res)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.free()
		}
	}()
	if err := f.load(ctx, pool(max(res.Threads, 1))); err != nil {
		return nil, err
	}
	_, c := f.divide(1, max(res.Threads, 1))
	t, err := f.begin(run, c)
	return &Training{t}, err
}

// InMemory reports whether the rows are in memory. Otherwise each epoch reads them again.
func (x *Training) InMemory() bool { return x.t.train.values != nil }

// Model returns the present weights, which are valid until Free.
func (x *Training) Model() *Model { return x.t.model }

// Epoch makes the steps of an epoch, counted from 0, and measures the weights on the validation
// rows.
func (x *Training) Epoch(ctx context.Context, epoch int) (Epoch, error) {
	return x.t.epoch(ctx, epoch)
}

// Free returns the memory.
func (x *Training) Free() {
	x.t.free()
	x.t.fitting.free()
}

// begin prepares a run.
func (f *fitting) begin(run int, c pool) (*trainer, error) {
	t := &trainer{fitting: f, seed: rng.Hash(f.options.Seed, uint64(run))}
	if err := t.allocate(c); err != nil {
		t.free()
		return nil, err
	}
	t.model.initialise(t.seed)
	t.net.pack()
	return t, nil
}

// Minibatches visits the training rows of p once, a few at a time, in an order that key decides, as
// in an epoch whose rows are read from the source. visit must neither keep nor change its
// arguments.
func Minibatches(ctx context.Context, p Problem, key uint64, b *mem.Budget, visit func(x []float32, y []int32) error) error {
	rows := newRowSet(p, Train)
	width := p.Source.Width()
	values := make([]float32, threadRows(width)*width)
	labels := make([]int32, threadRows(width))
	s, err := newSampler(b, width, rows.count, true, true)
	if err != nil {
		return err
	}
	defer s.free()
	fill := func(p microbatch) error {
		n := p.len()
		for i := range n {
			copy(values[i*width:], p.row(i))
			labels[i] = p.label(i)
		}
		return visit(values[:n*width], labels[:n])
	}
	return s.epoch(ctx, rows, key, func(p microbatch) error { return p.pieces(ctx, len(labels), 1, fill) })
}
