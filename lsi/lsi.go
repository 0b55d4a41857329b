package lsi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"ndls/internal/direct"
	"ndls/internal/hops"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/spmv"
)

// capped marks, in a table entry, a node that did not settle by Kmax.
const capped = 1 << 15

// MaxK is the largest Kmax a table can hold.
const MaxK = capped - 1

// Options say how to look for the LSI.
type Options struct {
	// Epsilon > 0 is the distance below which a node has settled, Kmax in [0,
	// MaxK] the K of a node that never does.
	Epsilon float64
	Kmax    int
	// Settled stops recomputing a row Slack hops after its node has settled,
	// or with the window in which it did (see the package's Algorithm).
	Settled bool
	Slack   int
	// Layout is how a column block is laid out. The result does not depend on it.
	Layout spmv.Layout
}

// Table holds K of every node, by node id.
type Table struct {
	k *mem.Array[uint16]
}

// K returns K of node i, and whether it is capped.
func (t *Table) K(i int64) (k int, isCapped bool) {
	x := t.k.S[i]
	return int(x &^ capped), x&capped != 0
}

// Free returns the memory.
func (t *Table) Free() { t.k.Free() }

// Stats says what a run did.
type Stats struct {
	hops.Stats
	// Hops is the largest number of hops any block needed, Blocks the number
	// of column blocks.
	Hops   int
	Blocks int
	// Contraction is √(E_k+1/E_k) at the last hop, with E_k = Σ d̃ ‖Z^(k)‖²: it
	// rises towards the second largest |eigenvalue| of D̃⁻¹Ã. 0 where no
	// hop was made or nothing was left to contract.
	Contraction float64
}

// Run computes the table. Errors are those of the probe, the pass, the scratch
// file, mem.ErrBudget, and the context's.
func Run(ctx context.Context, g hops.Graph, probe Probe, o Options) (*Table, Stats, error) {
	t, err := newTracker(g, probe, o)
	if err != nil {
		return nil, Stats{}, err
	}
	defer t.close()
	meter := progress.Start(ctx, "lsi", int64(t.blocks)*int64(o.Kmax)*hops.NumEdges(g.Source), "edges")
	defer meter.Done()
	for from, to := 0, t.windowEnd(0); ; from, to = to, t.windowEnd(to) {
		for t.block = range t.blocks {
			if err := t.run(ctx, probe, from, to, meter); err != nil {
				return nil, t.stats, err
			}
		}
		if t.done() {
			break
		}
	}
	t.capRest()
	t.endWalk()
	table := t.table
	t.table = nil
	return table, t.stats, nil
}

// tracker follows the distance of every node from hop to hop.
type tracker struct {
	g        hops.Graph
	o        Options
	n        int64
	blocks   int
	columns  int
	table    *Table
	rows     *spmv.Block
	closure  *hops.Closure       // nil unless o.Settled
	walk     *hops.Walk          // of the block whose rows are in memory
	partial  *mem.Array[float64] // sums of the blocks so far at this hop
	sums     *direct.Scratch     // partial, by hop of the window
	states   *direct.Scratch     // rows and decays of each block at the end of a window
	stats    Stats
	energies []float64 // of this hop, by strip
	energy   float64   // of the hop before

	block     int
	from      int // the window's first hop; what settled by then is known to all blocks
	hop       int
	unsettled atomic.Int64
}

func newTracker(g hops.Graph, probe Probe, o Options) (_ *tracker, err error) {
	t := &tracker{g: g, o: o, n: g.Source.NumNodes(), table: &Table{}}
	if !(o.Epsilon > 0) || o.Kmax < 0 || o.Kmax > MaxK || o.Slack < 0 {
		return nil, fmt.Errorf("lsi: epsilon %g with kmax %d and slack %d: epsilon must be above 0, kmax in [0, %d], slack at least 0",
			o.Epsilon, o.Kmax, o.Slack, MaxK)
	}
	width := (probe.Columns() + spmv.Granule - 1) / spmv.Granule * spmv.Granule
	t.o.Layout.Columns = min(o.Layout.Columns, width)
	t.columns = t.o.Layout.Columns
	if t.columns <= 0 || t.columns%spmv.Granule != 0 {
		return nil, fmt.Errorf("lsi: %d columns a block is no multiple of %d", o.Layout.Columns, spmv.Granule)
	}
	t.blocks = (width + t.columns - 1) / t.columns
	t.stats.Blocks = t.blocks
	t.energies = make([]float64, g.Source.Strips())
	t.unsettled.Store(t.n)
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if t.table.k, err = mem.Alloc[uint16](g.Budget, t.n, "K table"); err != nil {
		return nil, err
	}
	for i := range t.table.k.S {
		t.table.k.S[i] = unsettled
	}
	if t.rows, err = g.NewBlock(t.o.Layout); err != nil {
		return nil, err
	}
	if o.Settled {
		if t.closure, err = hops.NewClosure(g.Budget, t.n, t.columns, t.until); err != nil {
			return nil, err
		}
	}
	if t.blocks > 1 {
		if t.partial, err = mem.Alloc[float64](g.Budget, padded(t.n), "partial distances"); err != nil {
			return nil, err
		}
		for _, f := range []**direct.Scratch{&t.sums, &t.states} {
			if *f, err = direct.NewScratch(g.Scratch); err != nil {
				return nil, fmt.Errorf("lsi: scratch file: %w", err)
			}
		}
	}
	return t, nil
}

// MemoryBytes is what a run takes beside the column block: K, the stationary
// rows of components components, the decays, and the partial sums of a probe in
// several blocks.
func MemoryBytes(n, components int64, l spmv.Layout, blocks int, settled bool) int64 {
	bytes := 2*n + 8*components*int64(l.Columns)
	if settled {
		bytes += hops.ClosureBytes(n, l.Columns)
	}
	if blocks > 1 {
		bytes += 8 * padded(n)
	}
	return bytes + 4*direct.Align
}

// padded rounds a number of elements up to whole transfers of a scratch file.
func padded(n int64) int64 { return (n + direct.Align - 1) / direct.Align * direct.Align }

// unsettled marks a node whose K is not known yet.
const unsettled = math.MaxUint16

func (t *tracker) close() {
	t.endWalk()
	if t.table != nil {
		t.table.Free()
	}
	if t.rows != nil {
		t.rows.Free()
	}
	t.closure.Free()
	t.partial.Free()
	for _, f := range []*direct.Scratch{t.sums, t.states} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// endWalk adds up what a block's hops took.
func (t *tracker) endWalk() {
	if t.walk != nil {
		t.stats.Add(t.walk.Stats)
		t.walk.Close()
		t.walk = nil
	}
}

func (t *tracker) lastBlock() bool { return t.block == t.blocks-1 }

// window is the number of hops after which several blocks first compare notes.
const window = 8

// windowEnd is the last hop of the window after hop from. Where every row is
// recomputed a window is as long as all before it, and a single block, that sees
// complete distances at every hop, needs but one. Rows that settle must do so
// at the same hop however many blocks there are: the windows are the same then.
func (t *tracker) windowEnd(from int) int {
	switch {
	case t.o.Settled:
		return min(from+window, t.o.Kmax)
	case t.blocks == 1:
		return t.o.Kmax
	default:
		return min(max(2*from, window), t.o.Kmax)
	}
}

// until is F(i): Slack hops after K, but not before the end of the window in
// which K was found, when all blocks know it.
func (t *tracker) until(i int64) int {
	k := int(t.table.k.S[i])
	if k == unsettled || k > t.from {
		return hops.Never
	}
	known := max((k+window-1)/window, 1) * window
	return max(k+t.o.Slack, known+1)
}

// run takes one column block from hop from to hop to. Only the last block sees
// complete distances, and may end earlier.
func (t *tracker) run(ctx context.Context, probe Probe, from, to int, meter *progress.Meter) error {
	t.from = from
	if err := t.start(ctx, probe); err != nil {
		return err
	}
	if t.walk == nil || t.blocks > 1 {
		t.endWalk()
		t.walk = t.g.Walk(t.rows, from, t.closure)
	}
	for t.hop = from; t.hop <= to; t.hop++ {
		if t.hop == from && from > 0 {
			continue // seen at the end of the window before
		}
		if err := t.step(ctx, meter); err != nil {
			return err
		}
		if t.lastBlock() && t.unsettled.Load() == 0 {
			return nil
		}
	}
	t.hop = to
	if t.blocks == 1 || to == t.o.Kmax {
		return nil
	}
	if err := t.rows.Save(t.states, t.stateOffset()); err != nil {
		return fmt.Errorf("lsi: rows at hop %d: %w", to, err)
	}
	if t.closure == nil {
		return nil
	}
	return t.states.WriteAt(t.closure.State(), t.stateOffset()+t.rows.SavedBytes())
}

// start brings the block's rows to the first hop of the window.
func (t *tracker) start(ctx context.Context, probe Probe) error {
	switch {
	case t.from > 0 && t.blocks == 1:
		return nil // they are where the window before left them
	case t.from > 0:
		err := t.rows.Load(t.states, t.stateOffset())
		if err == nil && t.closure != nil {
			err = t.states.ReadAt(t.closure.State(), t.stateOffset()+t.rows.SavedBytes())
		}
		if err != nil {
			return fmt.Errorf("lsi: rows at hop %d: %w", t.from, err)
		}
		return nil
	}
	mean, err := t.g.State.NewMean(t.columns)
	if err != nil {
		return err
	}
	defer mean.Free()
	return t.g.Fill(t.rows, func(put func([]float32) error) error {
		return probe.Rows(ctx, t.block*t.columns, t.columns, put)
	}, mean)
}

func (t *tracker) stateOffset() int64 {
	return int64(t.block) * (t.rows.SavedBytes() + int64(len(t.closure.State())))
}

// step makes one hop, but hop 0, and observes its rows.
func (t *tracker) step(ctx context.Context, meter *progress.Meter) error {
	if err := t.loadPartial(); err != nil {
		return err
	}
	clear(t.energies)
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
			return fmt.Errorf("lsi: columns from %d: %w", t.block*t.columns, err)
		}
	}
	if err := t.storePartial(); err != nil {
		return err
	}
	t.stats.Hops = max(t.stats.Hops, t.hop)
	if t.lastBlock() {
		before := t.energy
		t.energy = 0
		for _, e := range t.energies {
			t.energy += e
		}
		if before > 0 {
			t.stats.Contraction = math.Sqrt(t.energy / before)
		}
	}
	return nil
}

// done says whether the last block has seen all it needs.
func (t *tracker) done() bool { return t.hop == t.o.Kmax || t.unsettled.Load() == 0 }

// capRest gives Kmax to the nodes that never settled.
func (t *tracker) capRest() {
	for i, k := range t.table.k.S {
		if k == unsettled {
			t.table.k.S[i] = uint16(t.o.Kmax) | capped
		}
	}
}

// chunk is how many rows are observed at a time.
const chunk = 256

// observe takes rows of one hop as they are finished. Calls at the same time are
// for different strips.
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
	var buf [chunk]float64
	norms := buf[:n]
	if t.partial != nil {
		norms = t.partial.S[first : first+int64(n)]
	}
	t.g.Kernel.SquareNorms(norms, rows)
	if !t.lastBlock() {
		return
	}
	energy := 0.0
	for j, square := range norms {
		energy += float64((float64(t.g.Degree[first+int64(j)]) + 1) * square)
	}
	t.energies[first>>packed.StripShift] += energy
	k := t.table.k.S[first : first+int64(n)]
	settled := int64(0)
	for j, square := range norms {
		if k[j] == unsettled && t.g.State.Up(first+int64(j))*math.Sqrt(square) < t.o.Epsilon {
			k[j] = uint16(t.hop)
			settled++
		}
	}
	t.unsettled.Add(-settled)
}

// loadPartial brings in the sums of earlier blocks at this hop.
func (t *tracker) loadPartial() error {
	if t.partial == nil {
		return nil
	}
	if t.block == 0 {
		t.partial.Clear()
		return nil
	}
	raw := mem.AsBytes(t.partial.S)
	if err := t.sums.ReadAt(raw, int64(t.hop-t.from)*int64(len(raw))); err != nil {
		return fmt.Errorf("lsi: partial distances: %w", err)
	}
	return nil
}

// storePartial keeps them for the next block.
func (t *tracker) storePartial() error {
	if t.partial == nil || t.lastBlock() {
		return nil
	}
	raw := mem.AsBytes(t.partial.S)
	if err := t.sums.WriteAt(raw, int64(t.hop-t.from)*int64(len(raw))); err != nil {
		return fmt.Errorf("lsi: partial distances: %w", err)
	}
	return nil
}

// ErrBound reports arguments for which Theorem 3.1 says nothing.
var ErrBound = errors.New("the bound needs 0 < λ₂ < 1 and a positive ε")

// Bound is the right-hand side of Theorem 3.1 for r = 0 on a connected graph:
// K(i, ε) ≤ log_λ₂(ε √(d̃_i/vol)). lambda2 is the second largest eigenvalue of D̃⁻¹Ã
// in absolute value, degree1 is d̃_i, volume is Σ d̃.
func Bound(lambda2, epsilon, degree1, volume float64) (float64, error) {
	if !(lambda2 > 0 && lambda2 < 1 && epsilon > 0) {
		return 0, fmt.Errorf("lsi: λ₂ = %g, ε = %g: %w", lambda2, epsilon, ErrBound)
	}
	return max(0, math.Log(epsilon*math.Sqrt(degree1/volume))/math.Log(lambda2)), nil
}
