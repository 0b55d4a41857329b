// Package ahead reads batches on a goroutine of its own while the caller uses the
// one before.
package ahead

import (
	"context"
	"sync"
)

// Reader hands out batches that it reads ahead of its caller.
type Reader[B any] struct {
	steps []func(*B) error
	free  chan *B // nil on one thread: Next reads
	full  chan *B
	cur   *B      // nil at the end
	errs  []error // of what each step ended with, set before its channel is closed
	ended sync.WaitGroup
}

// New returns a Reader that takes one of the buffers after the other through the steps of reading,
// until one of them returns an error, such as io.EOF. Each step is on a goroutine of its own, and takes
// batches in order. On one thread nothing is read ahead: Next takes the steps.
func New[B any](threads int, buffers []B, steps ...func(*B) error) *Reader[B] {
	a := &Reader[B]{steps: steps, cur: &buffers[0]}
	if threads == 1 {
		return a
	}
	a.free = make(chan *B, len(buffers))
	for i := range buffers[1:] {
		a.free <- &buffers[i+1]
	}
	a.full, a.errs = a.free, make([]error, len(steps))
	for i := range steps {
		from, to := a.full, make(chan *B, len(buffers))
		a.ended.Go(func() { a.run(i, from, to) })
		a.full = to
	}
	return a
}

// run takes batches through a step until that fails, or the step before it has ended.
func (a *Reader[B]) run(i int, from, to chan *B) {
	defer close(to)
	for b := range from {
		if a.errs[i] = a.steps[i](b); a.errs[i] != nil {
			return
		}
		to <- b
	}
	if i > 0 {
		a.errs[i] = a.errs[i-1]
	}
}

// Next returns the next batch, valid until the next call, or the error of a step.
func (a *Reader[B]) Next() (*B, error) {
	if a.free == nil {
		for _, step := range a.steps {
			if err := step(a.cur); err != nil {
				return a.cur, err
			}
		}
		return a.cur, nil
	}
	if a.cur != nil {
		a.free <- a.cur
	}
	a.cur = <-a.full
	if a.cur == nil {
		return nil, a.errs[len(a.steps)-1]
	}
	return a.cur, nil
}

// Close waits until all steps have ended: no buffer is in use then.
func (a *Reader[B]) Close() {
	if a.free == nil {
		return
	}
	close(a.free)
	a.ended.Wait()
	a.free = nil
}

// Run calls fill and then use for items 0, 1, … in order, each with one of the buffers: use on the caller's goroutine, and fill on
// another. While an item is used, those after it are filled as far as there are buffers. Run returns the first error; fill and use get no
// further item then.
func Run[B any](ctx context.Context, buffers []B, items int, fill, use func(item int, b B) error) error {
	free, full := make(chan B, len(buffers)), make(chan B, len(buffers))
	for _, b := range buffers {
		free <- b
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	step := func(from, to chan B, do func(int, B) error) (err error) {
		defer func() {
			if err != nil {
				cancel(err)
			}
		}()
		for i := range items {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			select {
			case b := <-from:
				if err := do(i, b); err != nil {
					return err
				}
				to <- b
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	}
	var filling sync.WaitGroup
	filling.Go(func() { _ = step(free, full, fill) }) // its error cancels use, which returns it
	err := step(full, free, use)
	filling.Wait()
	return err
}
