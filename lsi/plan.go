package lsi

import (
	"ndls/hops"
	"ndls/internal/direct"
	"ndls/internal/packed"
	"ndls/spmv"
)

// Plan returns o with the layout that fits c, whose Columns is the width of the probe, and the part
// of c.Free that a run uses. If nothing fits, that is the smallest layout, and the error wraps
// mem.ErrBudget.
func (o Options) Plan(c hops.Capacity) (Options, int64, error) {
	l, need, err := c.Layout(func(l spmv.Layout) int64 {
		return o.MemoryBytes(c.Nodes, c.Components, l, hops.Blocks(c.Columns, l), c.Threads) + o.movingBytes(c, l) + hops.ReadBytes
	})
	o.Layout = l
	return o, need, err
}

// movingBytes returns the memory of the rows that move.
func (o Options) movingBytes(c hops.Capacity, l spmv.Layout) int64 {
	if o.Standing == 0 || o.most().degree == 0 {
		return 0
	}
	return c.MovingBytes(l)
}

// FewExpected reports whether a plan takes it that polynomials make the hops after PlainHops, if the last node settles after so many hops.
func (o Options) FewExpected(last int) bool {
	s := o.most()
	return s.degree > 0 && min(last, o.Kmax) > plainHops+s.degree
}

// Work returns the work of a run over n nodes with a probe of that width, if the last node settles
// after so many hops, or never if last is Kmax. It assumes that the first block of a sketch finds
// that hop. If the options allow polynomials, and more hops are needed than passes, it assumes that they pay, and that these rows
// have their share of the open nodes, and at most so many: see [MostOpen].
func (o Options) Work(n, open int64, width int, sketch bool, last int) hops.Work {
	return o.work(n, width, sketch, last, mostUnits(n, n/openShare), mostUnits(n, open), func(t *tracker) int {
		if t.scouts() {
			return min(max(last, t.least()), t.to)
		}
		return t.to
	})
}

// mostUnits returns the largest number of units of so many open nodes among n rows: the last one of each strip may not be full.
func mostUnits(n, open int64) int64 { return open/unit + (n+packed.StripRows-1)>>packed.StripShift }

// FewWork adds the last stretch of workers that share the panels of a probe of a graph of n rows, of which polynomials make the hops of
// so many panels. These rows have their share of the open nodes, and at most so many. It returns the size of scratch files, and of what is
// committed for a panel.
func (o Options) FewWork(w *hops.Work, n, open int64, panels int) (disk, committed int64) {
	s, l := o.most(), o.Layout
	if o.Standing > 0 {
		hops.MovingWork(w, n, plainHops, l)
	}
	share, most := mostUnits(n, n/openShare), mostUnits(n, open)
	for first := 0; first < panels; first += l.Columns / packed.PanelColumns {
		count := min(panels-first, l.Columns/packed.PanelColumns)
		w.External(l, n, 3, 1) // loaded, summed by the first pass, kept
		w.Pass(l, n, s.degree, true)
		some := l
		some.Columns = count * packed.PanelColumns
		kept := keptBytes(share, o.mostKept(), some) + int64(count)*share*s.unitBytes()
		w.Move(kept, kept)
	}
	return keptBytes(most, o.mostKept(), l) + most*s.unitBytes(), int64(8*s.products()) * (n / openShare)
}

// work is [Options.Work] with windows that end as end says after the first block has run, and so many
// units of open nodes after plainHops; there is disk space for most.
func (o Options) work(n int64, width int, sketch bool, last int, units, most int64, end func(*tracker) int) (w hops.Work) {
	t := tracker{
		series: o.most(), o: o, sketch: sketch, n: n,
		columns: o.Layout.Columns, panels: packed.Panels(width), blocks: hops.Blocks(width, o.Layout),
	}
	t.at = make([]int, t.panels)
	last = min(last, o.Kmax)
	sums, states, kept := int64(0), int64(0), int64(0)
	for t.nextWindow(0); ; t.nextWindow(t.to) {
		for t.first = 0; t.first < t.panels; t.first = t.last {
			t.last = t.blockEnd(t.first)
			if t.first == 0 {
				t.to = end(&t)
			}
			to := t.to
			if t.lastBlock() {
				to = min(to, last)
			}
			t.addWindow(&w, t.from, to)
			if t.blocks > 1 && to == t.to && to < o.Kmax && !(t.lastBlock() && last == to) {
				w.External(o.Layout, n, 1, 0)
				w.Move(0, t.savedBytes())
				states = max(states, int64(t.last)*t.panelBytes())
			}
		}
		sums = max(sums, int64(t.to-t.from+1)*8*direct.RoundUp(n))
		if last <= t.to {
			break
		}
		if t.to == plainHops && o.FewExpected(last) {
			if o.Standing > 0 {
				hops.MovingWork(&w, n, plainHops, o.Layout)
			}
			if o.Standing > 0 || o.KeptRoom > 0 {
				states = max(states, int64(t.panels)*t.panelBytes()) // rows of a single block wait there
			}
			kept = t.lastWindow().addPolynomials(&w, units, most)
			sums = max(sums, (Longest+1)*8*direct.RoundUp(n)) // if hops are made one by one after all
			break
		}
	}
	w.Disk = o.Layout.Disk(n) + kept
	if t.blocks > 1 {
		w.Disk += sums
	}
	w.Disk += states
	return w
}

// addWindow adds the hops of one block after from up to end.
func (t *tracker) addWindow(w *hops.Work, from, end int) {
	l, seen := t.o.Layout, int64(end-from)
	switch {
	case from == 0:
		seen++
		w.External(l, t.n, 3, 2) // filled, deflated, seen
	case t.blocks > 1:
		w.External(l, t.n, 0, 1)
		w.Move(t.savedBytes(), 0)
	}
	if from == 0 || t.blocks > 1 {
		w.External(l, t.n, 1, 0) // the first pass sums the rows before it
	}
	w.Pass(l, t.n, end-from, false)
	if t.first > 0 {
		w.Move(seen*8*direct.RoundUp(t.n), 0)
	}
	if !t.lastBlock() {
		w.Move(0, seen*8*direct.RoundUp(t.n))
	}
}

// addPolynomials adds the passes of all blocks after plainHops. It returns the size of their scratch
// files, with room for most units.
func (t lastWindow) addPolynomials(w *hops.Work, units, most int64) (disk int64) {
	l := t.o.Layout
	for first := 0; first < t.panels; first += l.Columns / packed.PanelColumns {
		panels := min(t.panels-first, l.Columns/packed.PanelColumns)
		if t.blocks > 1 {
			w.External(l, t.n, 1, 1) // loaded, and summed by the first pass
			w.Move(int64(panels)*t.panelBytes(), 0)
		}
		some := l
		some.Columns = panels * packed.PanelColumns
		kept := keptBytes(units, t.o.rowsKept(), some)
		_, batches := t.o.kept(units, l)
		if batches > 1 {
			w.External(l, t.n, 1, int64(batches-1))
			w.Move(int64((batches-1)*panels)*t.panelBytes(), int64(panels)*t.panelBytes())
		}
		for range batches {
			w.External(l, t.n, 1, 0) // kept
			w.Pass(l, t.n, t.series.degree, true)
			if l.Residency != spmv.Resident {
				w.Move(-t.n*int64(l.Columns)*l.Precision.Bytes(), 0) // the first pass has no rows before it
			}
		}
		w.Move(kept, kept)
		room, _ := t.o.kept(most, l)
		disk = max(disk, room)
		sums := units * t.series.unitBytes()
		if first > 0 {
			w.Move(sums, 0)
		}
		if first+panels < t.panels {
			w.Move(0, sums)
		}
	}
	if t.blocks > 1 {
		disk += most * t.series.unitBytes()
	}
	return disk
}

// savedBytes returns the size of the block between two windows.
func (t *tracker) savedBytes() int64 { return int64(t.last-t.first) * t.panelBytes() }

func (t *tracker) panelBytes() int64 {
	return t.n * packed.PanelColumns * t.o.Layout.Precision.Bytes()
}
