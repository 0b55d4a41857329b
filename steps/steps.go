package steps

import (
	"slices"

	"ndls/catalog"
)

// Left holds the next work of a stage that is done in steps of pieces.
type Left struct {
	// Step is the first step that is not complete.
	Step string
	// Pieces lists the pieces of the step that are left, undivided.
	Pieces []Piece
	// Shared says that several workers have begun, so that the catalogue holds their files.
	Shared bool
	// Small says that one worker is faster than several.
	Small bool
	// Superseded, if not nil, reports the files that no remaining step reads.
	Superseded func(catalog.Entry) bool
	// Count, if not nil, returns the number of tasks into which the pieces are cut for workers, in place of [Tasks].
	Count func(workers int) int
	// Weights, if not nil, holds the amount of work of each piece. Otherwise all pieces have the same.
	Weights []int64
}

// Done reports whether no step is left.
func (l Left) Done() bool { return l.Step == "" }

// Repeats reports whether the same pieces are left as before, so that the tasks in between have left no files.
func (l Left) Repeats(before Left) bool {
	return !l.Done() && l.Step == before.Step && slices.Equal(l.Pieces, before.Pieces)
}

// Each returns as many tasks as workers. It is the Count of steps in which each task reads the whole input.
func Each(workers int) int { return workers }

// Tasks returns the number of tasks into which a step of many pieces is cut for workers: enough for workers of different speed, and few
// files to merge.
func Tasks(workers int) int {
	if workers <= 1 {
		return 1
	}
	return 2 * workers
}

// WeightedTasks is the number of tasks per worker for pieces of different size.
const WeightedTasks = 4

// cutByWeight joins pieces to about count tasks of about equal work.
func (l Left) cutByWeight(count int) (tasks []Piece) {
	all, last := int64(0), int64(0) // weights of all pieces, and of the last task
	for _, w := range l.Weights {
		all += w
	}
	for i, p := range l.Pieces {
		w := l.Weights[i]
		if at := len(tasks) - 1; at >= 0 && tasks[at].Last == p.First && last+w <= all/int64(count) {
			tasks[at].Last = p.Last
			last += w
			continue
		}
		tasks, last = append(tasks, p), w
	}
	return tasks
}

// Cut joins the pieces that are left to tasks for this number of workers.
func (l Left) Cut(workers int) (tasks []Piece) {
	count := Tasks(workers)
	switch {
	case l.Count != nil:
		count = l.Count(workers)
	case l.Weights != nil && workers > 1:
		return l.cutByWeight(WeightedTasks * workers)
	}
	count = max(count, 1)
	size := (len(l.Pieces) + count - 1) / count
	pieces := 0 // in the last task
	for _, p := range l.Pieces {
		if last := len(tasks) - 1; last >= 0 && tasks[last].Last == p.First && pieces < size {
			tasks[last].Last = p.Last
			pieces++
			continue
		}
		tasks, pieces = append(tasks, p), 1
	}
	return tasks
}
