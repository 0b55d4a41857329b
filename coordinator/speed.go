package coordinator

import (
	"time"

	"ndls/internal/control"
)

// Speed holds the rates of a worker a second.
type Speed struct {
	// Read and Written are bytes of the run directory and of scratch files.
	Read    float64 `json:"read"`
	Written float64 `json:"written"`
	// Edges counts directed edges that passes add, Rows the bytes of rows that they read for that.
	Edges float64 `json:"edges"`
	Rows  float64 `json:"rows"`
}

// speed computes the rates of a worker between its last two reports of usage.
type speed struct {
	usage control.Usage
	at    time.Time
	rates Speed
}

// note records the usage that a worker reports.
func (s *speed) note(now time.Time, u control.Usage) {
	before, passed := s.usage, now.Sub(s.at).Seconds()
	if known := !s.at.IsZero(); known && passed > 0 {
		rate := func(now, before int64) float64 { return max(float64(now-before)/passed, 0) }
		s.rates = Speed{rate(u.Read, before.Read), rate(u.Written, before.Written), rate(u.Edges, before.Edges), rate(u.Rows, before.Rows)}
	}
	s.usage, s.at = u, now
}
