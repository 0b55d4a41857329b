package control

import "context"

// Resources is what a task may use and where it finds its input. It never
// changes the bytes that are written.
type Resources struct {
	// Memory is the budget in bytes for everything the process causes:
	// heap, arrays, page cache.
	Memory  int64
	Threads int
	// Scratch is a local directory for spills; it may be created and emptied.
	Scratch string
	// Kernel is "auto", "avx512", "avx2" or "go".
	Kernel string
	// BlockColumns is the width of a column block, 0 to plan it from Memory.
	BlockColumns int
	// Dataset is the URI to import from, with its paths. Only the partition
	// stage reads it.
	Dataset string
	// SoftLabels is the file named by Plan.Labels.SoftLabels, Targets that named
	// by Plan.Smooth.Targets.
	SoftLabels string
	Targets    string
}

// Task is one stage of a plan.
type Task struct {
	Stage     Stage
	Plan      Plan
	Resources Resources
}

// Executor carries out tasks. Execute returns when the stage's output is
// committed; after an error or a cancelled context, executing the same task
// again continues where the catalogue stands.
type Executor interface {
	Execute(ctx context.Context, t Task) (StageReport, error)
}
