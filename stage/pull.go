package stage

import (
	"context"
	"errors"
	"fmt"

	"ndls/internal/seal"
)

// pulled returns, on request, rows that a reader puts. So a caller can walk through two readers side by side.
type pulled struct {
	ctx    context.Context
	stop   context.CancelFunc
	rows   chan []float32
	used   chan struct{}
	ended  chan error
	left   []float32 // unread part of the last rows
	closed bool
}

// pull starts read, which puts rows in ascending order; they are valid until put returns. The caller closes the result.
func pull(ctx context.Context, read func(ctx context.Context, put func(rows []float32) error) error) *pulled {
	p := &pulled{rows: make(chan []float32), used: make(chan struct{}), ended: make(chan error, 1)}
	p.ctx, p.stop = context.WithCancel(ctx)
	go func() {
		err := read(p.ctx, func(rows []float32) error {
			select {
			case p.rows <- rows:
			case <-p.ctx.Done():
				return context.Cause(p.ctx)
			}
			select {
			case <-p.used:
				return nil
			case <-p.ctx.Done():
				return context.Cause(p.ctx)
			}
		})
		close(p.rows)
		p.ended <- err
	}()
	return p
}

var errFewRows = errors.New("there are fewer rows than nodes")

// next returns the next row, which has this number of columns. It is valid until the next call.
func (p *pulled) next(columns int) ([]float32, error) {
	if len(p.left) == 0 {
		p.release()
		rows, ok := <-p.rows
		if !ok {
			p.closed = true
			return nil, fmt.Errorf("errors of soft labels: %w", errors.Join(errFewRows, <-p.ended, seal.ErrCorrupt))
		}
		p.left = rows
	}
	row := p.left[:columns]
	p.left = p.left[columns:]
	return row, nil
}

// finish waits for the end of the reader, which checks the checksums of files at its end.
func (p *pulled) finish() error {
	p.release()
	for p.left = range p.rows {
		p.release()
	}
	p.closed = true
	return <-p.ended
}

// release tells the reader that the last rows are used.
func (p *pulled) release() {
	if p.left == nil {
		return
	}
	select {
	case p.used <- struct{}{}:
	case <-p.ctx.Done():
	}
}

// close stops the reader, if it has not ended.
func (p *pulled) close() {
	p.stop()
	if p.closed {
		return
	}
	for range p.rows {
		continue // the reader stops at its next select
	}
	<-p.ended
}
