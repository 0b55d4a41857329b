package watch

import "ndls/coordinator"

// rate is what all workers do in a second, beside what the host does at most.
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

// Speed is what all workers do in a second.
func (s State) Speed() (sum coordinator.Speed) {
	for _, x := range s.Workers {
		sum.Read += x.Speed.Read
		sum.Written += x.Speed.Written
		sum.Edges += x.Speed.Edges
		sum.Rows += x.Speed.Rows
	}
	return sum
}

// Rates are what the page shows of it; none as long as nothing is known.
func (s State) Rates() (list []rate) {
	now := s.Speed()
	if now == (coordinator.Speed{}) {
		return nil
	}
	var limitRead, limitWritten float64
	if s.Limits != nil {
		limitRead, limitWritten = s.Limits.Read, s.Limits.Written
	}
	if now.Edges > 0 {
		// The limit of rows of this size, as edges and as bytes.
		rowBytes := now.Rows / now.Edges
		limit := s.Limits.Rows(rowBytes)
		list = append(list,
			rate{"edges added", "million a second", now.Edges / 1e6, limit / rowBytes / 1e6},
			rate{"rows read for that", "GB a second", now.Rows / 1e9, limit / 1e9})
	}
	return append(list, rate{"read", "GB a second", now.Read / 1e9, limitRead / 1e9}, rate{"written", "GB a second", now.Written / 1e9, limitWritten / 1e9})
}
