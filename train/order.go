package train

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"ndls/internal/mem"
	"ndls/internal/rng"
)

const (
	// windowBytes and windowMaxRows bound the rows among which a sample order
	// shuffles freely, windowBlocks is the least number of places they come from.
	// All three decide the order, and so the weights.
	windowBytes   = 16 << 20
	windowMaxRows = 1 << 16
	windowBlocks  = 8
)

// windowRows is the number of rows of a full window.
func windowRows(width int) int64 {
	return min(max(windowBytes/(4*int64(width)), windowBlocks), windowMaxRows)
}

// block is a run of rows of a set that lie in one chunk: count of them after
// the first skip ones. The set has first rows before the block.
type block struct {
	chunk              int
	skip, count, first int64
}

// blocks cuts the set so that a full window holds windowBlocks blocks or more.
func (s *rowSet) blocks() []block {
	limit := windowRows(s.src.Width()) / windowBlocks
	var all []block
	var first int64
	for i, n := range s.perChunk {
		for skip := int64(0); skip < n; skip += limit {
			b := block{chunk: i, skip: skip, count: min(limit, n-skip), first: first}
			all = append(all, b)
			first += b.count
		}
	}
	return all
}

// shuffler visits a set in the order of an epoch: blocks in random order, and
// the rows of as many as fill a window in random order among themselves.
type shuffler struct {
	set    *rowSet
	blocks []block
	buf    *chunkBuffer // for a set that is not in memory
	x      *mem.Array[float32]
	y      *mem.Array[int32]
	index  *mem.Array[int64]
}

// shufflerBytes is the memory of a shuffler, without its chunk buffer.
func shufflerBytes(s *rowSet, streamed bool) int64 {
	rows := int64(microRows(s.src.Width()))
	if streamed {
		rows += windowRows(s.src.Width())
	}
	return rows*4*int64(s.src.Width()+1) + windowRows(s.src.Width())*8 + 3*4096
}

// newShuffler prepares visits of s, which is read through buf unless it is in
// memory.
func newShuffler(b *mem.Budget, s *rowSet, buf *chunkBuffer) (_ *shuffler, err error) {
	h := &shuffler{set: s, blocks: s.blocks(), buf: buf}
	defer func() {
		if err != nil {
			h.free()
			err = fmt.Errorf("train: %w", err)
		}
	}()
	window := windowRows(s.src.Width())
	rows := int64(microRows(s.src.Width()))
	if s.values == nil {
		rows += window
	}
	if h.x, err = mem.Alloc[float32](b, rows*int64(s.src.Width()), "the window of a sample order"); err != nil {
		return nil, err
	}
	if h.y, err = mem.Alloc[int32](b, rows, "the labels of a window"); err != nil {
		return nil, err
	}
	if h.index, err = mem.Alloc[int64](b, window, "the order of a window"); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *shuffler) free() {
	if h != nil {
		h.x.Free()
		h.y.Free()
		h.index.Free()
	}
}

// epoch visits every row of the set once, in an order that key decides.
func (h *shuffler) epoch(ctx context.Context, key uint64, visit visitor) error {
	random := rng.New(key)
	order := random.Perm(len(h.blocks))
	limit := windowRows(h.set.src.Width())
	for len(order) > 0 {
		var window []block
		var rows int64
		for len(order) > 0 && rows+h.blocks[order[0]].count <= limit {
			window = append(window, h.blocks[order[0]])
			rows += h.blocks[order[0]].count
			order = order[1:]
		}
		if err := h.visitWindow(ctx, window, random, visit); err != nil {
			return err
		}
	}
	return nil
}

func (h *shuffler) visitWindow(ctx context.Context, window []block, random *rng.Source, visit visitor) error {
	values, labels, index, err := h.open(ctx, window)
	if err != nil {
		return err
	}
	random.Shuffle(len(index), func(i, j int) { index[i], index[j] = index[j], index[i] })
	width := h.set.src.Width()
	step := microRows(width)
	x, y := h.x.S[:step*width], h.y.S[:step]
	for len(index) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(step, len(index))
		for k, i := range index[:n] {
			copy(x[k*width:], h.set.row(values, i))
			y[k] = labels[i]
		}
		if err := visit(x[:n*width], y[:n]); err != nil {
			return err
		}
		index = index[n:]
	}
	return nil
}

// open returns rows and labels, and which of them make the window, in order of
// its blocks.
func (h *shuffler) open(ctx context.Context, window []block) (values []float32, labels []int32, index []int64, err error) {
	index = h.index.S[:0]
	if h.set.values != nil {
		for _, b := range window {
			for i := range b.count {
				index = append(index, b.first+i)
			}
		}
		return h.set.values.S, h.set.labels.S, index, nil
	}
	width := h.set.src.Width()
	step := microRows(width)
	values, labels = h.x.S[step*width:], h.y.S[step:]
	places := make([]place, len(window))
	for k, b := range window {
		places[k] = place{b, int64(len(index))}
		for range b.count {
			index = append(index, int64(len(index)))
		}
	}
	return values, labels, index, h.fill(ctx, places, values, labels)
}

// place is a block and where its rows lie in the window.
type place struct {
	block
	at int64
}

// fill reads the rows of a window, each chunk once.
func (h *shuffler) fill(ctx context.Context, places []place, values []float32, labels []int32) error {
	slices.SortFunc(places, func(a, b place) int { return cmp.Compare(a.first, b.first) })
	for len(places) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		chunk := places[0].chunk
		read, start, err := h.buf.read(h.set.src, chunk)
		if err != nil {
			return err
		}
		rank := int64(0)
		h.set.each(chunk, func(row int64) {
			if p := places; len(p) > 0 && p[0].chunk == chunk && rank >= p[0].skip {
				at := p[0].at + rank - p[0].skip
				copy(h.set.row(values, at), h.set.row(read, row-start))
				labels[at] = h.set.problem.Labels[row]
				if rank == p[0].skip+p[0].count-1 {
					places = p[1:]
				}
			}
			rank++
		})
	}
	return nil
}
