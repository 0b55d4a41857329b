package placement

import (
	"cmp"
	"errors"
	"fmt"
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
	// GroupSize is the number of workers that share the rows of a block of columns with Grid; 0 lets the plan choose.
	GroupSize int
	// Edges counts the edges into each strip of rows. Models need no counts.
	Edges []float64
	// Tried, if not nil, is called for each kind of groups that is compared.
	Tried func(size int, seconds float64)
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
func (w Work) MayShare() bool {
	return w.Parallel != "" && w.Parallel != Columns && w.Stage.Shares(w.Plan)
}

// Share returns how these workers share the rows, or nil if they cannot or should not. The error is a [Misfit], or says why the stage fits
// no worker alone either.
func (w Work) Share(workers []control.Hello) (*Sharing, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	p := placing{Work: w, workers: slices.Clone(workers), rates: slowest(workers)}
	p.pieces, p.alone = pieces(w.Shape)
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
	rates   control.Rates   // of the slowest worker
	pieces  int             // of columns that groups take; without pieces one group has all columns
	alone   int             // pieces of columns that workers take alone
}

func (p placing) smallest() control.Hello { return p.workers[len(p.workers)-1] }

// pieces counts the pieces of columns of a stage that groups of workers take, and those that workers take alone.
func pieces(shape stage.Shape) (groups, alone int) {
	switch x := shape.(type) {
	case stage.Matrix:
		n := (x.Panels + x.Together - 1) / x.Together
		return n, n
	case stage.Steps:
		if x.Panels > 1 {
			return x.Panels, (x.Panels + x.Together - 1) / x.Together
		}
	}
	return 0, 0
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
// Without rates it takes the smallest size with columns for all groups. fits says that a worker has the memory for all rows.
func (p placing) choose(most int, fits bool) (best *Sharing, failed error) {
	least, last := p.sizes(most)
	if p.Parallel == Auto && fits && !p.measured() || least < 2 {
		return nil, nil
	}
	if !p.measured() && least < last { // all groups are to have columns
		least = min(max(least, (len(p.workers)+p.pieces-1)/p.pieces), last)
	}
	fewest := 0.0
	for size := least; size <= last; size++ {
		groups := 1
		if p.pieces > 0 {
			groups = len(p.workers) / size
		}
		strips, err := p.strips(size)
		if err != nil {
			failed = err
			continue
		}
		g := &Sharing{Groups: groups, Strips: strips}
		if !p.measured() {
			return g, nil
		}
		took := p.seconds(size)
		if p.Tried != nil {
			p.Tried(size, took)
		}
		if best == nil || took < fewest {
			best, fewest = g, took
		}
	}
	if best == nil {
		return nil, failed
	}
	if p.Parallel == Auto && fits && !estimate.Worthwhile(p.seconds(1), fewest) {
		return nil, nil
	}
	return best, nil
}

// sizes returns the smallest and the largest size of groups to consider, at most `most`.
func (p placing) sizes(most int) (least, last int) {
	switch {
	case p.Parallel == Intervals || p.pieces == 0 || p.Parallel == Auto && !p.measured():
		return most, most
	case p.Parallel == Grid && p.GroupSize > 0:
		size := min(p.GroupSize, most)
		return size, size
	}
	return 2, most
}

// seconds returns the time of the stage in groups of so many workers; 1 stands for workers that share columns alone.
func (p placing) seconds(size int) float64 {
	pieces := p.pieces
	if size == 1 {
		pieces = p.alone
	}
	return estimate.GroupSeconds(p.Counts, p.Plan, p.smallest().Resources(), p.Stage, len(p.workers), size, pieces, p.rates)
}

// chooseModels returns the groups, of at most `most` workers, that train models together, or nil if each worker should train models alone.
// A worker of a group needs about as much memory as one that trains alone, so that time decides. Groups are used only if there are fewer
// models than workers. Their size is --group-size, or the fastest one by the measured rates if it saves enough.
func (p placing) chooseModels(most int) *Sharing {
	models := p.Models()
	if models >= len(p.workers) {
		return nil
	}
	size := 1
	if p.Parallel == Grid && p.GroupSize > 0 {
		size = min(p.GroupSize, most)
	} else if p.rates.Network > 0 {
		size = estimate.BestGroup(p.Counts, p.Plan, p.smallest().Resources(), p.Stage, len(p.workers), most, models, p.rates,
			func(size int) bool { return p.modelGroups(size) != nil })
	}
	return p.modelGroups(size)
}

// modelGroups returns groups of so many workers that have the memory to train together, or nil if there are none. All workers of a group
// take the same number of rows of a step.
func (p placing) modelGroups(size int) *Sharing {
	if size < 2 {
		return nil
	}
	g := &Sharing{Groups: min(len(p.workers)/size, p.Models())}
	least := p.workers[g.Groups*size-1] // of those that take part
	strips := packed.Strips(p.Counts.Nodes)
	for i := range size {
		t := control.Task{Stage: p.Stage.Name(), Part: control.Strips, First: strips * i / size, Last: strips * (i + 1) / size}
		t.Needs, _ = estimate.Share(p.Counts, p.Plan, least.Resources(), p.Stage, rowsOf(p.Counts.Nodes, t.First, t.Last), size, g.Groups)
		if t.Needs > least.Memory {
			return nil
		}
		g.Strips = append(g.Strips, t)
	}
	return g
}

// strips returns the tasks of a group of so many workers that has all columns. All groups have the same borders: a place serves as many
// workers as there are groups, and counts with the smallest memory of these workers.
func (p placing) strips(size int) (tasks []control.Task, err error) {
	groups := len(p.workers) / size
	var places []control.Hello
	for i := range size {
		places = append(places, p.workers[(i+1)*groups-1])
	}
	borders, needs, err := p.shareOut(places, groups)
	if err != nil {
		return nil, err
	}
	for i := range places {
		tasks = append(tasks, control.Task{Stage: p.Stage.Name(), Part: control.Strips, First: borders[i], Last: borders[i+1], Needs: needs[i]})
	}
	return tasks, nil
}

// evenness lists the shares of edges in the weight of a strip, in the order in which they are tried. Rows have the rest of the weight.
var evenness = []float64{1, 0.75, 0.5, 0.25, 0}

// shareOut finds the borders, in strips, between workers. Each worker gets a share of the weight in proportion to its memory. The weight of
// a strip is its share of the edges, which decide the time. If rows do not fit, the weight counts more and more the rows, which decide the
// memory, until each worker can keep its rows in memory or at least has room for them. needs holds the memory of each share in bytes, where
// there are so many groups of such workers.
func (p placing) shareOut(workers []control.Hello, groups int) (borders []int, needs []int64, err error) {
	nodes := p.Counts.Nodes
	for _, even := range evenness {
		borders = cutStrips(p.Edges, nodes, even, workers)
		resident := true
		needs, err = nil, nil
		for w, h := range workers {
			rows := rowsOf(nodes, borders[w], borders[w+1])
			least, fits := estimate.Share(p.Counts, p.Plan, h.Resources(), p.Stage, rows, len(workers), groups)
			needs = append(needs, least)
			resident = resident && fits
			if least > h.Memory {
				err = fmt.Errorf("placement: %s by %d workers: worker %s would have %d of %d rows, which need %s, its --memory is %s; give it --memory %dMiB, or more workers: %w",
					p.Stage.Name(), len(workers), h.Worker, rows, nodes, mem.Bytes(least), mem.Bytes(h.Memory), (least+1<<20-1)>>20, mem.ErrBudget)
			}
		}
		if resident {
			break
		}
	}
	return borders, needs, err
}

// rowsOf returns the number of rows in strips [first, last) of a graph of so many nodes.
func rowsOf(nodes int64, first, last int) int64 {
	return min(int64(last)*packed.StripRows, nodes) - int64(first)*packed.StripRows
}

// cutStrips gives each worker at least one strip and its share of the weight as nearly as whole strips allow.
func cutStrips(edges []float64, nodes int64, even float64, workers []control.Hello) []int {
	all, memory := 0.0, int64(0)
	for _, n := range edges {
		all += n
	}
	for _, h := range workers {
		memory += h.Memory
	}
	borders := []int{0}
	weight, want := 0.0, 0.0
	strip := 0
	for w, h := range workers {
		want += float64(h.Memory) / float64(memory)
		most := len(edges) - (len(workers) - 1 - w)
		for strip < most {
			next := (1 - even) * float64(rowsOf(nodes, strip, strip+1)) / float64(nodes)
			if all > 0 {
				next += float64(even*edges[strip]) / all
			}
			if strip > borders[w] && w < len(workers)-1 && weight+float64(next/2) > want {
				break
			}
			weight += next
			strip++
		}
		borders = append(borders, strip)
	}
	return borders
}
