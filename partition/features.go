package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"ndls/catalog"
	"ndls/dataset"
	"ndls/internal/direct"
	"ndls/internal/inorder"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/shards"
	"ndls/steps"
	"ndls/tiles"
)

// eachFeatureRow visits the feature rows in the order of the dataset; rows count from 1.
func (j *job) eachFeatureRow(ctx context.Context, what string, visit func(row int64, f dataset.FeatureRow) error) (err error) {
	if err := j.o.Budget.Reserve(j.info.RowMemory, "reading features"); err != nil {
		return err
	}
	defer j.o.Budget.Release(j.info.RowMemory)
	r, err := j.fitting().openFeatures(ctx, allSlices)
	if err != nil {
		return err
	}
	meter := progress.Start(ctx, what, max(j.info.NumNodes, 0), "rows")
	defer meter.Done()
	return eachRow(ctx, r, meter, func(row int64) error {
		f, err := r.Next()
		if err == nil {
			err = visit(row, f)
		}
		return err
	})
}

// tiling holds the steps Deal, Tiles and Columns: they write the feature tiles.
type tiling struct{ *job }

// writeColumns commits the feature tiles of some panels.
func (j tiling) writeColumns(ctx context.Context, p steps.Piece) error {
	return j.withNodes(ctx, func() error { return j.writeTiles(ctx, j.ordered.panels(p)) })
}

// chooseNorm finds out whether rows are divided by the sum of their absolute values.
func (j tiling) chooseNorm(ctx context.Context) (err error) {
	if err := j.o.Budget.Reserve(j.info.RowMemory, "reading features"); err != nil {
		return err
	}
	defer j.o.Budget.Release(j.info.RowMemory)
	j.ordered.L1, j.ordered.Choice, err = normalizes(ctx, j.o.Normalize, j.ds, j.columns, j.holds)
	return err
}

// withNodes calls do with everything that reading feature rows of nodes needs.
func (j tiling) withNodes(ctx context.Context, do func() error) error {
	if err := j.nodeTable().ensureRelabelling(ctx); err != nil {
		return err
	}
	if err := j.numbering().load(ctx); err != nil {
		return err
	}
	defer j.numbering().free()
	defer func() { j.blank.Free() }()
	if err := j.drawBlank(ctx); err != nil {
		return err
	}
	return do()
}

// writeTiles commits the missing feature tiles of panels: float16 if every feature known so far is exactly one, else float32.
func (j tiling) writeTiles(ctx context.Context, p steps.Piece) error {
	if !hasFullTiles(j.cat) {
		if err := j.writeTilesAs(ctx, p, true); !errors.Is(err, errNotHalf) {
			return err
		}
	}
	if err := j.cat.Remove(ctx, func(e catalog.Entry) bool {
		isTile := e.Kind == catalog.KindFeatures || e.Kind == catalog.KindUnfilled
		return isTile && tiles.Half(e) && p.First <= int(e.Block) && int(e.Block) < p.Last
	}); err != nil {
		return err
	}
	return j.writeTilesAs(ctx, p, false)
}

// tilesOf returns the feature tiles of one type.
func (j tiling) tilesOf(half bool) *tiles.Matrix {
	s := shards.Summary{Nodes: j.ordered.Nodes, IntervalRows: j.intervalRows(), Features: j.info.NumFeatures}
	if half {
		s.FeatureType = shards.Float16
	}
	l := tiles.Features(s)
	if j.columns.FromNeighbours() {
		l = Unfilled(j.cat, s)
		l.Half = half
	}
	return tiles.Open(j.cat, j.o.Budget, l)
}

// writeTilesAs keeps as many tiles in memory as fit and reads the features once for each lot. If that needs more than maxScans readings, it
// reads them once and spills them.
func (j tiling) writeTilesAs(ctx context.Context, p steps.Piece, half bool) error {
	return j.readingFeatures(func(seen []uint64, readers int) error { return j.writeLots(ctx, p, half, seen, readers) })
}

// readingFeatures calls read with a bit per node and the number of threads that read features, and holds their memory meanwhile.
func (j tiling) readingFeatures(read func(seen []uint64, readers int) error) error {
	seen, err := mem.Alloc[uint64](j.o.Budget, (j.ids.n+63)/64, "rows seen")
	if err != nil {
		return err
	}
	defer seen.Free()
	readers, err := j.takeReaders(j.info.RowMemory)
	if err != nil {
		return err
	}
	defer readers.release()
	return read(seen.S, readers.n)
}

// writeLots writes tiles, one lot at a time.
func (j tiling) writeLots(ctx context.Context, p steps.Piece, half bool, seen []uint64, readers int) (err error) {
	lot := tileLot(j.o.Budget.Free(), j.ids.n, p.Last-p.First, half)
	matrix := j.tilesOf(half)
	var commit errgroup.Group // commits a group of tiles while the next one is made
	for first := p.First; first < p.Last && err == nil; first += lot {
		w := &tileWriter{
			tiling: j, tiles: matrix, commit: &commit, readers: readers, part: allSlices, first: first,
			last: min(first+lot, p.Last), seen: seen,
		}
		err = w.run(ctx)
	}
	return cmp.Or(commit.Wait(), err) // errNotHalf must not hide a failed disk
}

// tileWriter makes the tiles [first, last) from one reading of the features, or of a part of them.
type tileWriter struct {
	tiling
	tiles       *tiles.Matrix
	commit      *errgroup.Group
	readers     int         // threads that read features
	part        steps.Piece // of the features
	first, last int
	seen        []uint64     // a bit for each node
	count       atomic.Int64 // rows put
	store       rowStore
}

func (w *tileWriter) run(ctx context.Context) (err error) {
	if w.tiles.FirstMissing(w.first, w.last) == w.last {
		return nil
	}
	if w.store, err = w.newStore(); err != nil {
		return err
	}
	defer func() { w.store.close() }()
	if err := w.readFeatures(ctx); err != nil {
		return err
	}
	if err := w.store.seal(); err != nil {
		return err
	}
	meter := progress.Start(ctx, "writing feature tiles", w.ids.n*int64(w.last-w.first), "rows")
	defer meter.Done()
	for i := range w.ordered.Intervals {
		for first := w.first; first < w.last; first += tileGroup {
			if err := w.writeGroup(ctx, i, first, min(first+tileGroup, w.last), meter); err != nil {
				return err
			}
		}
	}
	return nil
}

// newStore returns a store in memory if the rows fit, else one that spills.
func (w *tileWriter) newStore() (rowStore, error) {
	panels, rowBytes := w.last-w.first, int64(shards.TileRowBytes(w.tiles.Half))
	free := w.o.Budget.Free()
	if w.ids.n*int64(panels)*rowBytes+direct.Align <= free {
		return newMemoryRows(w.o.Budget, w.ids.n, w.intervalRows(), panels, rowBytes)
	}
	return newSpilledRows(w.o.Budget, free, w.o.Threads, w.scratch, w.ids.n, w.intervalRows(), panels, w.tiles.Half)
}

// featureRows is a batch of dense rows between the dataset and a store.
type featureRows struct {
	first   int64 // row number of the first
	ids     []uint32
	nodes   []uint32 // of the ids
	values  []float32
	encoded []byte // a row in tile form
}

func (w *tileWriter) newBatches(n, width int) []featureRows {
	rows := max(featureBatch/(4*width), 1)
	batches := make([]featureRows, n)
	for i := range batches {
		batches[i] = featureRows{
			0, make([]uint32, 0, rows), make([]uint32, 0, rows), make([]float32, rows*width),
			make([]byte, (w.last-w.first)*shards.TileRowBytes(w.tiles.Half)),
		}
	}
	return batches
}

// readFeatures stores every node's row. It refuses a second row of a node and, unless it reads only a part, a missing row.
func (w *tileWriter) readFeatures(ctx context.Context) error {
	err := w.readRows(ctx, w.o.Threads)
	if (w.o.Threads > 1 || w.part != allSlices) && errors.Is(err, dataset.ErrData) {
		// Several threads, or a part, cannot tell which row is bad and whether it is the first bad one.
		w.store.close()
		w.store, w.part = noRows{w.tiles.Half}, allSlices
		err = cmp.Or(w.readRows(ctx, 1), err)
	}
	if err != nil || w.part != allSlices {
		return err
	}
	return w.checkMissing(ctx)
}

// checkMissing refuses nodes without a row.
func (w *tileWriter) checkMissing(ctx context.Context) error {
	if missing := w.ids.n - w.count.Load(); missing > 0 {
		return w.ids.each(func(rank, id uint32) error {
			if node := w.nodeOf.S[rank]; w.seen[node/64]>>(node%64)&1 == 0 {
				return dataset.LackingFeatures(ctx, w.ds, id, missing)
			}
			return nil
		})
	}
	return nil
}

// readRows stores all rows. Each thread reads and encodes some of them. If rows can only be read from the first, one thread reads and all
// encode. A single thread stores them in the order of the dataset.
func (w *tileWriter) readRows(ctx context.Context, threads int) (err error) {
	clear(w.seen)
	w.count.Store(0)
	meter := progress.Start(ctx, "reading features", w.ids.n, "rows")
	defer meter.Done()
	put := func(b *featureRows) error { return w.put(ctx, b, meter) }
	if threads > 1 && w.readers > 1 && w.info.CutsFeatures {
		return inParts(ctx, w.readers, w.part, func(ctx context.Context) func(steps.Piece) error {
			batch := &w.newBatches(1, w.width())[0]
			return func(p steps.Piece) (err error) {
				r, err := w.openRows(ctx, p)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, r.Close()) }()
				for {
					if err := r.fill(batch); errors.Is(err, io.EOF) {
						return nil
					} else if err != nil {
						return err
					}
					if err := put(batch); err != nil {
						return err
					}
				}
			}
		})
	}
	r, err := w.openRows(ctx, w.part)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if threads == 1 {
		threads = 0 // this thread
	}
	line := inorder.New(threads, w.newBatches(threads+2, w.width()), put, func(*featureRows) error { return nil })
	for {
		b, err := line.Next()
		if err == nil {
			err = r.fill(b)
		}
		if errors.Is(err, io.EOF) {
			return line.Close()
		}
		if err != nil {
			return cmp.Or(line.Close(), err)
		}
		line.Put()
	}
}

// put stores the columns of some rows that belong to the tiles.
func (w *tileWriter) put(ctx context.Context, b *featureRows, meter *progress.Meter) error {
	if len(b.ids) == 0 {
		return ctx.Err()
	}
	b.nodes = b.nodes[:0]
	for i, id := range b.ids {
		node, err := w.node(id, "feature", b.first+int64(i))
		if err != nil {
			return err
		}
		if bit := uint64(1) << (node % 64); atomic.OrUint64(&w.seen[node/64], bit)&bit != 0 {
			return dataset.Repeated(ctx, w.ds, dataset.FeatureRows, id)
		}
		if w.blanked(node) {
			clear(b.values[i*w.width():][:w.width()])
		}
		b.nodes = append(b.nodes, node)
	}
	if err := w.store.put(b.nodes, b.values[:len(b.ids)*w.width()], b.encoded); err != nil {
		return err
	}
	w.count.Add(int64(len(b.ids)))
	meter.Add(int64(len(b.ids)))
	return ctx.Err()
}

// width returns the number of columns of the tiles.
func (w *tileWriter) width() int { return (w.last - w.first) * packed.PanelColumns }

// rowReader reads the columns of some tiles as dense rows, normalised if required. Columns past the width of the features are zero.
type rowReader struct {
	dataset.FeatureReader
	job         *job
	row         int64 // rows read
	first, last int   // columns wanted
	width       int   // of the tiles
	whole       []float32
}

// openRows opens a part of the rows, if the dataset can be cut, or all rows.
func (w *tileWriter) openRows(ctx context.Context, p steps.Piece) (r *rowReader, err error) {
	r = &rowReader{
		job: w.job, first: w.first * packed.PanelColumns, last: min(w.last*packed.PanelColumns, w.info.NumFeatures), width: w.width(),
	}
	if r.FeatureReader, err = w.fitting().openFeatures(ctx, p); err != nil {
		return nil, err
	}
	if some, ok := r.FeatureReader.(dataset.ColumnSelector); ok && !w.normalize() {
		some.SelectColumns(r.first, r.last)
	} else {
		r.whole = make([]float32, w.info.NumFeatures)
	}
	return r, nil
}

// fill reads the next rows.
func (r *rowReader) fill(b *featureRows) error {
	b.first, b.ids = r.row+1, b.ids[:0]
	for len(b.ids) < cap(b.ids) {
		f, err := r.Next()
		if errors.Is(err, io.EOF) && len(b.ids) > 0 {
			return nil
		}
		if err != nil {
			return err
		}
		r.row++
		if !r.job.holds(f.ID) {
			continue
		}
		if err := r.expand(b.values[len(b.ids)*r.width:][:r.last-r.first], f); err != nil {
			return badData("%s: feature row %d, node %s: %v", r.job.info.Name, r.row, dataset.NodeName(r.FeatureReader, f.ID), err)
		}
		b.ids = append(b.ids, f.ID)
	}
	return nil
}

// expand writes the wanted columns of a row to dense.
func (r *rowReader) expand(dense []float32, f dataset.FeatureRow) error {
	if f.Dense != nil && r.whole == nil {
		copy(dense, f.Dense)
		return nil
	}
	if f.Dense != nil {
		if len(f.Dense) != len(r.whole) {
			return fmt.Errorf("%d values, not %d", len(f.Dense), len(r.whole))
		}
		copy(r.whole, f.Dense)
	} else {
		clear(r.whole)
		for i, c := range f.Indices {
			if int64(c) >= int64(len(r.whole)) {
				return fmt.Errorf("column %d is not below the width %d", c, len(r.whole))
			}
			r.whole[c] = f.Values[i]
		}
	}
	if r.job.normalize() {
		NormalizeRow(r.whole)
	}
	copy(dense, r.whole[r.first:r.last])
	return nil
}

// NormalizeRow divides the values of a row by the sum of their absolute values; a row of zeros stays. A sparse row may leave out its zeros.
func NormalizeRow(row []float32) {
	sum := 0.0
	for _, x := range row {
		sum += math.Abs(float64(x))
	}
	if sum == 0 {
		return
	}
	for i, x := range row {
		row[i] = float32(float64(x) / sum)
	}
}

// writeGroup writes the missing tiles among [first, last) of one interval and starts to commit them, all or none.
func (w *tileWriter) writeGroup(ctx context.Context, interval, first, last int, meter *progress.Meter) (err error) {
	g, err := w.tiles.Create(ctx, interval, first, last)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			g.Abort()
		}
	}()
	if g.Whole() {
		return nil
	}
	lo, hi := w.tiles.Bounds(interval)
	for ; lo < hi; lo += w.store.cellRows() {
		end := min(lo+w.store.cellRows(), hi)
		cells, err := w.store.load(ctx, lo, end, first-w.first, last-w.first)
		if err != nil {
			return err
		}
		var writes errgroup.Group
		writes.SetLimit(w.o.Threads)
		for i, cell := range cells {
			writes.Go(func() error { return g.Write(first+i, cell) })
		}
		if err := errors.Join(writes.Wait(), ctx.Err()); err != nil {
			return err
		}
		meter.Add((end - lo) * int64(len(cells)))
	}
	if err := w.commit.Wait(); err != nil {
		return err
	}
	w.commit.Go(func() error { return g.Commit(ctx) })
	return nil
}

func (j *job) tiling() tiling { return tiling{j} }

// drawBlank sets j.blank, which the caller frees.
func (j tiling) drawBlank(ctx context.Context) (err error) {
	if j.o.BlankFeatures == 0 {
		return nil
	}
	if j.blank, err = mem.Alloc[uint64](j.o.Budget, (j.ids.n+63)/64, "blanked rows"); err != nil {
		return err
	}
	nodes, want := j.nodeTable(), shards.NodeID|shards.NodeLabel|shards.NodeSplit
	return nodes.eachNodes(ctx, want, nodes.readers(), func(first int64, b shards.NodeBatch) error {
		for i, id := range b.ID {
			if j.o.blanks(id, b.Label[i], b.Split[i]) {
				node := first + int64(i)
				j.blank.S[node/64] |= 1 << (node % 64)
			}
		}
		return ctx.Err()
	})
}

// blanked reports whether the features of a node are blanked.
func (j *job) blanked(node uint32) bool {
	return j.blank != nil && j.blank.S[node/64]>>(node%64)&1 == 1
}
