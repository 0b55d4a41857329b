// Package ahead reads batches on a goroutine of its own while the caller uses the
// one before.
package ahead

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Reader hands out batches that it reads ahead of its caller.
type Reader[B any] struct {
	read func(*B) error
	free chan *B // nil on one thread: Next reads
	full chan *B
	cur  *B    // nil at the end
	err  error // set before full is closed
}

// New returns a Reader that calls read for one of the buffers after the other,
// until read returns an error, such as io.EOF. On one thread nothing is read
// ahead: Next calls read.
func New[B any](threads int, buffers []B, read func(*B) error) *Reader[B] {
	a := &Reader[B]{read: read, cur: &buffers[0]}
	if threads == 1 {
		return a
	}
	a.free, a.full = make(chan *B, len(buffers)), make(chan *B, len(buffers))
	for i := range buffers[1:] {
		a.free <- &buffers[i+1]
	}
	go a.run()
	return a
}

func (a *Reader[B]) run() {
	defer close(a.full)
	for b := range a.free {
		if a.err = a.read(b); a.err != nil {
			return
		}
		a.full <- b
	}
}

// Next returns the next batch, valid until the next call, or the error of read.
func (a *Reader[B]) Next() (*B, error) {
	if a.free == nil {
		return a.cur, a.read(a.cur)
	}
	if a.cur != nil {
		a.free <- a.cur
	}
	a.cur = <-a.full
	if a.cur == nil {
		return nil, a.err
	}
	return a.cur, nil
}

// Close waits for the reading to end.
func (a *Reader[B]) Close() {
	if a.free == nil {
		return
	}
	close(a.free)
	for range a.full {
	}
	a.free = nil
}

// Run calls fill and then use for items 0, 1, … in order, each with one of the buffers,
// fill on one goroutine and use on another. While an item is used, those after it are filled
// as far as there are buffers. Run returns the first error; fill and use get no further
// item then.
func Run[B any](ctx context.Context, buffers []B, items int, fill, use func(item int, b B) error) error {
	free, full := make(chan B, len(buffers)), make(chan B, len(buffers))
	for _, b := range buffers {
		free <- b
	}
	group, ctx := errgroup.WithContext(ctx)
	stage := func(from, to chan B, do func(int, B) error) {
		group.Go(func() error {
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
		})
	}
	stage(free, full, fill)
	stage(full, free, use)
	return group.Wait()
}
