package labels

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/tiles"
	"ndls/train"
)

// encodeBest returns the function that encodes such rows. depths holds the depth of each run.
func (env labelsRun) encodeBest(depths []int) func(to []byte, panel int, row []float32) []byte {
	classes := len(env.Summary.Classes)
	per := packed.Panels(classes)
	return func(to []byte, panel int, row []float32) []byte {
		row = row[:min(packed.PanelColumns, classes-panel%per*packed.PanelColumns)]
		best := train.Argmax(row)
		logs, sum := averagesLogs(env.Plan, depths[panel/per]), 0.0
		for _, x := range row {
			if logs {
				sum += elementary.Exp(float64(x - row[best]))
			} else if x > 0 {
				sum += float64(x)
			}
		}
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(row[best]))
		to = binary.LittleEndian.AppendUint32(to, math.Float32bits(float32(sum)))
		return append(to, byte(best))
	}
}

// mergedRows is the number of rows of tiles that are merged at a time, beside a column block.
const mergedRows = 1 << 13

// mergeBytes returns the memory of merging.
func mergeBytes() int64 { return bestBytes(tiles.Together, mergedRows) }

// bestBytes returns the memory of eachBest for this number of panels and rows at a time.
func bestBytes(panels, batch int) int64 {
	return int64(batch)*(4+4+8+mergedRow) + 4*4096 + tiles.PiecesBytes(panels, batch, bestRow)
}

// bestClasses holds the best classes of some rows.
type bestClasses struct {
	class []int32
	value []float32
	sum   []float64
	raw   []byte // rows in stored form
}

// rows returns rows [lo, hi) of b.
func (b bestClasses) rows(lo, hi int) bestClasses {
	return bestClasses{b.class[lo:hi], b.value[lo:hi], b.sum[lo:hi], b.raw[lo*mergedRow : hi*mergedRow]}
}

// newBestClasses allocates n rows.
func (env labelsRun) newBestClasses(n int64) (b bestClasses, free func(), err error) {
	class, err := mem.Alloc[int32](env.Budget, n, "best classes")
	value, e1 := mem.Alloc[float32](env.Budget, n, "best values")
	sum, e2 := mem.Alloc[float64](env.Budget, n, "sums of values")
	raw, e3 := mem.Alloc[byte](env.Budget, n*mergedRow, "rows of best classes")
	free = func() {
		class.Free()
		value.Free()
		sum.Free()
		raw.Free()
	}
	if err = errors.Join(err, e1, e2, e3); err != nil {
		free()
		return b, nil, err
	}
	return bestClasses{class.S, value.S, sum.S, raw.S}, free, nil
}

// decode fills the rows from their stored form.
func (b bestClasses) decode() {
	for r := range b.class {
		row := b.raw[r*mergedRow:][:mergedRow]
		b.value[r] = math.Float32frombits(binary.LittleEndian.Uint32(row))
		b.class[r] = int32(binary.LittleEndian.Uint32(row[4:]))
		b.sum[r] = math.Float64frombits(binary.LittleEndian.Uint64(row[8:]))
	}
}

// encode writes the rows into their stored form.
func (b bestClasses) encode() {
	for r := range b.class {
		row := b.raw[r*mergedRow:][:mergedRow]
		binary.LittleEndian.PutUint32(row, math.Float32bits(b.value[r]))
		binary.LittleEndian.PutUint32(row[4:], uint32(b.class[r]))
		binary.LittleEndian.PutUint64(row[8:], math.Float64bits(b.sum[r]))
	}
}

// merge merges the rows of a piece of tiles, panel by panel. first is the first panel of the run.
func (b bestClasses) merge(p *tiles.Piece, lo, hi, first int, logs bool) {
	for k := range p.Panels {
		mergeBest(p.Panel(k)[lo*bestRow:hi*bestRow], p.First+k-first, logs, b.class, b.value, b.sum)
	}
}

// mergeBest merges the rows of panel k of a run, after the panels before it.
func mergeBest(part []byte, k int, logs bool, class []int32, value []float32, sum []float64) {
	for r := 0; len(part) > 0; r++ {
		best := math.Float32frombits(binary.LittleEndian.Uint32(part))
		s := float64(math.Float32frombits(binary.LittleEndian.Uint32(part[4:])))
		c := int32(k*packed.PanelColumns) + int32(part[8])
		part = part[bestRow:]
		switch {
		case k == 0:
			class[r], value[r], sum[r] = c, best, s
		case !logs && best <= value[r]:
			sum[r] += s
		case !logs:
			class[r], value[r], sum[r] = c, best, sum[r]+s
		case best <= value[r]:
			sum[r] += float64(s * elementary.Exp(float64(best-value[r])))
		default:
			class[r], value[r], sum[r] = c, best, float64(sum[r]*elementary.Exp(float64(value[r]-best)))+s
		}
	}
}

// bestSoFar returns the file of best classes so far of a run in an interval and the number of panels in it, or 0 panels if there is none.
func bestSoFar(cat *catalog.Catalog, interval, run int) (best catalog.Entry, panels int) {
	for _, e := range cat.Entries(catalog.KindBestClasses) {
		if int(e.Interval) == interval && int(e.Model) == run && int(e.Last-e.First) > panels {
			best, panels = e, int(e.Last-e.First)
		}
	}
	return best, panels
}

// eachBest visits the best class of each node of an interval among the first panels of a run, at most batch rows at a time. It reads the
// file of best classes so far, then the tiles.
func (env labelsRun) eachBest(ctx context.Context, m *tiles.Matrix, i, run, panels, batch int, logs bool,
	visit func(row int64, b bestClasses) error,
) error {
	first := run * packed.Panels(len(env.Summary.Classes))
	b, free, err := env.newBestClasses(int64(batch))
	if err != nil {
		return err
	}
	defer free()
	var soFar *tiles.PartReader
	e, merged := bestSoFar(env.Catalog, i, run)
	if merged > panels {
		return seal.Corrupt(e.Path, "it has %d panels of %d", merged, panels)
	}
	if merged > 0 {
		if soFar, err = tiles.OpenParts(ctx, env.Catalog, []catalog.Entry{e}, mergedRow); err != nil {
			return err
		}
		defer soFar.Close()
	}
	var pieces *tiles.Pieces
	if merged < panels {
		if pieces, err = m.Pieces(ctx, i, first+merged, panels-merged, batch); err != nil {
			return err
		}
		defer pieces.Close()
	}
	lo, hi := m.Bounds(i)
	for row := lo; row < hi; row += int64(batch) {
		n := int(min(int64(batch), hi-row))
		rows := b.rows(0, n)
		if merged > 0 {
			if err := env.readMerged(soFar, row, rows, row+int64(n) == hi); err != nil {
				return err
			}
		}
		for end := row; pieces != nil && end < row+int64(n); {
			p, err := pieces.Next()
			if err != nil {
				return err
			}
			at := int(p.Row - row)
			if err := share.Ranges(env.Resources.Threads, p.Rows, sharedRows, func(lo, hi int) error {
				rows.rows(at+lo, at+hi).merge(p, lo, hi, first, logs)
				return nil
			}); err != nil {
				return err
			}
			if p.Last {
				end = p.Row + int64(p.Rows)
			}
		}
		if err := visit(row, rows); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

// readMerged reads rows of a file of best classes, beginning at row. With last, it then checks the checksum of the file.
func (env labelsRun) readMerged(in *tiles.PartReader, row int64, b bestClasses, last bool) error {
	if err := in.Read(b.raw, row); err != nil {
		return err
	}
	if last {
		if err := in.Finish(); err != nil {
			return err
		}
	}
	return share.Ranges(env.Resources.Threads, len(b.class), sharedRows, func(lo, hi int) error {
		b.rows(lo, hi).decode()
		return nil
	})
}

// mergeTiles merges the committed tiles of panels [first, last) of an interval into the best classes so far of their runs, if these panels
// are next, and removes the tiles.
func (env labelsRun) mergeTiles(ctx context.Context, depths []int, interval, first, last int) error {
	per := packed.Panels(len(env.Summary.Classes))
	for first < last {
		run := first / per
		end := min(last, (run+1)*per)
		if err := env.mergeRun(ctx, interval, run, first-run*per, end-run*per, averagesLogs(env.Plan, depths[run])); err != nil {
			return err
		}
		first = end
	}
	return nil
}

// mergeRun merges the tiles of panels [first, last) of a run. A task that has all panels also merges panels before first which an earlier
// attempt left.
func (env labelsRun) mergeRun(ctx context.Context, interval, run, first, last int, logs bool) error {
	if _, merged := bestSoFar(env.Catalog, interval, run); merged < first && !env.Whole() {
		return nil
	}
	m := smoothedSoft(env.Env)
	before := run * packed.Panels(len(env.Summary.Classes))
	for {
		_, merged := bestSoFar(env.Catalog, interval, run)
		end := merged
		for end < last && end < merged+tiles.Together && m.Has(interval, before+end) {
			end++
		}
		if end == merged {
			return nil
		}
		if err := env.commitMerged(ctx, m, interval, run, end, logs); err != nil {
			return err
		}
	}
}

// commitMerged commits the best classes among the first panels of a run, and removes the files from which they were made.
func (env labelsRun) commitMerged(ctx context.Context, m *tiles.Matrix, interval, run, panels int, logs bool) error {
	lo, hi := m.Bounds(interval)
	first := run * packed.Panels(len(env.Summary.Classes))
	path := fmt.Sprintf("predictions/best/run-%03d/part-%05d.panels-%05d", run, interval, panels)
	merged := catalog.Describe(catalog.KindBestClasses, path).In(interval).Panels(first, first+panels).Holding(lo, hi).OfModel(run)
	if err := env.Catalog.Write(ctx, merged, func(f *catalog.File) error {
		return env.eachBest(ctx, m, interval, run, panels, mergedRows, logs, func(_ int64, b bestClasses) error {
			b.encode()
			_, err := f.Write(b.raw)
			return err
		})
	}); err != nil {
		return err
	}
	env.Disk.Look()
	return env.Catalog.Remove(ctx, func(e catalog.Entry) bool {
		if int(e.Interval) != interval {
			return false
		}
		switch e.Kind {
		case catalog.KindBestClasses:
			return int(e.Model) == run && int(e.Last) < first+panels
		case catalog.KindSmoothedSoftTile:
			return first <= int(e.Block) && int(e.Block) < first+panels
		}
		return false
	})
}

// merges makes out merge tiles as soon as they are stored. It reserves the memory until stop is called.
func (env labelsRun) merges(out *tiles.Matrix, depths []int) (stop func(), err error) {
	const what = "merging best classes"
	if err := env.Budget.Reserve(mergeBytes(), what); err != nil {
		return nil, err
	}
	held := mergeBytes()
	out.AfterStore(func(ctx context.Context, interval, first, last int) (err error) {
		env.Budget.Release(held)
		held = 0
		defer func() {
			if e := env.Budget.Reserve(mergeBytes(), what); e != nil {
				err = errors.Join(err, e)
				return
			}
			held = mergeBytes()
		}()
		return env.mergeTiles(ctx, depths, interval, first, last)
	})
	return func() { env.Budget.Release(held) }, nil
}
