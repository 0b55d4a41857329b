package report

import "ndls/internal/control"

// passed holds the cost of the passes of a stage: edges, seconds, bytes of rows, and bytes of files
// that were read and written.
type passed struct{ Edges, Seconds, Rows, Read, Written float64 }

func (s Stage) passed() (p passed) {
	for _, h := range s.Hops {
		p.Edges += float64(h.Edges)
		p.Seconds += h.Seconds
		p.Rows += float64(h.Rows)
		p.Read += float64(h.Read)
		p.Written += float64(h.Written)
	}
	return p
}

// rowBytes returns the bytes of a row for which an edge stands.
func (s Stage) rowBytes() float64 {
	p := s.passed()
	return p.Rows / max(p.Edges, 1)
}

// against holds the work of a stage in a second, in gigabytes, beside the limit of the host.
type against struct {
	What       string
	Did, Limit float64
}

// Of is the share of the limit.
func (a against) Of() float64 { return a.Did / a.Limit }

// Against lists what a stage did for which the host has a limit.
func (r Named) Against(s Stage) (list []against) {
	if r.Limits == nil {
		return nil
	}
	add := func(what string, bytes, seconds, limit float64) {
		if bytes > 0 && seconds > 0 && limit > 0 {
			list = append(list, against{what, bytes / seconds / 1e9, limit / 1e9})
		}
	}
	p := s.passed()
	add("rows read by passes", p.Rows, p.Seconds, r.Limits.Rows(s.rowBytes()))
	add("read from the disk", float64(s.BytesRead), s.Seconds, r.Limits.Read)
	add("written", float64(s.BytesWritten), s.Seconds, r.Limits.Written)
	return list
}

// splitAccuracy is the accuracy of the models of one split.
type splitAccuracy struct {
	Split          int
	Base, Smoothed control.SplitAccuracy
}

// Splits are the accuracies of each split, over its models; none where there is one split.
func (r Named) Splits() (list []splitAccuracy) {
	if r.Accuracy.Splits < 2 {
		return nil
	}
	for split := range min(r.Accuracy.Splits, MaxRows) {
		var base, smoothed []control.OfSplits[*float64]
		for _, m := range r.Accuracy.Models {
			if m.Split == split {
				base, smoothed = append(base, m.Base), append(smoothed, m.Smoothed)
			}
		}
		list = append(list, splitAccuracy{split, control.Spreads(base, 1), control.Spreads(smoothed, 1)})
	}
	return list
}
