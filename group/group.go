package group

import (
	"context"
	"errors"
	"slices"

	"ndls/internal/direct"
)

// Group is one worker's place among the workers that share the rows of a graph. All
// workers of a group make the same calls in the same order, and no two calls of one
// worker are made at the same time, but for Fetch. A context ends only the waiting of
// this worker.
type Group interface {
	// Size is the number of workers, Self the number of this one, in the order of their rows.
	Size() int
	Self() int
	// Range says that this worker has rows [first, last) of n; first, and last
	// where it is not n, are multiples of packed.StripRows.
	Range() (first, last, n int64)
	// Expose lets the other workers read this worker's rows of a hop until Unexpose,
	// after which read is not called any more. An error given to Unexpose is why this
	// worker cannot go on, and ends the work of the whole group. relay, which is the same for all
	// workers, says that each of them fetches all rows of the others once, in ascending order, and
	// leaves those of a Fetch as they are until it passes the same memory to the next one, or to
	// Unexpose: workers may then pass rows on to each other, whether or not they have called Reads.
	Expose(f Format, relay bool, read ReadRows)
	Unexpose(err error)
	// Fetch copies rows [lo, hi), none of them this worker's, of the hop whose rows
	// this worker exposes, to into. It waits until the other workers expose theirs.
	Fetch(ctx context.Context, f Format, lo, hi int64, into []byte) error
	// Reads tells the other workers which rows this worker reads, by a bit for each of all rows, and
	// learns which of its rows they read: theirs has space for a bit for each of its rows and each
	// worker, in whole words. Both are the group's until it is closed. Where rows are not relayed, Fetch leaves those that this
	// worker does not read as they are. Either all workers call it, or none.
	Reads(ctx context.Context, mine, theirs []uint32) error
	// Listed reports whether the workers have called Reads.
	Listed() bool
	// AllGather returns the values of all workers, equally many each, by worker. It
	// is a barrier: when it returns, every worker has called it.
	AllGather(ctx context.Context, values []float64) ([][]float64, error)
	// OrderedSum sets values to zero, lets add of each worker in turn add to them, in
	// ascending order of the workers' rows, and leaves the result with all workers.
	OrderedSum(ctx context.Context, values []float64, add func() error) error
	// Exchange calls do, which may swap values with the other workers until it returns. All workers call it, and
	// their functions swap equally often. A worker that fails meanwhile ends that of each.
	Exchange(ctx context.Context, do func(ctx context.Context, swap Swap) error) error
}

// Swap sends each other worker w the values of mine(w), and returns when theirs(w) has those that w has for this
// worker, as many. What is sent may be changed once the next swap has returned, or the workers have met after the last
// one ([Barrier]), and freed after Unexpose.
type Swap func(mine, theirs func(worker int) [][]float32) error

// Format is how the rows that a worker exposes are stored, one after the other.
type Format struct {
	Columns int
	// Precision is "float32" or "float16".
	Precision string
}

// ReadRows copies n rows from row on, as they are stored, to page. page begins on a
// page of memory and has space up to a whole one; row is a multiple of [PageRows]. It
// is safe for concurrent use.
type ReadRows func(page []byte, row, n int64) error

// PageRows is a number of rows that take whole pages, whatever their format: 16
// columns of 2 bytes are the least.
const PageRows = direct.Align / 32

// Solo is the group of one worker, which has n rows.
func Solo(n int64) Group { return solo(n) }

type solo int64

var errSolo = errors.New("a group of one worker has all rows: there is none to fetch")

func (s solo) Size() int                     { return 1 }
func (s solo) Self() int                     { return 0 }
func (s solo) Range() (first, last, n int64) { return 0, int64(s), int64(s) }
func (s solo) Expose(Format, bool, ReadRows) {}
func (s solo) Unexpose(error)                {}

func (s solo) Fetch(context.Context, Format, int64, int64, []byte) error { return errSolo }

func (s solo) Reads(context.Context, []uint32, []uint32) error { return nil }

func (s solo) Listed() bool { return false }

func (s solo) AllGather(_ context.Context, values []float64) ([][]float64, error) {
	return [][]float64{slices.Clone(values)}, nil
}

func (s solo) OrderedSum(_ context.Context, values []float64, add func() error) error {
	clear(values)
	return add()
}

func (s solo) Exchange(ctx context.Context, do func(context.Context, Swap) error) error {
	return do(ctx, func(_, _ func(int) [][]float32) error { return ctx.Err() })
}

// Max is the largest x of all workers.
func Max(ctx context.Context, g Group, x int) (int, error) {
	all, err := g.AllGather(ctx, []float64{float64(x)})
	if err != nil {
		return x, err
	}
	for _, other := range all {
		x = max(x, int(other[0]))
	}
	return x, nil
}

// Min is the smallest x of all workers.
func Min(ctx context.Context, g Group, x int) (int, error) {
	x, err := Max(ctx, g, -x)
	return -x, err
}

// Same reports whether all workers have the same numbers, each below 2^53 and at least
// one.
func Same(ctx context.Context, g Group, numbers []int) (bool, error) {
	most, err := Max(ctx, g, len(numbers))
	if err != nil {
		return false, err
	}
	least, err := Min(ctx, g, len(numbers))
	if err != nil || least != most || least == 0 {
		return false, err
	}
	mine := make([]float64, len(numbers))
	for i, x := range numbers {
		mine[i] = float64(x)
	}
	all, err := g.AllGather(ctx, mine)
	if err != nil {
		return false, err
	}
	for _, theirs := range all {
		if !slices.Equal(theirs, mine) {
			return false, nil
		}
	}
	return true, nil
}

// Barrier returns when all workers have called it.
func Barrier(ctx context.Context, g Group) error {
	_, err := g.AllGather(ctx, []float64{0})
	return err
}
