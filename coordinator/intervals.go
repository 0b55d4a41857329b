package coordinator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"ndls/catalog"
	"ndls/estimate"
	"ndls/internal/control"
	"ndls/internal/failure"
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/plan"
	"ndls/shards"
	"ndls/stage"
)

// Parallel names a way in which workers share a stage.
type Parallel string

const (
	// Auto is Columns. It is Intervals if the least column block exceeds the memory of a worker,
	// but a worker's share of its rows fits.
	Auto Parallel = "auto"
	// Columns gives each worker some columns of all rows.
	Columns Parallel = "columns"
	// Intervals gives each worker some rows of all columns.
	Intervals Parallel = "intervals"
	// Grid gives each worker some rows of some columns: groups of workers share the rows, and
	// several groups work at the same time.
	Grid Parallel = "grid"
)

// parallels lists all of them.
var parallels = []Parallel{Auto, Columns, Intervals, Grid}

// ParseParallel reads the value of an option.
func ParseParallel(text string) (Parallel, error) {
	if p := Parallel(text); slices.Contains(parallels, p) {
		return p, nil
	}
	return "", fmt.Errorf("coordinator: --parallel %q is none of auto, columns, intervals, grid: %w", text, failure.ErrOption)
}

// Groups describes groups of workers that share rows. The plan chooses the values that are 0.
type Groups struct {
	// Size is the number of workers that share the rows of a block of columns with Grid.
	Size int
	// Columns is the number of columns of a panel that a group takes with Grid: all 16, or 8, one
	// half, if the stage works with half panels. Groups of half panels send each other half as many
	// bytes, and there is work for twice as many groups.
	Columns int
}

// Check refuses impossible groups.
func (g Groups) Check(p Parallel) error {
	switch {
	case g.Size < 0:
		return fmt.Errorf("--group-size %d is negative: %w", g.Size, failure.ErrOption)
	case g.Size > 0 && p != Grid:
		return fmt.Errorf("--group-size %d applies only to --parallel grid, not to --parallel %s: %w", g.Size, p, failure.ErrOption)
	case g.Columns != 0 && g.Columns != packed.HalfPanel && g.Columns != packed.PanelColumns:
		return fmt.Errorf("--group-columns %d: a group takes %d or %d columns: %w", g.Columns, packed.HalfPanel, packed.PanelColumns, failure.ErrOption)
	case g.Columns > 0 && p != Grid:
		return fmt.Errorf("--group-columns %d applies only to --parallel grid, not to --parallel %s: %w", g.Columns, p, failure.ErrOption)
	}
	return nil
}

// phases cuts the remaining work of a stage. The phases are nil for a stage that runs step by step;
// a sharing is returned if groups share its columns. Workers that work on a phase from before a
// restart continue it as it was cut then.
func (j *Job) phases(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary) ([][]control.Task, *sharing, error) {
	c := s.Cut(j.Plan, sum)
	under := j.Tasks.UnderWay()
	if len(under) > 0 && under[0].Stage != s.Name() {
		under = nil
	}
	var g *sharing
	var err error
	switch {
	case len(under) > 0 && under[0].Shares():
		g = &sharing{groups: 1, strips: under}
	case len(under) == 0 || c.Next != nil && under[0].Part == control.Rows:
		g, err = j.grid(ctx, rec, s, sum, c)
	}
	if err != nil || g == nil && c.Next != nil {
		return nil, nil, err
	}
	if g == nil {
		return cut(s.Name(), c, j.Catalog, j.Tasks.Workers()), nil, nil
	}
	if c.Models > 0 {
		return [][]control.Task{g.models(c.Models), {{Stage: s.Name(), Part: control.Whole}}}, nil, nil
	}
	if c.Next != nil && c.Panels > 0 {
		left, err := c.Next(ctx, j.Catalog)
		if err != nil || g.groups > 1 || left.Shared {
			return nil, g, err
		}
		// One group takes all panels and needs no steps.
	}
	takers := g.groups // of whole panels
	if g.halves {
		takers = (takers + 1) / 2
	}
	phases := cut(s.Name(), c, j.Catalog, max(takers, 2))
	var shared [][]control.Task
	if phases[0][0].Part == control.Columns {
		shared, phases = append(shared, g.cells(phases[0])), phases[1:]
	} else if c.Strips != "" && len(j.Catalog.Entries(c.Strips)) < c.Intervals {
		shared = append(shared, g.strips)
	}
	return append(shared, phases...), nil, nil
}

// sharing describes how workers share a stage in two dimensions: the workers of a group share the
// rows of a block of columns, and several groups work at the same time.
type sharing struct {
	groups int
	// halves says that each group takes one half of a panel at a time.
	halves bool
	// strips lists the tasks of a group that has all columns.
	strips []control.Task
}

// cells assigns each task of columns to a gang. A single gang takes all columns.
func (g *sharing) cells(columns []control.Task) (tasks []control.Task) {
	if g.groups == 1 {
		return g.strips
	}
	parts := []control.Part{control.Strips}
	if g.halves {
		parts = []control.Part{control.LeftStrips, control.RightStrips}
	}
	for _, t := range columns {
		for _, part := range parts {
			for _, x := range g.strips {
				x.Part, x.FirstPanel, x.LastPanel = part, t.First, t.Last
				tasks = append(tasks, x)
			}
		}
	}
	return tasks
}

// panels returns the tasks for the rest of a step whose pieces are panels: each group takes some of
// them.
func (g *sharing) panels(left partition.Left) (tasks []control.Task) {
	left.Count = func(groups int) int { return groups }
	for _, p := range left.Cut(g.groups) {
		for _, x := range g.strips {
			x.FirstPanel, x.LastPanel = p.First, p.Last
			tasks = append(tasks, x)
		}
	}
	return tasks
}

// grid returns how the workers share the rows of a stage's graph, or nil if they share its columns.
func (j *Job) grid(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary, c stage.Cut) (*sharing, error) {
	if j.Parallel == "" || j.Parallel == Columns || !s.Shares(j.Plan) {
		return nil, nil
	}
	g, err := j.shares(ctx, rec, s, sum, c, j.Parallel != Auto)
	if errors.Is(err, mem.ErrBudget) && j.Parallel == Auto {
		// A worker that is being started again may be the missing one.
		g, err = j.shares(ctx, rec, s, sum, c, true)
	}
	return g, err
}

// shares returns the grid of the present workers if they can share the rows and are to. With all it
// waits for the missing workers too, and is the last attempt. Workers that are lost again and again
// take part only if the others cannot do without them.
func (j *Job) shares(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary, c stage.Cut, all bool) (*sharing, error) {
	list, err := j.Tasks.Sharers(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(list.Held) == 0 {
		return j.sharesOf(ctx, rec, s, sum, c, list.Fit, all)
	}
	g, err := j.sharesOf(ctx, rec, s, sum, c, list.Fit, false)
	if len(list.Fit) == 0 || errors.Is(err, mem.ErrBudget) {
		return j.sharesOf(ctx, rec, s, sum, c, slices.Concat(list.Fit, list.Held), all)
	}
	if err == nil {
		j.Log.Warn("workers that were lost again and again are left out for a while", "stage", s.Name(), "workers", workerNames(list.Held))
	}
	return g, err
}

func workerNames(workers []control.Hello) (list []string) {
	for _, h := range workers {
		list = append(list, h.Worker)
	}
	slices.Sort(list)
	return list
}

// sharesOf returns the grid of these workers, or nil if they cannot share the rows or are not to.
func (j *Job) sharesOf(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary, c stage.Cut, workers []control.Hello,
	all bool,
) (*sharing, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	workers = slices.Clone(workers)
	counts, err := j.counts(ctx, rec)
	if err != nil {
		return nil, err
	}
	if c.Models > 0 {
		return placing{Job: j, counts: counts, stage: s, sum: sum, workers: workers}.chooseModels(c.Models), nil
	}
	smallest := slices.MinFunc(workers, func(a, b control.Hello) int { return cmp.Compare(a.Memory, b.Memory) })
	_, alone := estimate.Run(counts, j.Plan, resourcesOf(smallest), 0, s)
	if alone != nil && !errors.Is(alone, mem.ErrBudget) {
		return nil, alone
	}
	slices.SortFunc(workers, func(a, b control.Hello) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Worker, b.Worker))
	})
	p := placing{Job: j, counts: counts, stage: s, edges: stripEdges(ctx, j.Catalog, j.Plan, sum), sum: sum, workers: workers}
	most := min(len(workers), packed.Strips(sum.Nodes))
	if most < 2 {
		return nil, alone
	}
	g, err := p.choose(c, most, alone == nil)
	if err != nil {
		if j.Parallel == Auto && all {
			j.Log.Warn("the rows of the graph fit neither one worker nor all of them", "stage", s.Name(), "because", err)
			return nil, nil
		}
		return nil, err
	}
	if g == nil {
		return nil, nil
	}
	columns := packed.PanelColumns
	if g.halves {
		columns = packed.HalfPanel
	}
	j.Log.Info("workers share the rows of the graph", "stage", s.Name(), "workers", len(workers), "groups", g.groups, "of",
		len(g.strips), "columns", columns, "strips", borders(g.strips))
	return g, err
}

// borders returns the strips where the tasks of a group begin.
func borders(tasks []control.Task) (list []int) {
	for _, t := range tasks {
		list = append(list, t.First)
	}
	return append(list, tasks[len(tasks)-1].Last)
}

// placing holds what decides the places of workers in groups.
type placing struct {
	*Job
	counts  estimate.Counts
	stage   stage.Stage
	edges   []float64 // of each strip
	sum     shards.Summary
	workers []control.Hello // those with most memory first
	halves  bool            // groups take one half of a panel each
}

// resources returns the resources of a worker in a group.
func (p placing) resources(h control.Hello) control.Resources {
	r := resourcesOf(h)
	if p.halves {
		r.BlockColumns = packed.HalfPanel
	}
	return r
}

// choose returns the grid of groups of the best size, at most `most`, or nil if the workers should
// share columns alone. Memory comes first: a size is possible if each worker has the memory for its
// rows. Among possible sizes it takes the one with the fewest seconds by the measured rates.
// Without rates it takes the smallest size with columns for all groups. Groups take one half of a
// panel each if that is faster still. fits says that a worker has the memory for all rows.
func (p placing) choose(c stage.Cut, most int, fits bool) (*sharing, error) {
	pieces := 0 // that groups take
	switch {
	case c.Next != nil:
		pieces = c.Panels
	case c.Panels > 0:
		pieces = (c.Panels + c.Together - 1) / c.Together
	}
	rates := slowest(p.workers)
	measured := rates.Edges > 0 && rates.Network > 0
	least, last := 2, most
	switch {
	case p.Parallel == Intervals || pieces == 0 || p.Parallel == Auto && !measured:
		least = most
	case p.Parallel == Grid && p.Groups.Size > 0:
		least = min(p.Groups.Size, most)
		last = least
	}
	if p.Parallel == Auto && fits && !measured || least < 2 {
		return nil, nil
	}
	halves := []bool{false}
	if mayHalve := c.Halves && p.Parallel != Intervals && len(p.workers) >= len(packed.Sides)*least; mayHalve &&
		p.Groups.Columns == packed.HalfPanel {
		halves = []bool{true}
	} else if mayHalve && measured && p.Groups.Columns == 0 {
		halves = []bool{false, true}
	}
	if !measured && least < last { // all groups are to have columns
		least = min(max(least, (len(p.workers)+pieces-1)/pieces), last)
	}
	seconds := func(p placing, size int) float64 {
		pieces := pieces
		switch {
		case size == 1 && c.Panels > 0:
			pieces = (c.Panels + c.Together - 1) / c.Together
		case p.halves:
			pieces *= len(packed.Sides)
		}
		return estimate.GroupSeconds(p.counts, p.Plan, p.resources(p.workers[len(p.workers)-1]), p.stage, len(p.workers), size, pieces, rates)
	}
	var best *sharing
	var failed error
	fewest := 0.0
	for size := least; size <= last; size++ {
		for _, p.halves = range halves {
			g := &sharing{groups: 1, halves: p.halves}
			if pieces > 0 {
				g.groups = len(p.workers) / size
			}
			if p.halves && g.groups < len(packed.Sides) {
				continue // the group takes whole panels
			}
			var err error
			if g.strips, err = p.group(size); err != nil {
				failed = err
				if !errors.Is(err, mem.ErrBudget) {
					return nil, err
				}
				continue
			}
			if !measured {
				return g, nil
			}
			took := seconds(p, size)
			p.Log.Debug("groups that could share rows", "stage", p.stage.Name(), "size", size, "halves of panels", p.halves, "seconds", took)
			if best == nil || took < fewest {
				best, fewest = g, took
			}
		}
	}
	p.halves = false
	if best == nil {
		return nil, failed
	}
	if p.Parallel == Auto && fits {
		if !estimate.Worthwhile(seconds(p, 1), fewest) {
			return nil, nil
		}
	}
	return best, nil
}

// slowest returns the smallest of the rates that workers have measured and the longest delay; 0 if
// none has measured.
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

// group returns the tasks of a group of so many workers that has all columns. All groups have the
// same borders: a place serves as many workers as there are groups, and counts with the smallest
// memory of these workers.
func (p placing) group(size int) (tasks []control.Task, err error) {
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
		tasks = append(tasks, control.Task{Stage: p.stage.Name(), Part: control.Strips, First: borders[i], Last: borders[i+1], Needs: needs[i]})
	}
	return tasks, nil
}

func resourcesOf(h control.Hello) control.Resources {
	return control.Resources{Memory: h.Memory, Threads: h.Threads}
}

// evenness lists the shares of edges in the weight of a strip, in the order in which they are
// tried. Rows have the rest of the weight.
var evenness = []float64{1, 0.75, 0.5, 0.25, 0}

// shareOut finds the borders, in strips, between workers. Each worker gets a share of the weight in
// proportion to its memory. The weight of a strip is its share of the edges, which decide the time.
// If rows do not fit, the weight counts more and more the rows, which decide the memory, until each
// worker can keep its rows in memory or at least has room for them. needs holds the memory of each
// share in bytes, where there are so many groups of such workers.
func (p placing) shareOut(workers []control.Hello, groups int) (borders []int, needs []int64, err error) {
	nodes := p.sum.Nodes
	for _, even := range evenness {
		borders = cutStrips(p.edges, nodes, even, workers)
		resident := true
		needs, err = nil, nil
		for w, h := range workers {
			rows := min(int64(borders[w+1])*packed.StripRows, nodes) - int64(borders[w])*packed.StripRows
			least, fits := estimate.Share(p.counts, p.Plan, p.resources(h), p.stage, rows, len(workers), groups)
			needs = append(needs, least)
			resident = resident && fits
			if least > h.Memory {
				err = fmt.Errorf("coordinator: %s by %d workers: worker %s would have %d of %d rows, which need %s, its --memory is %s; give it --memory %dMiB, or more workers: %w",
					p.stage.Name(), len(workers), h.Worker, rows, nodes, mem.Bytes(least), mem.Bytes(h.Memory), (least+1<<20-1)>>20, mem.ErrBudget)
			}
		}
		if resident {
			break
		}
	}
	return borders, needs, err
}

// stripEdges counts the edges into each strip that the hops of the plan read. It spreads them
// evenly where no hop stream can be read.
func stripEdges(ctx context.Context, cat *catalog.Catalog, p plan.Options, sum shards.Summary) []float64 {
	all := make([]float64, packed.Strips(sum.Nodes))
	for _, direction := range p.Directions() {
		for i, n := range stripEdgesOf(ctx, cat, direction, sum) {
			all[i] += n
		}
	}
	return all
}

func stripEdgesOf(ctx context.Context, cat *catalog.Catalog, direction string, sum shards.Summary) []float64 {
	_, hopKind := stage.EdgeKinds(direction)
	edges := make([]float64, packed.Strips(sum.Nodes))
	left, unknown := 0.0, len(edges) // edges and strips of streams that cannot be read
	for _, e := range cat.Entries(stage.EdgesOf(cat, direction)) {
		left += float64(e.Rows)
	}
	known := make([]bool, len(edges))
	for _, e := range cat.Entries(hopKind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			continue // it will be made again
		}
		if h, err := shards.OpenHops(r, e.Path); err == nil {
			for i, n := range h.StripEdges() {
				at := h.Meta().Lo/packed.StripRows + int64(i)
				edges[at], known[at] = float64(n), true
				left -= float64(n)
				unknown--
			}
		}
		_ = r.Close()
	}
	for i := range edges {
		if !known[i] {
			edges[i] = max(left, 0) / float64(unknown)
		}
	}
	return edges
}

// cutStrips gives each worker at least one strip and its share of the weight as nearly as whole
// strips allow.
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
			rows := min(nodes-int64(strip)*packed.StripRows, packed.StripRows)
			next := (1 - even) * float64(rows) / float64(nodes)
			if all > 0 {
				next += even * edges[strip] / all
			}
			if strip > borders[w] && w < len(workers)-1 && weight+next/2 > want {
				break
			}
			weight += next
			strip++
		}
		borders = append(borders, strip)
	}
	return borders
}
