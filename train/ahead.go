package train

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// readAhead is the number of buffers of a stream: one is filled while another
// is used.
const readAhead = 2

// upTo makes n buffers, or as many as the budget has room for, but one at least.
func upTo[T any](n int, buffer func() (T, error)) (all []T, err error) {
	for range n {
		x, err := buffer()
		if err != nil && len(all) == 0 {
			return nil, err
		}
		if err != nil {
			break
		}
		all = append(all, x)
	}
	return all, nil
}

// ahead calls fill and then use for items 0, 1, … in order. While an item is
// used, those after it are filled as far as there are buffers. It returns the
// first error.
func ahead[T any](ctx context.Context, buffers []T, items int, fill, use func(i int, buffer T) error) error {
	free, full := make(chan T, len(buffers)), make(chan T, len(buffers))
	for _, b := range buffers {
		free <- b
	}
	group, ctx := errgroup.WithContext(ctx)
	stage := func(from, to chan T, do func(int, T) error) {
		group.Go(func() error {
			for i := range items {
				if err := ctx.Err(); err != nil {
					return err
				}
				select {
				case b := <-from:
					if err := do(i, b); err != nil {
						return err
					}
					to <- b
				case <-ctx.Done():
					return ctx.Err()
				}
			}
			return nil
		})
	}
	stage(free, full, fill)
	stage(full, free, use)
	return group.Wait()
}
