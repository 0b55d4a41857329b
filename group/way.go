package group

// Way is how the rows of a hop come from the workers that have them.
type Way int

const (
	// Relayed rows are passed on in a ring: all workers receive those of one of them at the same time, which receives none
	// meanwhile.
	Relayed Way = iota
	// Direct rows come from their owner, which all others ask at the same time.
	Direct
	// Listed rows are those alone that are read. Each worker has memory for all of them, and asks the worker after it first.
	Listed
)

// HopSeconds returns the seconds of a hop in which each of so many workers computes for some
// seconds, if they wait only for each other. receiving is the time of the rows that come to the
// worker with fewest rows, all the time of all rows of the hop on the way to one worker, and ahead
// the time of the rows for which that worker has memory beside the windows that it adds and
// fetches.
func (w Way) HopSeconds(workers int, computing, receiving, all, ahead float64) float64 {
	switch {
	case workers < 2:
		return computing
	case workers == 2:
		// The first worker adds its own rows first, and receives only what it can hold meanwhile. The second one adds its own
		// rows last, and receives none meanwhile.
		return float64(computing/2) + max(float64(computing/2), receiving-min(ahead, float64(computing/2)), all-receiving)
	case w == Listed:
		// A worker in the middle receives the rows after its own, then adds those before them while they arrive, then the others.
		return (computing + receiving + max(computing, receiving)) / 2
	case w == Direct:
		return max(computing, float64(workers-1)*all)
	}
	return max(computing, all)
}
