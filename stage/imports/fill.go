package imports

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sort"

	"ndls/catalog"
	"ndls/dataset/prepare"
	"ndls/estimate"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/partition"
	"ndls/shards"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/steps"
	"ndls/tiles"
)

// The last steps of a partition whose missing features are filled by neighbours. summaryStep is the last one of package partition, which
// several workers leave to the task of the whole stage where it ends the partition. neighboursStep makes one hop of the panels of
// [filling.sums], fillStep makes the features of intervals from these.
const (
	summaryStep    = "summary"
	neighboursStep = "neighbours"
	fillStep       = "fill"
)

// filling fills missing features by neighbours.
type filling struct {
	*stage.Env
	columns *prepare.Columns
	// unfilled holds features with means in place of missing numbers, filled those that the stage leaves.
	unfilled, filled *tiles.Matrix
	// sums has two columns for each column with missing numbers: what neighbours have, and how many have it, both divided by the degree
	// plus one.
	sums *tiles.Matrix
}

// openFilling opens what is left to fill, nil if nothing is.
func openFilling(ctx context.Context, env *stage.Env) (*filling, error) {
	if !partition.HasUnfilled(env.Catalog) || len(env.Catalog.Entries(catalog.KindSummary)) == 0 {
		return nil, nil
	}
	s, err := shards.ReadSummary(ctx, env.Catalog)
	if err != nil {
		return nil, err
	}
	// A hop counts neighbours exactly: rows are float32 and are not scaled.
	own := *env
	own.Summary = s
	own.Plan.Precision, own.Plan.LSI.R, own.Plan.Tolerance = "float32", 0, 0
	x := &filling{Env: &own}
	if x.columns, err = partition.ReadColumns(ctx, env.Catalog); err != nil {
		return nil, err
	}
	x.unfilled, x.filled = own.Matrix(partition.Unfilled(env.Catalog, s)), own.FeatureTiles()
	x.sums = own.Matrix(tiles.Layout{Kind: catalog.KindNeighbours, Prefix: "graph/neighbours", Width: 2 * len(x.columns.Missing)}).
		Needless(func(p tiles.Place) bool { return x.isFilled(p.Interval) })
	return x, nil
}

// isFilled reports whether the features of an interval are committed.
func (x *filling) isFilled(interval int) bool {
	for p := range x.filled.Panels() {
		if !x.filled.Has(interval, p) {
			return false
		}
	}
	return true
}

// thenFilled returns the steps of a partition, which end with summaryStep, neighboursStep and fillStep.
func thenFilled(next nextSteps) nextSteps {
	return func(ctx context.Context, cat *catalog.Catalog) (steps.Left, error) {
		l, err := next(ctx, cat)
		if l.Step == partition.Whole {
			l.Step = summaryStep
		}
		if err != nil || !l.Done() {
			return l, err
		}
		x, err := openFilling(ctx, &stage.Env{Session: &stage.Session{}, Catalog: cat})
		if x == nil || err != nil {
			return l, err
		}
		l.Weights = nil
		for p := range x.sums.Panels() {
			if !x.sums.Complete(p) {
				l.Pieces = append(l.Pieces, steps.Unit(p))
			}
		}
		if l.Step, l.Count = neighboursStep, steps.Each; len(l.Pieces) > 0 { // each task reads all edges
			return l, nil
		}
		l.Step, l.Count = fillStep, nil
		for i := range x.unfilled.Intervals() {
			if x.unfilled.Has(i, 0) {
				l.Pieces = append(l.Pieces, steps.Unit(i))
			}
		}
		return l, nil
	}
}

// fill fills missing features, or does the task's part of it.
func fill(ctx context.Context, env *stage.Env) error {
	x, err := openFilling(ctx, env)
	if x == nil || err != nil {
		return err
	}
	defer env.Release()
	t, panels, intervals := env.Task, x.sums.Panels(), x.unfilled.Intervals()
	switch {
	case env.Whole():
		if err := x.addNeighbours(ctx, 0, panels); err != nil {
			return err
		}
		env.Release()
		if x, err = openFilling(ctx, env); x == nil || err != nil {
			return err
		}
		return x.fillIntervals(ctx, 0, intervals)
	case env.IsPart(neighboursStep, panels):
		return x.addNeighbours(ctx, t.First, t.Last)
	case env.IsPart(fillStep, intervals):
		return x.fillIntervals(ctx, t.First, t.Last)
	}
	return env.NoPart()
}

// oneHop returns how neighbours are added.
func oneHop(n int64) (o smooth.Options, err error) {
	o.Targets, o.SideBySide = smooth.AllTargets(n), true
	o.Rule, err = smooth.NewRule("sgc", 0, 1)
	o.Rule.Walk = true
	return o, err
}

// addNeighbours commits panels [first, last) of sums.
func (x *filling) addNeighbours(ctx context.Context, first, last int) error {
	o, err := oneHop(x.Summary.Nodes)
	if err != nil {
		return err
	}
	g, err := graph.Open(ctx, x.Env)
	if err != nil {
		return err
	}
	in := graph.Input{Columns: x.known, Kinds: []string{catalog.KindUnfilled}}
	for first = x.sums.FirstMissing(first, last); first < last; first = x.sums.FirstMissing(first, last) {
		end := first + 1
		for end < last && !x.sums.Complete(end) {
			end++
		}
		if err := g.SmoothColumns(ctx, o, nil, in, x.sums, first, end); err != nil {
			return err
		}
		first = end
	}
	return x.States.Drop(ctx)
}

// known reads columns before the hop: for each column with missing numbers, the number of a node that has one, and 1; else zeros.
func (x *filling) known(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	missing := x.columns.Missing[first/2 : min((first+columns)/2, len(x.columns.Missing))]
	values, masks := rangeOf(x.unfilled, missing[0], missing[len(missing)-1]+1), x.masks(first/2, first/2+len(missing))
	var to []float32
	for i := range x.unfilled.Intervals() {
		if err := sideBySide(ctx, i, func(rows int, of [][]float32) error {
			to = slices.Grow(to[:0], rows*columns)[:rows*columns]
			clear(to)
			for row := range rows {
				value, mask := values.row(of[0], row), masks.row(of[1], row)
				for c, column := range missing {
					if mask[c] == 0 {
						to[row*columns+2*c], to[row*columns+2*c+1] = value[column-missing[0]], 1
					}
				}
			}
			return put(to)
		}, values, masks); err != nil {
			return err
		}
	}
	return nil
}

// masks returns the masks of columns Missing[first:last].
func (x *filling) masks(first, last int) columnRange {
	return rangeOf(x.unfilled, x.columns.FirstMask()+first, x.columns.FirstMask()+last)
}

// fillIntervals commits the features of intervals [first, last), and removes what they are made of.
func (x *filling) fillIntervals(ctx context.Context, first, last int) error {
	for i := first; i < last; i++ {
		for p := range x.filled.Panels() {
			if err := x.fillPanel(ctx, i, p); err != nil {
				return err
			}
		}
		x.Disk.Look()
		if err := errors.Join(x.sums.Drop(ctx, i), x.unfilled.Drop(ctx, i)); err != nil {
			return err
		}
	}
	return nil
}

// fillPanel commits a tile of the features.
func (x *filling) fillPanel(ctx context.Context, interval, panel int) error {
	to, err := x.filled.Create(ctx, interval, panel, panel+1)
	if err != nil {
		return err
	}
	defer to.Abort()
	if to.Whole() {
		return nil
	}
	at := panel * packed.PanelColumns
	first, last := sort.SearchInts(x.columns.Missing, at), sort.SearchInts(x.columns.Missing, at+packed.PanelColumns)
	ranges := []columnRange{rangeOf(x.unfilled, at, at+packed.PanelColumns)}
	if first < last {
		ranges = append(ranges, x.masks(first, last), rangeOf(x.sums, 2*first, 2*last))
	}
	if err := sideBySide(ctx, interval, func(rows int, of [][]float32) error {
		for row := 0; row < rows && first < last; row++ {
			values, mask, sums := ranges[0].row(of[0], row), ranges[1].row(of[1], row), ranges[2].row(of[2], row)
			for k, column := range x.columns.Missing[first:last] {
				if mask[k] != 0 && sums[2*k+1] > 0 {
					values[column-at] = float32(float64(sums[2*k]) / float64(sums[2*k+1]))
				}
			}
		}
		return to.Put(panel, of[0], packed.PanelColumns, 0)
	}, ranges...); err != nil {
		return err
	}
	return to.Commit(ctx)
}

// costOfFilling adds the hop of what neighbours have, and copying the features.
func costOfFilling(s *estimate.Sheet) {
	o, err := oneHop(s.Part)
	if err != nil {
		return
	}
	precision := s.Plan.Precision
	s.Plan.Precision = "float32"
	s.ReadNodes(1)
	s.OnGraph().Columns(o, 2*s.Filled, 1, 0, false)
	s.Plan.Precision = precision
	sums, features := estimate.TileBytes(s.Nodes, 2*s.Filled, false), estimate.TileBytes(s.Nodes, s.Features, false)
	s.BytesRead += sums + features
	s.BytesWritten += sums + features
	s.Moves(float64(sums+2*features) / 4)
	interval := int64(float64(features) * float64(s.Interval(s.Nodes)) / float64(max(s.Nodes, 1)))
	s.PeakDiskBytes = max(s.PeakDiskBytes, s.DiskBytes+s.ScratchBytes+sums+interval)
}

// columnRange is some columns of a matrix, which are read by whole panels.
type columnRange struct {
	m *tiles.Matrix
	// panel is the first panel, columns the number of columns of all panels, offset the number of columns before the first one.
	panel, columns, offset int
}

// rangeOf returns columns [first, last) of a matrix.
func rangeOf(m *tiles.Matrix, first, last int) columnRange {
	panel := first / packed.PanelColumns
	return columnRange{m, panel, packed.Panels(last-panel*packed.PanelColumns) * packed.PanelColumns, first - panel*packed.PanelColumns}
}

// row returns the columns of one of the rows that were read.
func (c columnRange) row(rows []float32, row int) []float32 {
	return rows[row*c.columns+c.offset : (row+1)*c.columns]
}

// batches returns an iterator over the rows of an interval, at most batch at a time. An error is its last element.
func (c columnRange) batches(ctx context.Context, interval, batch int) iter.Seq2[[]float32, error] {
	return graph.Batches(func(put func(rows []float32) error) error {
		return c.m.Read(ctx, interval, c.panel, c.columns, batch, func(_ int64, rows []float32) error { return put(rows) })
	})
}

// readTogether is the number of values that sideBySide reads at a time: all of its memory is within that for hop 0 of a block.
const readTogether = 1 << 17

// sideBySide visits the rows of an interval in several ranges, some rows at a time. visit may change them.
func sideBySide(ctx context.Context, interval int, visit func(rows int, of [][]float32) error, ranges ...columnRange) error {
	columns := 0
	for _, c := range ranges {
		columns += c.columns
	}
	batch := max(readTogether/columns, 1)
	var others []func() ([]float32, error, bool)
	for _, c := range ranges[1:] {
		next, stop := iter.Pull2(c.batches(ctx, interval, batch))
		defer stop()
		others = append(others, next)
	}
	of := make([][]float32, len(ranges))
	for values, err := range ranges[0].batches(ctx, interval, batch) {
		if err != nil {
			return err
		}
		of[0] = values
		for k, next := range others {
			var more bool
			if of[k+1], err, more = next(); err == nil && !more {
				err = seal.Corrupt(ranges[k+1].m.Prefix, "there are fewer rows than nodes")
			}
			if err != nil {
				return err
			}
		}
		if err := visit(len(values)/ranges[0].columns, of); err != nil {
			return err
		}
	}
	for _, next := range others {
		if _, err, _ := next(); err != nil { // the end of the files, where checksums are checked
			return err
		}
	}
	return nil
}
