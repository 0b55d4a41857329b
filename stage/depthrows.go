package stage

import (
	"context"
	"fmt"
	"math"

	"ndls/catalog"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/seal"
	"ndls/internal/share"
	"ndls/lsi"
	"ndls/shards"
	"ndls/smooth"
	"ndls/tiles"
)

// chosenNodes holds some nodes with labels.
type chosenNodes struct {
	targets *smooth.Targets
	label   *mem.Array[int32] // of each node
	learned labelled          // the labels or numbers of each node, if nodes have these in place of classes
	in      []validators      // by split
	of      int64             // number of nodes from which they were chosen
}

// validators reports for each of the nodes whether it matches in a split.
type validators struct{ is *mem.Array[bool] }

// count returns the number of nodes that match.
func (x validators) count() (n int64) {
	for _, is := range x.is.S {
		if is {
			n++
		}
	}
	return n
}

func (v *chosenNodes) count() int64 { return v.targets.Len() }

func (v *chosenNodes) free() {
	v.targets.Free()
	v.label.Free()
	v.learned.answers.Free()
	for _, x := range v.in {
		x.is.Free()
	}
}

// validation returns the nodes that take part in choosing the depth.
func (env depthRun) validation(ctx context.Context) (*chosenNodes, error) {
	all := make([]int, env.Plan.NumSplits())
	for i := range all {
		all[i] = i
	}
	return env.someLabelled(ctx, all, isValidation, mostValidation)
}

// someLabelled returns nodes that match in one of these splits: at most `most` nodes, spread evenly among all that match.
func (env labelsRun) someLabelled(ctx context.Context, of []int, match func(split uint8, label int32) bool,
	most int64,
) (_ *chosenNodes, err error) {
	v := &chosenNodes{}
	if v.targets, err = smooth.NewTargets(env.Budget, env.Summary.Nodes); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			v.free()
		}
	}()
	var split [][]uint8 // of a batch of nodes
	var label []int32
	in := func(s int, i int64) bool { return match(split[s][i], label[i]) }
	each := func(visit func(first, lo, hi int64)) error {
		return env.readSplitNodes(ctx, shards.NodeLabel, func(first int64, b shards.NodeBatch, splits [][]uint8) {
			split, label = splits, b.Label
			env.shareNodes(first, int64(len(label)), func(lo, hi int64) { visit(first, lo, hi) })
		})
	}
	if err = each(func(first, lo, hi int64) {
		for node := lo; node < hi; node++ {
			for _, s := range of {
				if in(s, node-first) {
					v.targets.Add(node)
					break
				}
			}
		}
	}); err != nil {
		return nil, err
	}
	v.targets.Finish()
	v.of = v.targets.Len()
	v.targets.Thin(env.Resources.Threads, most)
	if v.label, err = mem.Alloc[int32](env.Budget, v.count(), "labels of some nodes"); err != nil {
		return nil, err
	}
	for range of {
		is, err := mem.Alloc[bool](env.Budget, v.count(), "nodes of a split")
		if err != nil {
			return nil, err
		}
		v.in = append(v.in, validators{is})
	}
	err = each(func(first, lo, hi int64) {
		at := v.targets.Below(lo)
		for node := lo; node < hi; node++ {
			if !v.targets.Has(node) {
				continue
			}
			v.label.S[at] = label[node-first]
			for s, x := range v.in {
				x.is.S[at] = in(of[s], node-first)
			}
			at++
		}
	})
	if err == nil && env.Plan.Answers() {
		err = env.takeChosen(ctx, v)
	}
	return v, err
}

// takeChosen reads the labels or numbers of chosen nodes.
func (env labelsRun) takeChosen(ctx context.Context, v *chosenNodes) error {
	node, err := mem.Alloc[uint32](env.Budget, v.count(), "chosen nodes")
	if err != nil {
		return err
	}
	defer node.Free()
	at := 0
	for i := range env.Summary.Nodes {
		if v.targets.Has(i) {
			node.S[at] = uint32(i)
			at++
		}
	}
	v.learned.label = v.label
	return answerTable(env).take(ctx, &v.learned, node.S)
}

// sharedNodes is the number of nodes that a thread takes at a time.
const sharedNodes = 1 << 13

// shareNodes divides n nodes from first on into ranges and calls do for them on all threads. No two threads write the same word of a bit
// set.
func (env *Env) shareNodes(first, n int64, do func(lo, hi int64)) {
	begin := first / sharedNodes
	_ = share.Each(env.Resources.Threads, int((first+n+sharedNodes-1)/sharedNodes-begin), func(part int) error {
		lo := (begin + int64(part)) * sharedNodes
		do(max(lo, first), min(lo+sharedNodes, first+n))
		return nil
	})
}

// depthRows are the files of best classes. For each panel and depth, one depth after the other, they hold the best class of each validation
// node, or of those among the task's rows.
type depthRows struct{ *Env }

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
	return tiles.Cover(all, 0, d.Summary.Nodes)
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

// right returns, for each depth from 0 to most, the number of nodes of a split whose class is right in a run. Depths beyond the last stored
// one equal it, because no node counts more hops.
func (d depthRows) right(ctx context.Context, run, most int, v *chosenNodes, in validators) ([]int64, error) {
	n := v.count()
	best, err := mem.Alloc[uint64](d.Budget, n*int64(most+1), "best classes")
	if err != nil {
		return nil, err
	}
	defer best.Free()
	per := packed.Panels(len(d.Summary.Classes))
	depths := int64(most + 1)
	for p := range per {
		got, err := d.merge(ctx, run*per+p, v, p == 0, best.S)
		if err != nil {
			return nil, err
		}
		depths = min(depths, got)
	}
	right := make([]int64, most+1)
	for depth := range right {
		at := min(int64(depth), depths-1) * n
		for i, label := range v.label.S {
			if in.is.S[i] && int32(uint32(best.S[at+int64(i)])) == label {
				right[depth]++
			}
		}
	}
	return right, nil
}

// errors returns, for each depth from 0 to most, the sum of squared errors of the nodes of a split in a run: each node adds its panels, and
// nodes are added in order. Depths beyond the last stored one equal it.
func (d depthRows) errors(ctx context.Context, run, most int, v *chosenNodes, in validators) ([]float64, error) {
	n := v.count()
	sums, err := mem.Alloc[uint64](d.Budget, n*int64(most+1), "errors of validation nodes")
	if err != nil {
		return nil, err
	}
	defer sums.Free()
	per := packed.Panels(len(d.Summary.Classes))
	depths := int64(most + 1)
	for p := range per {
		got, err := d.merge(ctx, run*per+p, v, p == 0, sums.S)
		if err != nil {
			return nil, err
		}
		depths = min(depths, got)
	}
	errors := make([]float64, most+1)
	for depth := range errors {
		at := min(int64(depth), depths-1) * n
		for i, is := range in.is.S {
			if is {
				errors[depth] += math.Float64frombits(sums.S[at+int64(i)])
			}
		}
	}
	return errors, nil
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
	learned *labelled
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
		for c, y := range b.learned.answersOf(b.before+node, 1)[before : before+len(row)] {
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
func (b *depthBlock) watch(c lsi.Columns) lsi.Columns { return watched{c, b} }

type watched struct {
	lsi.Columns
	b *depthBlock
}

// Rows implements lsi.Columns.
func (w watched) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	node, target := int64(0), int64(0)
	return w.Columns.Rows(ctx, first, columns, func(rows []float32) error {
		for at := 0; at < len(rows); at += columns {
			if w.b.mine.Has(node) {
				for p := w.b.first; p < w.b.last; p++ {
					w.b.at(p, 0)[target] = w.b.bestOf(p, rows[at+(p-w.b.first)*packed.PanelColumns:], target)
				}
				target++
			}
			node++
		}
		return put(rows)
	})
}

// retain returns the columns c. For rules that add a share of hop 0, it keeps the columns of the validation nodes.
func (b *depthBlock) retain(c lsi.Columns) lsi.Columns {
	if !b.rule.Residual() {
		return c
	}
	return retained{c, b}
}

type retained struct {
	lsi.Columns
	b *depthBlock
}

// Rows implements lsi.Columns.
func (r retained) Rows(ctx context.Context, first, columns int, put func(rows []float32) error) error {
	node, target := int64(0), 0
	return r.Columns.Rows(ctx, first, columns, func(rows []float32) error {
		for at := 0; at < len(rows); at += columns {
			if r.b.mine.Has(node) {
				copy(r.b.x.S[target*columns:][:columns], rows[at:])
				target++
			}
			node++
		}
		return put(rows)
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
	if first, err = env.outputs().firstMissing(ctx, rows, first, last); err != nil || first == last {
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
		x.o.Ahead = !corrects(env.Plan) // otherwise soft labels are read beside the smoothed columns
		return x.g.smoothBlocks(ctx, x.o, x.k, input{Columns: x.soft}, x.first, x.last,
			func(ctx context.Context, t *team, first, last int) error {
				return env.sweepBlock(ctx, x, b, t, first, last)
			})
	})
}

// sweepBlock smooths panels [first, last), which are one block.
func (env depthRun) sweepBlock(ctx context.Context, x runColumns, b *depthBlock, t *team, first, last int) (err error) {
	s, l, soft := t.s, t.s.Layout(), t.in
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
	soft.ahead.reads(s.Ahead())
	in := b.retain(x.columns(b.watch(soft)))
	if corrects(env.Plan) { // the smoothed columns are not the soft labels
		if err := b.watch(soft).Rows(ctx, first*packed.PanelColumns, l.Columns, func([]float32) error { return nil }); err != nil {
			return err
		}
	}
	stats, err := s.Run(ctx, func(put func([]float32) error) error { return in.Rows(ctx, first*packed.PanelColumns, l.Columns, put) })
	t.stats.Add(stats)
	if err != nil {
		return err
	}
	soft.ahead.wait()
	for hop := range s.Replaced() {
		if err := b.after(hop + 1); err != nil {
			return err
		}
	}
	return b.commit(ctx)
}
