package estimate

import "ndls/internal/control"

const (
	// mostStanding and standingByTolerance say which share of ε rows that stand may add to a distance: a twentieth for the usual tolerance,
	// and less for a smaller one.
	mostStanding, standingByTolerance = 0.05, 50
	// usualEpsilon is an ε for which rows that stand change sums of hops by far less than the usual tolerance.
	usualEpsilon = 0.05
)

// StandingOfK returns the largest amount by which rows that stand may change a distance that decides K, 0 if none may be left out.
func StandingOfK(p control.Plan) float64 {
	if p.LSI.Mode != "influence-sketch" {
		return 0
	}
	return min(mostStanding, standingByTolerance*p.Tolerance) * p.LSI.Epsilon
}

// Standing returns the same for sums of hops, whatever decides K. An ε above the usual one counts as that.
func Standing(p control.Plan) float64 {
	return min(mostStanding, standingByTolerance*p.Tolerance) * min(p.LSI.Epsilon, usualEpsilon)
}
