package hops

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"ndls/group"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/internal/stationary"
	"ndls/internal/testgraph"
	"ndls/spmv"
)

// chain is a long path with a clique at one end: the path needs many hops.
func chain() testgraph.Graph {
	var e [][2]int
	for i := range 20 {
		for j := range i {
			e = append(e, [2]int{i, j})
		}
	}
	for i := 19; i < 120; i++ {
		e = append(e, [2]int{i, i + 1})
	}
	return testgraph.New("chain", 121, e)
}

func start(t *testing.T, g testgraph.Graph, filter func(_ context.Context, _ packed.Source, keep, from func(int64) bool, _ int64) (Stream, error)) (Graph, *spmv.Block) {
	t.Helper()
	b, err := mem.NewBudget(256 << 20)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := spmv.Select("auto")
	if err != nil {
		t.Fatal(err)
	}
	comp, count := g.Components()
	solo := group.Solo(int64(len(g.Adj)))
	state, err := stationary.New(t.Context(), solo, b, stationary.Nodes{Degree: g.Degree(), Component: comp, Components: count}, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	hg := Graph{
		Source: g.Source(), Degree: g.Degree(), Kernel: kernel, State: state, Budget: b, Threads: 2, Scratch: testgraph.Scratch(t), Filter: filter, Group: solo,
	}
	block, err := hg.NewBlock(spmv.Layout{Columns: 32})
	if err != nil {
		t.Fatal(err)
	}
	mean, err := state.NewMean(32)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		block.Free()
		mean.Free()
		state.Free()
		if b.Free() != b.Limit() {
			t.Error("memory is not given back")
		}
	})
	if err := hg.Fill(t.Context(), block, func(put func([]float32) error) error {
		for i := range g.Adj {
			row := make([]float32, 32)
			for c := range row {
				row[c] = float32((i*31+c*17)%23) - 11
			}
			if err := put(row); err != nil {
				return err
			}
		}
		return nil
	}, mean); err != nil {
		t.Fatal(err)
	}
	return hg, block
}

// needing is a walk of so many hops, of which row i is needed up to hop until(i).
func needing(t *testing.T, hg Graph, block *spmv.Block, hops int, until func(int64) int) *Walk {
	t.Helper()
	early, err := mem.Alloc[uint8](hg.Budget, block.NumRows(), "how long rows are needed")
	if err != nil {
		t.Fatal(err)
	}
	for i := range early.S {
		early.S[i] = uint8(hops - until(int64(i)))
	}
	needed := &Needed{last: hops, early: early}
	streams := hg.NewStreams(1, ReadBytes, needed)
	t.Cleanup(func() {
		streams.Close()
		needed.Free()
	})
	return streams.Walk(block, 0)
}

func rowsOf(t *testing.T, b *spmv.Block) (all []float32) {
	t.Helper()
	if err := b.Visit(func(_ int64, rows []float32) error {
		all = append(all, rows...)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// TestShrink: the stream is written anew as fewer rows are needed, for the rows that are left, and
// the rows that each hop needs are the same as without.
func TestShrink(t *testing.T) {
	g := chain()
	until := func(i int64) int { // a node for each hop from the end of the path, which all 60 hops need
		return max(60-(120-int(i)), 2)
	}
	run := func(room int64, filter func(_ context.Context, _ packed.Source, keep, from func(int64) bool, _ int64) (Stream, error)) (computed []float32, _ Stats) {
		hg, block := start(t, g, filter)
		hg.Room = room
		walk := needing(t, hg, block, 60, until)
		for hop := 1; hop <= 60; hop++ {
			if _, err := walk.Next(context.Background(), 60-hop+1, nil); err != nil {
				t.Fatal(err)
			}
			for i, v := range rowsOf(t, block) {
				if hop <= until(int64(i/32)) {
					computed = append(computed, v)
				}
			}
		}
		return computed, walk.Stats
	}
	plain, all := run(0, nil)
	written := 0
	filter := func(_ context.Context, _ packed.Source, keep, _ func(int64) bool, _ int64) (Stream, error) {
		written++
		return filtered(g, keep), nil
	}
	shrunk, some := run(0, filter)
	if !slices.Equal(plain, shrunk) {
		t.Error("a stream written anew gives other rows")
	}
	if written == 0 || some.EdgesStreamed >= all.EdgesStreamed/2 {
		t.Errorf("written anew %d times, %d of %d edges", written, some.EdgesStreamed, all.EdgesStreamed)
	}
	const room = 20
	bounded, few := run(room, func(_ context.Context, _ packed.Source, keep, _ func(int64) bool, _ int64) (Stream, error) {
		s := filtered(g, keep)
		if n := NumEdges(s); n > room {
			t.Errorf("a copy of %d edges where there is room for %d", n, room)
		}
		return s, nil
	})
	if few.EdgesStreamed <= some.EdgesStreamed || !slices.Equal(plain, bounded) {
		t.Errorf("with room for %d edges, %d edges are read, without a bound %d", room, few.EdgesStreamed, some.EdgesStreamed)
	}
	if _, err := runBroken(t, g, until); !errors.Is(err, packed.ErrFrame) {
		t.Errorf("a stream that lost edges gives %v", err)
	}
}

// filtered is g without the edges into rows that keep leaves out.
func filtered(g testgraph.Graph, keep func(int64) bool) Stream {
	adj := make([][]uint32, len(g.Adj))
	for i, a := range g.Adj {
		if keep(int64(i)) {
			adj[i] = a
		}
	}
	return closing{testgraph.Graph{Adj: adj}.Source()}
}

type closing struct{ packed.Source }

func (closing) Close() {}

// runBroken filters away everything.
func runBroken(t *testing.T, g testgraph.Graph, until func(int64) int) (int, error) {
	hg, block := start(t, g, func(_ context.Context, _ packed.Source, _, _ func(int64) bool, _ int64) (Stream, error) {
		return filtered(g, func(int64) bool { return false }), nil
	})
	walk := needing(t, hg, block, 60, until)
	for hop := 1; hop <= 60; hop++ {
		if _, err := walk.Next(context.Background(), 60-hop+1, nil); err != nil {
			return hop, err
		}
	}
	return 60, nil
}

// Rows, and the stationary rows that are taken from them, have the same bits on any number of
// threads, whatever comes at a time, and wherever rows are.
func TestFillOnThreads(t *testing.T) {
	g := testgraph.Random(5000, 3000, 7) // many components
	comp, count := g.Components()
	x := make([]float32, 32*len(g.Adj))
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	for _, l := range []spmv.Layout{
		{Columns: 32}, {Columns: 32, Precision: spmv.Float16}, {Columns: 32, Residency: spmv.External, Window: packed.StripRows, Accumulators: 1},
	} {
		var want []float32
		for _, threads := range []int{1, 2, 5, 16} {
			b, err := mem.NewBudget(256 << 20)
			if err != nil {
				t.Fatal(err)
			}
			kernel, err := spmv.Select("auto")
			if err != nil {
				t.Fatal(err)
			}
			solo := group.Solo(int64(len(g.Adj)))
			state, err := stationary.New(t.Context(), solo, b, stationary.Nodes{Degree: g.Degree(), Component: comp, Components: count}, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			mean, err := state.NewMean(32)
			if err != nil {
				t.Fatal(err)
			}
			hg := Graph{Source: g.Source(), Degree: g.Degree(), Kernel: kernel, State: state, Budget: b, Threads: threads, Scratch: testgraph.Scratch(t), Group: solo}
			block, err := hg.NewBlock(l)
			if err != nil {
				t.Fatal(err)
			}
			if err := hg.Fill(t.Context(), block, func(put func([]float32) error) error {
				for rows := range slices.Chunk(slices.Clone(x), 32*(1000+777*threads)) {
					if err := put(rows); err != nil {
						return err
					}
				}
				return nil
			}, mean); err != nil {
				t.Fatal(err)
			}
			got := rowsOf(t, block)
			for _, s := range mean.Sums() {
				got = append(got, float32(s), float32(s-float64(float32(s))))
			}
			if want == nil {
				want = got
			}
			for i := range want {
				if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
					t.Fatalf("%+v, %d threads: value %d is %v, on one thread %v", l, threads, i, got[i], want[i])
				}
			}
			block.Free()
			mean.Free()
			state.Free()
		}
	}
}

// TestRecurrenceResumes makes steps of a recurrence, and takes a state of them to a block elsewhere that makes the others: the same bits.
func TestRecurrenceResumes(t *testing.T) {
	hg, block := start(t, chain(), nil)
	steps := func(b *spmv.Block, from, to int) {
		t.Helper()
		streams := hg.NewStreams(1, ReadBytes, nil)
		defer streams.Close()
		walk := streams.Walk(b, from)
		walk.Recurs = true
		for hop := from + 1; hop <= to; hop++ {
			if _, err := walk.Next(t.Context(), to-hop+1, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	steps(block, 0, 3)
	var raw bytes.Buffer
	w, err := NewStateWriter(&raw, "of a recurrence")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Block(block, 2), w.Before(block, 2), w.Close()); err != nil {
		t.Fatal(err)
	}
	r, err := NewStateReader(&raw)
	if err != nil {
		t.Fatal(err)
	}
	other, err := hg.NewBlock(spmv.Layout{Columns: 16, Residency: spmv.Spilled})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Free()
	if err := errors.Join(r.Block(other, 2, 1, 2), r.Before(other, 2, 1, 2), r.End()); err != nil {
		t.Fatal(err)
	}
	steps(block, 3, 9)
	steps(other, 3, 9)
	whole, second := rowsOf(t, block), rowsOf(t, other)
	for i := range int(block.NumRows()) {
		if !slices.Equal(second[i*16:(i+1)*16], whole[i*32+16:(i+1)*32]) {
			t.Fatalf("row %d: %v, not %v", i, second[i*16:(i+1)*16], whole[i*32+16:(i+1)*32])
		}
	}
}
