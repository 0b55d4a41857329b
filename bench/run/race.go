package main

import (
	"context"
	"log"
	"math"
	"slices"
	"time"
)

// contender is one of those that are compared.
type contender struct {
	name string
	run  func(context.Context) outcome
}

// runs are the outcomes of a contender, or none if it was not tried.
type runs struct {
	name string
	all  []outcome
}

// died says how the last run ended, "" if well.
func (r runs) died() string {
	if len(r.all) == 0 {
		return "not tried: did not finish a smaller graph"
	}
	return r.all[len(r.all)-1].Died
}

// race runs the contenders in turn, rounds times. A contender that took more than long, or died,
// runs once. Contenders in dead are left out, and those that die are added to it. The error comes
// from ctx.
func race(ctx context.Context, contenders []contender, rounds int, long time.Duration, dead map[string]bool) ([]runs, error) {
	result := make([]runs, len(contenders))
	for round := range rounds {
		for i, c := range contenders {
			r := &result[i]
			r.name = c.name
			if dead[c.name] || round > 0 && r.all[0].Wall > long {
				continue
			}
			o := c.run(ctx)
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			log.Printf("round %d, %s: %.1f s, %.2f GiB %s", round+1, c.name, o.Wall.Seconds(), float64(o.Peak)/(1<<30), o.Died)
			r.all = append(r.all, o)
			dead[c.name] = o.Died != ""
		}
	}
	return result, nil
}

// spread is the median, least and largest of some numbers.
type spread struct{ median, least, most float64 }

func spreadOf(values []float64) spread {
	if len(values) == 0 {
		return spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	half := len(sorted) / 2
	median := sorted[half]
	if len(sorted)%2 == 0 {
		median = (sorted[half-1] + sorted[half]) / 2
	}
	return spread{median, sorted[0], sorted[len(sorted)-1]}
}

// over is the spread of a figure over the runs that did not die.
func (r runs) over(figure func(outcome) []float64) spread {
	var values []float64
	for _, o := range r.all {
		if o.Died == "" {
			values = append(values, figure(o)...)
		}
	}
	return spreadOf(values)
}

// peak is the largest peak of all runs.
func (r runs) peak() (most int64) {
	for _, o := range r.all {
		most = max(most, o.Peak)
	}
	return most
}

// difference is the largest one between two samples, as a share of the sum of the
// absolute values of a row.
func difference(a, b [][2]float64) (most float64) {
	if len(a) == 0 || len(a) != len(b) {
		return math.Inf(1)
	}
	for i := range a {
		for _, d := range []float64{a[i][0] - b[i][0], a[i][1] - b[i][1]} {
			most = max(most, math.Abs(d)/b[i][1])
		}
	}
	return most
}
