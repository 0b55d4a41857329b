package estimate

import "ndls/plan"

const (
	// At the usual tolerance, rows that stand may change a distance that decides K by standingOfK times ε, and a sum of hops by
	// standingOfSums times ε. Both shrink in proportion to a smaller tolerance.
	standingOfK, standingOfSums = 0.05, 0.03
	usualTolerance              = 0.001
	// usualEpsilon is an ε for which rows that stand change sums of hops by far less than the usual tolerance.
	usualEpsilon = 0.05
)

// StandingOfK returns the largest amount by which rows that stand may change a distance that decides K, 0 if none may be left out.
func StandingOfK(p plan.Options) float64 {
	if p.LSI.Mode != "influence-sketch" {
		return 0
	}
	return standingOfK * min(1, p.Tolerance/usualTolerance) * p.LSI.Epsilon
}

// Standing returns the same for sums of hops, whatever decides K. An ε above the usual one counts as that.
func Standing(p plan.Options) float64 {
	return standingOfSums * min(1, p.Tolerance/usualTolerance) * min(p.LSI.Epsilon, usualEpsilon)
}
