package estimate

import (
	"ndls/hops"
	"ndls/internal/control"
	"ndls/plan"
)

const (
	// meeting is the time in seconds in which the workers of a group meet, and again in which they
	// part. Two workers took less than 0.1 s; 32 leases take 8 ms each if no two share a record.
	// Measured by make scaling-measured (train of four workers that share both) and go run -C bench
	// ./scaling -table limits.
	meeting = 0.25
	// waiting is the time in seconds that the workers of a group wait for each other in a hop.
	waiting = 0.005
)

// GroupSeconds returns the approximate seconds of a stage with workers that have the resources r
// and these rates each, in groups of the given size. The workers of a group share the rows of the
// same columns; groups of one share no rows. pieces is the number of pieces of columns that groups
// can take, 0 if only one group of all workers can run the stage. The computing, sending and
// reading of a hop overlap.
func GroupSeconds(c Counts, p plan.Options, r control.Resources, s Stage, workers, size, pieces int, rates control.Rates) float64 {
	x := share(c, p, r, s, Part(c.Nodes, size), size, max(workers/size, 1))
	if f := x.figures(s); f.Passes == 0 {
		return swappingSeconds(c, p, r, s, workers, size, rates)
	}
	part := 1.0 // the largest share of the columns that a group has
	if groups := workers / size; pieces > 0 && groups > 0 {
		part = float64((pieces+groups-1)/groups) / float64(pieces)
	}
	members := float64(size)
	passes := float64(x.Passes)
	seconds := passes * x.lines * float64(x.OnGraph().edgesOfPass()) / members / rates.Edges
	if rates.Store > 0 && x.BytesPerPass > 0 {
		seconds = max(seconds, passes*float64(x.BytesPerPass)/members/rates.Store)
	}
	together := 0.0
	if size > 1 {
		receiving := float64(x.NetworkBytes) / members / rates.Network
		seconds = x.way.HopSeconds(size, seconds, receiving, receiving*members/(members-1), passes*float64(x.ahead)/rates.Network)
		together = 2*meeting + passes*part*waiting
	}
	moved := 0.0 // seconds of reading and writing outside of passes
	if rates.Store > 0 {
		moved = float64(x.BytesRead-x.passed+x.BytesWritten-x.scratch) / float64(workers) / rates.Store
	}
	return x.each + part*(seconds+float64(x.scratch)/x.speeds.Write) + moved + together
}

const (
	// swappedBytes and swapDelay are the assumed bytes a second of a network and the assumed
	// seconds to send something small, if neither was measured.
	swappedBytes, swapDelay = 1e9, 0.2e-3
	// messageSeconds is the time in which one thread sends and receives a message. weightSeconds is
	// the time in which it updates one weight and prepares it for products. Measured by go test
	// -run '^$' -bench Exchange ./group/remote and go test -run '^$' -bench Finish ./train.
	messageSeconds, weightSeconds = 10e-6, 2e-9
)

// swaps describes the exchanges of workers that share a stage. A round has two of them; each costs
// a delay, and a message to each other worker.
type swaps struct {
	rounds  float64
	bytes   float64 // bytes that a worker receives in a round
	weights float64 // weights that each worker updates at the end of a round
	// network is in bytes a second; delay is the seconds to send something small.
	network, delay float64
}

// Swaps adds rounds in which the workers that share the stage swap values: in each round a worker
// receives so many bytes and updates so many weights.
func (s *Sheet) Swaps(rounds float64, bytes, weights int64) {
	s.swaps.rounds, s.swaps.bytes, s.swaps.weights = rounds, float64(bytes), float64(weights)
	s.NetworkBytes += int64(min(float64(s.members)*rounds*float64(bytes), hops.MostBytes))
}

// seconds returns the time of all rounds for so many workers of some threads, without the computing
// of their shares.
func (x swaps) seconds(workers, threads float64) float64 {
	messages := 2 * (workers - 1) * messageSeconds / threads
	return x.rounds * (2*x.delay + messages + x.bytes/x.network + x.weights*weightSeconds/threads)
}

// BestGroup returns the size of groups, at most `most`, with which so many workers need the fewest
// seconds for the pieces of a stage that can do without groups. It considers the sizes that fit,
// and returns 1 if no groups are worthwhile.
func BestGroup(c Counts, p plan.Options, r control.Resources, s Stage, workers, most, pieces int, rates control.Rates,
	fits func(size int) bool,
) int {
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

// swappingSeconds is GroupSeconds of a stage without passes, in which the workers of a group swap
// values.
func swappingSeconds(c Counts, p plan.Options, r control.Resources, s Stage, workers, size int, rates control.Rates) float64 {
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
