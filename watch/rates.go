package watch

import (
	"ndls/coordinator"
	"ndls/internal/control"
)

// WorkerLimits holds the highest rates of workers for the work of passes, by what each has measured
// when it joined. Workers that share a processor or a disk do less together.
type WorkerLimits struct {
	// Workers are those that are here, Threads all of theirs.
	Workers int `json:"workers"`
	Threads int `json:"threads"`
	// Edges are edges a second past rows of 64 bytes, Read bytes a second of the run directory; 0 where a worker has not
	// measured them.
	Edges float64 `json:"edges_per_second,omitempty"`
	Read  float64 `json:"bytes_read_per_second,omitempty"`
}

// limitsOf sums what the workers that are here have measured, nil where nothing can be said of all of them.
func limitsOf(workers []coordinator.WorkerStatus) *WorkerLimits {
	var sum WorkerLimits
	edges, read := true, true
	for _, x := range workers {
		if !x.Here {
			continue
		}
		sum.Workers++
		sum.Threads += x.Threads
		sum.Edges += x.Rates.Edges
		sum.Read += x.Rates.Store
		edges, read = edges && x.Rates.Edges > 0, read && x.Rates.Store > 0
	}
	if !edges {
		sum.Edges = 0
	}
	if !read {
		sum.Read = 0
	}
	if sum.Edges == 0 && sum.Read == 0 {
		return nil
	}
	return &sum
}

// Most are the limits beside which the page shows rates, nil where there are none.
func (s State) Most() *control.Limits {
	if w := s.LimitsOfWorkers; s.Limits == nil && w != nil {
		return &control.Limits{Threads: w.Threads, Edges: w.Edges, Read: w.Read}
	}
	return s.Limits
}

// rate is the work of all workers in a second, beside the limit of the host.
type rate struct {
	What, Unit string
	Now, Limit float64 // Limit is 0 where it is not known
}

// Of is the share of the limit, 0 where that is not known.
func (r rate) Of() float64 {
	if r.Limit == 0 {
		return 0
	}
	return r.Now / r.Limit
}

// Speed returns the rates of all workers together.
func (s State) Speed() (sum coordinator.Speed) {
	for _, x := range s.Workers {
		sum.Read += x.Speed.Read
		sum.Written += x.Speed.Written
		sum.Edges += x.Speed.Edges
		sum.Rows += x.Speed.Rows
	}
	return sum
}

// Rates lists the rates that the page shows; none as long as nothing is known.
func (s State) Rates() (list []rate) {
	now := s.Speed()
	if now == (coordinator.Speed{}) {
		return nil
	}
	most := s.Most()
	var limitRead, limitWritten float64
	if most != nil {
		limitRead, limitWritten = most.Read, most.Written
	}
	if now.Edges > 0 {
		// The limit of rows of this size, as edges and as bytes.
		rowBytes := now.Rows / now.Edges
		limit := most.Rows(rowBytes)
		list = append(list,
			rate{"edges added", "million a second", now.Edges / 1e6, limit / rowBytes / 1e6},
			rate{"rows read for that", "GB a second", now.Rows / 1e9, limit / 1e9})
	}
	return append(list, rate{"read", "GB a second", now.Read / 1e9, limitRead / 1e9},
		rate{"written", "GB a second", now.Written / 1e9, limitWritten / 1e9})
}
