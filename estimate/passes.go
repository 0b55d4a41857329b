package estimate

import (
	"ndls/group"
	"ndls/hops"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/partition"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
)

// OnGraph adds what passes over the graph take.
type OnGraph struct{ *Sheet }

func (s *Sheet) OnGraph() OnGraph { return OnGraph{s} }

// capacity returns the memory limits for column blocks of some columns, beside held bytes, degrees
// and components.
func (s OnGraph) capacity(columns int, held int64) hops.Capacity {
	free := s.Budget() - held - s.graphBytes()
	r := hops.Capacity{
		Nodes: s.Part, Others: s.Nodes - s.Part, Listed: s.listed(), Pair: s.sharing == 2, Components: s.Components, Free: free,
		Resident: hops.Resident(s.shareOfStream(), free),
		Threads:  s.Threads, Precision: s.precision(), Columns: columns, Asked: s.Resources.BlockColumns,
	}
	if r.Others > 0 {
		r = r.Agreed(r.Asked)
	}
	if r.Resident {
		r.Free -= s.shareOfStream()
	}
	return r
}

// shareOfStream returns the bytes of the hop streams for the edges of a worker's rows, if edges are
// shared evenly.
func (s OnGraph) shareOfStream() int64 { return (s.stream() + s.sharing - 1) / s.sharing }

// stream returns the bytes of the hop streams that a pass reads: those of one direction if edges
// have directions.
func (s OnGraph) stream() int64 {
	if s.Directed {
		return partition.HopBytes(s.Partitioned()) / 2
	}
	return partition.HopBytes(s.Partitioned())
}

// edgesOfPass returns the number of edges that a pass reads.
func (s OnGraph) edgesOfPass() int64 {
	if s.Directed {
		return s.Edges
	}
	return 2 * s.Edges
}

// graphBytes returns the memory for degrees, strengths, divisors, components and their volumes.
func (s OnGraph) graphBytes() int64 {
	bytes := s.nodeBytes(s.Part)
	if s.listed() {
		bytes += group.ListsBytes(s.Part, s.Nodes, int(s.sharing))
	}
	return bytes
}

// listed reports whether workers that share rows send each other only the rows that are read.
func (s OnGraph) listed() bool { return group.ListsPay(s.Nodes, s.edgesOfPass(), int(s.sharing)) }

// NodeBytes returns the memory for degrees, strengths, components and their volumes of all nodes.
func (s OnGraph) NodeBytes() int64 { return s.nodeBytes(s.Nodes) }

func (s OnGraph) nodeBytes(rows int64) int64 {
	bytes := 8*rows + 8*s.Components + 3*4096
	if s.Weighted {
		bytes += 4*rows + 4096
	}
	if s.Directed {
		bytes += 8*rows + 2*4096
	}
	return bytes
}

func (s OnGraph) precision() spmv.Precision {
	if s.Plan.Precision == "float16" {
		return spmv.Float16
	}
	return spmv.Float32
}

// fits records the memory of column blocks in r, beside held bytes. need returns the memory for
// some capacity, and the least memory if there is no capacity.
func (s OnGraph) fits(r hops.Capacity, held int64, need func(hops.Capacity) int64) {
	held += s.graphBytes()
	peak := held + need(r)
	if r.Resident {
		peak += s.shareOfStream()
	}
	if !r.Resident {
		s.runtime = runtimeUse + shards.ReadAheadBytes
	}
	fit := need(r) <= r.Free
	r.Free, r.Resident = 0, false
	if s.sharing > 1 { // which part of the edges a worker has is unknown
		s.Takes(peak, held+hops.SafeShare(s.stream(), need(r)))
		return
	}
	least := held + hops.SafeFree(s.stream(), need(r))
	if fit {
		least = min(least, s.Budget())
	}
	s.Takes(peak, least)
}

// streams adds passes. Each reads all edges, unless they are in memory. copies says that edges may
// be copied for late hops; spared is the number of passes that need no time for edges because of
// that.
func (s OnGraph) streams(r hops.Capacity, w hops.Work, l spmv.Layout, copies bool, spared float64) {
	s.Passes += w.Passes
	s.ColumnsPerPass = l.Columns
	s.BytesRead = min(s.BytesRead+w.Read, hops.MostBytes)
	s.Scratches(w.Written)
	scratch := w.Disk
	if copies && !r.Resident {
		scratch += s.copies()
	}
	s.ScratchBytes = max(s.ScratchBytes, scratch)
	rowBytes := int64(l.Columns) * l.Precision.Bytes()
	s.lines = max(float64(rowBytes)/lineBytes, 1)
	share := 1.0
	s.way = group.Direct
	if l.Relays(s.Part) {
		s.way = group.Relayed
	}
	if s.listed() && (l.Windows > 0 || s.way == group.Direct) {
		share = group.ReadShare(s.Nodes, s.edgesOfPass(), int(s.sharing))
		if l.Windows > 0 {
			s.way = group.Listed
		}
	}
	if sent := share * float64(s.sharing) * float64(w.Passes) * float64(l.Fetched(s.Part,
		s.Nodes)); sent < float64(hops.MostBytes-s.NetworkBytes) {
		s.NetworkBytes += int64(sent)
	} else {
		s.NetworkBytes = hops.MostBytes
	}
	if s.sharing == 2 {
		s.ahead = l.Ahead()
	}
	s.spilled = s.spilled || l.Residency != spmv.Resident
	passes := float64(w.Passes) - spared
	moved := float64(s.edgesOfPass())/float64(s.sharing) + finishedRow*float64(s.Part)
	seconds := s.lines * passes * moved / s.edgeRate(s.Nodes*rowBytes) / float64(s.Threads)
	if r.Resident {
		s.BytesRead += s.stream()
	} else {
		read := int64(w.Passes) * s.stream()
		s.BytesPerPass = s.stream()
		seconds = max(seconds, passes*float64(s.stream())/float64(s.sharing)/s.speeds.Read)
		s.BytesRead += read
		s.passed += read
	}
	s.seconds += seconds
}

// lineBytes is the number of bytes that a processor reads from memory at a time: the size of the rows of measured edges. A pass takes
// each finished row from where it was added up, clears that place, scales the row, stores it, and reads and writes a sum: as many moves of
// a row as of finishedRow edges.
const lineBytes, finishedRow = 64, 6

// copies returns the scratch space for copies of edges.
func (s OnGraph) copies() int64 {
	if s.Resources.Lean {
		return min(hops.CopiedBytes(s.stream()), s.Resources.Spare)
	}
	return hops.CopiedBytes(s.stream())
}

// FindLSI adds one run of the LSI engine, with a sketch or another probe, beside held bytes.
func (s OnGraph) FindLSI(width int, sketch bool, epsilon, tolerance float64, kmax int, held int64) {
	o := lsi.Options{Epsilon: epsilon, Tolerance: tolerance, Standing: StandingOfK(s.Plan), Kmax: kmax}
	r := s.capacity(width, held)
	r.Precision = lsi.Precision(sketch, s.Weighted, r.Precision)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	if s.Resources.Lean {
		s.Resources.Spare /= 2 // the other half is for copies of edges
		o = o.Lean(s.Part, lsi.MostOpen(s.Part, s.Nodes), s.Resources.Spare)
	}
	w := o.Work(s.Part, lsi.MostOpen(s.Part, s.Nodes), width, sketch, min(s.Hops, kmax))
	s.streams(r, w, o.Layout, o.FewExpected(s.Hops), 0)
	s.Moves(float64(s.Part) * float64(width))
}

// FindDirections adds finding so many slow directions of the graph beside random columns, and held bytes.
func (s OnGraph) FindDirections(directions, random int, held int64) {
	r := s.capacity(directions, held)
	r.Precision = spmv.Float32
	s.fits(r, held+lsi.DirectionsBytes(directions, random), func(r hops.Capacity) int64 {
		_, need, _ := lsi.DirectionsPlan(r, directions)
		return need
	})
	l, _, _ := lsi.DirectionsPlan(r, directions)
	var w hops.Work
	for range hops.Blocks(directions, l) {
		w.External(l, s.Part, 4, 3) // filled, deflated, scaled, saved
		w.Pass(l, s.Part, lsi.DirectionHops, false)
	}
	rows := 4 * s.Part * int64(directions)
	w.Move(5*rows, 3*rows) // saved and made orthonormal twice, multiplied
	w.Disk = l.Disk(s.Part) + rows
	s.streams(r, w, l, false, 0)
	s.Multiplies(2 * float64(s.Part) * float64(directions) * float64(2*directions+random))
}

// ShareLSI adds one run of the LSI engine in which workers, or groups of them, share the panels of
// the probe, beside held bytes. Stretches end with the hops in ends; polynomials make those after them, unless few is zero. There are at
// most so many tasks.
func (s OnGraph) ShareLSI(panels, tasks int, sketch bool, ends []int, few lsi.Options, held int64) {
	takers := min(s.takers(), tasks)
	mine := (panels + takers - 1) / takers
	r := s.capacity(mine*packed.PanelColumns, held)
	r.Precision = lsi.Precision(sketch, s.Weighted, r.Precision)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := few.StretchPlan(r)
		return need
	})
	o, _, _ := few.StretchPlan(r)
	l, n := o.Layout, s.Part
	var w hops.Work
	from, longest := -1, 0
	for _, to := range ends {
		for range hops.Blocks(panels*packed.PanelColumns, l) {
			w.External(l, n, 1, 1) // filled or loaded, then summed by the first pass
			w.Pass(l, n, to-max(from, 0), false)
		}
		longest, from = max(longest, to-from), to
	}
	squares := int64(longest) * 8 * n * int64(l.Columns/packed.PanelColumns)
	w.Move(int64(len(ends))*squares, int64(len(ends))*squares)
	products := int64(0)
	if o.PlainHops() > 0 {
		var kept int64
		kept, products = o.FewWork(&w, n, lsi.MostOpen(n, s.Nodes), panels)
		squares = max(lsi.Longest*8*n*int64(l.Columns/packed.PanelColumns), kept) // hops may be made one by one after all
		products *= int64(panels) * int64(s.sharing)
	}
	w.Disk = l.Disk(n) + squares
	s.streams(r, w, l, o.PlainHops() > 0, 0)
	s.Moves(float64(n) * float64(panels*packed.PanelColumns))
	// Rows after each stretch, and squared distances: those of the first stretch are most of them.
	rows := int64(panels) * s.Nodes * packed.PanelColumns * l.Precision.Bytes()
	found := int64(ends[0]+1) * 8 * s.Nodes * int64(panels)
	if s.sharing > 1 { // the worker that finds K has the degrees of all nodes
		all := s.NodeBytes() + finding
		s.Takes(all, all)
	}
	s.BytesWritten += int64(len(ends))*rows + found + products
	s.BytesRead += int64(len(ends)-1)*rows + found + products
	if products > 0 {
		s.BytesRead += rows
	}
	s.PeakDiskBytes = s.DiskBytes + 2*rows + max(found, products)
	s.Pieces(tasks)
}

// finding is the approximate memory of a [lsi.Finder] of 2^20 nodes, with the memory for reading.
const finding = 32 << 20

// Spectrum adds finding λ₂ beside held bytes, with the hops of a slow graph.
func (s OnGraph) Spectrum(held int64) {
	r := s.capacity(packed.PanelColumns, held)
	r.Precision = spmv.Float32
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := lsi.SpectrumPlan(r)
		return need
	})
	l, _, _ := lsi.SpectrumPlan(r)
	var w hops.Work
	w.External(l, s.Part, 5*lsi.SpectrumHops, 3*lsi.SpectrumHops)
	w.Pass(l, s.Part, lsi.SpectrumHops, false)
	w.Disk = l.Disk(s.Part)
	s.streams(r, w, l, false, 0)
}

// Columns adds smoothing some columns, read from tiles, beside held bytes.
func (s OnGraph) Columns(o smooth.Options, columns, last int, held int64, half bool) {
	reads, _ := s.smooths(o, columns, last, held)
	s.BytesRead += reads * TileBytes(s.Nodes, columns, half)
}

// Random adds smoothing columns that are made of ids and degrees, beside held bytes.
func (s OnGraph) Random(o smooth.Options, columns, last int, held int64) {
	s.smooths(o, columns, last, held)
}

// Labels adds smoothing columns that are made of the node table, beside held bytes.
func (s OnGraph) Labels(o smooth.Options, columns, last int, held int64) {
	reads, blocks := s.smooths(o, columns, last, held)
	bytes := partition.NodeBytes(s.Partitioned())
	s.BytesRead += reads * blocks * bytes
	s.each += float64(reads*blocks*s.Nodes) / s.speeds.Values // by one reader, beside hops
}

// smooths adds smoothing some columns. It returns the number of blocks, and the number of times
// that each block is read.
func (s OnGraph) smooths(o smooth.Options, columns, last int, held int64) (reads, blocks int64) {
	if !s.Directed {
		o.Tolerance = s.Plan.Tolerance
	}
	deepest := last
	last, moves := s.passesOf(o, last)
	whole := packed.Panels(columns) * packed.PanelColumns
	r := s.capacity(whole, held)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	s.Teams = o.Teams
	o.Depths = min(o.Depths, deepest) // memory is for all that the plan allows, work for those that there are
	outputs := (packed.Panels(o.Layout.Columns) + OpenTiles - 1) / OpenTiles
	s.streams(r, o.Work(s.Part, whole, last, outputs), o.Layout, o.Copies(), s.spared(o, hops.Blocks(whole, o.Layout), last, moves))
	reads = 1
	if o.Rule.Residual() {
		reads += int64(outputs)
	}
	if len(o.Keep) > 0 && o.Keep[0] == 0 {
		reads += int64(outputs)
	}
	s.Moves(float64(reads) * float64(s.Part) * float64(columns))
	return reads, int64(hops.Blocks(whole, o.Layout))
}

// passesOf returns the passes of a block for so many hops. The last ones compute the rows that move alone, if it is known that others
// stand.
func (s OnGraph) passesOf(o smooth.Options, hops int) (passes, moves int) {
	passes = o.Passes(hops)
	if s.MovingShare == 0 || o.Standing == 0 || passes == hops || hops <= smooth.PlainHops {
		return passes, 0
	}
	moves = o.Passes(hops - smooth.PlainHops)
	return smooth.PlainHops + moves, moves
}

// spared returns the number of passes, of so many blocks with so many hops, that are expected to
// need no time for edges because they need few rows: the last hops of each block. Finding the rows
// costs as much time as findPasses of them. Without copies of edges no pass is spared. If the last passes
// compute rows that move, it is these.
func (s OnGraph) spared(o smooth.Options, blocks, last, moves int) float64 {
	const findPasses = 3
	if !o.Copies() || s.copies() == 0 {
		return 0
	}
	if moves > 0 {
		return max(float64(blocks*moves)*(1-s.MovingShare)-findPasses, 0)
	}
	return max(float64(blocks)*s.needless(last)-findPasses, 0)
}

// needless returns the number of passes, as a sum over the last hops of a block, whose edges lead into rows that these hops do not need.
// One row counts the last hop. Each step back from it multiplies the needed edges by the neighbours of a row, until all edges are needed.
func (s OnGraph) needless(last int) (passes float64) {
	edges := max(float64(s.edgesOfPass()), 1)
	needed := 1.0
	for range min(last, hops.MostEarly) {
		passes += max(1-needed/edges, 0)
		needed *= max(edges/float64(s.Nodes), 1)
	}
	return passes
}
