package estimate

import (
	"math"

	"ndls/hops"
	"ndls/internal/packed"
	"ndls/lsi"
	"ndls/partition"
	"ndls/shards"
	"ndls/smooth"
	"ndls/spmv"
)

// capacity is what column blocks of some columns have to fit, beside held bytes,
// degrees and components.
func (s *Sheet) capacity(columns int, held int64) hops.Capacity {
	free := s.Budget() - held - s.graphBytes()
	r := hops.Capacity{
		Nodes: s.Part, Others: s.Nodes - s.Part, Components: s.Components, Free: free,
		Resident: s.sharing == 1 && hops.Resident(s.stream(), free),
		Threads:  s.Threads, Precision: s.precision(), Columns: columns, Asked: s.Resources.BlockColumns,
	}
	if r.Others > 0 {
		r = r.Agreed(r.Asked)
	}
	if r.Resident {
		r.Free -= s.stream()
	}
	return r
}

func (s *Sheet) stream() int64 { return partition.HopBytes(s.Partitioned()) }

// graphBytes is the memory for degrees, components and their volumes.
func (s *Sheet) graphBytes() int64 { return 8*s.Part + 8*s.Components + 3*4096 }

func (s *Sheet) precision() spmv.Precision {
	if s.HalfRows() {
		return spmv.Float16
	}
	return spmv.Float32
}

// fits records the memory of column blocks in r, beside held bytes. need is what
// they take with some capacity, and the least that they can take where that is none.
func (s *Sheet) fits(r hops.Capacity, held int64, need func(hops.Capacity) int64) {
	held += s.graphBytes()
	peak := held + need(r)
	if r.Resident {
		peak += s.stream()
	}
	if !r.Resident {
		s.runtime = runtimeUse + shards.ReadAheadBytes
	}
	fit := need(r) <= r.Free
	r.Free, r.Resident = 0, false
	least := held + need(r)
	if s.sharing == 1 {
		least = held + hops.SafeFree(s.stream(), need(r))
	}
	if fit {
		least = min(least, s.Budget())
	}
	s.Takes(peak, least)
}

// streams adds passes: each reads all edges, unless they are in memory. copies says that
// edges may be copied for late hops.
func (s *Sheet) streams(r hops.Capacity, w hops.Work, l spmv.Layout, copies bool) {
	s.Passes += w.Passes
	s.ColumnsPerPass = l.Columns
	s.BytesRead = min(s.BytesRead+w.Read, hops.MostBytes)
	s.BytesWritten = min(s.BytesWritten+w.Written, hops.MostBytes)
	s.ScratchBytes = max(s.ScratchBytes, w.Disk)
	if copies && !r.Resident {
		s.ScratchBytes += hops.CopiedBytes(s.stream())
	}
	// Half as many bytes save a part of the time only: values are widened.
	width := float64(l.Columns) / packed.PanelColumns * math.Sqrt(float64(l.Precision.Bytes())/4)
	s.NetworkBytes += s.sharing * int64(w.Passes) * l.Fetched(s.Part, s.Nodes)
	s.spilled = s.spilled || l.Residency != spmv.Resident
	seconds := float64(w.Passes) * 2 * float64(s.Edges) / float64(s.sharing) / passedEdges / float64(s.Threads) * math.Pow(max(width, 1), widthPower)
	if r.Resident {
		s.BytesRead += s.stream()
	} else {
		read := int64(w.Passes) * s.stream()
		s.BytesPerPass = s.stream()
		seconds = overlap * max(seconds, float64(read)/float64(s.sharing)/readBytes)
		s.BytesRead += read
		s.passed += read
	}
	s.seconds += seconds
}

// FindLSI is one run of the LSI engine, with a sketch or another probe, beside held bytes.
func (s *Sheet) FindLSI(width int, sketch bool, epsilon float64, kmax int, held int64) {
	o := lsi.Options{Epsilon: epsilon, Kmax: kmax, Settled: s.Plan.SlackSettles(), Slack: s.Plan.LSI.Slack}
	r := s.capacity(width, held)
	if sketch {
		r.Precision = spmv.Float16
	}
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	s.streams(r, o.Work(s.Part, width, sketch, min(s.Hops, kmax)), o.Layout, o.Settled)
	s.seconds += float64(s.Part) * float64(width) / filledValues
}

// Columns is smoothing some columns, read from tiles, beside held bytes.
func (s *Sheet) Columns(o smooth.Options, columns, last int, held int64, half bool) {
	o.Settled = o.Settled || s.Plan.SlackSettles() && o.Rule.NodeDependent
	o.Slack = s.Plan.LSI.Slack
	whole := packed.Panels(columns) * packed.PanelColumns
	r := s.capacity(whole, held)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	outputs := (packed.Panels(o.Layout.Columns) + OpenTiles - 1) / OpenTiles
	s.streams(r, o.Work(s.Part, whole, last, outputs), o.Layout, o.Copies())
	reads := int64(1)
	if o.Rule.Residual() {
		reads += int64(outputs)
	}
	s.BytesRead += reads * TileBytes(s.Nodes, columns, half)
}

// CheckSettled adds comparing a sample of settled rows with exact ones, and choosing the rows
// that settle: 16 columns once more, or, where they are chosen, about twice.
func (s *Sheet) CheckSettled(o smooth.Options, last int, held, tiles int64) {
	o.Settled, o.Chooses = s.Plan.Chooses(), s.Plan.Chooses()
	if o.Chooses {
		s.fits(s.capacity(packed.PanelColumns, held), held, func(r hops.Capacity) int64 {
			_, need, _ := o.Plan(r)
			return need
		})
	}
	r := s.capacity(packed.PanelColumns, held)
	o, _, err := o.Plan(r)
	if err != nil {
		return // what has more columns does not fit either
	}
	s.ReadNodes(1) // the graph is opened again
	s.ReadK()
	w := o.Work(s.Nodes, packed.PanelColumns, last, 1)
	columns, passes := s.ColumnsPerPass, s.Passes
	if o.Chooses {
		w.Disk += smooth.CodesBytes(s.Nodes, last)
		w.Move(2*smooth.CodesBytes(s.Nodes, last), smooth.CodesBytes(s.Nodes, last))
	}
	s.streams(r, w, o.Layout, o.Chooses)
	s.ColumnsPerPass, s.Passes = columns, passes
	s.BytesRead += 2*tiles + TileBytes(s.Nodes, s.Features, s.Half)
}
