// Package worker executes tasks in one process, within its own memory budget.
//
// # Model
//
// A [Worker] executes tasks against one run directory: it prepares what package stage
// needs to execute a task, and measures what the task takes. [Serve] takes tasks from a
// coordinator, keeps their leases, and saves the state of long ones as files
// checkpoints/…, from which any worker goes on. Workers that share the rows of a graph
// meet in a gang, for the time of one task each.
//
// # Memory
//
// What a task takes is said in package stage. A worker itself takes little: the meters, a
// view of the catalogue, and connections. When it joins it reads the whole
// catalogue, and before each later task what has changed in it. What tasks of the same part have in common
// stays open until a task of another part comes, or [Worker.Close].
//
// # Determinism
//
// What is committed does not depend on who executes a task, or how often. Checkpoints are
// gone when their stage is complete.
package worker
