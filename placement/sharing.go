package placement

import (
	"ndls/internal/control"
	"ndls/internal/packed"
	"ndls/partition"
	"ndls/stage"
)

// Sharing describes how workers share a stage in two dimensions: the workers of a group share the rows of a block of columns, and several
// groups work at the same time.
type Sharing struct {
	Groups int
	// Halves says that each group takes one half of a panel at a time.
	Halves bool
	// Strips lists the tasks of a group that has all columns.
	Strips []control.Task
}

// Continued returns the sharing whose tasks, of one group or of several, go on as they were divided.
func Continued(tasks []control.Task) *Sharing { return &Sharing{Groups: 1, Strips: tasks} }

// Columns returns the number of columns of a panel that a group takes at a time.
func (g *Sharing) Columns() int {
	if g.Halves {
		return packed.HalfPanel
	}
	return packed.PanelColumns
}

// Borders returns the strips where the rows of the workers of a group begin, and where the last ones end.
func (g *Sharing) Borders() (list []int) {
	for _, t := range g.Strips {
		list = append(list, t.First)
	}
	return append(list, g.Strips[len(g.Strips)-1].Last)
}

// Stepwise reports whether the groups go through the steps of a stage that has panels, and whose next step is left. One group has all
// panels, and needs no steps unless workers have begun them.
func (g *Sharing) Stepwise(left partition.Left) bool { return g.Groups > 1 || left.Shared }

// phases returns the phases of a stage of two phases whose columns groups make.
func (g *Sharing) phases(m matrix) [][]control.Task {
	takers := g.Groups // of whole panels
	if g.Halves {
		takers = (takers + 1) / 2
	}
	phases := m.phases(max(takers, 2))
	if phases[0][0].Part == control.Columns {
		phases[0] = g.cells(phases[0])
	}
	return phases
}

// inPlaceOf returns the phases that stand in place of the steps of a stage: what groups do together, then the task of the whole stage.
func (g *Sharing) inPlaceOf(name control.Stage, s stage.Steps, have Committed) [][]control.Task {
	switch {
	case s.Models > 0:
		return [][]control.Task{g.models(s.Models), whole(name)}
	case s.Strips != nil && len(have.Entries(s.Strips.Kind)) < s.Strips.Intervals:
		return [][]control.Task{g.Strips, whole(name)}
	}
	return [][]control.Task{whole(name)}
}

// models shares the models to train evenly among gangs. A single gang takes all of them.
func (g *Sharing) models(n int) []control.Task {
	var each []control.Task
	for i := range g.Groups {
		each = append(each, control.Task{First: n * i / g.Groups, Last: n * (i + 1) / g.Groups})
	}
	return g.cells(each)
}

// cells assigns each task of columns to a gang. A single gang takes all columns.
func (g *Sharing) cells(columns []control.Task) (tasks []control.Task) {
	if g.Groups == 1 {
		return g.Strips
	}
	parts := []control.Part{control.Strips}
	if g.Halves {
		parts = []control.Part{control.LeftStrips, control.RightStrips}
	}
	for _, t := range columns {
		for _, part := range parts {
			for _, x := range g.Strips {
				x.Part, x.FirstPanel, x.LastPanel = part, t.First, t.Last
				tasks = append(tasks, x)
			}
		}
	}
	return tasks
}

// panels returns the tasks for the rest of a step whose pieces are panels: each group takes some of them.
func (g *Sharing) panels(left partition.Left) (tasks []control.Task) {
	left.Count = func(groups int) int { return groups }
	for _, p := range left.Cut(g.Groups) {
		for _, x := range g.Strips {
			x.FirstPanel, x.LastPanel = p.First, p.Last
			tasks = append(tasks, x)
		}
	}
	return tasks
}
