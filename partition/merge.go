package partition

import (
	"context"
	"fmt"
	"io"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/storage"
)

// merger merges sorted runs through a tree of losers (Knuth, The Art of
// Computer Programming, volume 3, section 5.4.1) and drops repeated keys.
type merger struct {
	ctx     context.Context
	runs    []runReader
	buffers *mem.Array[uint64]
	// tree[0] is the run with the smallest key, tree[i] the loser of match i.
	tree []head
	last uint64
	out  []uint64
}

// head is the smallest key left in a run.
type head struct {
	key uint64
	run int
}

// newMerger takes over the files of runs if it succeeds.
func newMerger(ctx context.Context, b *mem.Budget, runs []run) (*merger, error) {
	perRun := min(max(b.Free()/int64(len(runs)), minRunBuffer), maxRunBuffer) &^ (direct.Align - 1) / 8
	buffers, err := mem.Alloc[uint64](b, perRun*int64(len(runs)), "merge buffers")
	if err != nil {
		return nil, err
	}
	m := &merger{
		ctx: ctx, buffers: buffers, runs: make([]runReader, len(runs)),
		tree: make([]head, len(runs)), last: endOfRun, out: make([]uint64, batchKeys),
	}
	for i := range m.tree {
		m.tree[i].run = -1
	}
	for i, r := range runs {
		m.runs[i] = runReader{f: r.f, left: r.keys, buffer: buffers.S[int64(i)*perRun:][:perRun]}
		key, err := m.runs[i].next()
		if err != nil {
			buffers.Free()
			return nil, err
		}
		m.enter(head{key, i})
	}
	return m, nil
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

func (m *merger) next() ([]uint64, error) {
	if err := m.ctx.Err(); err != nil {
		return nil, err
	}
	n := 0
	for n < len(m.out) && m.tree[0].key != endOfRun {
		h := m.tree[0]
		if h.key != m.last {
			m.out[n] = h.key
			m.last = h.key
			n++
		}
		var err error
		if h.key, err = m.runs[h.run].next(); err != nil {
			return nil, err
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
	return m.out[:n], nil
}

func (m *merger) close() {
	for _, r := range m.runs {
		_ = r.f.Close()
	}
	m.buffers.Free()
}

// runReader reads the keys of a run.
type runReader struct {
	f      *direct.File
	off    int64
	left   int64    // keys not yet read from the file
	keys   []uint64 // keys read and not yet given out
	buffer []uint64
}

// next returns the next key, or endOfRun.
func (r *runReader) next() (uint64, error) {
	if len(r.keys) == 0 {
		if r.left == 0 {
			return endOfRun, nil
		}
		if err := r.refill(); err != nil {
			return 0, err
		}
	}
	key := r.keys[0]
	r.keys = r.keys[1:]
	return key, nil
}

func (r *runReader) refill() error {
	n := min(r.left, int64(len(r.buffer)))
	r.keys = r.buffer[:n]
	p := mem.AsBytes(r.keys)
	if got, err := r.f.ReadAt(p, r.off); got < len(p) {
		return readBackError(r.f, err)
	}
	r.left -= n
	r.off += int64(len(p))
	return nil
}

func readBackError(f *direct.File, err error) error {
	return fmt.Errorf("partition: read back %s: %w: %w", f.Name(), storage.ErrDisk, err)
}
