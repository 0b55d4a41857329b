package estimate

import (
	"ndls/hops"
	"ndls/internal/control"
)

const (
	// meeting is the seconds that the workers of a group take to meet, and once more to part: two workers took less than 0.1,
	// and 32 leases take 8 ms each where no two share a record.
	// make scaling-measured: train of four workers that share both; go run -C bench ./scaling -table limits.
	meeting = 0.25
	// waiting is the seconds in which the workers of a group wait for each other in a hop.
	waiting = 0.005
)

// GroupSeconds is about how long workers with r and these rates each take for a stage, in groups of
// that size which share the rows of the same columns. The stage has so many pieces of columns that
// groups can take, 0 for one that only groups of all workers share. Groups of one share no rows. What a
// hop computes, sends and reads goes on at the same time.
func GroupSeconds(c Counts, p control.Plan, r control.Resources, s Stage, workers, size, pieces int, rates control.Rates) float64 {
	x := share(c, p, r, s, Part(c.Nodes, size), size, max(workers/size, 1))
	if f := x.figures(s); f.Passes == 0 {
		return swappingSeconds(c, p, r, s, workers, size, rates)
	}
	part := 1.0 // of the columns, that the group which has most takes
	if groups := workers / size; pieces > 0 && groups > 0 {
		part = float64((pieces+groups-1)/groups) / float64(pieces)
	}
	members := float64(size)
	passes := float64(x.Passes)
	seconds := passes * x.width * float64(x.edgesOfPass()) / members / rates.Edges
	if rates.Store > 0 && x.BytesPerPass > 0 {
		seconds = overlap * max(seconds, passes*float64(x.BytesPerPass)/members/rates.Store)
	}
	together := 0.0
	if size > 1 {
		receiving := float64(x.NetworkBytes) / members / rates.Network
		seconds = x.way.HopSeconds(size, seconds, receiving, receiving*members/(members-1), passes*float64(x.ahead)/rates.Network)
		together = 2*meeting + passes*part*waiting
	}
	moved := 0.0 // beside passes, by all workers
	if rates.Store > 0 {
		moved = float64(x.BytesRead-x.passed+x.BytesWritten-x.scratch) / float64(workers) / rates.Store
	}
	return x.each + part*(seconds+float64(x.scratch)/scratchBytes) + moved + together
}

const (
	// swappedBytes and swapDelay are what a network is taken to move in a second, and how many seconds
	// it takes to send something small, where neither was measured.
	swappedBytes, swapDelay = 1e9, 0.2e-3
	// messageSeconds is how long one thread takes to send a message and to receive one, and weightSeconds to take the
	// step with a weight and to prepare it for products.
	// go test ./group/remote -run xxx -bench Exchange; go test ./train -run xxx -bench Finish.
	messageSeconds, weightSeconds = 10e-6, 2e-9
)

// swaps are those of workers that share a stage: in each round two, of which each takes a delay, and a message to
// each other worker.
type swaps struct {
	rounds  float64
	bytes   float64 // that a worker receives in a round
	weights float64 // with which each worker takes the step that ends a round
	// network is bytes a second, delay the seconds that something small takes.
	network, delay float64
}

// Swaps says that the workers which share the stage swap values in some rounds: in each of them a worker receives so many bytes, and takes a
// step with so many weights.
func (s *Sheet) Swaps(rounds float64, bytes, weights int64) {
	s.swaps.rounds, s.swaps.bytes, s.swaps.weights = rounds, float64(bytes), float64(weights)
	s.NetworkBytes += int64(min(float64(s.members)*rounds*float64(bytes), hops.MostBytes))
}

// seconds is how long so many workers of some threads take in all rounds, beside what they compute of their shares.
func (x swaps) seconds(workers, threads float64) float64 {
	messages := 2 * (workers - 1) * messageSeconds / threads
	return x.rounds * (2*x.delay + messages + x.bytes/x.network + x.weights*weightSeconds/threads)
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

// swappingSeconds is GroupSeconds of a stage without passes, in which the workers of a group swap values.
func swappingSeconds(c Counts, p control.Plan, r control.Resources, s Stage, workers, size int, rates control.Rates) float64 {
	x := share(c, p, r, s, Part(c.Nodes, size), size, max(workers/size, 1))
	x.Workers = max(workers, 1)
	if rates.Network > 0 {
		x.swaps.network = rates.Network
	}
	if rates.Delay > 0 {
		x.swaps.delay = rates.Delay
	}
	seconds := x.figures(s).Seconds
	if size > 1 {
		seconds += 2 * meeting
	}
	return seconds
}
