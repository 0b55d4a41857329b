package partition

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"ndls/dataset"
	"ndls/internal/mem"
	"ndls/internal/progress"
	"ndls/shards"
)

const (
	tileColumns = shards.TileColumns
	// tilePrefix is the folder of feature tiles in a run directory.
	tilePrefix = "graph/features"
	// tileGroup is how many tiles are written at a time: each holds buffers
	// for direct I/O.
	tileGroup = 4
)

// eachFeatureRow visits the feature rows in the dataset's order; rows count
// from 1.
func (j *job) eachFeatureRow(ctx context.Context, what string, visit func(row int64, f dataset.FeatureRow) error) (err error) {
	r, err := j.ds.Features(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	total := max(j.info.NumNodes, 0)
	if j.nodeOf != nil {
		total = j.ids.n
	}
	meter := progress.Start(ctx, what, total, "rows")
	defer meter.Done()
	for row := int64(1); ; row++ {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = visit(row, f)
		}
		if err == nil && row%1024 == 0 {
			meter.Add(1024)
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// rowStore takes rows in any order and gives tiles.
type rowStore interface {
	// put takes the row of a node, padded to whole tiles. No node comes twice.
	put(node uint32, row []float32) error
	// seal ends the putting; every node has had its row.
	seal() error
	// cellRows is how many rows load may be asked for at most, counted from
	// the start of an interval.
	cellRows() int64
	// load gives the columns of the tiles [first, last) of one group for the
	// rows [lo, hi), one slice a tile, valid until the next call.
	load(lo, hi int64, first, last int) ([][]float32, error)
	close()
}

// writeTiles commits the feature tiles that are missing.
func (j *job) writeTiles(ctx context.Context) (err error) {
	granules := (j.info.NumFeatures + tileColumns - 1) / tileColumns
	if len(j.cat.Entries(shards.KindFeatures)) == granules*j.intervals() {
		return nil
	}
	store, err := j.newRowStore(granules)
	if err != nil {
		return err
	}
	defer store.close()
	if err := j.readFeatures(ctx, store, granules*tileColumns); err != nil {
		return err
	}
	if err := store.seal(); err != nil {
		return err
	}
	meter := progress.Start(ctx, "writing feature tiles", j.ids.n*int64(granules), "rows")
	defer meter.Done()
	for i := range j.intervals() {
		for first := 0; first < granules; first += tileGroup {
			if err := j.writeTileGroup(ctx, store, i, first, min(first+tileGroup, granules), meter); err != nil {
				return err
			}
		}
	}
	return nil
}

// newRowStore keeps the rows in memory if they fit.
func (j *job) newRowStore(granules int) (rowStore, error) {
	// The bitmap of readFeatures comes on top.
	free := j.o.Budget.Free() - j.ids.n/8 - 8192
	if j.ids.n*int64(granules)*tileColumns*4 <= free {
		return newMemoryRows(j.o.Budget, j.ids.n, j.intervalRows(), granules)
	}
	return newSpilledRows(j.o.Budget, free, j.scratch, j.ids.n, j.intervalRows(), granules)
}

// readFeatures hands every node's row to the store, and refuses a missing and a
// second one.
func (j *job) readFeatures(ctx context.Context, store rowStore, width int) error {
	seen, err := mem.Alloc[uint64](j.o.Budget, (j.ids.n+63)/64, "rows seen")
	if err != nil {
		return err
	}
	defer seen.Free()
	dense := make([]float32, width)
	count := int64(0)
	if err := j.eachFeatureRow(ctx, "reading features", func(row int64, f dataset.FeatureRow) error {
		node, err := j.node(f.ID, "feature", row)
		if err != nil {
			return err
		}
		if seen.S[node/64]>>(node%64)&1 == 1 {
			return fmt.Errorf("partition: %s: feature row %d is a second one of node %d: keep one of the two", j.info.Name, row, f.ID)
		}
		seen.S[node/64] |= 1 << (node % 64)
		count++
		if err := j.expand(dense, f); err != nil {
			return fmt.Errorf("partition: %s: feature row %d, node %d: %w", j.info.Name, row, f.ID, err)
		}
		return store.put(node, dense)
	}); err != nil {
		return err
	}
	if count == j.ids.n {
		return nil
	}
	return j.ids.each(func(rank, id uint32) error {
		if node := j.nodeOf.S[rank]; seen.S[node/64]>>(node%64)&1 == 0 {
			return fmt.Errorf("partition: %s: node %d has no feature row, nor have %d others: give every node one row, or run without features",
				j.info.Name, id, j.ids.n-count-1)
		}
		return nil
	})
}

// expand writes a row into dense, normalised if asked for. Columns past the
// width stay zero.
func (j *job) expand(dense []float32, f dataset.FeatureRow) error {
	if f.Dense != nil {
		if len(f.Dense) != j.info.NumFeatures {
			return fmt.Errorf("%d values, not %d", len(f.Dense), j.info.NumFeatures)
		}
		copy(dense, f.Dense)
	} else {
		clear(dense)
		for i, c := range f.Indices {
			if int64(c) >= int64(j.info.NumFeatures) {
				return fmt.Errorf("column %d is not below the width %d", c, j.info.NumFeatures)
			}
			dense[c] = f.Values[i]
		}
	}
	if j.normalize() {
		normalizeL1(dense)
	}
	return nil
}

// normalizeL1 divides a row by the sum of its absolute values; a row of zeros
// stays.
func normalizeL1(row []float32) {
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

// writeTileGroup commits the tiles [first, last) of one interval, all or none.
func (j *job) writeTileGroup(ctx context.Context, store rowStore, interval, first, last int, meter *progress.Meter) error {
	if _, ok := j.cat.Lookup(shards.TilePath(tilePrefix, interval, first)); ok {
		return nil
	}
	files := make([]*shards.File, last-first)
	lo, hi := j.interval(interval)
	for i := range files {
		f, err := j.cat.Create(ctx, shards.KindFeatures, shards.TilePath(tilePrefix, interval, first+i), int32(interval), int32(first+i))
		if err != nil {
			return err
		}
		defer f.Abort()
		f.Rows = hi - lo
		files[i] = f
	}
	for ; lo < hi; lo += store.cellRows() {
		end := min(lo+store.cellRows(), hi)
		tiles, err := store.load(lo, end, first, last)
		if err != nil {
			return err
		}
		for i, tile := range tiles {
			if _, err := files[i].Write(mem.AsBytes(tile)); err != nil {
				return err
			}
			meter.Add(end - lo)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return j.cat.Commit(ctx, files...)
}

// memoryRows keeps all rows in memory, tile after tile.
type memoryRows struct {
	n, interval int64
	values      *mem.Array[float32]
}

func newMemoryRows(b *mem.Budget, n, interval int64, granules int) (*memoryRows, error) {
	values, err := mem.Alloc[float32](b, n*int64(granules)*tileColumns, "features")
	return &memoryRows{n, interval, values}, err
}

func (m *memoryRows) put(node uint32, row []float32) error {
	at := int64(node) * tileColumns
	for ; len(row) > 0; row = row[tileColumns:] {
		copy(m.values.S[at:], row[:tileColumns])
		at += m.n * tileColumns
	}
	return nil
}

func (m *memoryRows) seal() error     { return nil }
func (m *memoryRows) cellRows() int64 { return m.interval }
func (m *memoryRows) close()          { m.values.Free() }

func (m *memoryRows) load(lo, hi int64, first, last int) ([][]float32, error) {
	tiles := make([][]float32, 0, tileGroup)
	for g := int64(first); g < int64(last); g++ {
		tiles = append(tiles, m.values.S[(g*m.n+lo)*tileColumns:(g*m.n+hi)*tileColumns])
	}
	return tiles, nil
}
