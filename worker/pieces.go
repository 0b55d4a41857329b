package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"ndls/catalog"
	"ndls/internal/seal"
	"ndls/internal/storage"
)

// piece is a file with rows [lo, hi) of something.
type piece struct {
	lo, hi int64
	e      catalog.Entry
}

// cover chooses, of files that may overlap, those that together have rows [lo, hi), in
// order. What rows of two of them have in common is the same.
func cover(all []piece, lo, hi int64) (list []piece, whole bool) {
	for lo < hi {
		next := piece{hi: lo}
		for _, p := range all {
			if p.lo <= lo && p.hi > next.hi {
				next = p
			}
		}
		if next.hi == lo {
			return nil, false
		}
		list, lo = append(list, next), next.hi
	}
	return list, true
}

// meeting are the pieces that have rows of [lo, hi).
func meeting(list []piece, lo, hi int64) []piece {
	return slices.DeleteFunc(list, func(p piece) bool { return lo < hi && (p.hi <= lo || p.lo >= hi) })
}

// pieceReader is such files, open.
type pieceReader struct {
	list []piece
	open []storage.Reader
	size int64 // of a row
}

// openPieces verifies and opens files whose rows have the given size.
func openPieces(ctx context.Context, cat *catalog.Catalog, list []piece, size int64) (*pieceReader, error) {
	p := &pieceReader{list: list, size: size}
	for _, x := range list {
		if err := cat.Verify(ctx, x.e); err != nil {
			p.close()
			return nil, err
		}
		r, err := cat.Open(ctx, x.e)
		if err != nil {
			p.close()
			return nil, err
		}
		p.open = append(p.open, r)
	}
	return p, nil
}

func (p *pieceReader) close() {
	for _, r := range p.open {
		_ = r.Close()
	}
}

// read fills buf with whole rows from row on.
func (p *pieceReader) read(buf []byte, row int64) error {
	for i, x := range p.list {
		if row < x.lo || row >= x.hi {
			continue
		}
		part := buf[:min(int64(len(buf)), (x.hi-row)*p.size)]
		if _, err := p.open[i].ReadAt(part, (row-x.lo)*p.size); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("worker: %s: %w", x.e.Path, err)
		}
		buf, row = buf[len(part):], row+int64(len(part))/p.size
	}
	if len(buf) > 0 {
		return fmt.Errorf("worker: no rows from %d on: %w", row, seal.ErrCorrupt)
	}
	return nil
}

// joinRows is how many rows of a tile are copied at a time.
const joinRows = 1 << 14

// joinTiles commits the tiles of intervals [first, last) of which there are pieces, and
// removes those.
func (j *job) joinTiles(ctx context.Context, t *tiles, first, last int) error {
	for i := first; i < last; i++ {
		for g := range t.granules() {
			if _, ok := t.whole(i, g); ok {
				continue
			}
			if err := j.joinTile(ctx, t, i, g); err != nil {
				return err
			}
		}
		if err := j.dropTiles(ctx, int32(i), t.partKind); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) joinTile(ctx context.Context, t *tiles, interval, granule int) error {
	list, err := t.entry(interval, granule)
	if err != nil {
		return err
	}
	rows, err := openPieces(ctx, t.cat, list, t.rowBytes())
	if err != nil {
		return err
	}
	defer rows.close()
	f, err := t.create(ctx, interval, granule)
	if err != nil {
		return err
	}
	defer f.Abort()
	lo, hi := t.bounds(interval)
	buf := make([]byte, joinRows*t.rowBytes())
	for ; lo < hi; lo += joinRows {
		part := buf[:min(joinRows, hi-lo)*t.rowBytes()]
		if err := rows.read(part, lo); err != nil {
			return err
		}
		if _, err := f.Write(part); err != nil {
			return err
		}
	}
	return t.cat.Commit(ctx, f)
}
