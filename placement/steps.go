package placement

import (
	"ndls/internal/control"
	"ndls/partition"
)

// Step divides the next step of a stage among so many workers. Unless g is nil, its groups share the rows of columns. At least one task is
// left: it finds everything done.
func Step(name control.Stage, left partition.Left, workers int, g *Sharing) (tasks []control.Task) {
	task := control.Task{Stage: name, Part: control.Part(left.Step)}
	if g != nil && task.Part == control.Columns {
		return g.panels(left)
	}
	if g == nil && (workers <= 1 || left.Small) && !left.Shared || left.Step == partition.Whole || left.Step == "" {
		return whole(name)
	}
	for _, p := range left.Cut(workers) {
		task.First, task.Last = p.First, p.Last
		tasks = append(tasks, task)
	}
	return tasks
}
