// Package worker runs tasks in one process, within its own memory budget.
//
// # Model
//
// A [Worker] runs tasks against one run directory. It prepares what package stage needs for a task,
// and measures what the task uses. [Serve] gets tasks from a coordinator, renews their leases, and
// saves the state of long ones as files checkpoints/…, from which any worker can continue. Workers
// that share the rows of a graph meet in a gang, for the time of one task each.
//
// # Memory
//
// Package stage documents the memory of a task. The worker itself needs little: the meters, a view
// of the catalogue, and connections. When it joins it reads the whole catalogue; before each later
// task it reads only the changes. Data that tasks of the same part share stay open until a task of
// another part comes, or until [Worker.Close].
//
// # Determinism
//
// The committed bytes do not depend on which worker runs a task, or how often. Checkpoints are
// removed when their stage is complete.
package worker
