package placement

import (
	"slices"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/stage"
	"ndls/steps"
)

// Committed lists the committed files of a kind.
type Committed func(kind string) []catalog.Entry

// groupsOfTask is the number of groups of panels in a task of columns. The last tasks of a phase have one group each, so that no worker
// waits long while another has several groups left.
const groupsOfTask = 2

// Phases divides the remaining work of a stage into phases. All tasks of a phase are done before the next phase begins. For one worker a
// stage is one task. If g is not nil, its groups share the rows, and workers is not used. At least one task is left of a stage: it finds
// everything done.
func Phases(name control.Stage, shape stage.Shape, have Committed, workers int, g *Sharing) (phases [][]control.Task) {
	switch x := shape.(type) {
	case stage.Matrix:
		m := matrix{x, name, cells(have, x.Rows), cells(have, x.Tiles...), cells(have, x.Parts)}
		phases = m.phases(have, workers, g)
	case stage.Steps:
		if g != nil {
			phases = [][]control.Task{g.models(x.Models), whole(name)}
		}
	}
	phases = slices.DeleteFunc(phases, func(tasks []control.Task) bool { return len(tasks) == 0 })
	if len(phases) == 0 {
		return [][]control.Task{whole(name)}
	}
	return phases
}

// whole returns the task of a whole stage.
func whole(name control.Stage) []control.Task {
	return []control.Task{{Stage: name, Part: control.Whole}}
}

// matrix is a stage of two phases, with the cells whose files are committed.
type matrix struct {
	stage.Matrix
	name               control.Stage
	rows, tiles, parts map[cell]bool
}

// cell is an interval and a panel. A file of a whole interval has no panel.
type cell struct{ interval, panel int }

// ofInterval returns the cell of a file of a whole interval.
func ofInterval(i int) cell { return cell{i, catalog.NotApplicable} }

// cells returns the cells that files of these kinds cover.
func cells(committed Committed, kinds ...string) map[cell]bool {
	have := map[cell]bool{}
	for _, kind := range kinds {
		for _, e := range committed(kind) {
			for panel := e.Block; panel < max(e.Last, e.Block+1); panel++ {
				have[cell{int(e.Interval), int(panel)}] = true
			}
		}
	}
	return have
}

// phases returns the phases for so many workers, or for groups. They may be empty; there are none for one worker.
func (m matrix) phases(have Committed, workers int, g *Sharing) [][]control.Task {
	if g != nil {
		workers = g.takers()
	}
	if workers <= 1 || m.Panels == 0 || m.Intervals == 0 {
		return nil
	}
	task := func(part control.Part) control.Task { return control.Task{Stage: m.name, Part: part} }
	var choose, count, pick []control.Task
	if m.Choice != nil {
		if _, chosen := catalog.Cover(have(m.Choice.Kind), 0, m.Choice.Nodes); !chosen {
			choose = append(choose, task(control.Choose))
		}
	}
	columns := divide(task(control.Columns), m.Panels, m.Together, groupsOfTask*workers, m.lacksColumns)
	if g != nil && len(choose) == 0 && len(columns) > 0 {
		columns = g.cells(columns)
	}
	if m.Tally != nil {
		counts := cells(have, m.Tally.Counts)
		count = divide(task(control.Count), m.Intervals, 1, 0, func(i int) bool { return !counts[ofInterval(i)] && !m.rows[ofInterval(i)] })
		if len(have(m.Tally.Pick)) == 0 {
			pick = append(pick, task(control.Pick))
		}
	}
	return [][]control.Task{choose, columns, count, pick, divide(task(control.Rows), m.Intervals, 1, 0, m.lacksRows)}
}

// lacksColumns reports whether a tile of a panel of columns has to be made. An interval whose rows are committed needs no tiles.
func (m matrix) lacksColumns(panel int) bool {
	for i := range m.Intervals {
		for o := range m.Outputs {
			if !m.rows[ofInterval(i)] && !m.tiles[cell{i, o*m.Panels + panel}] {
				return true
			}
		}
	}
	return false
}

// lacksRows reports whether the rows of an interval have to be made, or its tiles or their pieces have to be removed.
func (m matrix) lacksRows(i int) bool {
	for panel := range m.Outputs * m.Panels {
		if m.tiles[cell{i, panel}] || m.parts[cell{i, panel}] {
			return true
		}
	}
	return !m.rows[ofInterval(i)]
}

// divide covers, with tasks like t, the groups of n pieces that have work left. As long as there are wave groups or more, groupsOfTask
// consecutive groups are one task; with wave 0 each group is one task.
func divide(t control.Task, n, group, wave int, left func(int) bool) (tasks []control.Task) {
	var groups []int // the first piece of each
	for first := 0; first < n; first += group {
		for i := first; i < min(first+group, n); i++ {
			if left(i) {
				groups = append(groups, first)
				break
			}
		}
	}
	waves := 0 // groups in whole waves
	if wave > 0 {
		waves = len(groups) / wave * wave
	}
	for i, first := range groups {
		t.First, t.Last = first, min(first+group, n)
		if last := len(tasks) - 1; last >= 0 && i < waves && tasks[last].Last == first && t.Last-tasks[last].First <= groupsOfTask*group {
			tasks[last].Last = t.Last
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks
}

// Step divides the next step of a stage among so many workers. Unless g is nil, its groups share the rows of columns. At least one task is
// left: it finds everything done.
func Step(name control.Stage, left steps.Left, workers int, g *Sharing) (tasks []control.Task) {
	task := control.Task{Stage: name, Part: control.Part(left.Step)}
	grouped := g != nil && task.Part == control.Columns
	switch {
	case grouped && g.AtOnce(left):
		return g.Strips
	case grouped:
		left.Count = func(int) int { return g.Groups }
	case g == nil && (workers <= 1 || left.Small) && !left.Shared || task.Part == control.Whole || left.Done():
		return whole(name)
	}
	for _, p := range left.Cut(workers) {
		task.First, task.Last = p.First, p.Last
		tasks = append(tasks, task)
	}
	if grouped {
		return g.spread(tasks)
	}
	return tasks
}

// Sharing describes how workers share a stage in two dimensions: the workers of a group share the rows of a block of columns, and several
// groups work at the same time.
type Sharing struct {
	Groups int
	// Strips lists the tasks of a group that has all columns.
	Strips []control.Task
}

// Continued returns the sharing whose tasks, of one group or of several, go on as they were divided.
func Continued(tasks []control.Task) *Sharing { return &Sharing{Groups: 1, Strips: tasks} }

// Borders returns the strips where the rows of the workers of a group begin, and where the last ones end.
func (g *Sharing) Borders() (list []int) {
	for _, t := range g.Strips {
		list = append(list, t.First)
	}
	return append(list, g.Strips[len(g.Strips)-1].Last)
}

// AtOnce reports whether one group makes all columns of a stage at once. Otherwise groups go through its steps, of which this one is left:
// so does a single group if workers have begun them.
func (g *Sharing) AtOnce(left steps.Left) bool { return g != nil && g.Groups == 1 && !left.Shared }

// takers returns the number of workers, or groups, for which columns are divided: at least two, since groups leave other tasks to all
// workers.
func (g *Sharing) takers() int { return max(g.Groups, 2) }

// models shares the models to train evenly among gangs. A single gang takes all of them.
func (g *Sharing) models(n int) []control.Task {
	var each []control.Task
	for i := range g.Groups {
		each = append(each, control.Task{First: n * i / g.Groups, Last: n * (i + 1) / g.Groups})
	}
	return g.cells(each)
}

// cells assigns each task of columns to a gang. A single gang takes all columns.
func (g *Sharing) cells(columns []control.Task) []control.Task {
	if g.Groups == 1 {
		return g.Strips
	}
	return g.spread(columns)
}

// spread returns, for each task of columns, the tasks of a group that makes these columns.
func (g *Sharing) spread(columns []control.Task) (tasks []control.Task) {
	for _, t := range columns {
		for _, x := range g.Strips {
			x.Part, x.FirstPanel, x.LastPanel = control.Strips, t.First, t.Last
			tasks = append(tasks, x)
		}
	}
	return tasks
}
