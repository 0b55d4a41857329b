package extsort

import (
	"context"
	"errors"
	"io"

	"ndls/internal/ahead"
)

// Run is a list of ascending keys that is read once, from front to back.
type Run interface {
	// Fill reads the next keys and returns how many there are, none only with
	// io.EOF. keys has room for a multiple of a block.
	Fill(keys []uint64) (int, error)
	// Keys is how many keys are left, at most.
	Keys() int64
	Close()
}

// Stream gives ascending keys, each once.
type Stream interface {
	// Next returns at most len(buf) keys, in buf or elsewhere, free to be
	// overwritten, or io.EOF.
	Next(buf []uint64) ([]uint64, error)
	Close()
}

// StreamOf is a run as a stream.
func StreamOf(r Run) Stream { return runStream{r} }

type runStream struct{ Run }

// Next implements Stream.
func (s runStream) Next(buf []uint64) ([]uint64, error) {
	n, err := s.Fill(buf)
	return buf[:n], err
}

// Batch is some keys of a stream.
type Batch struct{ buf, Keys []uint64 }

// ReadAhead reads a stream ahead of its caller, who closes both.
func ReadAhead(threads int, s Stream) *ahead.Reader[Batch] {
	batches := make([]Batch, 3)
	for i := range batches {
		batches[i].buf = make([]uint64, BatchKeys)
	}
	return ahead.New(threads, batches, func(b *Batch) (err error) {
		b.Keys, err = s.Next(b.buf)
		return err
	})
}

// Each visits all keys of a stream in batches, which may be overwritten, and closes
// the stream.
func Each(ctx context.Context, threads int, s Stream, visit func([]uint64) error) error {
	defer s.Close()
	source := ReadAhead(threads, s)
	defer source.Close()
	for {
		batch, err := source.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(batch.Keys)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}
