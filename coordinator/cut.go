package coordinator

import (
	"maps"

	"ndls/catalog"
	"ndls/internal/control"
	"ndls/stage"
)

// groupsOfTask is the number of groups of panels in a task of columns. The last tasks of a phase
// have one group each, so that no worker waits long while another has several groups left.
const groupsOfTask = 2

// cut divides the remaining work of a stage into phases. All tasks of a phase are done before the
// next phase begins. The committed bytes are the same for every cut. For one worker a stage is one
// task. At least one task is left of a stage: it finds everything done.
func cut(s control.Stage, c stage.Cut, cat *catalog.Catalog, workers int) (phases [][]control.Task) {
	whole := []control.Task{{Stage: s, Part: control.Whole}}
	if workers <= 1 || c.Panels == 0 || c.Intervals == 0 || c.Next != nil {
		return [][]control.Task{whole}
	}
	rows, tiles, parts := cellsOf(cat, c.Rows), cellsOf(cat, c.Tiles), cellsOf(cat, c.Parts)
	if c.Merged != "" {
		maps.Copy(tiles, cellsOf(cat, c.Merged))
	}
	// The rows of an interval are made of all tiles of the interval.
	outputs := max(c.Outputs, 1)
	column := func(panel int) bool {
		for i := range c.Intervals {
			for o := range outputs {
				if !rows[cell{i, catalog.NotApplicable}] && !tiles[cell{i, o*c.Panels + panel}] {
					return true
				}
			}
		}
		return false
	}
	row := func(i int) bool {
		for panel := range outputs * c.Panels {
			if c.Drops && tiles[cell{i, panel}] || parts[cell{i, panel}] {
				return true
			}
		}
		return !rows[cell{i, catalog.NotApplicable}]
	}
	if c.Chooses != "" && !chosen(c, cat) {
		phases = append(phases, []control.Task{{Stage: s, Part: control.Choose}})
	}
	var counted, pick []control.Task
	if c.Counted != "" {
		have := cellsOf(cat, c.Counted)
		counted = divide(control.Task{Stage: s, Part: control.Count}, c.Intervals, 1, 0, func(i int) bool {
			return !have[cell{i, catalog.NotApplicable}] && !rows[cell{i, catalog.NotApplicable}]
		})
	}
	if c.Picks != "" && len(cat.Entries(c.Picks)) == 0 {
		pick = []control.Task{{Stage: s, Part: control.Pick}}
	}
	for _, phase := range [][]control.Task{
		divide(control.Task{Stage: s, Part: control.Columns}, c.Panels, c.Together, groupsOfTask*workers, column),
		counted,
		pick,
		divide(control.Task{Stage: s, Part: control.Rows}, c.Intervals, 1, 0, row),
	} {
		if len(phase) > 0 {
			phases = append(phases, phase)
		}
	}
	if len(phases) == 0 {
		phases = append(phases, whole)
	}
	return phases
}

// chosen reports whether everything that is chosen before the columns is committed for all nodes.
func chosen(c stage.Cut, cat *catalog.Catalog) bool {
	_, whole := stage.Cover(cat.Entries(c.Chooses), c.Nodes)
	return whole
}

// cell holds the interval and the panel that a file covers; -1 stands for all of them.
type cell struct{ interval, panel int }

func cellsOf(cat *catalog.Catalog, kind string) map[cell]bool {
	have := map[cell]bool{}
	for _, e := range cat.Entries(kind) {
		for panel := e.Block; panel < max(e.Last, e.Block+1); panel++ {
			have[cell{int(e.Interval), int(panel)}] = true
		}
	}
	return have
}

// divide covers, with tasks like t, the groups of n pieces that have work left. As long as there
// are wave groups or more, groupsOfTask consecutive groups are one task; with wave 0 each group is
// one task.
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
