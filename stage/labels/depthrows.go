package labels

import (
	"context"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/smooth"
	"ndls/stage"
	"ndls/stage/graph"
	"ndls/stage/measures"
)

// depthRun is the stage while it runs.
type depthRun struct{ labelsRun }

const (
	// mostValidation is the largest number of validation nodes that are used. If there are more, those used are spread evenly.
	mostValidation = 1 << 18
	// depthRow is the size of the best class of a node at a depth: its value (float32) and its number among the classes (uint32).
	depthRow = 8
)

// validation returns the nodes that take part in choosing the depth.
func (env depthRun) validation(ctx context.Context) (*chosenNodes, error) {
	all := make([]int, env.Plan.NumSplits())
	for i := range all {
		all[i] = i
	}
	return env.someLabelled(ctx, all, stage.IsValidation, mostValidation)
}

// depthRows are the files of best classes. For each panel and depth, one depth after the other, they hold the best class of each validation
// node, or of those among the task's rows.
type depthRows struct{ *stage.Env }

func (env depthRun) rows() depthRows { return depthRows{env.Env} }

// Panels returns the number of panels of all runs.
func (d depthRows) Panels() int { return softPanels(d.Env) }

// FirstMissing returns the first panel, from first on, without files, or last if all below last have files.
func (d depthRows) FirstMissing(first, last int) int {
	for first < last {
		if _, ok := d.files(first); !ok {
			break
		}
		first++
	}
	return first
}

// files returns the files that together hold all validation nodes of a panel, and whether they exist.
func (d depthRows) files(panel int) ([]catalog.Entry, bool) {
	var all []catalog.Entry
	for _, kind := range []string{catalog.KindDepthRows, catalog.KindDepthPart} {
		for _, e := range d.Catalog.Entries(kind) {
			if int(e.Block) == panel {
				all = append(all, e)
			}
		}
	}
	return catalog.Cover(all, 0, d.Summary.Nodes)
}

// describe returns the entry of a panel's file for the task's rows, which include this number of validation nodes.
func (d depthRows) describe(panel int, nodes int64) catalog.Entry {
	lo, hi := d.Span(d.Summary.Nodes)
	kind, path := catalog.KindDepthRows, fmt.Sprintf("predictions/depth/panel-%05d", panel)
	if hi-lo < d.Summary.Nodes {
		kind, path = catalog.KindDepthPart, fmt.Sprintf("%s.rows-%d-%d", path, lo, hi)
	}
	e := catalog.Describe(kind, path).In(0).Panels(panel, panel+1).Holding(lo, hi)
	e.Rows = nodes
	return e
}

// count visits, for each depth from 0 to most, the words of the nodes of a split in a run, in order of node: with all panels of the run
// merged. Depths beyond the last stored one equal it, because no node counts more hops.
func (d depthRows) count(ctx context.Context, run, most int, v *chosenNodes, in validators,
	visit func(depth, node int, word uint64),
) error {
	n := v.count()
	words, err := mem.Alloc[uint64](d.Budget, n*int64(most+1), "best classes, or errors, of validation nodes")
	if err != nil {
		return err
	}
	defer words.Free()
	per, depths := packed.Panels(len(d.Summary.Classes)), int64(most+1)
	for p := range per {
		got, err := d.merge(ctx, run*per+p, v, p == 0, words.S)
		if err != nil {
			return err
		}
		depths = min(depths, got)
	}
	for depth := range most + 1 {
		at := min(int64(depth), depths-1) * n
		for i, is := range in.is.S {
			if is {
				visit(depth, i, words.S[at+int64(i)])
			}
		}
	}
	return nil
}

// merge writes the classes of a panel to best if first, or if they are better than the present ones. Errors it adds to the present ones. It
// returns the number of stored depths.
func (d depthRows) merge(ctx context.Context, panel int, v *chosenNodes, first bool, best []uint64) (depths int64, err error) {
	files, ok := d.files(panel)
	if !ok {
		return 0, fmt.Errorf("the catalogue lacks the best classes of panel %d: run `ndls smooth-labels --resume=false`: %w", panel, seal.ErrCorrupt)
	}
	depths = int64(len(best)) / v.count()
	for _, e := range files {
		lo, hi := v.targets.Before(e.Lo), v.targets.Before(e.Hi)
		if e.Rows != hi-lo {
			return 0, seal.Corrupt(e.Path, "it has %d validation nodes of %d", e.Rows, hi-lo)
		}
		if e.Rows == 0 {
			continue
		}
		got := e.Bytes / (e.Rows * depthRow)
		if got < 1 || got > depths || e.Bytes != got*e.Rows*depthRow {
			return 0, seal.Corrupt(e.Path, "it has %d bytes for %d nodes", e.Bytes, e.Rows)
		}
		depths = got
		if err := d.mergeFile(ctx, e, lo, v.count(), depths, first, best); err != nil {
			return 0, err
		}
	}
	return depths, nil
}

// mergeFile writes the classes of a file to best if first, or if they are better. Its nodes begin at lo, of n.
func (d depthRows) mergeFile(ctx context.Context, e catalog.Entry, lo, n, depths int64, first bool, best []uint64) error {
	r, err := d.Catalog.OpenVerified(ctx, e)
	if err != nil {
		return err
	}
	defer r.Close()
	buf, err := mem.Alloc[uint64](d.Budget, min(e.Rows, mostMerged), "best classes of a panel")
	if err != nil {
		return err
	}
	defer buf.Free()
	for at := int64(0); at < depths*e.Rows; {
		depth, row := at/e.Rows, at%e.Rows
		part := buf.S[:min(int64(len(buf.S)), e.Rows-row)]
		if _, err := r.ReadAt(mem.AsBytes(part), at*depthRow); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		to := best[depth*n+lo+row:][:len(part)]
		for i, x := range part {
			if d.Plan.Answers() {
				if !first {
					x = math.Float64bits(math.Float64frombits(to[i]) + math.Float64frombits(x))
				}
				to[i] = x
			} else if first || math.Float32frombits(uint32(x>>32)) > math.Float32frombits(uint32(to[i]>>32)) {
				to[i] = x
			}
		}
		at += int64(len(part))
	}
	return r.Finish()
}

// mostMerged is the number of best classes that are read at a time.
const mostMerged = 1 << 15

// depthBlock records the best classes of a block's panels while the block is smoothed. A word holds the value as float32 in its upper half,
// and the number of the class in its lower half. Of labels and numbers it holds the sum of squared errors over a panel's columns.
type depthBlock struct {
	rows    depthRows
	s       *smooth.Smoother
	mine    *smooth.Targets // the task's validation nodes among its rows
	rule    smooth.Rule
	stride  int // columns of the block
	first   int // first panel
	last    int
	classes int
	most    int // largest depth
	// learned has the labels or numbers of chosen nodes, of which the task's nodes begin at before; nil for classes.
	learned *measures.Labelled
	before  int64

	best   *mem.Array[uint64]  // panel by panel, depth by depth
	x      *mem.Array[float32] // hop 0 of the nodes, or the last hop, if the rule needs it
	depths int
}

// at returns the best classes of a panel at a depth.
func (b *depthBlock) at(panel, depth int) []uint64 {
	n := b.mine.Len()
	return b.best.S[(int64(panel-b.first)*int64(b.most+1)+int64(depth))*n:][:n]
}

// bestOf returns the word of one of the task's nodes for the panel's columns of a row.
func (b *depthBlock) bestOf(panel int, row []float32, node int64) uint64 {
	before := panel % packed.Panels(b.classes) * packed.PanelColumns
	row = row[:min(packed.PanelColumns, b.classes-before)]
	if b.learned != nil {
		sum := 0.0
		for c, y := range b.learned.AnswersOf(b.before+node, 1)[before : before+len(row)] {
			if d := float64(y) - float64(row[c]); y == y {
				sum += float64(d * d)
			}
		}
		return math.Float64bits(sum)
	}
	best := 0
	for c, v := range row {
		if v > row[best] {
			best = c
		}
	}
	return uint64(math.Float32bits(row[best]))<<32 | uint64(before+best)
}

// watch returns the columns c, and records the best classes of their rows as depth 0.
func (b *depthBlock) watch(c graph.Columns) graph.Columns {
	return c.Each(b.mine, func(_ int, target int64, row []float32) {
		for p := b.first; p < b.last && target >= 0; p++ {
			b.at(p, 0)[target] = b.bestOf(p, row[(p-b.first)*packed.PanelColumns:], target)
		}
	})
}

// retain returns the columns c. For rules that add a share of hop 0, it keeps the columns of the validation nodes.
func (b *depthBlock) retain(c graph.Columns) graph.Columns {
	if !b.rule.Residual() {
		return c
	}
	return c.Each(b.mine, func(_ int, target int64, row []float32) {
		if target >= 0 {
			copy(b.x.S[target*int64(len(row)):], row)
		}
	})
}

// after records the best classes once a hop is added.
func (b *depthBlock) after(hop int) error {
	depth := b.rule.Depth(hop)
	if depth == 0 || depth > b.most {
		return nil // depth 0 is recorded by watch
	}
	b.depths = depth + 1
	if b.rule.Final() && b.s.Replaced() == 0 {
		at := 0
		if err := b.s.Hop(hop, 0, b.stride, nil, func(rows []float32) error {
			at += copy(b.x.S[at:], rows)
			return nil
		}); err != nil {
			return err
		}
	}
	var x func(int64) []float32
	if b.x != nil {
		x = func(target int64) []float32 { return b.x.S[target*int64(b.stride):][:b.stride] }
	}
	at, width := 0, (b.last-b.first)*packed.PanelColumns
	return b.s.Prefix(hop, 0, width, x, func(rows []float32) error {
		for ; len(rows) > 0; rows = rows[width:] {
			for p := b.first; p < b.last; p++ {
				b.at(p, depth)[at] = b.bestOf(p, rows[(p-b.first)*packed.PanelColumns:], int64(at))
			}
			at++
		}
		return nil
	})
}

// commit commits the files of the block's panels.
func (b *depthBlock) commit(ctx context.Context) error {
	for p := b.first; p < b.last; p++ {
		if err := b.commitPanel(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (b *depthBlock) commitPanel(ctx context.Context, panel int) error {
	return b.rows.Catalog.Write(ctx, b.rows.describe(panel, b.mine.Len()), func(f *catalog.File) error {
		for depth := range b.depths {
			if _, err := f.Write(mem.AsBytes(b.at(panel, depth))); err != nil {
				return err
			}
		}
		return nil
	})
}

// sweep smooths the soft labels of panels [first, last) and commits the best classes of the validation nodes at each depth.
func (env depthRun) sweep(ctx context.Context, first, last int) (err error) {
	if _, done := env.Catalog.Lookup(labelDepthPath); done {
		return nil // the depth is chosen, and the files are removed
	}
	rows := env.rows()
	v, err := env.validation(ctx)
	if err != nil {
		return err
	}
	defer v.free()
	if v.count() == 0 {
		return nil // nothing decides
	}
	if first, err = env.FirstMissing(ctx, rows, first, last); err != nil || first == last {
		return err
	}
	lo, hi := env.Span(env.Summary.Nodes)
	mine, err := v.targets.Part(env.Budget, lo, hi)
	if err != nil {
		return err
	}
	defer mine.Free()
	most := env.Plan.Labels.Kmax
	return env.smoothRuns(ctx, first, last, func(int) int { return most }, true, func(x runColumns) error {
		b := &depthBlock{rows: rows, mine: mine, rule: x.o.Rule, classes: len(env.Summary.Classes), most: most}
		if env.Plan.Answers() {
			b.learned, b.before = &v.learned, v.targets.Before(lo)
		}
		x.o.Targets, x.o.After, x.o.Depths = mine, b.after, most
		x.o.PanelBytes = mine.Len() * (int64(most+1)*depthRow + panelRow)
		x.o.Ahead = !stage.Corrects(env.Plan) // otherwise soft labels are read beside the smoothed columns
		return x.g.SmoothBlocks(ctx, x.o, x.k, graph.Input{Columns: x.soft.Columns}, x.first, x.last,
			func(ctx context.Context, t *graph.Team, first, last int) error {
				return env.sweepBlock(ctx, x, b, t, first, last)
			})
	})
}

// sweepBlock smooths panels [first, last), which are one block.
func (env depthRun) sweepBlock(ctx context.Context, x runColumns, b *depthBlock, t *graph.Team, first, last int) (err error) {
	s, l, soft := t.Smoother, t.Smoother.Layout(), t.In
	b.s, b.stride, b.first, b.last, b.depths = s, l.Columns, first, last, 1
	n := b.mine.Len()
	if b.best, err = mem.Alloc[uint64](env.Budget, n*int64(b.most+1)*int64(last-first), "best classes"); err != nil {
		return err
	}
	defer b.best.Free()
	if b.rule.Residual() || b.rule.Final() {
		if b.x, err = mem.Alloc[float32](env.Budget, n*int64(l.Columns), "soft labels of validation nodes"); err != nil {
			return err
		}
		defer b.x.Free()
	}
	soft.Ahead(s.Ahead())
	in := b.retain(x.columns(b.watch(soft.Columns)))
	if stage.Corrects(env.Plan) { // the smoothed columns are not the soft labels
		if err := b.watch(soft.Columns)(ctx, first*packed.PanelColumns, l.Columns, func([]float32) error { return nil }); err != nil {
			return err
		}
	}
	stats, err := s.Run(ctx, in.Block(ctx, first*packed.PanelColumns, l.Columns))
	t.Stats.Add(stats)
	if err != nil {
		return err
	}
	soft.Wait()
	for hop := range s.Replaced() {
		if err := b.after(hop + 1); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}
