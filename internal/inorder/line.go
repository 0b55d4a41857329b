package inorder

import (
	"sync"
	"sync/atomic"
)

// Line works on batches on several threads.
type Line[B any] struct {
	work, use func(*B) error

	free    chan *batch[B]
	todo    chan *batch[B] // nil where Put works itself
	workers sync.WaitGroup
	close   sync.Once
	cur     *batch[B] // the one that Next has given
	puts    int64
	failed  atomic.Bool

	mu    sync.Mutex
	done  []*batch[B] // batches that wait for their turn, by number modulo their number
	next  int64       // the batch whose turn it is
	using bool        // a thread hands batches on
	err   error
}

// batch is one of the caller's batches.
type batch[B any] struct {
	b      *B
	number int64
	err    error // of work
}

// New starts a line of so many threads, which works on one batch of batches after the
// other. With no threads Put itself does all work, and one batch is enough.
func New[B any](threads int, batches []B, work, use func(*B) error) *Line[B] {
	l := &Line[B]{work: work, use: use, free: make(chan *batch[B], len(batches)), done: make([]*batch[B], len(batches))}
	for i := range batches {
		l.free <- &batch[B]{b: &batches[i]}
	}
	if threads == 0 {
		return l
	}
	l.todo = make(chan *batch[B], len(batches))
	for range threads {
		l.workers.Go(func() {
			for b := range l.todo {
				l.do(b)
			}
		})
	}
	return l
}

// Next returns an empty batch, as soon as there is one, or the error of the line. Put
// or Close comes next.
func (l *Line[B]) Next() (*B, error) {
	l.cur = <-l.free
	if l.failed.Load() {
		return nil, l.error()
	}
	return l.cur.b, nil
}

// Put gives the line the batch of the last Next, which is not the caller's any more.
func (l *Line[B]) Put() {
	b := l.cur
	b.number, l.cur = l.puts, nil
	l.puts++
	if l.todo == nil {
		l.do(b)
	} else {
		l.todo <- b
	}
}

// do works on a batch, and hands on all batches whose turn it is then.
func (l *Line[B]) do(b *batch[B]) {
	b.err = nil
	if !l.failed.Load() {
		b.err = l.work(b.b)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.done[l.slot(b.number)] = b
	if l.using {
		return
	}
	l.using = true
	for at := l.slot(l.next); l.done[at] != nil; at = l.slot(l.next) {
		b := l.done[at]
		l.done[at] = nil
		l.next++
		l.handOn(b)
		l.free <- b
	}
	l.using = false
}

func (l *Line[B]) slot(number int64) int { return int(number % int64(len(l.done))) }

// handOn uses a batch. The lock is free while it does.
func (l *Line[B]) handOn(b *batch[B]) {
	if l.err != nil {
		return
	}
	err := b.err
	if err == nil {
		l.mu.Unlock()
		err = l.use(b.b)
		l.mu.Lock()
	}
	if err != nil {
		l.err = err
		l.failed.Store(true)
	}
}

func (l *Line[B]) error() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Close waits until all batches are handed on, and returns the error of the line. No
// Put may follow. It may be called more than once.
func (l *Line[B]) Close() error {
	l.close.Do(func() {
		if l.todo != nil {
			close(l.todo)
		}
		l.workers.Wait()
	})
	return l.error()
}
