package coordinator

import (
	"ndls/catalog"
	"ndls/internal/control"
	"ndls/shards"
)

// groupsOfTask is how many groups of granules a task of columns has, unless there
// are fewer than that for each worker.
const groupsOfTask = 2

// cut divides what is left to do of a stage into phases: the tasks of a phase are
// done before the next begins. What is committed does not depend on it. For one
// worker a stage is one task. At least one task is left of a stage: it finds
// everything done.
func cut(p control.Plan, s control.Stage, sum shards.Summary, cat *catalog.Catalog, workers int) (phases [][]control.Task) {
	whole := []control.Task{{Stage: s, Part: control.Whole}}
	c := shapeOf(p, s, sum)
	if workers <= 1 || c.granules == 0 || c.intervals == 0 {
		return [][]control.Task{whole}
	}
	rows, tiles, parts := placesOf(cat, c.rows), placesOf(cat, c.tiles), placesOf(cat, c.parts)
	// The rows of an interval are made of all its tiles.
	column := func(granule int) bool {
		for i := range c.intervals {
			if !rows[place{i, catalog.NotApplicable}] && !tiles[place{i, granule}] {
				return true
			}
		}
		return false
	}
	row := func(i int) bool {
		for g := range c.granules {
			if c.drops && tiles[place{i, g}] || parts[place{i, g}] {
				return true
			}
		}
		return !rows[place{i, catalog.NotApplicable}]
	}
	size := groupsOfTask * c.together
	if c.granules < size*workers {
		size = c.together
	}
	for _, phase := range [][]control.Task{
		divide(control.Task{Stage: s, Part: control.Columns}, c.granules, c.together, size, column),
		divide(control.Task{Stage: s, Part: control.Rows}, c.intervals, 1, 1, row),
	} {
		if len(phase) > 0 {
			phases = append(phases, phase)
		}
	}
	if len(phases) == 0 || c.check {
		phases = append(phases, whole)
	}
	return phases
}

// shape is that of a stage of columns, then rows.
type shape struct {
	granules, intervals int
	// together is how many granules belong in the same task.
	together int
	// tiles and rows are the kinds of what the two phases commit, parts that of pieces of
	// tiles, which are removed in the second.
	tiles, rows, parts string
	// drops says that the tiles of an interval are removed once it has rows, check
	// that something is measured when all is done.
	drops, check bool
}

// shapeOf has no granules for a stage that is not cut.
func shapeOf(p control.Plan, s control.Stage, sum shards.Summary) shape {
	c := shape{together: 1, intervals: intervalsOf(sum)}
	switch s {
	case control.Smooth:
		c.granules, c.tiles, c.rows = granulesOf(sum.Features), catalog.KindSmoothedTile, catalog.KindSmoothed
		c.parts, c.drops, c.check = catalog.KindSmoothedPart, true, p.LSI.Active == "settled"
	case control.SmoothLabels:
		runs, each := p.Train.Runs, granulesOf(len(sum.Classes))
		if p.Labels.SoftLabels != "" {
			runs = 1
		}
		c.granules, c.tiles, c.rows = runs*each, catalog.KindSmoothedSoftTile, catalog.KindPredictions
		c.parts = catalog.KindSmoothedSoftPart
		if p.Labels.Rule == "ndls-reference" {
			c.together = max(each, 1) // K is found from all columns of a run
		}
	}
	return c
}

func intervalsOf(sum shards.Summary) int {
	return int((sum.Nodes + sum.IntervalRows - 1) / max(sum.IntervalRows, 1))
}

// granulesOf is the number of tiles that so many columns take.
func granulesOf(columns int) int {
	return (columns + shards.TileColumns - 1) / shards.TileColumns
}

// place is where in the matrix a file belongs; -1 is all.
type place struct{ interval, granule int }

func placesOf(cat *catalog.Catalog, kind string) map[place]bool {
	have := map[place]bool{}
	for _, e := range cat.Entries(kind) {
		have[place{int(e.Interval), int(e.Block)}] = true
	}
	return have
}

// divide covers those of n pieces that are left to do, and the others of their
// group, with tasks like t of at most size pieces.
func divide(t control.Task, n, group, size int, left func(int) bool) (tasks []control.Task) {
	for t.First = 0; t.First < n; t.First += group {
		t.Last = min(t.First+group, n)
		i := t.First
		for i < t.Last && !left(i) {
			i++
		}
		if i == t.Last {
			continue
		}
		if last := len(tasks) - 1; last >= 0 && tasks[last].Last == t.First && t.Last-tasks[last].First <= size {
			tasks[last].Last = t.Last
			continue
		}
		tasks = append(tasks, t)
	}
	return tasks
}
