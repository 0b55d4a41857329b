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
	"ndls/internal/mem"
	"ndls/internal/packed"
	"ndls/shards"
	"ndls/stage"
)

// Parallel says how stages are shared among workers.
type Parallel string

const (
	// Auto is Columns, but Intervals where not even the least column block fits a
	// worker's memory, and its share of one does.
	Auto Parallel = "auto"
	// Columns gives each worker columns of all rows.
	Columns Parallel = "columns"
	// Intervals gives each worker some rows, of all columns.
	Intervals Parallel = "intervals"
)

// ParseParallel reads the value of an option.
func ParseParallel(text string) (Parallel, error) {
	if p := Parallel(text); slices.Contains([]Parallel{Auto, Columns, Intervals}, p) {
		return p, nil
	}
	return "", fmt.Errorf("coordinator: --parallel %q is none of auto, columns, intervals: %w", text, control.ErrOption)
}

// CheckParallel refuses what workers that share rows cannot do.
func CheckParallel(p Parallel, plan control.Plan) error {
	if p == Intervals && plan.SlackSettles() {
		return fmt.Errorf("workers that share rows (--parallel intervals) cannot let them settle after --slack hops: give --deviation, --active exact, or --parallel columns: %w", control.ErrOption)
	}
	return nil
}

// phases cuts what is left to do of a stage. It is nil where that is done step by step.
func (j *Job) phases(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary) ([][]control.Task, error) {
	gang, err := j.gang(ctx, rec, s, sum)
	if err != nil {
		return nil, err
	}
	workers := j.Tasks.Workers()
	if len(gang) > 0 {
		workers = max(workers, 2)
	}
	c := s.Cut(j.Plan, sum)
	if len(gang) == 0 && c.Next != nil {
		return nil, nil
	}
	phases := cut(s.Name(), c, j.Catalog, workers)
	if len(gang) == 0 {
		return phases, nil
	}
	if phases[0][0].Part == control.Choose {
		phases = phases[1:] // the gang chooses
	}
	columns := phases[0][0].Part == control.Columns
	if columns {
		phases = phases[1:]
	}
	if columns || c.Strips != "" && len(j.Catalog.Entries(c.Strips)) < c.Intervals {
		phases = append([][]control.Task{gang}, phases...)
	}
	return phases, nil
}

// gang is the tasks of the workers that share the rows of a stage's graph, none where
// they share its columns.
func (j *Job) gang(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary) ([]control.Task, error) {
	if j.Parallel == "" || j.Parallel == Columns || !s.Shares(j.Plan) {
		return nil, nil
	}
	if tasks := j.Tasks.UnderWay(); len(tasks) > 0 && tasks[0].Stage == s.Name() {
		if tasks[0].Part != control.Strips {
			return nil, nil
		}
		return tasks, nil
	}
	tasks, err := j.shares(ctx, rec, s, sum, j.Parallel == Intervals)
	if errors.Is(err, mem.ErrBudget) && j.Parallel == Auto {
		// A worker that is being started again, say, may be what is missing.
		tasks, err = j.shares(ctx, rec, s, sum, true)
	}
	return tasks, err
}

// shares is the tasks of the workers that are here, or of all of them, if they can
// share the rows and are to. With all it is the last time that this is tried. Workers
// that are lost again and again take part only where the others cannot do without them.
func (j *Job) shares(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary, all bool) ([]control.Task, error) {
	list, err := j.Tasks.Sharers(ctx, all)
	if err != nil {
		return nil, err
	}
	if len(list.Held) == 0 {
		return j.sharesOf(ctx, rec, s, sum, list.Fit, all)
	}
	tasks, err := j.sharesOf(ctx, rec, s, sum, list.Fit, false)
	if len(list.Fit) == 0 || errors.Is(err, mem.ErrBudget) {
		return j.sharesOf(ctx, rec, s, sum, slices.Concat(list.Fit, list.Held), all)
	}
	if err == nil {
		j.Log.Warn("workers that were lost again and again are left out for a while", "stage", s.Name(), "workers", workerNames(list.Held))
	}
	return tasks, err
}

func workerNames(workers []control.Hello) (list []string) {
	for _, h := range workers {
		list = append(list, h.Worker)
	}
	slices.Sort(list)
	return list
}

// sharesOf is the tasks of these workers if they can share the rows and are to.
func (j *Job) sharesOf(ctx context.Context, rec *Record, s stage.Stage, sum shards.Summary, workers []control.Hello, all bool) ([]control.Task, error) {
	if len(workers) == 0 {
		return nil, nil
	}
	workers = slices.Clone(workers)
	c, err := j.counts(ctx, rec)
	if err != nil {
		return nil, err
	}
	smallest := slices.MinFunc(workers, func(a, b control.Hello) int { return cmp.Compare(a.Memory, b.Memory) })
	_, alone := estimate.Run(c, j.Plan, resourcesOf(smallest), 0, s)
	if alone == nil && j.Parallel == Auto || alone != nil && !errors.Is(alone, mem.ErrBudget) {
		return nil, alone
	}
	slices.SortFunc(workers, func(a, b control.Hello) int {
		return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.Worker, b.Worker))
	})
	strips := packed.Strips(sum.Nodes)
	if workers = workers[:min(len(workers), strips)]; len(workers) < 2 {
		return nil, alone
	}
	borders, needs, err := j.shareOut(ctx, c, s, sum, workers)
	if err != nil {
		if j.Parallel == Auto && all {
			j.Log.Warn("the rows of the graph fit neither one worker nor all of them", "stage", s.Name(), "because", err)
			return nil, nil
		}
		return nil, err
	}
	var tasks []control.Task
	for w := range workers {
		tasks = append(tasks, control.Task{Stage: s.Name(), Part: control.Strips, First: borders[w], Last: borders[w+1], Needs: needs[w]})
	}
	j.Log.Info("workers share the rows of the graph", "stage", s.Name(), "workers", len(workers), "strips", borders)
	return tasks, nil
}

func resourcesOf(h control.Hello) control.Resources {
	return control.Resources{Memory: h.Memory, Threads: h.Threads}
}

// evenness are the shares that edges have in the weight of a strip, the others being
// rows', in the order in which they are tried.
var evenness = []float64{1, 0.75, 0.5, 0.25, 0}

// shareOut finds borders, in strips, between workers: each gets as much of the weight
// as it has of all memory. A strip weighs what it has of the edges, which is what
// computing takes; or more and more what it has of the rows, which is what memory
// takes, until each worker can keep its rows in memory, or has room for them at all.
// It returns what memory each share needs.
func (j *Job) shareOut(ctx context.Context, c estimate.Counts, s stage.Stage, sum shards.Summary, workers []control.Hello) (borders []int, needs []int64, err error) {
	edges := stripEdges(ctx, j.Catalog, j.Plan, sum)
	for _, even := range evenness {
		borders = cutStrips(edges, sum.Nodes, even, workers)
		resident := true
		needs, err = nil, nil
		for w, h := range workers {
			rows := min(int64(borders[w+1])*packed.StripRows, sum.Nodes) - int64(borders[w])*packed.StripRows
			least, fits := estimate.Share(c, j.Plan, resourcesOf(h), s, rows)
			needs = append(needs, least)
			resident = resident && fits
			if least > h.Memory {
				err = fmt.Errorf("coordinator: %s by %d workers: worker %s would have %d of %d rows, which need %s, its --memory is %s; give it --memory %dMiB, or more workers: %w",
					s.Name(), len(workers), h.Worker, rows, sum.Nodes, mem.Bytes(least), mem.Bytes(h.Memory), (least+1<<20-1)>>20, mem.ErrBudget)
			}
		}
		if resident {
			break
		}
	}
	return borders, needs, err
}

// stripEdges counts the edges into each strip that hops of the plan read, evenly where a hop
// stream cannot say.
func stripEdges(ctx context.Context, cat *catalog.Catalog, p control.Plan, sum shards.Summary) []float64 {
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
	for _, e := range cat.Entries(stage.EdgesOf(cat, direction)) {
		first := int(int64(e.Interval) * sum.IntervalRows / packed.StripRows)
		last := min(first+int(sum.IntervalRows/packed.StripRows), len(edges))
		for i := first; i < last; i++ {
			edges[i] = float64(e.Rows) / float64(last-first)
		}
	}
	for _, e := range cat.Entries(hopKind) {
		r, err := cat.Open(ctx, e)
		if err != nil {
			continue // it will be made again
		}
		if h, err := shards.OpenHops(r, e.Path); err == nil {
			for i, n := range h.StripEdges() {
				edges[h.Meta().Lo/packed.StripRows+int64(i)] = float64(n)
			}
		}
		_ = r.Close()
	}
	return edges
}

// cutStrips gives each worker at least one strip, and its share of the weight as
// nearly as strips allow.
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
