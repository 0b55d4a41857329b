package lsi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"ndls/internal/direct"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/progress"
	"ndls/internal/stationary"
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
	// BlockColumns is the width of a column block, a multiple of 16. The
	// result does not depend on it.
	BlockColumns int
	// Threads is the number of threads beside those of the pass.
	Threads int
	// Scratch is a folder for partial sums.
	Scratch string
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
	// Hops is the largest number of hops any block needed.
	Hops int
	// Passes counts passes over the edges; EdgesStreamed the edges in them.
	Passes        int
	EdgesStreamed int64
	// Seconds is the time spent in passes.
	Seconds float64
	// BlockColumns is the width of the blocks.
	BlockColumns int
	// Contraction is √(E_k+1/E_k) at the last hop, with E_k = Σ d̃ ‖Z^(k)‖²: it
	// rises towards the second largest |eigenvalue| of D̃⁻¹Ã. 0 where no
	// hop was made or nothing was left to contract.
	Contraction float64
}

// Graph is what hops run on.
type Graph struct {
	Pass   *spmv.Pass
	State  *stationary.State
	Budget *mem.Budget
}

// Run computes the table. Errors are those of the probe, the pass, the scratch
// file, mem.ErrBudget, and the context's.
func Run(ctx context.Context, g Graph, probe Probe, o Options) (*Table, Stats, error) {
	t, err := newTracker(g, probe, o)
	if err != nil {
		return nil, Stats{}, err
	}
	defer t.close()
	meter := progress.Start(ctx, "lsi", int64(t.blocks)*int64(o.Kmax)*g.edges(), "edges")
	defer meter.Done()
	for from, to := 0, t.firstWindow(); ; from, to = to, min(2*to, o.Kmax) {
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
	table := t.table
	t.table = nil
	return table, t.stats, nil
}

func (g Graph) edges() int64 {
	var n int64
	for b := range g.Pass.Source.Blocks() {
		n += g.Pass.Source.Edges(b)
	}
	return n
}

// tracker follows the distance of every node from hop to hop.
type tracker struct {
	g        Graph
	o        Options
	n        int64
	blocks   int
	columns  int
	table    *Table
	cur      *mem.Array[float32]
	next     *mem.Array[float32]
	partial  *mem.Array[float64] // sums of the blocks so far at this hop
	sums     *direct.Scratch     // partial, by hop of the window
	states   *direct.Scratch     // rows of each block at the end of a window
	stats    Stats
	energies []float64 // of this hop, by destination block
	energy   float64   // of the hop before

	block     int
	hop       int
	unsettled atomic.Int64
}

func newTracker(g Graph, probe Probe, o Options) (_ *tracker, err error) {
	t := &tracker{g: g, o: o, n: g.Pass.Source.NumNodes(), table: &Table{}}
	if !(o.Epsilon > 0) || o.Kmax < 0 || o.Kmax > MaxK {
		return nil, fmt.Errorf("lsi: epsilon %g with kmax %d: epsilon must be above 0 and kmax in [0, %d]", o.Epsilon, o.Kmax, MaxK)
	}
	width := (probe.Columns() + spmv.Granule - 1) / spmv.Granule * spmv.Granule
	t.columns = min(o.BlockColumns, width)
	if t.columns <= 0 || t.columns%spmv.Granule != 0 {
		return nil, fmt.Errorf("lsi: %d columns a block is no multiple of %d", o.BlockColumns, spmv.Granule)
	}
	t.blocks = (width + t.columns - 1) / t.columns
	t.stats.BlockColumns = t.columns
	t.energies = make([]float64, g.Pass.Source.Blocks())
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
	if t.cur, err = mem.Alloc[float32](g.Budget, padded(t.n*int64(t.columns)), "probe rows"); err != nil {
		return nil, err
	}
	if t.next, err = mem.Alloc[float32](g.Budget, padded(t.n*int64(t.columns)), "probe rows of the next hop"); err != nil {
		return nil, err
	}
	if t.blocks > 1 {
		if t.partial, err = mem.Alloc[float64](g.Budget, padded(t.n), "partial distances"); err != nil {
			return nil, err
		}
		for _, f := range []**direct.Scratch{&t.sums, &t.states} {
			if *f, err = direct.NewScratch(o.Scratch); err != nil {
				return nil, fmt.Errorf("lsi: scratch file: %w", err)
			}
		}
	}
	return t, nil
}

// padded rounds a number of elements up to whole transfers of a scratch file.
func padded(n int64) int64 { return (n + direct.Align - 1) / direct.Align * direct.Align }

// unsettled marks a node whose K is not known yet.
const unsettled = math.MaxUint16

func (t *tracker) close() {
	if t.table != nil {
		t.table.Free()
	}
	t.cur.Free()
	t.next.Free()
	t.partial.Free()
	for _, f := range []*direct.Scratch{t.sums, t.states} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (t *tracker) lastBlock() bool { return t.block == t.blocks-1 }

// window is the number of hops after which several blocks first compare notes.
// Each window is as long as all before it.
const window = 8

// firstWindow is the last hop of the first window. A single block needs no
// others: it sees complete distances at every hop.
func (t *tracker) firstWindow() int {
	if t.blocks == 1 {
		return t.o.Kmax
	}
	return min(window, t.o.Kmax)
}

// run takes one column block from hop from to hop to. Only the last block sees
// complete distances, and may end earlier.
func (t *tracker) run(ctx context.Context, probe Probe, from, to int, meter *progress.Meter) error {
	rows := t.n * int64(t.columns)
	cur := spmv.Rows{Stride: t.columns, S: t.cur.S[:rows]}
	next := spmv.Rows{Stride: t.columns, S: t.next.S[:rows]}
	if from == 0 {
		clear(cur.S)
		if err := probe.Fill(ctx, cur, t.block*t.columns); err != nil {
			return err
		}
		if err := t.g.State.Deflate(cur.S, t.columns, t.o.Threads); err != nil {
			return err
		}
	} else if err := t.states.ReadAt(mem.AsBytes(t.cur.S), t.stateOffset()); err != nil {
		return fmt.Errorf("lsi: rows at hop %d: %w", from, err)
	}
	for t.hop = from; t.hop <= to; t.hop++ {
		if t.hop == from && from > 0 {
			continue // seen at the end of the window before
		}
		if err := t.step(cur, next, from, meter); err != nil {
			return err
		}
		if t.hop > 0 {
			cur, next = next, cur
		}
		if t.lastBlock() && t.unsettled.Load() == 0 {
			return nil
		}
	}
	t.hop = to
	if t.blocks == 1 || to == t.o.Kmax {
		return nil
	}
	at := t.cur
	if &cur.S[0] != &t.cur.S[0] {
		at = t.next
	}
	if err := t.states.WriteAt(mem.AsBytes(at.S), t.stateOffset()); err != nil {
		return fmt.Errorf("lsi: rows at hop %d: %w", to, err)
	}
	return nil
}

func (t *tracker) stateOffset() int64 { return int64(t.block) * int64(len(t.cur.S)) * 4 }

// step makes one hop, but hop 0, and observes its rows.
func (t *tracker) step(cur, next spmv.Rows, from int, meter *progress.Meter) error {
	if err := t.loadPartial(from); err != nil {
		return err
	}
	clear(t.energies)
	if t.hop == 0 {
		for i := int64(0); i < t.n; i += chunk {
			t.observe(i, cur.Slice(i, min(i+chunk, t.n)))
		}
	} else {
		start := time.Now()
		edges, err := t.g.Pass.Run(cur, next, t.observe)
		t.stats.Seconds += time.Since(start).Seconds()
		t.stats.EdgesStreamed += edges
		meter.Add(edges)
		if err != nil {
			return fmt.Errorf("lsi: hop %d, columns from %d: %w", t.hop, t.block*t.columns, err)
		}
		t.stats.Passes++
	}
	if err := t.storePartial(from); err != nil {
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

// chunk is how many rows of hop 0 are observed at a time.
const chunk = 256

// observe takes the rows of one hop as they are finished. Calls at the same
// time are for different rows.
func (t *tracker) observe(first int64, rows []float32) {
	n := len(rows) / t.columns
	var buf [chunk]float64
	norms := buf[:n]
	if t.partial != nil {
		norms = t.partial.S[first : first+int64(n)]
	}
	t.g.Pass.Kernel.SquareNorms(norms, rows)
	if !t.lastBlock() {
		return
	}
	energy := 0.0
	for j, square := range norms {
		energy += float64((float64(t.g.Pass.Degree[first+int64(j)]) + 1) * square)
	}
	t.energies[first>>packed.BlockShift] += energy
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
func (t *tracker) loadPartial(from int) error {
	if t.partial == nil {
		return nil
	}
	if t.block == 0 {
		t.partial.Clear()
		return nil
	}
	raw := mem.AsBytes(t.partial.S)
	if err := t.sums.ReadAt(raw, int64(t.hop-from)*int64(len(raw))); err != nil {
		return fmt.Errorf("lsi: partial distances: %w", err)
	}
	return nil
}

// storePartial keeps them for the next block.
func (t *tracker) storePartial(from int) error {
	if t.partial == nil || t.lastBlock() {
		return nil
	}
	raw := mem.AsBytes(t.partial.S)
	if err := t.sums.WriteAt(raw, int64(t.hop-from)*int64(len(raw))); err != nil {
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
