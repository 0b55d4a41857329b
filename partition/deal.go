package partition

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/internal/storage"
	"ndls/steps"
)

// If feature rows can be read from the middle, several workers read each row once. The step Deal leaves the rows of a part in the cells of
// a file: a cell is an interval. The step Tiles makes tiles from the cells of an interval in all files. A file ends with its
// [cellIndex]. Values are float16 if all values of the file are exactly float16, else float32.

// dealtCells returns the cells of a file of the step Deal.
func (j tiling) dealtCells(half bool) cells {
	nodes, panels := j.ordered.Nodes, j.ordered.Panels
	interval := min(j.intervalRows(), nodes)
	return cells{nodes: nodes, interval: interval, rows: interval, panels: panels, half: half}
}

// dealFeatures leaves the rows of a part of the features by interval. It writes values as float16, unless a value of this part, or of
// another part written so far, is not exactly float16; then as float32.
func (j tiling) dealFeatures(ctx context.Context, p steps.Piece) error {
	if p.In(havePieces(j.cat, Deal)) {
		return nil
	}
	return j.withNodes(ctx, func() error {
		if !hasFullTiles(j.cat) {
			if err := j.dealAs(ctx, p, true); !errors.Is(err, errNotHalf) {
				return err
			}
		}
		return j.dealAs(ctx, p, false)
	})
}

func (j tiling) dealAs(ctx context.Context, p steps.Piece, half bool) error {
	return j.readingFeatures(func(seen []uint64, readers int) error {
		// Two attempts write rows in different orders, so each has its own file name.
		path := runPath(Deal, p) + "-" + strings.ToLower(rand.Text()[:8])
		return j.cat.Write(ctx, keysOf(Deal, path).Pieces(p.First, p.Last), func(f *catalog.File) error {
			d, err := newCellWriter(j.o.Budget, j.o.Budget.Free()/2, j.dealtCells(half), true, func(chunk []byte) error {
				_, err := f.Write(chunk)
				return err
			})
			if err != nil {
				return err
			}
			w := &tileWriter{tiling: j, tiles: j.tilesOf(half), readers: readers, part: p, last: j.ordered.Panels, seen: seen, store: d}
			defer func() { w.store.close() }()
			if err := w.readFeatures(ctx); err != nil {
				return err
			}
			f.Rows = w.count.Load()
			if err := d.seal(); err != nil {
				return err
			}
			return sealIndex(f, d.index())
		})
	})
}

// writeDealt commits the tiles of pieces [First, Last) of the step Tiles: panel p of interval i is piece i·panels + p.
func (j tiling) writeDealt(ctx context.Context, p steps.Piece) (err error) {
	panels := j.ordered.Panels
	store, err := j.openDealt(ctx)
	if err != nil {
		return err
	}
	defer store.close()
	var commit errgroup.Group
	defer func() { err = errors.Join(err, commit.Wait()) }()
	w := &tileWriter{tiling: j, tiles: j.tilesOf(store.half), commit: &commit, last: panels, store: store}
	meter := progress.Start(ctx, "writing feature tiles", 0, "rows")
	defer meter.Done()
	wide := store.widest()
	for at := p.First; at < p.Last; {
		interval, first := at/panels, at%panels
		end := min(first+wide, panels, first+p.Last-at)
		if err := store.alloc(end-first, j.o.Threads); err != nil {
			return err
		}
		if err := w.writeGroup(ctx, interval, first, end, meter); err != nil {
			if errors.Is(err, errRows) {
				return cmp.Or(j.explainRows(ctx), err)
			}
			return err
		}
		at += end - first
	}
	return nil
}

// explainRows reads all rows to find the node that has none, or several.
func (j tiling) explainRows(ctx context.Context) error {
	return j.withNodes(ctx, func() error {
		return j.readingFeatures(func(seen []uint64, readers int) error {
			w := &tileWriter{
				tiling: j, tiles: j.tilesOf(false), readers: readers, part: allSlices, last: j.ordered.Panels, seen: seen, store: noRows{},
			}
			return w.readFeatures(ctx)
		})
	})
}

// openDealt opens the files of the step Deal.
func (j tiling) openDealt(ctx context.Context) (*cellReader, error) {
	r := &cellReader{cells: j.dealtCells(true), budget: j.o.Budget}
	end := 0
	for _, e := range runs(j.cat, Deal) {
		piece := pieceOf(e)
		if piece.First < end {
			continue // another attempt has left the same rows
		}
		end = piece.Last
		f := cellFile{name: e.Path, open: func(ctx context.Context) (chunkReader, error) {
			in, err := j.cat.OpenOnce(ctx, e)
			return dealtChunks{in}, err
		}}
		in, err := j.cat.OpenOnce(ctx, e)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(readIndex(in, e.Path, &f.index), in.Close()); err != nil {
			return nil, err
		}
		if int64(len(f.index.Rows)) != r.count() {
			return nil, seal.Corrupt(e.Path, "its index has %d cells, and the features have %d", len(f.index.Rows), r.count())
		}
		r.half = r.half && f.index.Half
		r.files = append(r.files, f)
	}
	return r, nil
}

// dealtChunks reads a file of the step Deal.
type dealtChunks struct{ storage.Reader }

func (dealtChunks) done(_, _ int64) {}
