package lsi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sync"
	"sync/atomic"

	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/elementary"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/spmv"
)

// capped marks, in a table entry, a node that did not settle by Kmax.
const capped = 1 << 15

// MaxK is the largest Kmax a table can hold.
const MaxK = capped - 1

// Options holds the parameters of a run.
type Options struct {
	// Epsilon > 0 is the distance below which a node has settled. Kmax in [0, MaxK] is the K of a
	// node that never settles.
	Epsilon float64
	Kmax    int
	// Looser lists distances above Epsilon. The same hops find K for each of them, which
	// Table.Columns returns.
	Looser []float64
	// Sample lists rows in ascending order whose distances Table.Distances returns.
	Sample []int64
	// Tolerance in [0, 1] is the largest share of a hop that is left out where few of Chebyshev's
	// polynomials make the hops after the first ones (see the package's Algorithm). With 0 every hop
	// is made, and so it is if Kmax is so small that no pass would be saved, or if the nodes left are
	// too many.
	Tolerance float64
	// Standing is the largest amount by which rows that stand may change the distance of a node: polynomials leave out these rows, if at most
	// half of the edges lead into the others ([hops.Graph.FindMoving]). It is 0 for probes that do not stand for the identity: no row is then
	// left out.
	Standing float64
	// KeptRoom bounds the bytes of the rows that polynomials keep, unless it is 0: with less, they are made for one batch of nodes after the
	// other. The result does not depend on it.
	KeptRoom int64
	// Layout is the layout of a column block. The result does not depend on it.
	Layout spmv.Layout
	// Checkpoints says when the state of the run is saved, and from which state it resumes.
	Checkpoints hops.Checkpoints
}

// Epsilons lists the distances for which K is found, in the order of [Table.Columns].
func (o Options) Epsilons() []float64 { return append([]float64{o.Epsilon}, o.Looser...) }

// Table holds K of every node, by node id.
type Table struct {
	k      *mem.Array[uint16]
	looser []*mem.Array[uint16]
	// uncertain has the nodes whose K polynomials leave uncertain.
	uncertain nodeSet
	// distances holds the distances of the sample's rows.
	distances [][]float64
}

// K returns K of node i. isCapped reports whether the node did not settle by Kmax.
func (t *Table) K(i int64) (k int, isCapped bool) { return Entry(t.k.S[i]) }

// Distances returns the distances of each row of the options' Sample after each hop from hop 0 to K: the distances that decide K, which are
// estimates if the probe is a sketch.
func (t *Table) Distances() [][]float64 { return t.distances }

// Uncertain reports whether what polynomials leave out may make K of node i another one than that of hops that are made one by one (see the
// package's Algorithm).
func (t *Table) Uncertain(i int64) bool { return t.uncertain.has(i) }

// CountUncertain counts these nodes.
func (t *Table) CountUncertain() (n int64) {
	if t.uncertain.words == nil {
		return 0
	}
	for _, word := range t.uncertain.words.S {
		n += int64(bits.OnesCount32(word))
	}
	return n
}

// Entry returns K of a stored value.
func Entry(x uint16) (k int, isCapped bool) { return int(x &^ capped), x&capped != 0 }

// Columns returns K of the nodes for the options' Epsilon, then for each looser one, in stored form: uint16, with the highest bit set if K
// is capped, and 65535 while it is unknown.
func (t *Table) Columns() [][]uint16 {
	all := [][]uint16{t.k.S}
	for _, x := range t.looser {
		all = append(all, x.S)
	}
	return all
}

// newTable takes the memory of a table of n nodes.
func newTable(b *mem.Budget, n int64, o Options) (_ *Table, err error) {
	t := &Table{distances: make([][]float64, len(o.Sample))}
	if t.k, err = mem.Alloc[uint16](b, n, "K table"); err != nil {
		return nil, err
	}
	for range o.Looser {
		looser, err := mem.Alloc[uint16](b, n, "K table")
		if err != nil {
			t.Free()
			return nil, err
		}
		t.looser = append(t.looser, looser)
	}
	return t, nil
}

// begin resets the table: no K is known.
func (t *Table) begin() {
	for _, k := range t.Columns() {
		for i := range k {
			k[i] = unsettled
		}
	}
	clear(t.distances)
	t.uncertain.free()
	t.uncertain = nodeSet{}
}

// capRest sets K to Kmax for the nodes that never settled.
func (t *Table) capRest(kmax int) {
	for _, column := range t.Columns() {
		for i, k := range column {
			if k == unsettled {
				column[i] = uint16(kmax) | capped
			}
		}
	}
}

// Free returns the memory.
func (t *Table) Free() {
	t.k.Free()
	for _, x := range t.looser {
		x.Free()
	}
	t.uncertain.free()
}

// nodeSet has a bit for each node. It has no nodes if it is zero.
type nodeSet struct{ words *mem.Array[uint32] }

// newNodeSet has room for n nodes.
func newNodeSet(b *mem.Budget, n int64) (s nodeSet, err error) {
	s.words, err = mem.Alloc[uint32](b, (n+31)/32, "nodes whose K is uncertain")
	return s, err
}

// add adds a node. Several goroutines may add nodes.
func (s nodeSet) add(i int64) { atomic.OrUint32(&s.words.S[i/32], 1<<(i%32)) }

func (s nodeSet) has(i int64) bool { return s.words != nil && s.words.S[i/32]>>(i%32)&1 == 1 }

func (s nodeSet) free() { s.words.Free() }

// Stats describes a run. If the run resumed from a state, hops.Stats counts only what came after
// it.
type Stats struct {
	hops.Stats
	// Plain is the number of hops before polynomials took the place of others, and Polynomials the number of passes for these.
	// Both are 0 if every hop was made.
	Plain       int
	Polynomials int
	// Moving is the number of rows that polynomials computed, 0 if they computed all, and Share the share of all edges that lead into them.
	Moving int64
	Share  float64

	ends []int // of windows
}

// Run computes the table. Errors come from the probe, the pass, the scratch file or the context;
// they wrap mem.ErrBudget if memory is missing, and hops.ErrStopped if o.Checkpoints stopped the
// run.
func Run(ctx context.Context, g hops.Graph, probe Probe, o Options) (*Table, Stats, error) {
	t, err := newTracker(g, probe, o)
	if err != nil {
		return nil, Stats{}, err
	}
	defer t.close()
	resumed, err := g.Begin(ctx, o.Checkpoints, t.header, func(r *hops.StateReader) error { return t.resume(ctx, r) })
	if err != nil {
		return nil, Stats{}, err
	}
	if !resumed {
		t.begin()
	}
	if err = t.count(ctx); err == nil {
		err = t.windows(ctx, probe)
	}
	t.endWalk()
	if err != nil {
		return nil, t.stats, err
	}
	t.table.capRest(o.Kmax)
	table := t.table
	t.table = nil
	return table, t.stats, nil
}

// windows runs all blocks through one window after the other.
func (t *tracker) windows(ctx context.Context, probe Probe) error {
	edges := hops.NumEdges(t.g.Source)
	meter := progress.Start(ctx, "lsi", int64(t.blocks)*int64(t.passesAt(t.o.Kmax))*edges, "edges")
	defer meter.Done()
	for _, hop := range t.at {
		meter.Add(int64(t.blocks) * int64(t.passesAt(max(hop, 0))) * edges / int64(t.panels))
	}
	if t.polynomials != nil {
		return t.lastWindow().runPolynomials(ctx, meter)
	}
	for {
		for t.first = 0; t.first < t.panels; t.first = t.last {
			t.last = t.blockEnd(t.first)
			if err := t.run(ctx, probe, meter); err != nil {
				return err
			}
		}
		t.stats.ends = append(t.stats.ends, t.to)
		if t.to == t.o.Kmax || t.left == 0 {
			return nil
		}
		t.nextWindow(t.to)
		t.streams.Forget(t.from + 1)
		if t.decided == 0 && t.o.Few(t.from, int64(t.nodes), int64(t.before), int64(t.left)) {
			t.decided = t.from
			if err := t.lastWindow().findMoving(ctx); err != nil {
				return err
			}
		}
		if t.decided == 0 {
			continue
		}
		if t.to = t.lastWindow().lastPlain(); t.from == t.to {
			if err := t.lastWindow().openPolynomials(ctx); err != nil {
				return err
			}
			return t.lastWindow().runPolynomials(ctx, meter)
		}
	}
}

// lastWindow is the window whose hops are made of polynomials.
type lastWindow struct{ *tracker }

func (t *tracker) lastWindow() lastWindow { return lastWindow{t} }

// lastPlain returns the last hop before polynomials, after it was decided that they replace hops.
func (t lastWindow) lastPlain() int { return t.moving.After(t.decided) }

// openPolynomials begins the last window, whose hops are made of polynomials.
func (t lastWindow) openPolynomials(ctx context.Context) (err error) {
	t.to, t.series = t.o.Kmax, t.o.series(t.decided)
	if t.table.uncertain, err = newNodeSet(t.g.Budget, t.n); err != nil {
		return err
	}
	t.polynomials, err = newPolynomials(t.g, t.series, t.o.Layout, func(i int64) bool { return t.table.k.S[i] == unsettled }, 0, t.o.KeptRoom)
	if err != nil {
		return err
	}
	return t.polynomials.agree(ctx)
}

// standing says after which hops polynomials may leave out rows, where K of the open ones is unknown after hop from. If that is more than
// plainHops, finding the rows takes as many passes as it saves unless few rows move: rows are left out only if few are open.
func (o Options) standing(from int, open func(i int64) bool) hops.Standing {
	passes, most := o.series(from).degree, 0.0
	if from > plainHops {
		most = fewOpen
	}
	return hops.Standing{
		Amount: o.Standing, Open: most, First: from, Last: min(from+laterPlain, o.Kmax-2), All: from + passes,
		Later: func(int) int { return passes },
		Share: func(i int64, _ int) float64 {
			if open(i) {
				return 1
			}
			return 0
		},
	}
}

// findMoving finds the rows that move. If there is no memory for that beside the rows of a single block, these wait in a
// scratch file, as those of several blocks do.
func (t lastWindow) findMoving(ctx context.Context) (err error) {
	if t.o.standing(t.decided, nil).Amount == 0 {
		return nil
	}
	need := hops.MovingLayout(t.o.Layout).Memory(t.n, t.g.Threads) + hops.ReadBytes + t.g.State.MeanBytes(packed.PanelColumns)
	if need > t.g.Budget.Free() {
		if t.held == [3]int{0, t.panels, t.decided} {
			if t.states == nil {
				if t.states, err = newStates(t.tracker); err != nil {
					return err
				}
			}
			t.first, t.last = 0, t.panels
			if err := t.states.save(t.tracker); err != nil {
				return err
			}
		}
		t.endWalk()
		t.held = [3]int{}
		t.rows.Free()
		t.rows = nil
	}
	var stats hops.Stats
	t.moving, stats, err = t.g.FindMoving(ctx, t.o.standing(t.decided, t.open), t.o.Layout)
	t.stats.Add(stats)
	if err != nil {
		return fmt.Errorf("rows that move: %w", err)
	}
	t.streams.Restrict(t.moving)
	t.stats.Moving = t.moving.Rows()
	if t.rows == nil {
		t.rows, err = t.g.NewBlock(t.o.Layout)
	}
	return err
}

// open reports whether K of a node was unknown when it was decided that polynomials replace hops.
func (t *tracker) open(i int64) bool {
	k := t.table.k.S[i]
	return k == unsettled || int(k) > t.decided
}

// runPolynomials finds K of all nodes whose K is still unknown. States are saved between
// blocks, because only then the rows of the other blocks and the sums are all that is left to know.
func (t lastWindow) runPolynomials(ctx context.Context, meter *progress.Meter) (err error) {
	if t.finder.spread, err = t.g.State.Spread(ctx, t.g.Group); err != nil {
		return err
	}
	t.finder.rounding = rounding(t.o.Layout.Precision, t.panels)
	for t.first = t.reached(t.to); t.first < t.panels; t.first = t.last {
		t.last = t.blockEnd(t.first)
		if err := t.start(ctx, nil); err != nil {
			return err
		}
		// The rows in memory will not be those of a hop.
		t.held = [3]int{}
		if err := t.runBatches(ctx, meter); err != nil {
			return fmt.Errorf("columns from %d: %w", t.first*packed.PanelColumns, err)
		}
		for g := t.first; g < t.last; g++ {
			t.at[g] = t.to
		}
		if t.lastBlock() {
			break
		}
		if err := t.g.After(ctx, t.o.Checkpoints, t.from, t.save); err != nil {
			return err
		}
	}
	if err := t.count(ctx); err != nil {
		return err
	}
	t.stats.Plain, t.stats.Polynomials, t.stats.Share = t.from, t.series.degree, t.moving.Share()
	t.stats.ends = append(t.stats.ends, t.to)
	meter.Settle(progress.Settled{Hop: t.to, Share: 1 - float64(t.unsettled.Load())/float64(max(t.n, 1))})
	return nil
}

// runBatches makes polynomials of a block for one batch of nodes after the other. Between them the rows wait in the file of states.
func (t lastWindow) runBatches(ctx context.Context, meter *progress.Meter) (err error) {
	p := t.polynomials
	if err := t.moving.Clear(t.rows); err != nil {
		return err
	}
	if len(p.batches) > 1 {
		if t.states == nil {
			if t.states, err = newStates(t.tracker); err != nil {
				return err
			}
		}
		if err := t.states.save(t.tracker); err != nil {
			return err
		}
	}
	for p.batch = range p.batches {
		if p.batch > 0 {
			if err := t.states.load(t.tracker); err != nil {
				return err
			}
			t.endWalk()
			t.walk = t.streams.Walk(t.rows, t.from)
		}
		if err := p.pass(ctx, t.rows, t.walk, t.last-t.first, func(j int, edges int64) {
			meter.Within(fmt.Sprintf("pass %d of %d for hops up to %d", p.batch*p.degree+j, len(p.batches)*p.degree, t.o.Kmax))
			meter.Add(edges / int64(len(p.batches)))
		}); err != nil {
			return err
		}
		if err := p.combine(t.addPiece); err != nil {
			return err
		}
	}
	return nil
}

// addPiece adds the block's share of the squared distances of a piece. After the last block it
// enters K of the nodes that settle.
func (t lastWindow) addPiece(x piece, b *pieceBuffer) error {
	p := t.polynomials
	if t.first == 0 {
		clear(p.pieceProducts(x, b))
	} else if err := p.loadSums(x, b); err != nil {
		return err
	}
	for panel := range t.last - t.first {
		if err := p.add(x, panel, b); err != nil {
			return err
		}
	}
	if !t.lastBlock() {
		return p.storeSums(x, b)
	}
	lo := int64(x.strip) << packed.StripShift
	nodes := p.nodes(x, &b.nodes)
	for number := 0; len(nodes) > 0; number++ {
		some := nodes[:min(unit, len(nodes))]
		nodes = nodes[len(some):]
		products := p.unitProducts(b, number)
		for i, node := range some {
			t.unsettled.Add(-t.finder.seeProducts(p.series, t.from, lo+int64(node), products[i*p.products():(i+1)*p.products()]))
		}
	}
	return nil
}

// passesAt returns the number of passes after which the rows of a panel are at a hop, if polynomials
// pay.
func (t *tracker) passesAt(hop int) int {
	if t.series.degree > 0 && hop == t.o.Kmax {
		return t.series.from + t.series.degree
	}
	return hop
}

// tracker follows the distance of every node from hop to hop.
type tracker struct {
	g       hops.Graph
	o       Options
	sketch  bool    // the probe is a sketch
	scale   float64 // of its rows
	n       int64
	panels  int // of the probe
	blocks  int
	columns int
	table   *Table
	finder  finder
	rows    *spmv.Block
	streams *hops.Streams
	walk    *hops.Walk // of the block whose rows are in memory
	partial partialSums
	states  *states // of each block at the end of a window
	// series says how polynomials replace hops after a hop, at first after the least number of them; polynomials is nil unless they do so in
	// this window. moving has the rows that they compute.
	series      *series
	polynomials *polynomials
	moving      *hops.Moving
	// decided is the hop after which it was decided that polynomials replace others, 0 before that. Further hops may come first.
	decided int
	// resumesPolynomials says that the state has rows of that window.
	resumesPolynomials bool
	stats              Stats

	from, to    int   // the window; all blocks know which nodes settled by from
	at          []int // hop of each panel's rows, -1 before the first
	first, last int   // panels of the block
	hop         int
	held        [3]int // first, last and hop of the rows in memory
	unsettled   atomic.Int64
	far         atomic.Int64 // nodes that the first block estimates to be unsettled
	nodes       float64      // of all workers
	left        float64      // those of them that are unsettled
	before      float64      // the same one hop before
}

func newTracker(g hops.Graph, probe Probe, o Options) (_ *tracker, err error) {
	t := &tracker{g: g, o: o, sketch: probe.Sketch(), scale: scale(probe), n: g.Source.NumNodes(), series: o.most()}
	if !(o.Epsilon > 0) || o.Kmax < 0 || o.Kmax > MaxK {
		return nil, fmt.Errorf("epsilon %g with kmax %d: epsilon must be above 0, kmax in [0, %d]", o.Epsilon, o.Kmax, MaxK)
	}
	for _, x := range o.Looser {
		if !(x > o.Epsilon) {
			return nil, fmt.Errorf("the looser epsilon %g must be above epsilon %g", x, o.Epsilon)
		}
	}
	t.panels = packed.Panels(probe.Columns())
	t.o.Layout.Columns = min(o.Layout.Columns, t.panels*packed.PanelColumns)
	t.columns = t.o.Layout.Columns
	if t.columns <= 0 || t.columns%packed.PanelColumns != 0 {
		return nil, fmt.Errorf("a block has %d columns, which is no multiple of %d", o.Layout.Columns, packed.PanelColumns)
	}
	t.blocks = hops.Blocks(t.panels*packed.PanelColumns, t.o.Layout)
	t.at = make([]int, t.panels)
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.table, err = newTable(g.Budget, t.n, o); err != nil {
		return nil, err
	}
	t.finder = finder{o: o, scale: t.scale, state: g.State, Table: t.table}
	if t.rows, err = g.NewBlock(t.o.Layout); err != nil {
		return nil, err
	}
	t.streams = g.NewStreams(t.blocks, hops.ReadBytes, nil)
	if t.blocks > 1 {
		err = t.share()
	}
	return t, err
}

// share allocates what several blocks need.
func (t *tracker) share() (err error) {
	if err := t.partial.open(t.g, t.n); err != nil {
		return err
	}
	if t.states == nil {
		t.states, err = newStates(t)
	}
	return err
}

// begin starts from hop 0.
func (t *tracker) begin() {
	t.table.begin()
	t.polynomials.close()
	t.polynomials = nil
	t.moving.Free()
	t.moving, t.decided = nil, 0
	t.unsettled.Store(t.n)
	for g := range t.at {
		t.at[g] = -1
	}
	t.nextWindow(0)
	t.held = [3]int{}
}

// MemoryBytes returns the memory of a run without the column block: K, the stationary rows of so
// many components, the partial sums of a probe in several blocks, and the rows of
// polynomials that each thread reads.
func (o Options) MemoryBytes(n, components int64, l spmv.Layout, blocks, threads int) int64 {
	bytes := 2*n + 8*components*int64(l.Columns)
	bytes += int64(len(o.Looser))*(2*n+direct.Align) + o.polynomialBytes(n, l.Precision, threads)
	if blocks > 1 {
		bytes += 8 * direct.RoundUp(n)
	}
	return bytes + 4*direct.Align
}

// unsettled marks a node whose K is unknown.
const unsettled = math.MaxUint16

func (t *tracker) close() {
	t.endWalk()
	if t.table != nil {
		t.table.Free()
	}
	if t.rows != nil {
		t.rows.Free()
	}
	t.streams.Close()
	t.partial.close()
	t.polynomials.close()
	t.moving.Free()
	t.states.close()
}

// endWalk adds the costs of a block's hops to the statistics.
func (t *tracker) endWalk() {
	if t.walk != nil {
		t.stats.Add(t.walk.Stats)
		t.walk = nil
	}
}

func (t *tracker) lastBlock() bool { return t.last == t.panels }

// blockEnd returns the end of the block that begins with panel first. All panels of a block are at
// the same hop.
func (t *tracker) blockEnd(first int) int {
	last := first + 1
	for last < t.panels && last-first < t.columns/packed.PanelColumns && t.at[last] == t.at[first] {
		last++
	}
	return last
}

// window is the number of hops of the first window.
const window = 8

// Longest bounds the hops of a window or stretch, and thereby the scratch space for sums.
const Longest = 32

// nextWindow begins the window after hop from.
func (t *tracker) nextWindow(from int) { t.from, t.to = from, t.windowEnd(from) }

// windowEnd returns the last hop that the window after hop from can have. A single block sees
// complete distances at every hop. The first block of a sketch ends the
// window earlier, see scouts. Columns of other probes differ from each other: each window is as long
// as all before it together. A window ends where polynomials may replace the other hops.
func (t *tracker) windowEnd(from int) int {
	switch {
	case t.blocks == 1:
		return t.o.NextPlain(from)
	case t.sketch:
		return min(from+Longest, t.o.NextPlain(from))
	default:
		return min(max(2*from, window), from+Longest, t.o.NextPlain(from))
	}
}

// least returns the first hop at which the first block of a sketch may end the window, because each
// window moves the rows of all blocks.
func (t *tracker) least() int { return t.from + 1 + t.from/window }

// scouts reports whether the block decides where the window ends: the first block of a sketch
// estimates all distances by itself, and stops when it estimates that all nodes have settled.
func (t *tracker) scouts() bool { return t.sketch && t.first == 0 && !t.whole() && t.decided == 0 }

// run runs one column block to the end of the window. Only the last block sees complete distances,
// and may end earlier.
func (t *tracker) run(ctx context.Context, probe Probe, meter *progress.Meter) error {
	if t.at[t.first] == t.to {
		return nil // the state from which the run resumed was at this hop
	}
	if err := t.start(ctx, probe); err != nil {
		return err
	}
	for t.hop < t.to {
		t.hop++
		meter.Within(fmt.Sprintf("hop %d of at most %d", t.hop, t.o.Kmax))
		if err := t.step(ctx, meter); err != nil {
			return err
		}
		if t.lastBlock() {
			meter.Settle(progress.Settled{Hop: t.hop, Share: 1 - float64(t.unsettled.Load())/float64(max(t.n, 1))})
		}
		for g := t.first; g < t.last; g++ {
			t.at[g] = t.hop
		}
		t.held = t.block()
		if t.lastBlock() && (t.left == 0 || t.hop == t.o.Kmax) {
			return nil
		}
		if t.hop == 0 {
			continue
		}
		if err := t.g.After(ctx, t.o.Checkpoints, t.hop, t.save); err != nil {
			return err
		}
	}
	if t.whole() || t.to == t.o.Kmax {
		return nil
	}
	return t.states.save(t)
}

// block returns the block's panels and their hop.
func (t *tracker) block() [3]int { return [3]int{t.first, t.last, t.at[t.first]} }

// whole reports whether the block has all columns.
func (t *tracker) whole() bool { return t.last-t.first == t.panels }

// start restores the block's rows.
func (t *tracker) start(ctx context.Context, probe Probe) error {
	t.hop = t.at[t.first]
	if t.hop >= 0 && t.held == t.block() {
		return nil
	}
	t.endWalk()
	if t.hop < 0 {
		if err := fill(ctx, t.g, t.rows, probe, t.first); err != nil {
			return err
		}
	} else if err := t.states.load(t); err != nil {
		return err
	}
	t.walk = t.streams.Walk(t.rows, max(t.hop, 0))
	return nil
}

// step makes one hop and observes its rows. At hop 0 it only observes them.
func (t *tracker) step(ctx context.Context, meter *progress.Meter) (err error) {
	if err := t.loadPartial(); err != nil {
		return err
	}
	t.far.Store(0)
	if t.hop == 0 {
		if err := t.rows.Visit(func(first int64, rows []float32) error {
			t.observe(first, rows)
			return nil
		}); err != nil {
			return err
		}
	} else {
		edges, err := t.walk.Next(ctx, t.o.Kmax-t.hop+1, t.observe)
		meter.Add(edges)
		if err != nil {
			return fmt.Errorf("columns from %d: %w", t.first*packed.PanelColumns, err)
		}
	}
	if err := t.storePartial(); err != nil {
		return err
	}
	switch {
	case t.lastBlock():
		t.before = t.left
		return t.count(ctx)
	case t.scouts():
		far, err := t.countFar(ctx)
		if err != nil {
			return err
		}
		if far == 0 && t.hop >= t.least() {
			t.to = t.hop
		}
	}
	return nil
}

// countFar sums, over all workers, the nodes that the block estimates to be unsettled.
func (t *tracker) countFar(ctx context.Context) (float64, error) {
	var sum [1]float64
	if err := t.g.Group.OrderedSum(ctx, sum[:], func() error {
		sum[0] += float64(t.far.Load())
		return nil
	}); err != nil {
		return 0, fmt.Errorf("counting with other workers: %w", err)
	}
	return sum[0], nil
}

// count sums the nodes, and those that are unsettled, over all workers.
func (t *tracker) count(ctx context.Context) error {
	var sums [2]float64
	if err := t.g.Group.OrderedSum(ctx, sums[:], func() error {
		sums[0] += float64(t.unsettled.Load())
		sums[1] += float64(t.n)
		return nil
	}); err != nil {
		return fmt.Errorf("counting with other workers: %w", err)
	}
	t.left, t.nodes = sums[0], sums[1]
	return nil
}

// chunk is the number of rows that are observed at a time.
const chunk = 256

// chunks holds sums of as many rows, to which kernels add.
var chunks = sync.Pool{New: func() any { return new([chunk]float64) }}

// panelChunks holds a panel of as many rows.
var panelChunks = sync.Pool{New: func() any { return new([chunk * packed.PanelColumns]float32) }}

// observe reads the finished rows of one hop. Concurrent calls are for different strips.
func (t *tracker) observe(first int64, rows []float32) {
	for len(rows) > 0 {
		part := rows[:min(chunk*t.columns, len(rows))]
		t.observeChunk(first, part)
		first += int64(len(part) / t.columns)
		rows = rows[len(part):]
	}
}

func (t *tracker) observeChunk(first int64, rows []float32) {
	n := len(rows) / t.columns
	buf := chunks.Get().(*[chunk]float64)
	defer chunks.Put(buf)
	norms := buf[:n]
	clear(norms)
	if t.partial.now != nil {
		norms = t.partial.now.S[first : first+int64(n)]
	}
	t.g.Kernel.SquareNorms(norms, rows)
	if t.scouts() {
		t.scout(first, norms)
	}
	if !t.lastBlock() {
		return
	}
	t.unsettled.Add(-t.finder.see(t.hop, first, norms))
}

// scout counts the unsettled nodes whose distance, estimated from this block alone, is at least ε.
func (t *tracker) scout(first int64, squares []float64) {
	k := t.table.k.S[first : first+int64(len(squares))]
	share := float64(t.last-t.first) / float64(t.panels)
	epsilon := t.o.Epsilon * t.scale * math.Sqrt(share)
	far := int64(0)
	for j, square := range squares {
		if k[j] == unsettled && t.g.State.Up(first+int64(j))*math.Sqrt(square) >= epsilon {
			far++
		}
	}
	t.far.Add(far)
}

// loadPartial loads the sums of earlier blocks at this hop.
func (t *tracker) loadPartial() error {
	switch {
	case t.partial.now == nil:
	case t.first == 0:
		t.partial.now.Clear()
	default:
		return t.partial.read(t.hop - t.from)
	}
	return nil
}

// storePartial stores the sums for the next block.
func (t *tracker) storePartial() error {
	if t.partial.now == nil || t.lastBlock() {
		return nil
	}
	return t.partial.write(t.hop - t.from)
}

// partialSums holds the squared distances that the blocks so far have added up. Its zero value is of a single block, which has none.
type partialSums struct {
	now  *mem.Array[float64] // at this hop, by node
	file *direct.Scratch     // by hop of the window
}

// open allocates the sums of n nodes, unless that is done.
func (p *partialSums) open(g hops.Graph, n int64) (err error) {
	if p.now == nil {
		if p.now, err = mem.Alloc[float64](g.Budget, direct.RoundUp(n), "partial distances"); err != nil {
			return err
		}
	}
	if p.file == nil {
		if p.file, err = direct.NewScratch(g.Scratch); err != nil {
			return fmt.Errorf("scratch file: %w", err)
		}
	}
	return nil
}

func (p *partialSums) close() {
	p.now.Free()
	if p.file != nil {
		_ = p.file.Close()
	}
}

// read reads the sums of a hop of the window; the first one is 0.
func (p *partialSums) read(hop int) error {
	raw := mem.AsBytes(p.now.S)
	if err := p.file.ReadAt(raw, int64(hop)*int64(len(raw))); err != nil {
		return fmt.Errorf("partial distances: %w", err)
	}
	return nil
}

// write writes them.
func (p *partialSums) write(hop int) error {
	raw := mem.AsBytes(p.now.S)
	if err := p.file.WriteAt(raw, int64(hop)*int64(len(raw))); err != nil {
		return fmt.Errorf("partial distances: %w", err)
	}
	return nil
}

// ErrBound reports arguments for which Theorem 3.1 gives no bound.
var ErrBound = errors.New("the bound needs 0 < λ₂ < 1 and ε > 0")

// Bound returns the right-hand side of Theorem 3.1 for r = 0 on a connected graph: K(i, ε) ≤
// log_λ₂(ε √(d̃_i/vol)). lambda2 is the second largest eigenvalue of D̃⁻¹Ã in absolute value,
// degree1 is d̃_i, volume is Σ d̃.
func Bound(lambda2, epsilon, degree1, volume float64) (float64, error) {
	if !(lambda2 > 0 && lambda2 < 1 && epsilon > 0) {
		return 0, fmt.Errorf("λ₂ = %g, ε = %g: %w", lambda2, epsilon, ErrBound)
	}
	return max(0, elementary.Log(epsilon*math.Sqrt(degree1/volume))/elementary.Log(lambda2)), nil
}
