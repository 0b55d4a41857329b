package extsort

import (
	"context"
	"errors"
	"io"

	"ndls/internal/invariants"
	"ndls/internal/mem"
)

// merger merges sorted runs through a tree of losers (Knuth, The Art of
// Computer Programming, volume 3, section 5.4.1) and drops repeated keys. A
// goroutine reads the runs ahead.
type merger struct {
	ctx     context.Context
	runs    []runReader
	buffers *mem.Array[uint64]
	// tree[0] is the run with the smallest key, tree[i] the loser of match i.
	tree []head
	last uint64

	reads chan *runReader
	done  chan struct{}
}

// head is the smallest key left in a run.
type head struct {
	key uint64
	run int
}

// newMerger takes over the files of runs if it succeeds.
func newMerger(ctx context.Context, b *mem.Budget, runs []Run) (*merger, error) {
	half := runBuffer(b.Free(), len(runs)) / 2 / 8
	buffers, err := mem.Alloc[uint64](b, 2*half*int64(len(runs)), "merge buffers")
	if err != nil {
		return nil, err
	}
	m := &merger{
		ctx: ctx, buffers: buffers, runs: make([]runReader, len(runs)), tree: make([]head, len(runs)), last: End,
		reads: make(chan *runReader, len(runs)), done: make(chan struct{}),
	}
	go m.read()
	for i, r := range runs {
		m.tree[i].run = -1
		at := 2 * half * int64(i)
		m.runs[i] = runReader{
			Run: r, reads: m.reads, ready: make(chan error, 1),
			halves: [2][]uint64{buffers.S[at:][:half], buffers.S[at+half:][:half]},
		}
		m.runs[i].request()
	}
	for i := range m.runs {
		key, err := m.runs[i].refill()
		if err != nil {
			m.stop()
			return nil, err
		}
		m.enter(head{key, i})
	}
	return m, nil
}

// read serves the runs that wait for their next half buffer.
func (m *merger) read() {
	defer close(m.done)
	for r := range m.reads {
		r.ready <- r.read()
	}
}

// enter plays a run's first match: the first to come to a match waits there.
func (m *merger) enter(h head) {
	for i := (h.run + len(m.tree)) / 2; i > 0; i /= 2 {
		if m.tree[i].run < 0 {
			m.tree[i] = h
			return
		}
		if m.tree[i].key < h.key {
			m.tree[i], h = h, m.tree[i]
		}
	}
	m.tree[0] = h
}

// Next implements Stream.
func (m *merger) Next(buf []uint64) ([]uint64, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	n, before := 0, m.last
	for n < len(buf) && m.tree[0].key != End {
		h := m.tree[0]
		if h.key != m.last {
			buf[n] = h.key
			m.last = h.key
			n++
		}
		if r := &m.runs[h.run]; r.at < len(r.keys) {
			h.key = r.keys[r.at]
			r.at++
		} else {
			var err error
			if h.key, err = r.refill(); err != nil {
				return nil, err
			}
		}
		for i := (h.run + len(m.tree)) / 2; i > 0; i /= 2 {
			if m.tree[i].key < h.key {
				m.tree[i], h = h, m.tree[i]
			}
		}
		m.tree[0] = h
	}
	if n == 0 {
		return nil, io.EOF
	}
	if invariants.Enabled {
		invariants.Ascending("merged keys", before == End, before, buf[:n])
	}
	return buf[:n], nil
}

// stop ends the reading and frees the buffers.
func (m *merger) stop() {
	close(m.reads)
	<-m.done
	m.buffers.Free()
}

// Close implements Stream.
func (m *merger) Close() {
	m.stop()
	for _, r := range m.runs {
		r.Close()
	}
}

// runReader reads the keys of a run, half a buffer ahead.
type runReader struct {
	Run
	keys   []uint64 // the half that is given out, from at on
	at     int
	halves [2][]uint64
	ahead  []uint64 // the half that is being read
	reads  chan<- *runReader
	ready  chan error // of the half that is being read
	ended  bool
}

// request asks for the next half buffer.
func (r *runReader) request() {
	r.ahead = r.halves[0]
	r.halves[0], r.halves[1] = r.halves[1], r.halves[0]
	r.reads <- r
}

// read fills the half that was asked for.
func (r *runReader) read() error {
	n, err := r.Fill(r.ahead)
	r.ahead = r.ahead[:n]
	return err
}

// refill returns the first key of the next half buffer, or End.
func (r *runReader) refill() (uint64, error) {
	if r.ended {
		return End, nil
	}
	switch err := <-r.ready; {
	case errors.Is(err, io.EOF):
		r.ended = true
		return End, nil
	case err != nil:
		return 0, err
	}
	r.keys, r.at = r.ahead, 1
	r.request()
	return r.keys[0], nil
}
