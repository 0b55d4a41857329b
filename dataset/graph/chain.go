package graph

import "io"

// Chain reads several streams, one after the other.
type Chain[R io.Closer] struct {
	// At is the number of the stream that is read, from 0, and Now that stream; -1 before the first one.
	At   int
	Now  R
	n    int
	open func(i int) (R, error)
	more bool // Now is open
}

// NewChain reads n streams, of which open opens each.
func NewChain[R io.Closer](n int, open func(i int) (R, error)) Chain[R] {
	return Chain[R]{At: -1, n: n, open: open}
}

// Step calls read with the stream that is open, and goes on to the next one where that returns io.EOF. Behind the last
// stream it returns io.EOF.
func (c *Chain[R]) Step(read func(R) error) error {
	for {
		if !c.more {
			if c.At+1 >= c.n {
				return io.EOF
			}
			now, err := c.open(c.At + 1)
			if err != nil {
				return err
			}
			c.At, c.Now, c.more = c.At+1, now, true
		}
		if err := read(c.Now); err != io.EOF {
			return err
		}
		if err := c.Close(); err != nil {
			return err
		}
	}
}

// Close closes the stream that is open, if there is one.
func (c *Chain[R]) Close() error {
	if !c.more {
		return nil
	}
	c.more = false
	return c.Now.Close()
}
