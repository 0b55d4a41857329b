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
func (s *stage) capacity(columns int, held int64) hops.Capacity {
	free := s.budget() - held - s.graphBytes()
	r := hops.Capacity{
		Nodes: s.part, Others: s.Nodes - s.part, Components: s.Components, Free: free,
		Resident: s.workers == 1 && hops.Resident(s.stream(), free),
		Threads:  s.threads, Precision: s.precision(), Columns: columns, Asked: s.res.BlockColumns,
	}
	if r.Others > 0 {
		r = r.Agreed(r.Asked)
	}
	if r.Resident {
		r.Free -= s.stream()
	}
	return r
}

func (s *stage) stream() int64 { return partition.HopBytes(s.counts()) }

// graphBytes is the memory for degrees, components and their volumes.
func (s *stage) graphBytes() int64 { return 8*s.part + 8*s.Components + 3*4096 }

func (s *stage) precision() spmv.Precision {
	if s.halfRows() {
		return spmv.Float16
	}
	return spmv.Float32
}

// fits records the memory of column blocks in r, beside held bytes. need is what
// they take with some capacity, and the least that they can take where that is none.
func (s *stage) fits(r hops.Capacity, held int64, need func(hops.Capacity) int64) {
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
	if s.workers == 1 {
		least = held + hops.SafeFree(s.stream(), need(r))
	}
	if fit {
		least = min(least, s.budget())
	}
	s.takes(peak, least)
}

// streams adds passes: each reads all edges, unless they are in memory.
func (s *stage) streams(r hops.Capacity, w hops.Work, l spmv.Layout) {
	s.Passes += w.Passes
	s.ColumnsPerPass = l.Columns
	s.BytesRead = min(s.BytesRead+w.Read, hops.MostBytes)
	s.BytesWritten = min(s.BytesWritten+w.Written, hops.MostBytes)
	s.ScratchBytes = max(s.ScratchBytes, w.Disk)
	if s.settled() && !r.Resident {
		s.ScratchBytes += hops.ShrunkBytes(s.stream())
	}
	// Half as many bytes save a part of the time only: values are widened.
	width := float64(l.Columns) / packed.PanelColumns * math.Sqrt(float64(l.Precision.Bytes())/4)
	s.NetworkBytes += s.workers * int64(w.Passes) * l.Fetched(s.part, s.Nodes)
	s.spilled = s.spilled || l.Residency != spmv.Resident
	seconds := float64(w.Passes) * 2 * float64(s.Edges) / float64(s.workers) / passedEdges / float64(s.threads) * math.Pow(max(width, 1), widthPower)
	if r.Resident {
		s.BytesRead += s.stream()
	} else {
		read := int64(w.Passes) * s.stream()
		seconds = overlap * max(seconds, float64(read)/float64(s.workers)/readBytes)
		s.BytesRead += read
		s.passed += read
	}
	s.seconds += seconds
}

func (s *stage) lsi() {
	l := s.plan.LSI
	width, norms := l.Probes, int64(0)
	switch l.Mode {
	case "influence-exact":
		width = int(min(s.Nodes, math.MaxInt32-packed.PanelColumns))
	case "feature":
		width = max(s.Features, 1)
	}
	if l.Mode == "feature" || l.Mode == "feature-sketch" {
		norms = 8 * s.part
	}
	s.readNodes(2) // degrees, then ids
	s.findLSI(width, l.Epsilon, l.Kmax, 4*s.part+norms)
	if norms > 0 {
		s.BytesRead += tileBytes(s.Nodes, s.Features, s.Half) * int64(1+hops.Blocks(width, spmv.Layout{Columns: s.ColumnsPerPass}))
	}
	s.DiskBytes = kRow * s.Nodes
	s.BytesWritten += s.DiskBytes
	// The report reads it, with the labels.
	s.readK()
	if s.Labelled > 0 {
		s.readNodes(1)
	}
}

// findLSI is one run of the LSI engine, beside held bytes.
func (s *stage) findLSI(width int, epsilon float64, kmax int, held int64) {
	o := lsi.Options{Epsilon: epsilon, Kmax: kmax, Settled: s.settled(), Slack: s.plan.LSI.Slack}
	r := s.capacity(width, held)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	s.streams(r, o.Work(s.part, width, min(s.Hops, kmax)), o.Layout)
	s.seconds += float64(s.part) * float64(width) / filledValues
}

// columns is smoothing some columns, read from tiles, beside held bytes.
func (s *stage) columns(o smooth.Options, columns, last int, held int64, half bool) {
	o.Settled = s.settled() && o.Rule.NodeDependent
	o.Slack = s.plan.LSI.Slack
	whole := packed.Panels(columns) * packed.PanelColumns
	r := s.capacity(whole, held)
	s.fits(r, held, func(r hops.Capacity) int64 {
		_, need, _ := o.Plan(r)
		return need
	})
	o, _, _ = o.Plan(r)
	outputs := (packed.Panels(o.Layout.Columns) + openTiles - 1) / openTiles
	s.streams(r, o.Work(s.part, whole, last, outputs), o.Layout)
	reads := int64(1)
	if o.Rule.Residual() {
		reads += int64(outputs)
	}
	s.BytesRead += reads * tileBytes(s.Nodes, columns, half)
}

// checkSettled adds comparing a sample of settled rows with exact ones: 16
// columns once more.
func (s *stage) checkSettled(o smooth.Options, last int, held, tiles int64) {
	o.Settled = false
	r := s.capacity(packed.PanelColumns, held)
	o, _, err := o.Plan(r)
	if err != nil {
		return // what has more columns does not fit either
	}
	s.readNodes(1) // the graph is opened again
	s.readK()
	w := o.Work(s.Nodes, packed.PanelColumns, last, 1)
	columns, passes := s.ColumnsPerPass, s.Passes
	s.streams(r, w, o.Layout)
	s.ColumnsPerPass, s.Passes = columns, passes
	s.BytesRead += 2*tiles + tileBytes(s.Nodes, s.Features, s.Half)
}

// labelRuns is the number of sets of soft labels.
func (s *stage) labelRuns() int {
	if s.plan.Labels.SoftLabels != "" {
		return 1
	}
	return s.plan.Train.Runs
}

// smoothLabels smooths the soft labels of all runs side by side; the rule of the
// authors' code finds K for each of them.
func (s *stage) smoothLabels() {
	l := s.plan.Labels
	rule, err := smooth.NewRule(l.Rule, l.Alpha, 0)
	if err != nil {
		return // the plan is not valid
	}
	runs, per := s.labelRuns(), packed.Panels(s.Classes)*packed.PanelColumns
	last := min(s.Hops, l.Kmax)
	if l.Rule != "ndls" {
		last = max(last-1, 0) // hop K is not counted
	}
	o := smooth.Options{Rule: rule, Targets: smooth.AllTargets(s.part)}
	held := 2 * s.part
	switch {
	case l.Rule != "ndls":
		for range runs {
			s.findLSI(s.Classes, l.Epsilon, l.Kmax, 0)
			s.BytesRead += tileBytes(s.Nodes, s.Classes, false)
			s.columns(o, per, last, held, false)
		}
	case l.Epsilon != 0 && l.Epsilon != s.plan.LSI.Epsilon || l.Kmax > s.plan.LSI.Kmax:
		s.findLSI(s.plan.LSI.Probes, l.Epsilon, l.Kmax, 4*s.part)
		s.readNodes(1)
		s.columns(o, runs*per, last, held, false)
	default:
		s.readK()
		s.columns(o, runs*per, last, held, false)
	}
	tiles := int64(runs) * tileBytes(s.Nodes, s.Classes, false)
	if l.SoftLabels != "" {
		// Nodes are found by id, and rows are put in their order, as many as fit.
		byID, sorting := 9*s.Nodes, 16*s.Nodes+4096
		s.takes(max(byID+min(tiles, openTiles*tileBytes(s.Nodes, 1, false), (s.budget()-byID)/2), sorting), sorting)
		s.BytesWritten += tiles
		s.DiskBytes += tiles
	}
	ids := 4*s.Nodes + readRows(s.Nodes, s.Classes, false)
	s.takes(ids, ids)
	s.readNodes(2) // degrees, then ids
	rows := (12 + 4*int64(s.Classes)) * s.Nodes
	s.BytesRead += tileBytes(s.Nodes, s.Classes, false)
	s.BytesWritten += tiles + rows
	s.DiskBytes += tiles + rows
}
