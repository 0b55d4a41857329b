package coordinator

import (
	"context"
	"fmt"

	"ndls/internal/control"
	"ndls/partition"
)

// partition has the graph partitioned: for one worker by one task, unless others
// have begun with it, else step by step. What a step leaves is known when it is
// done; the files that no step needs any more are removed before the next.
func (j *Job) partition(ctx context.Context) (reports []control.StageReport, err error) {
	var before partition.Left
	for ended := false; ; {
		left, err := partition.Next(ctx, j.Catalog)
		if err != nil {
			return reports, err
		}
		tasks := cutPartition(left, j.Tasks.Workers())
		inOne := tasks[0].Part == control.Whole && !left.Begun
		if !inOne { // a worker may be at work on all of it, and has use for all that is there
			if err := j.Catalog.Remove(ctx, left.Superseded); err != nil {
				return reports, err
			}
		}
		if ended {
			return reports, nil
		}
		if len(left.Pieces) > 0 && left.Step == before.Step && len(left.Pieces) == len(before.Pieces) {
			return reports, fmt.Errorf("coordinator: partition: step %s was done and left no files; workers must be of the same version", left.Step)
		}
		before = left
		ended = tasks[0].Part == control.Whole
		if reports, err = j.phase(ctx, tasks); err != nil {
			return reports, err
		}
	}
}

// cutPartition divides the step that is next. At least one task is left: it finds
// everything done.
func cutPartition(left partition.Left, workers int) (tasks []control.Task) {
	task := control.Task{Stage: control.Partition, Part: control.Part(left.Step)}
	if workers <= 1 && !left.Begun || len(left.Pieces) == 0 {
		task.Part = control.Whole
		return []control.Task{task}
	}
	count := partition.NewCrew(workers).Tasks
	switch left.Step {
	case partition.Rows:
		count = len(left.Pieces)
	case partition.Columns:
		count = workers // each reads all features
	}
	size := (len(left.Pieces) + count - 1) / max(count, 1)
	pieces := 0 // of the last task
	for _, p := range left.Pieces {
		if last := len(tasks) - 1; last >= 0 && tasks[last].Last == p.First && pieces < size {
			tasks[last].Last = p.Last
			pieces++
			continue
		}
		task.First, task.Last, pieces = p.First, p.Last, 1
		tasks = append(tasks, task)
	}
	return tasks
}
