// Package worker executes the stages of a plan in one process, within its own
// memory budget.
//
// # Model
//
// A [Worker] reads what earlier stages committed to the catalogue of a run
// directory, computes, and commits its own output. Executing a stage again after
// an error, a kill or a cancelled context goes on from what is committed; a
// stage whose output is complete does no work. [Serve] takes tasks from a
// coordinator, parts of stages among them, keeps their leases, and saves the state
// of long ones as files checkpoints/…, from which any worker goes on. File by file:
//
//	partition      graph/…                     package partition
//	lsi            lsi/part-NNNNN.parquet      package lsi
//	smooth         smoothed/part-NNNNN.arrow   package smooth, by way of tiles
//	train          model/…                     package train
//	predict        soft_labels/…               package train
//	smooth-labels  predictions/part-NNNNN.arrow
//	evaluate       accuracies, in the report
//
// # Memory
//
// With n nodes, b columns of a block, C components and s bytes of packed edges:
//
//	graph          8·n, and s where that is at most a quarter of what is free
//	lsi            2·n·b·4 + 6·n (+ 8·n with several blocks) + 8·C·b
//	smooth         3·n·b·4 + 2·n, then one record batch
//	train          the sampled rows, or a window of record batches
//	predict        one record batch, the models, then 4·n of ids
//	smooth-labels  as smooth; given soft labels of c classes take 4·n·c + 9·n first
//
// b is the widest multiple of 16 that fits, or Resources.BlockColumns. What parts of
// a stage have in common stays open from one to the next.
//
// # Determinism
//
// What is committed depends on the plan and the input alone: not on how stages are
// cut into tasks, on who executes them, or where they were interrupted. Checkpoints
// are gone when their stage is complete.
package worker
