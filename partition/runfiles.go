package partition

import (
	"context"
	"fmt"

	"ndls/catalog"
	"ndls/internal/extsort"
	"ndls/internal/progress"
	"ndls/internal/seal"
	"ndls/steps"
)

// catalogKeys keeps sorted keys in run files in the catalogue.
type catalogKeys[T extsort.Item] struct{ *job }

// runFiles returns the run files of numbers by input id.
func (j *job) runFiles() catalogKeys[uint64] { return catalogKeys[uint64]{j} }

func (c catalogKeys[T]) close() {}

func (c catalogKeys[T]) have(step string) []steps.Piece { return havePieces(c.cat, step) }

// save commits a run file.
func (c catalogKeys[T]) save(ctx context.Context, step string, p steps.Piece, s *extsort.Sorter[T], counts [2]int64) error {
	defer s.Close()
	return c.write(ctx, step, p, s.Keys(), s.InOrder, counts)
}

// write commits a run file of the keys that all visits in ascending order, at most `most`.
func (c catalogKeys[T]) write(ctx context.Context, step string, p steps.Piece, most int64, all visits[T], counts [2]int64) error {
	b := c.cat.Batch()
	defer b.Abort()
	if err := c.add(ctx, b, step, p, most, all, counts); err != nil {
		return err
	}
	return b.Commit(ctx)
}

// add adds such a run file to files that are committed together.
func (c catalogKeys[T]) add(ctx context.Context, b *catalog.Batch, step string, p steps.Piece, most int64, all visits[T],
	counts [2]int64,
) error {
	entry := keysOf(step, runPath(step, p)).Pieces(p.First, p.Last)
	if c.info.Weighted {
		entry.ValueType = catalog.Float32
	}
	return b.Write(ctx, entry, func(f *catalog.File) error { return c.fill(ctx, f, most, all, counts) })
}

// fill writes the keys that all visits to a run file.
func (c catalogKeys[T]) fill(ctx context.Context, f *catalog.File, most int64, all visits[T], counts [2]int64) error {
	w, err := extsort.NewRunWriter[T](c.o.Budget, f, most)
	if err != nil {
		return err
	}
	defer w.Free()
	meter := progress.Start(ctx, "writing sorted edges", 0, "edges")
	defer meter.Done()
	if err := all(func(keys []T) error {
		meter.Add(int64(len(keys)))
		return w.Write(keys)
	}); err != nil {
		return err
	}
	f.Rows, err = w.Close(counts)
	return err
}

// open opens the run files that make up some pieces of a step. all says that the files are read completely, so that a store may keep a
// copy.
func (c catalogKeys[T]) open(ctx context.Context, step string, p steps.Piece, all bool) (files extsort.RunFiles[T], err error) {
	open := c.cat.OpenOnce
	if all {
		open = c.cat.Open
	}
	next := p.First
	for _, e := range runs(c.cat, step) {
		q := pieceOf(e)
		if q.Last <= p.First || q.First >= p.Last {
			continue
		}
		if q.First != next || q.Last > p.Last {
			break
		}
		next = q.Last
		file, err := open(ctx, e)
		if err != nil {
			files.Close()
			return nil, err
		}
		r, err := extsort.OpenRun[T](c.o.Budget, file, e.Path)
		if err != nil {
			_ = file.Close()
			files.Close()
			return nil, err
		}
		files = append(files, r)
	}
	if next != p.Last {
		files.Close()
		return nil, fmt.Errorf("the files of step %s end at piece %d; pieces %d to %d are needed: %w", step, next, p.First, p.Last, seal.ErrCorrupt)
	}
	return files, nil
}

// sorter merges the keys in [lo, hi) of files, which it takes over.
func (c catalogKeys[T]) sorter(ctx context.Context, files extsort.RunFiles[T], lo, hi uint64) *extsort.Sorter[T] {
	return extsort.Merge(ctx, c.o.Budget, c.scratch, c.o.Threads, files, lo, hi)
}
