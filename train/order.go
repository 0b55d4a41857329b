package train

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"ndls/internal/ahead"
	"ndls/internal/mem"
	"ndls/internal/rng"
	"ndls/shards"
)

const (
	// windowBytes and windowMaxRows bound the rows among which a sample order shuffles freely.
	// windowBlocks is the least number of blocks from which they come. All three decide the order,
	// and so the weights.
	windowBytes   = 16 << 20
	windowMaxRows = 1 << 16
	windowBlocks  = 8

	// readBytes is the size of a read: a block of a window if no other rows lie between its rows.
	readBytes = windowBytes / windowBlocks
	// reads is the number of blocks that are read at a time.
	reads = 2
)

// windowRows returns the number of rows of a full window.
func windowRows(width int) int64 {
	return min(max(windowBytes/(4*int64(width)), windowBlocks), windowMaxRows)
}

// cut lists the longest runs of blocks that fill at most one window.
func cut(blocks []block, width int) (windows [][]block) {
	limit := windowRows(width)
	for len(blocks) > 0 {
		n, rows := 0, int64(0)
		for n < len(blocks) && rows+blocks[n].count <= limit {
			rows += blocks[n].count
			n++
		}
		windows = append(windows, blocks[:n])
		blocks = blocks[n:]
	}
	return windows
}

// A microbatch holds consecutive samples, which must not be changed: the rows of x, or those that
// index lists.
type microbatch struct {
	problem *Problem
	width   int
	x       []float32
	at      []uint32 // the place of each row among the rows of the problem
	index   []int64  // nil for all
}

func (p microbatch) len() int {
	if p.index != nil {
		return len(p.index)
	}
	return len(p.at)
}

func (p microbatch) row(i int) []float32 {
	if p.index != nil {
		i = int(p.index[i])
	}
	return p.x[i*p.width : (i+1)*p.width]
}

// place returns the place of sample i among the rows of the problem.
func (p microbatch) place(i int) uint32 {
	if p.index != nil {
		i = int(p.index[i])
	}
	return p.at[i]
}

func (p microbatch) label(i int) int32 { return p.problem.Labels[p.place(i)] }

// answers returns the numbers of sample i, NaN for those that are not known.
func (p microbatch) answers(i int) []float32 { return p.problem.answersOf(int64(p.place(i))) }

// cut divides p after n samples.
func (p microbatch) cut(n int) (first, rest microbatch) {
	first, rest = p, p
	if p.index != nil {
		first.index, rest.index = p.index[:n], p.index[n:]
		return first, rest
	}
	first.x, rest.x = p.x[:n*p.width], p.x[n*p.width:]
	first.at, rest.at = p.at[:n], p.at[n:]
	return first, rest
}

// pieces calls visit for p, at most so many samples at a time: all pieces but the last have the
// same size, a multiple of unit.
func (p microbatch) pieces(ctx context.Context, most, unit int, visit visitor) error {
	if p.len() == 0 {
		return nil
	}
	n := units(units(p.len(), units(p.len(), most)), unit) * unit
	if n > most {
		n = max(most/unit*unit, min(unit, most))
	}
	for p.len() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		var next microbatch
		next, p = p.cut(min(n, p.len()))
		if err := visit(next); err != nil {
			return err
		}
	}
	return nil
}

// visitor reads a microbatch, which it must not keep.
type visitor func(microbatch) error

// sampler visits sets of a source: in stored order, or in the order of an epoch. That order takes
// blocks in random order, and shuffles the rows of the blocks that fill a window. It passes on a
// window at a time, or all rows in stored order if they are in memory.
type sampler struct {
	width int
	index *mem.Array[int64] // the order of a window
	// These fields serve sets that are not in memory.
	windows []window
	spaces  []*mem.Array[float32] // one for each read at a time
}

// window holds memory for some rows and their places.
type window struct {
	x  *mem.Array[float32]
	at *mem.Array[uint32]
}

func newWindow(b *mem.Budget, rows int64, width int) (w window, err error) {
	if w.x, err = mem.Alloc[float32](b, rows*int64(width), "a window of rows"); err != nil {
		return w, err
	}
	if w.at, err = mem.Alloc[uint32](b, rows, "the places of the rows of a window"); err != nil {
		w.free()
	}
	return w, err
}

func (w window) free() {
	w.x.Free()
	w.at.Free()
}

func windowBytesOf(rows int64, width int) int64 { return rows*4*int64(width+1) + 2*4096 }

// samplerBytes returns the memory of a sampler that reads ahead.
func samplerBytes(width int, rows int64, shuffle, streamed bool) (n int64) {
	rows = min(rows, windowRows(width))
	if shuffle {
		n += rows*8 + 4096
	}
	if streamed {
		n += readAhead*windowBytesOf(rows, width) + reads*(4*readValues(width)+4096)
	}
	return n
}

// readValues returns readBytes in values, at least a row, plus shards.RowSlack.
func readValues(width int) int64 {
	return max(readBytes/(4*int64(width)), 1)*int64(width) + shards.RowSlack
}

// newSampler prepares visits, shuffled, streamed or both, of sets of at most so many rows. If the
// budget lacks room, it reads nothing ahead.
func newSampler(b *mem.Budget, width int, rows int64, shuffle, streamed bool) (_ *sampler, err error) {
	h := &sampler{width: width}
	rows = min(rows, windowRows(width))
	defer func() {
		if err != nil {
			h.free()
			err = fmt.Errorf("train: %w", err)
		}
	}()
	if shuffle {
		if h.index, err = mem.Alloc[int64](b, rows, "the order of a window"); err != nil {
			return nil, err
		}
	}
	if !streamed {
		return h, nil
	}
	if h.spaces, err = upTo(reads, func() (*mem.Array[float32], error) {
		return mem.Alloc[float32](b, readValues(width), "a read of rows")
	}); err != nil {
		return nil, err
	}
	h.windows, err = upTo(readAhead, func() (window, error) { return newWindow(b, rows, width) })
	return h, err
}

func (h *sampler) free() {
	if h == nil {
		return
	}
	h.index.Free()
	for _, space := range h.spaces {
		space.Free()
	}
	for _, w := range h.windows {
		w.free()
	}
}

// inOrder visits the set in stored order.
func (h *sampler) inOrder(ctx context.Context, s *rowSet, visit visitor) error {
	switch {
	case s.count == 0:
		return nil
	case s.values != nil:
		return visit(microbatch{problem: &s.problem, width: h.width, x: s.values.S, at: s.places.S})
	}
	return h.stream(ctx, s, s.blocks, func(x []float32, at []uint32) error {
		return visit(microbatch{problem: &s.problem, width: h.width, x: x, at: at})
	})
}

// epoch visits every row of the set once, in an order that key decides.
func (h *sampler) epoch(ctx context.Context, s *rowSet, key uint64, visit visitor) error {
	random := rng.New(key)
	blocks := make([]block, len(s.blocks))
	for to, from := range random.Perm(len(blocks)) {
		blocks[to] = s.blocks[from]
	}
	if s.values == nil {
		return h.stream(ctx, s, blocks, func(x []float32, at []uint32) error {
			index := h.index.S[:len(at)]
			for i := range index {
				index[i] = int64(i)
			}
			return h.shuffled(random, microbatch{&s.problem, h.width, x, at, index}, visit)
		})
	}
	for _, window := range cut(blocks, h.width) {
		index := h.index.S[:0]
		for _, b := range window {
			for i := range b.count {
				index = append(index, b.first+i)
			}
		}
		if err := h.shuffled(random, microbatch{&s.problem, h.width, s.values.S, s.places.S, index}, visit); err != nil {
			return err
		}
	}
	return nil
}

// stream reads blocks, window by window, and calls use with the rows of each.
func (h *sampler) stream(ctx context.Context, s *rowSet, blocks []block, use func(x []float32, at []uint32) error) error {
	windows := cut(blocks, h.width)
	return ahead.Run(ctx, h.windows, len(windows),
		func(k int, w window) error { return h.fill(s, windows[k], w) },
		func(k int, w window) error {
			var n int64
			for _, b := range windows[k] {
				n += b.count
			}
			return use(w.x.S[:n*int64(h.width)], w.at.S[:n])
		})
}

// fill reads blocks into a window, one after the other, several at a time.
func (h *sampler) fill(s *rowSet, blocks []block, w window) error {
	var group errgroup.Group
	group.SetLimit(len(h.spaces))
	spaces := make(chan []float32, len(h.spaces))
	for _, space := range h.spaces {
		spaces <- space.S
	}
	x, at := w.x.S, w.at.S
	for _, b := range blocks {
		xs, places := x[:b.count*int64(h.width)], at[:b.count]
		x, at = x[len(xs):], at[len(places):]
		group.Go(func() error {
			space := <-spaces
			defer func() { spaces <- space }()
			return s.readBlock(b, xs, places, space)
		})
	}
	return group.Wait()
}

// shuffled visits the rows that the index of p lists, in random order.
func (h *sampler) shuffled(random *rng.Source, p microbatch, visit visitor) error {
	random.Shuffle(len(p.index), func(i, j int) { p.index[i], p.index[j] = p.index[j], p.index[i] })
	return visit(p)
}
