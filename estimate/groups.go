package estimate

import (
	"math"

	"ndls/hops"
	"ndls/internal/control"
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
	x := share(c, p, r, s, Part(c.Nodes, size), max(workers/size, 1))
	if f := x.figures(s); f.Passes == 0 {
		return handingSeconds(c, p, r, s, workers, size, rates)
	}
	part := 1.0 // of the columns, that the group which has most takes
	if groups := workers / size; pieces > 0 && groups > 0 {
		part = float64((pieces+groups-1)/groups) / float64(pieces)
	}
	members := float64(size)
	passes := float64(x.Passes)
	seconds := passes * x.width * float64(x.edgesOfPass()) / members / rates.Edges
	if rates.Store > 0 {
		seconds = max(seconds, passes*float64(x.BytesPerPass)/members/rates.Store)
	}
	together := 0.0
	if size > 1 {
		seconds = max(seconds, float64(x.NetworkBytes)/members/rates.Network)
		together = 2*meeting + passes*part*waiting
	}
	moved := 0.0 // beside passes, by all workers
	if rates.Store > 0 {
		moved = float64(x.BytesRead-x.passed+x.BytesWritten-x.scratch) / float64(workers) / rates.Store
	}
	return x.alone + part*(seconds+float64(x.scratch)/scratchBytes) + moved + together
}

const (
	// handedBytes and handedDelay are what a network is taken to do in a second, and how many seconds
	// it takes to hand something on, where neither was measured.
	handedBytes, handedDelay = 1e9, 0.2e-3
)

// handed is values that go from worker to worker of a group, in parts: each adds to a part while the
// next one adds to that before.
type handed struct {
	rounds float64 // in which the values go to all workers
	bytes  float64 // of the values
	parts  float64
	adding float64 // seconds in a round that one worker would take for adding all
	// network is bytes a second, delay the seconds that a part of no size takes.
	network, delay float64
}

// HandsOn says that the workers which share the stage hand so many bytes of values on in each of some rounds,
// in parts, and how much work adding to them is in a round.
func (s *Sheet) HandsOn(rounds float64, bytes int64, parts int, adding float64, rate Rate) {
	s.handed.rounds, s.handed.bytes, s.handed.parts = rounds, float64(bytes), float64(parts)
	s.handed.adding = adding / s.rate(rate) / float64(s.Threads)
	if s.sharing > 1 {
		s.NetworkBytes += int64(min(2*float64(s.sharing-1)*rounds*float64(bytes), hops.MostBytes))
	}
}

// seconds is how long so many workers wait in all rounds. In each, the first part comes to the last worker when all
// before it have added to it, and the result goes back, twice as many workers having it with each delay. Asking
// for the values takes a delay as well.
func (h handed) seconds(workers float64) float64 {
	if workers < 2 || h.rounds == 0 {
		return 0
	}
	part := h.bytes / h.parts / h.network
	adding := h.adding / workers
	there := h.delay + (workers-1)*(h.delay+part+adding/h.parts) + max(h.bytes/h.network-adding, 0)
	back := math.Ceil(math.Log2(workers))*(h.delay+part) + min(workers-1, 2)*h.bytes/h.network
	return h.rounds * (there + back)
}

// BestGroup is the size of groups, up to most, with which so many workers take the fewest seconds for the
// pieces of a stage that needs no groups, of those that fit: 1 where no groups are worthwhile.
func BestGroup(c Counts, p control.Plan, r control.Resources, s Stage, workers, most, pieces int, rates control.Rates, fits func(size int) bool) int {
	seconds := func(size int) float64 { return GroupSeconds(c, p, r, s, workers, size, pieces, rates) }
	alone := seconds(1)
	best, fewest := 1, alone
	for size := 2; size <= most; size++ {
		if took := seconds(size); took < fewest && Worthwhile(alone, took) && fits(size) {
			best, fewest = size, took
		}
	}
	return best
}

// handingSeconds is GroupSeconds of a stage without passes, in which the workers of a group hand values on.
func handingSeconds(c Counts, p control.Plan, r control.Resources, s Stage, workers, size int, rates control.Rates) float64 {
	x := share(c, p, r, s, Part(c.Nodes, size), max(workers/size, 1))
	x.Workers = max(workers, 1)
	if rates.Network > 0 {
		x.handed.network = rates.Network
	}
	if rates.Delay > 0 {
		x.handed.delay = rates.Delay
	}
	seconds := x.figures(s).Seconds
	if size > 1 {
		seconds += 2 * meeting
	}
	return seconds
}
