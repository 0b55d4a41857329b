package partition

// ahead reads batches on a goroutine of its own while the last one is being used.
type ahead[B any] struct {
	read func(*B) error
	free chan *B // nil on one thread: next reads
	full chan *B
	cur  *B    // nil at the end
	err  error // set before full is closed
}

// newAhead calls read for one of the buffers after the other, until it gives an
// error, such as io.EOF.
func newAhead[B any](threads int, buffers []B, read func(*B) error) *ahead[B] {
	a := &ahead[B]{read: read, cur: &buffers[0]}
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

func (a *ahead[B]) run() {
	defer close(a.full)
	for b := range a.free {
		if a.err = a.read(b); a.err != nil {
			return
		}
		a.full <- b
	}
}

// next returns the next batch, valid until the next call, or the error of read.
func (a *ahead[B]) next() (*B, error) {
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

// close waits for the reading to end.
func (a *ahead[B]) close() {
	if a.free == nil {
		return
	}
	close(a.free)
	for range a.full {
	}
	a.free = nil
}
