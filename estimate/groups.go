package estimate

import (
	"ndls/internal/control"
	"ndls/internal/packed"
)

const (
	// meeting is the seconds that the workers of a group take to meet, and once more to part.
	meeting = 1
	// waiting is the seconds in which the workers of a group wait for each other in a hop.
	waiting = 0.005
)

// GroupSeconds is about how long workers with r and these rates each take for a stage, in groups of
// that size which share the rows of the same columns. The stage has so many pieces of columns that
// groups can take, 0 for one that only groups of all workers share. Groups of one share no rows. What a
// hop computes, sends and reads goes on at the same time.
func GroupSeconds(c Counts, p control.Plan, r control.Resources, s Stage, workers, size, pieces int, rates control.Rates) float64 {
	x := share(c, p, r, s, Part(c.Nodes, size))
	x.figures(s)
	part := 1.0 // of the columns, that the group which has most takes
	if groups := workers / size; pieces > 0 && groups > 0 {
		part = float64((pieces+groups-1)/groups) / float64(pieces)
	}
	members := float64(size)
	passes := float64(x.Passes)
	width := max(float64(x.ColumnsPerPass)/packed.PanelColumns, 1)
	seconds := passes * width * float64(x.edgesOfPass()) / members / rates.Edges
	if rates.Store > 0 {
		seconds = max(seconds, passes*float64(x.BytesPerPass)/members/rates.Store)
	}
	together := 0.0
	if size > 1 {
		seconds = max(seconds, float64(x.NetworkBytes)/members/rates.Network)
		together = 2*meeting + passes*part*waiting
	}
	return x.alone + part*(seconds+float64(x.scratch)/scratchBytes) + together
}
