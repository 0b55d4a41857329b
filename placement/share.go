package placement

import (
	"cmp"
	"errors"
	"slices"

	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/plan"
	"ndls/stage"
)

// Work is a stage that workers may share by rows, and what is known of it.
type Work struct {
	Stage    stage.Stage
	Shape    stage.Shape
	Plan     plan.Options
	Counts   estimate.Counts
	Parallel Parallel
	Groups   Groups
	// Edges counts the edges into each strip of rows. Models need no counts.
	Edges []float64
	// Tried, if not nil, is called for each kind of groups that is compared.
	Tried func(size int, halves bool, seconds float64)
}

// Misfit says that the rows of no group fit the memory of its workers. It wraps [mem.ErrBudget].
type Misfit struct{ error }

// Unwrap returns the reason.
func (m Misfit) Unwrap() error { return m.error }

// Models returns the number of models if workers train models of the stage together, else 0.
func (w Work) Models() int {
	if s, ok := w.Shape.(stage.Steps); ok {
		return s.Models
	}
	return 0
}

// MayShare reports whether workers may share the rows of the graph.
func (w Work) MayShare() bool { return w.Parallel.sharesRows() && w.Stage.Shares(w.Plan) }

// Share returns how these workers share the rows, or nil if they cannot or should not. The error is a [Misfit], or says why the stage fits
// no worker alone either.
func (w Work) Share(workers []control.Hello) (*Sharing, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	p := placing{Work: w, workers: slices.Clone(workers), columns: columnsOf(w.Shape), rates: slowest(workers)}
	slices.SortFunc(p.workers, func(a, b control.Hello) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Worker, b.Worker))
	})
	most := min(len(workers), packed.Strips(w.Counts.Nodes))
	if w.Models() > 0 {
		return p.chooseModels(most), nil
	}
	_, alone := estimate.Run(w.Counts, w.Plan, p.smallest().Resources(), 0, w.Stage)
	if most < 2 || alone != nil && !errors.Is(alone, mem.ErrBudget) {
		return nil, alone
	}
	g, err := p.choose(most, alone == nil)
	if err != nil {
		return nil, Misfit{err}
	}
	return g, nil
}

// placing holds what decides the places of workers in groups.
type placing struct {
	Work
	workers []control.Hello // those with most memory first
	columns columns
	rates   control.Rates // of the slowest worker
	halves  bool          // groups take one half of a panel each
}

func (p placing) smallest() control.Hello { return p.workers[len(p.workers)-1] }

// columns counts the pieces of columns of a stage that groups of workers take, and those that a worker takes alone. Without pieces one
// group has all columns.
type columns struct {
	groups, alone int
	halves        bool // a piece may be cut into halves
}

func columnsOf(shape stage.Shape) columns {
	switch x := shape.(type) {
	case stage.Matrix:
		tasks := (x.Panels + x.Together - 1) / x.Together
		return columns{tasks, tasks, x.Halves}
	case stage.Steps:
		if x.Divides() {
			return columns{x.Strips.Panels, (x.Strips.Panels + x.Strips.Together - 1) / x.Strips.Together, false}
		}
	}
	return columns{}
}

// resources returns the resources of a worker in a group.
func (p placing) resources(h control.Hello) control.Resources {
	r := h.Resources()
	if p.halves {
		r.BlockColumns = packed.HalfPanel
	}
	return r
}

// slowest returns the smallest of the rates that workers have measured and the longest delay; 0 if none has measured.
func slowest(workers []control.Hello) (r control.Rates) {
	least := func(to *float64, x float64) {
		if x > 0 && (*to == 0 || x < *to) {
			*to = x
		}
	}
	for _, h := range workers {
		least(&r.Edges, h.Rates.Edges)
		least(&r.Network, h.Rates.Network)
		least(&r.Store, h.Rates.Store)
		r.Delay = max(r.Delay, h.Rates.Delay)
	}
	return r
}

// measured reports whether the rates that decide the time of groups are known.
func (p placing) measured() bool { return p.rates.Edges > 0 && p.rates.Network > 0 }

// choose returns groups of the best size, at most `most`, or nil if the workers should share columns alone. Memory comes first: a size is
// possible if each worker has the memory for its rows. Among possible sizes it takes the one with the fewest seconds by the measured rates.
// Without rates it takes the smallest size with columns for all groups. Groups take one half of a panel each if that is faster still. fits
// says that a worker has the memory for all rows.
func (p placing) choose(most int, fits bool) (best *Sharing, failed error) {
	least, last := p.sizes(most)
	if p.Parallel == Auto && fits && !p.measured() || least < 2 {
		return nil, nil
	}
	halves := p.halvings(least)
	if !p.measured() && least < last { // all groups are to have columns
		least = min(max(least, (len(p.workers)+p.columns.groups-1)/p.columns.groups), last)
	}
	fewest := 0.0
	for size := least; size <= last; size++ {
		for _, p.halves = range halves {
			groups := p.groups(size)
			if p.halves && groups < len(packed.Sides) {
				continue // the group takes whole panels
			}
			strips, err := p.strips(size)
			if err != nil {
				failed = err
				continue
			}
			g := &Sharing{Groups: groups, Halves: p.halves, Strips: strips}
			if !p.measured() {
				return g, nil
			}
			took := p.seconds(size)
			if p.Tried != nil {
				p.Tried(size, p.halves, took)
			}
			if best == nil || took < fewest {
				best, fewest = g, took
			}
		}
	}
	if best == nil {
		return nil, failed
	}
	p.halves = false
	if p.Parallel == Auto && fits && !estimate.Worthwhile(p.seconds(1), fewest) {
		return nil, nil
	}
	return best, nil
}

// sizes returns the smallest and the largest size of groups to consider, at most `most`.
func (p placing) sizes(most int) (least, last int) {
	switch {
	case p.Parallel == Intervals || p.columns.groups == 0 || p.Parallel == Auto && !p.measured():
		return most, most
	case p.Parallel == Grid && p.Groups.Size > 0:
		size := min(p.Groups.Size, most)
		return size, size
	}
	return 2, most
}

// halvings lists whether groups take whole panels, halves, or either, if the smallest group has so many workers.
func (p placing) halvings(least int) []bool {
	possible := p.columns.halves && p.Parallel != Intervals && len(p.workers) >= len(packed.Sides)*least
	switch {
	case possible && p.Groups.Columns == packed.HalfPanel:
		return []bool{true}
	case possible && p.Groups.Columns == 0 && p.measured():
		return []bool{false, true}
	}
	return []bool{false}
}

// groups returns the number of groups of so many workers.
func (p placing) groups(size int) int {
	if p.columns.groups == 0 {
		return 1
	}
	return len(p.workers) / size
}

// seconds returns the time of the stage in groups of so many workers; 1 stands for workers that share columns alone.
func (p placing) seconds(size int) float64 {
	pieces := p.columns.groups
	switch {
	case size == 1:
		pieces = p.columns.alone
	case p.halves:
		pieces *= len(packed.Sides)
	}
	return estimate.GroupSeconds(p.Counts, p.Plan, p.resources(p.smallest()), p.Stage, len(p.workers), size, pieces, p.rates)
}
