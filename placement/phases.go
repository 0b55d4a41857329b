package placement

import (
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/stage"
)

// Committed lists the committed files of a kind. A catalogue does.
type Committed interface {
	Entries(kind string) []catalog.Entry
}

// groupsOfTask is the number of groups of panels in a task of columns. The last tasks of a phase have one group each, so that no worker
// waits long while another has several groups left.
const groupsOfTask = 2

// Phases divides the remaining work of a stage into phases. All tasks of a phase are done before the next phase begins. For one worker a
// stage is one task. If g is not nil, its groups share the rows, and workers is not used. At least one task is left of a stage: it finds
// everything done.
func Phases(name control.Stage, shape stage.Shape, have Committed, workers int, g *Sharing) [][]control.Task {
	switch x := shape.(type) {
	case stage.Matrix:
		if g != nil {
			return g.phases(newMatrix(name, x, have))
		}
		return newMatrix(name, x, have).phases(workers)
	case stage.Steps:
		if g != nil {
			return g.inPlaceOf(name, x, have)
		}
	}
	return [][]control.Task{whole(name)}
}

// whole returns the task of a whole stage.
func whole(name control.Stage) []control.Task {
	return []control.Task{{Stage: name, Part: control.Whole}}
}

// matrix is a stage of two phases, with the cells whose files are committed.
type matrix struct {
	stage.Matrix
	name               control.Stage
	have               Committed
	rows, tiles, parts map[cell]bool
}

// cell is an interval and a panel. A file of a whole interval has no panel.
type cell struct{ interval, panel int }

func newMatrix(name control.Stage, m stage.Matrix, have Committed) matrix {
	return matrix{m, name, have, cells(have, m.Rows), cells(have, m.Tiles...), cells(have, m.Parts)}
}

// cells returns the cells that files of these kinds cover.
func cells(committed Committed, kinds ...string) map[cell]bool {
	have := map[cell]bool{}
	for _, kind := range kinds {
		for _, e := range committed.Entries(kind) {
			for panel := e.Block; panel < max(e.Last, e.Block+1); panel++ {
				have[cell{int(e.Interval), int(panel)}] = true
			}
		}
	}
	return have
}

// ofInterval returns the cell of a file of a whole interval.
func ofInterval(i int) cell { return cell{i, catalog.NotApplicable} }

// phases returns the phases for so many workers, or groups of workers.
func (m matrix) phases(workers int) (phases [][]control.Task) {
	if workers <= 1 || m.Panels == 0 || m.Intervals == 0 {
		return [][]control.Task{whole(m.name)}
	}
	for _, phase := range [][]control.Task{
		m.choose(),
		divide(m.task(control.Columns), m.Panels, m.Together, groupsOfTask*workers, m.lacksColumns),
		m.count(),
		m.pick(),
		divide(m.task(control.Rows), m.Intervals, 1, 0, m.lacksRows),
	} {
		if len(phase) > 0 {
			phases = append(phases, phase)
		}
	}
	if len(phases) == 0 {
		phases = append(phases, whole(m.name))
	}
	return phases
}

func (m matrix) task(part control.Part) control.Task { return control.Task{Stage: m.name, Part: part} }

// choose returns the task of what is chosen before the columns, unless it is committed for all nodes.
func (m matrix) choose() []control.Task {
	if m.Choice == nil {
		return nil
	}
	if _, chosen := stage.Cover(m.have.Entries(m.Choice.Kind), m.Choice.Nodes); chosen {
		return nil
	}
	return []control.Task{m.task(control.Choose)}
}

// count returns the tasks that count what is not counted.
func (m matrix) count() []control.Task {
	if m.Tally == nil {
		return nil
	}
	counts := cells(m.have, m.Tally.Counts)
	return divide(m.task(control.Count), m.Intervals, 1, 0, func(i int) bool { return !counts[ofInterval(i)] && !m.rows[ofInterval(i)] })
}

// pick returns the task that reads the counts, unless it is done.
func (m matrix) pick() []control.Task {
	if m.Tally == nil || len(m.have.Entries(m.Tally.Pick)) > 0 {
		return nil
	}
	return []control.Task{m.task(control.Pick)}
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
