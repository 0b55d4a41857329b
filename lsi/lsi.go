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

// Threshold is one question asked of the distances.
type Threshold struct {
	Epsilon float64 // > 0
	Kmax    int     // in [0, MaxK]
}

// Options say how to look for the LSI.
type Options struct {
	// Thresholds are followed in one run, each with its own column of K.
	Thresholds []Threshold
	// BlockColumns is the width of a column block, a multiple of 16. The
	// result does not depend on it.
	BlockColumns int
	// Threads is the number of threads beside those of the pass.
	Threads int
	// Scratch is a folder for partial sums.
	Scratch string
}

// Table holds K of every node for every threshold, by node id.
type Table struct {
	k []*mem.Array[uint16]
}

// K returns K of node i for threshold t, and whether it is capped.
func (t *Table) K(threshold int, i int64) (k int, isCapped bool) {
	x := t.k[threshold].S[i]
	return int(x &^ capped), x&capped != 0
}

// Free returns the memory.
func (t *Table) Free() {
	for _, a := range t.k {
		a.Free()
	}
}

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
	meter := progress.Start(ctx, "lsi", int64(t.blocks)*int64(t.kmax)*g.edges(), "edges")
	defer meter.Done()
	for t.block = range t.blocks {
		if err := t.run(ctx, probe, meter); err != nil {
			return nil, t.stats, err
		}
	}
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
	kmax     int
	blocks   int
	columns  int
	table    *Table
	cur      *mem.Array[float32]
	next     *mem.Array[float32]
	partial  *mem.Array[float64] // sums of the blocks so far at this hop
	scratch  *direct.Scratch
	stats    Stats
	energies []float64 // of this hop, by destination block

	block     int
	hop       int
	unsettled []atomic.Int64
}

func newTracker(g Graph, probe Probe, o Options) (_ *tracker, err error) {
	t := &tracker{g: g, o: o, n: g.Pass.Source.NumNodes(), table: &Table{}}
	for _, x := range o.Thresholds {
		if !(x.Epsilon > 0) || x.Kmax < 0 || x.Kmax > MaxK {
			return nil, fmt.Errorf("lsi: epsilon %g with kmax %d: epsilon must be above 0 and kmax in [0, %d]", x.Epsilon, x.Kmax, MaxK)
		}
		t.kmax = max(t.kmax, x.Kmax)
	}
	width := (probe.Columns() + spmv.Granule - 1) / spmv.Granule * spmv.Granule
	t.columns = min(o.BlockColumns, width)
	if t.columns <= 0 || t.columns%spmv.Granule != 0 {
		return nil, fmt.Errorf("lsi: %d columns a block is no multiple of %d", o.BlockColumns, spmv.Granule)
	}
	t.blocks = (width + t.columns - 1) / t.columns
	t.stats.BlockColumns = t.columns
	t.energies = make([]float64, g.Pass.Source.Blocks())
	t.unsettled = make([]atomic.Int64, len(o.Thresholds))
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	for i := range o.Thresholds {
		k, err := mem.Alloc[uint16](g.Budget, t.n, "K table")
		if err != nil {
			return nil, err
		}
		t.table.k = append(t.table.k, k)
		t.unsettled[i].Store(t.n)
		for j := range k.S {
			k.S[j] = unsettled
		}
	}
	if t.cur, err = mem.Alloc[float32](g.Budget, t.n*int64(t.columns), "probe rows"); err != nil {
		return nil, err
	}
	if t.next, err = mem.Alloc[float32](g.Budget, t.n*int64(t.columns), "probe rows of the next hop"); err != nil {
		return nil, err
	}
	if t.blocks > 1 {
		padded := (t.n*8 + direct.Align - 1) / direct.Align * direct.Align / 8
		if t.partial, err = mem.Alloc[float64](g.Budget, padded, "partial distances"); err != nil {
			return nil, err
		}
		if t.scratch, err = direct.NewScratch(o.Scratch); err != nil {
			return nil, fmt.Errorf("lsi: scratch for partial distances: %w", err)
		}
	}
	return t, nil
}

// unsettled marks a node whose K is not known yet.
const unsettled = math.MaxUint16

func (t *tracker) close() {
	if t.table != nil {
		t.table.Free()
	}
	t.cur.Free()
	t.next.Free()
	t.partial.Free()
	if t.scratch != nil {
		_ = t.scratch.Close()
	}
}

func (t *tracker) lastBlock() bool { return t.block == t.blocks-1 }

// run takes one column block from hop 0 to the last hop that is needed. Until
// the last block, no distance is complete and none can end the run.
func (t *tracker) run(ctx context.Context, probe Probe, meter *progress.Meter) error {
	cur := spmv.Rows{Stride: t.columns, S: t.cur.S}
	next := spmv.Rows{Stride: t.columns, S: t.next.S}
	clear(cur.S)
	if err := probe.Fill(ctx, cur, t.block*t.columns); err != nil {
		return err
	}
	means, err := t.g.State.Deflate(cur.S, t.columns, t.o.Threads)
	if err != nil {
		return err
	}
	means.Free()

	energy := 0.0
	for t.hop = 0; ; t.hop++ {
		if err := t.loadPartial(); err != nil {
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
			cur, next = next, cur
		}
		if err := t.storePartial(); err != nil {
			return err
		}
		before := energy
		energy = 0
		for _, e := range t.energies {
			energy += e
		}
		if t.hop > 0 && before > 0 {
			t.stats.Contraction = math.Sqrt(energy / before)
		}
		t.stats.Hops = max(t.stats.Hops, t.hop)
		if t.done() {
			break
		}
	}
	if t.lastBlock() {
		t.capRest()
	}
	return nil
}

func (t *tracker) done() bool {
	if !t.lastBlock() {
		return t.hop == t.kmax
	}
	for i, x := range t.o.Thresholds {
		if t.unsettled[i].Load() > 0 && t.hop < x.Kmax {
			return false
		}
	}
	return true
}

// capRest gives Kmax to the nodes that never settled.
func (t *tracker) capRest() {
	for i, x := range t.o.Thresholds {
		if t.unsettled[i].Load() == 0 {
			continue
		}
		k := t.table.k[i].S
		for j := range k {
			if k[j] == unsettled {
				k[j] = uint16(x.Kmax) | capped
			}
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
	for i, x := range t.o.Thresholds {
		if t.hop > x.Kmax || t.unsettled[i].Load() == 0 {
			continue
		}
		k := t.table.k[i].S[first : first+int64(n)]
		settled := int64(0)
		for j, square := range norms {
			if k[j] == unsettled && t.g.State.Up(first+int64(j))*math.Sqrt(square) < x.Epsilon {
				k[j] = uint16(t.hop)
				settled++
			}
		}
		t.unsettled[i].Add(-settled)
	}
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
	if err := t.scratch.ReadAt(raw, int64(t.hop)*int64(len(raw))); err != nil {
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
	if err := t.scratch.WriteAt(raw, int64(t.hop)*int64(len(raw))); err != nil {
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
