package placement

import (
	"cmp"
	"errors"
	"slices"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/plan"
)

// Parallel names a way in which workers share a stage.
type Parallel string

const (
	// Auto is Columns. It is Intervals if the least column block exceeds the memory of a worker, but a worker's share of its rows fits.
	Auto Parallel = "auto"
	// Columns gives each worker some columns of all rows.
	Columns Parallel = "columns"
	// Intervals gives each worker some rows of all columns.
	Intervals Parallel = "intervals"
	// Grid gives each worker some rows of some columns: groups of workers share the rows, and several groups work at the same time.
	Grid Parallel = "grid"
)

// ParseParallel reads the value of an option, which is Auto if it is left out, and refuses sizes of groups that are impossible in this way.
// Size 0 lets the plan choose.
func ParseParallel(text string, size int) (Parallel, error) {
	p := cmp.Or(Parallel(text), Auto)
	switch {
	case !slices.Contains([]Parallel{Auto, Columns, Intervals, Grid}, p):
		return "", failure.Of(failure.ErrOption, "placement: --parallel %q is none of auto, columns, intervals, grid", text)
	case size < 0:
		return "", failure.Of(failure.ErrOption, "--group-size %d is negative", size)
	case size > 0 && p != Grid:
		return "", failure.Of(failure.ErrOption, "--group-size %d applies only to --parallel grid, not to --parallel %s", size, p)
	}
	return p, nil
}

// Figures returns the figures of stages that so many workers with the resources r share in this way. Groups of a grid have the given size;
// with size 0 each stage takes the best of 2, 4, 8 … or all workers. The error comes from [estimate.Run].
func (p Parallel) Figures(size int, c estimate.Counts, opts plan.Options, r control.Resources, workers int, held int64,
	stages ...estimate.Stage,
) ([]control.Figures, error) {
	list, err := estimate.RunCut(c, opts, r, workers, held, stages...)
	if workers < 2 || p == Columns || p == Auto && !errors.Is(err, mem.ErrBudget) {
		return list, err
	}
	return estimate.RunShared(c, opts, r, workers, p.sizes(size, workers), held, stages...)
}

// sizes returns the possible sizes of groups of workers, the smallest first.
func (p Parallel) sizes(size, workers int) (list []int) {
	if p != Grid {
		return []int{workers}
	}
	if size > 0 {
		return []int{min(size, workers)}
	}
	for n := 2; n < workers; n *= 2 {
		list = append(list, n)
	}
	return append(list, workers)
}
