package coordinator

import (
	"time"

	"ndls/internal/control"
)

// Speed is what a worker does in a second.
type Speed struct {
	// Read and Written are bytes of the run directory and of scratch files.
	Read    float64 `json:"read"`
	Written float64 `json:"written"`
	// Edges are directed edges that its passes add, Rows the bytes of rows that they read for that.
	Edges float64 `json:"edges"`
	Rows  float64 `json:"rows"`
}

// speed is how fast a worker was between the last two times that it told what it has taken so far.
type speed struct {
	usage control.Usage
	at    time.Time
	rates Speed
}

// note takes down what a worker has taken so far.
func (s *speed) note(now time.Time, u control.Usage) {
	before, passed := s.usage, now.Sub(s.at).Seconds()
	if known := !s.at.IsZero(); known && passed > 0 {
		rate := func(now, before int64) float64 { return max(float64(now-before)/passed, 0) }
		s.rates = Speed{rate(u.Read, before.Read), rate(u.Written, before.Written), rate(u.Edges, before.Edges), rate(u.Rows, before.Rows)}
	}
	s.usage, s.at = u, now
}
