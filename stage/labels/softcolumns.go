package labels

import (
	"context"
	"errors"
	"fmt"
	"math"

	"ndls/estimate"
	"ndls/hops"
	"ndls/internal/ahead"
	"ndls/internal/control"
	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/share"
	"ndls/shards"
	"ndls/stage"
	"ndls/stage/features"
	"ndls/stage/graph"
	"ndls/stage/models"
	"ndls/tiles"
	"ndls/train"
)

// softHeld returns the memory that is held for soft labels while they are smoothed.
func softHeld(s *estimate.Sheet) int64 {
	if !stage.OwnModel(s.Plan) {
		return 0
	}
	return softMemory(models.ShapeOf(s), models.Options(s.Plan), s.Threads)
}

// softColumns are the soft labels to smooth as columns; run r starts at panel r·packed.Panels(classes).
type softColumns struct {
	graph.Columns
	// free frees memory and closes files.
	free func() error
}

// givenColumns are the user's soft labels in a matrix.
func givenColumns(m *tiles.Matrix) softColumns {
	return softColumns{m.Rows, func() error { return nil }}
}

// softColumns opens the soft labels of panels [first, last): the user's, or those of the run's models. once says that no column will be
// read twice.
func (env labelsRun) softColumns(ctx context.Context, first, last int, once bool) (softColumns, error) {
	if stage.OwnModel(env.Plan) {
		m, err := env.modelColumns(ctx, last, once)
		if err != nil {
			return softColumns{}, err
		}
		return softColumns{m.columns, m.free}, nil
	}
	if err := env.importSoftLabels(ctx, env.Summary, first, last); err != nil {
		return softColumns{}, err
	}
	return givenColumns(GivenTiles(env.Env)), nil
}

const (
	// movedRows is the number of rows of a panel that are written at a time. movedBytes is their size, with the page that they may share
	// with the rows before.
	movedRows  = 4096
	movedBytes = (movedRows + alignedRows) * panelRow
	// softScratch is the disk space that the columns of several panels may take together. More panels at a time need fewer predictions of
	// the same rows.
	softScratch = 8 << 30
)

// softSpace returns the disk space for predicted columns beyond one block: none if temporary files that save time are left out.
func softSpace(r control.Resources) int64 {
	if r.Lean {
		return 0
	}
	return softScratch
}

// softGroup returns the end of the panels that are predicted together for block [first, last), with this number of rows: up to the end of
// the run in which the block ends, as far as scratch space allows, but at least the block. per is the number of panels of a run.
func softGroup(scratch, rows int64, first, last, per int) int {
	fit := first + int(min(scratch/softPanelBytes(rows), math.MaxInt32))
	return max(min(fit, ((last-1)/per+1)*per), last)
}

// softPasses reports whether block [first, last) is predicted alone, with one model, and read once. Its columns then go from the model to
// the reader without a file.
func softPasses(scratch, rows int64, first, last, per int, once bool) bool {
	return once && first/per == (last-1)/per && softGroup(scratch, rows, first, last, per) == last
}

// softPanelBytes returns the size of a panel with this number of rows on disk.
func softPanelBytes(rows int64) int64 {
	return max(direct.RoundUp(rows*int64(shards.TileRowBytes(false))), direct.Align)
}

// softMemory returns the least memory for predicting columns, including a model.
func softMemory(s train.Shape, o train.Options, threads int) int64 {
	_, least := train.PlanPredict(s, o, 1, threads, 0)
	return least + int64(movers(threads, s.Classes))*(movedBytes+direct.Align)
}

// movers returns the number of panels of a prediction that are written at a time.
func movers(threads, classes int) int { return max(min(threads, packed.Panels(classes)), 1) }

// predictsColumns adds to an estimate the cost of modelColumns except memory: for each group of panels, a model and the rows are read, and
// the rows pass through the model. block is the number of panels per request; with apart, a request has panels of one run. once says that
// no panel is requested twice. The estimate has counted reading all columns from a file; columns that go from the model to the reader are
// subtracted.
func predictsColumns(s *estimate.Sheet, block int, apart, once bool) {
	o, shape := models.Options(s.Plan), models.ShapeOf(s)
	per := packed.Panels(s.Classes)
	all := stage.LabelRuns(s.Plan) * per
	block = max(block, 1)
	times, group, stored, passed, done, scratch := int64(0), 0, 0, 0, 0, softSpace(s.Resources)
	for first, last := 0, 0; first < all; first = last {
		if last = min(first+block, all); apart {
			last = min(last, (first/per+1)*per)
		}
		if last <= done {
			continue
		}
		done = softGroup(scratch, s.Part, first, last, per)
		if softPasses(scratch, s.Part, first, last, per, once) {
			passed += last - first
		} else {
			group = max(group, done-first)
			stored += done - first
		}
		times += int64((done-1)/per - first/per + 1)
	}
	s.ScratchBytes += int64(group) * softPanelBytes(s.Part)
	s.Scratches(int64(stored) * estimate.TileBytes(s.Nodes, packed.PanelColumns, false))
	s.BytesRead -= estimate.TileBytes(s.Nodes, passed*packed.PanelColumns, false)
	s.BytesRead += times * models.Bytes(s)
	part := float64(times) * float64(s.Part) / float64(s.Nodes)
	s.BytesRead += times * s.RowBytes()
	s.Multiplies(part * train.PredictFlops(shape, o))
	s.Moves(part * float64(shape.Rows) * float64(s.Classes))
}

// modelColumns yields the soft labels of the run's models as columns. Models compute rows of all classes, but a block of columns needs some
// classes of all rows. So the rows are predicted again for each group of panels, and a scratch file holds the panels of one group; the disk
// never holds all classes. A block that is a group of its own and is read once needs no file.
type modelColumns struct {
	*stage.Env
	runs   []models.Trained
	src    train.Source
	close  func() error
	lo, hi int64 // rows of the task
	last   int   // panels from here on are not the task's
	once   bool  // no column is read twice
	// scratch is the disk space that the panels of a group may take.
	scratch int64
	memory  int64 // memory of predicting, reserved while nothing is predicted

	file     *direct.Scratch
	from, to int // panels in the file
}

// modelColumns opens the columns of panels below last.
func (env labelsRun) modelColumns(ctx context.Context, last int, once bool) (_ *modelColumns, err error) {
	m := &modelColumns{Env: env.Env, last: last, once: once, scratch: softSpace(env.Resources)}
	m.lo, m.hi = env.Span(env.Summary.Nodes)
	t, err := models.ReadIndex(ctx, env.Catalog)
	if err != nil {
		return nil, err
	}
	m.runs = t.Runs
	m.src, m.close = env.rows, func() error { return nil }
	if env.rows == nil {
		src, err := features.OpenRows(ctx, env.Env)
		if err != nil {
			return nil, err
		}
		m.src, m.close = src, src.Close
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.free())
		}
	}()
	shape := train.Shape{Rows: m.src.NumRows(), Width: m.src.Width(), Classes: len(env.Summary.Classes)}
	memory := softMemory(shape, models.Options(env.Plan), env.Resources.Threads)
	if err = m.reserve(memory); err != nil {
		return nil, err
	}
	m.file, err = direct.NewScratch(env.Resources.Scratch)
	return m, err
}

func (m *modelColumns) free() (err error) {
	if m.file != nil {
		err = m.file.Close()
	}
	m.release()
	return errors.Join(err, m.close())
}

// reserve reserves bytes of the budget, so that they are free when rows are predicted.
func (m *modelColumns) reserve(bytes int64) error {
	if err := m.Budget.Reserve(bytes, "predicting soft labels"); err != nil {
		return err
	}
	m.memory = bytes
	return nil
}

// release releases the reserved bytes and returns their number.
func (m *modelColumns) release() (bytes int64) {
	bytes, m.memory = m.memory, 0
	m.Budget.Release(bytes)
	return bytes
}

// columns reads some of the columns.
func (m *modelColumns) columns(ctx context.Context, first, columns int, put func(rows []float32) error) (err error) {
	panel, end := first/packed.PanelColumns, min((first+columns)/packed.PanelColumns, softPanels(m.Env))
	if (panel < m.from || end > m.to) && softPasses(m.scratch, m.hi-m.lo, panel, end, packed.Panels(len(m.Summary.Classes)), m.once) {
		return m.pass(ctx, panel, end, columns, put)
	}
	if panel < m.from || end > m.to {
		if err := m.predict(ctx, panel, max(min(softGroup(m.scratch, m.hi-m.lo, panel, end, packed.Panels(len(m.Summary.Classes))),
			m.last), end)); err != nil {
			return err
		}
	}
	batch := min(int64(max(hops.BatchValues/2/columns, 1)), direct.RoundUp(m.hi-m.lo))
	batch = max(batch&^(alignedRows-1), alignedRows)
	var values []*mem.Array[float32]
	defer func() {
		for _, v := range values {
			v.Free()
		}
	}()
	for range 2 {
		v, err := mem.Alloc[float32](m.Budget, batch*int64(columns), "rows of soft labels")
		if err != nil {
			return err
		}
		values = append(values, v)
	}
	parts, err := mem.Alloc[float32](m.Budget, batch*int64(end-panel)*packed.PanelColumns, "panels of soft labels")
	if err != nil {
		return err
	}
	defer parts.Free()
	items := int((m.hi - m.lo + batch - 1) / batch)
	rows := func(i int) (from, n int64) {
		from = m.lo + int64(i)*batch
		return from, min(batch, m.hi-from)
	}
	return ahead.Run(ctx, values, items,
		func(i int, to *mem.Array[float32]) error {
			from, n := rows(i)
			return share.Each(m.Resources.Threads, end-panel, func(k int) error {
				part := parts.S[int64(k)*batch*packed.PanelColumns:][:batch*packed.PanelColumns]
				if err := m.file.ReadAt(mem.AsBytes(part)[:direct.RoundUp(n*panelRow)], m.at(panel+k, from)); err != nil {
					return fmt.Errorf("soft labels: %w", err)
				}
				for r := range n {
					copy(to.S[r*int64(columns)+int64(k)*packed.PanelColumns:][:packed.PanelColumns], part[r*packed.PanelColumns:])
				}
				return nil
			})
		},
		func(i int, v *mem.Array[float32]) error {
			_, n := rows(i)
			return put(v.S[:n*int64(columns)])
		})
}

// at returns the offset of a row of a panel in the file.
func (m *modelColumns) at(panel int, row int64) int64 {
	return int64(panel-m.from)*softPanelBytes(m.hi-m.lo) + (row-m.lo)*panelRow
}

// predict fills the file with panels [from, to), run by run.
func (m *modelColumns) predict(ctx context.Context, from, to int) (err error) {
	bytes := m.release()
	defer func() { err = errors.Join(err, m.reserve(bytes)) }()
	m.from, m.to = from, from // an unfinished file is not read
	threads := movers(m.Resources.Threads, len(m.Summary.Classes))
	memory, err := mem.Alloc[float32](m.Budget, int64(threads)*movedBytes/4, "panels of soft labels")
	if err != nil {
		return err
	}
	defer memory.Free()
	parts := make(chan []float32, threads)
	for t := range threads {
		parts <- memory.S[t*movedBytes/4:][:movedBytes/4]
	}
	per := packed.Panels(len(m.Summary.Classes))
	for run := from / per; run*per < to; run++ {
		if err := m.predictRun(ctx, run, max(from, run*per), min(to, (run+1)*per), parts); err != nil {
			return err
		}
	}
	m.to = to
	m.Disk.Look()
	return nil
}

// pass predicts panels [from, to), which belong to one run, and puts their rows, of this number of columns each, while later rows are
// predicted.
func (m *modelColumns) pass(ctx context.Context, from, to, columns int, put func(rows []float32) error) (err error) {
	bytes := m.release()
	defer func() { err = errors.Join(err, m.reserve(bytes)) }()
	values, err := mem.Alloc[float32](m.Budget, movedRows*int64(columns), "rows of soft labels")
	if err != nil {
		return err
	}
	defer values.Free()
	classes, per := len(m.Summary.Classes), packed.Panels(len(m.Summary.Classes))
	at := from % per * packed.PanelColumns
	end := min(at+(to-from)*packed.PanelColumns, classes)
	return m.eachPredicted(ctx, from/per, func(_ int64, soft []float32) error {
		rows := values.S[:len(soft)/classes*columns] // columns past the last class stay zero
		for i := 0; len(soft) > 0; i, soft = i+columns, soft[classes:] {
			clear(rows[i+copy(rows[i:], soft[at:end]) : i+columns])
		}
		return put(rows)
	})
}

// eachPredicted calls visit with a run's soft labels of the task's rows, at most movedRows at a time.
func (m *modelColumns) eachPredicted(ctx context.Context, run int, visit func(row int64, soft []float32) error) error {
	model, err := models.Load(ctx, m.Catalog, m.Budget, m.runs[run].Path)
	if err != nil {
		return err
	}
	defer model.Free()
	classes := int64(len(m.Summary.Classes))
	rows := meetingRows(features.RowsOfSplit(m.Env, m.src, stage.SplitOf(m.Plan, run)), m.lo, m.hi)
	return train.Predict(progress.Aside(ctx), rows, []*train.Model{model},
		train.Resources{Budget: m.Budget, Threads: m.Resources.Threads, Kernel: m.Resources.Kernel},
		func(row int64, ids []int64, _ int, soft []float32) error {
			lo, hi := max(row, m.lo), min(row+int64(len(ids)), m.hi)
			for ; lo < hi; lo += movedRows {
				n := min(movedRows, hi-lo)
				if err := visit(lo, soft[(lo-row)*classes:(lo-row+n)*classes]); err != nil {
					return err
				}
			}
			return nil
		})
}

// predictRun writes panels [from, to) of one run, as many at a time as there are parts.
func (m *modelColumns) predictRun(ctx context.Context, run, from, to int, parts chan []float32) error {
	classes, before := len(m.Summary.Classes), run*packed.Panels(len(m.Summary.Classes))
	return m.eachPredicted(ctx, run, func(row int64, soft []float32) error {
		return share.Each(cap(parts), to-from, func(k int) error {
			part := <-parts
			defer func() { parts <- part }()
			p := from + k
			if err := m.write(p, row, soft, classes, (p-before)*packed.PanelColumns, part); err != nil {
				return fmt.Errorf("soft labels: %w", err)
			}
			return nil
		})
	})
}

// write writes columns [at, at+16) of rows of soft labels, from row on, as rows of a panel. Rows come in order. Columns past the last class
// are zero.
func (m *modelColumns) write(panel int, row int64, soft []float32, classes, at int, part []float32) error {
	offset := m.at(panel, row)
	skip := offset % direct.Align / 4 // values of earlier rows on the same page
	if skip > 0 {
		if err := m.file.ReadAt(mem.AsBytes(part[:direct.Align/4]), offset-4*skip); err != nil {
			return err
		}
	}
	end := skip
	for ; len(soft) > 0; soft = soft[classes:] {
		n := copy(part[end:end+packed.PanelColumns], soft[at:min(at+packed.PanelColumns, classes)])
		clear(part[end+int64(n) : end+packed.PanelColumns])
		end += packed.PanelColumns
	}
	return m.file.WriteAt(mem.AsBytes(part)[:direct.RoundUp(4*end)], offset-4*skip)
}

// chunks restricts a source to the chunks with some rows.
type chunks struct {
	train.Source
	first, last int
}

// meetingRows returns the chunks that hold rows of [lo, hi).
func meetingRows(src train.Source, lo, hi int64) chunks {
	c := chunks{Source: src}
	for ; c.last < src.NumChunks(); c.last++ {
		first, rows := src.Chunk(c.last)
		if first >= hi {
			break
		}
		if first+rows <= lo {
			c.first = c.last + 1
		}
	}
	return c
}

// NumRows implements train.Source.
func (c chunks) NumRows() (n int64) {
	for i := range c.NumChunks() {
		_, rows := c.Chunk(i)
		n += rows
	}
	return n
}

// NumChunks implements train.Source.
func (c chunks) NumChunks() int { return c.last - c.first }

// Chunk implements train.Source.
func (c chunks) Chunk(i int) (first, rows int64) { return c.Source.Chunk(c.first + i) }

// ReadChunk implements train.Source.
func (c chunks) ReadChunk(i int, dst *shards.RowBatch) error {
	return c.Source.ReadChunk(c.first+i, dst)
}

// ReadRows implements train.Source.
func (c chunks) ReadRows(i int, at, rows int64, space []float32) ([]float32, error) {
	return c.Source.ReadRows(c.first+i, at, rows, space)
}
