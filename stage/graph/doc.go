// Package graph opens the stored graph for a task, and smooths columns over it.
//
// # Model
//
// [Open] returns an [Engine]: the task with the rows of the graph that it works on, which the session keeps open. [Columns] are columns of
// a matrix that are read in blocks; wrappers change what they yield. [Engine.SmoothBlocks] smooths them block by block, by several teams
// of threads where a block leaves threads idle, and reads the next block ahead where memory has room ([Input]).
//
// # Memory
//
// With n nodes and s bytes of packed edges: 8·n, 4·n more with weights and 8·n more with directions, and s if that is at most a quarter of
// what is free. Smoothing b columns takes 3·n·b·4 + 2·n, and n·b·4 for columns of the next block where there are several and the memory has
// room; all but 2·n for each of several teams, where strips are fewer than threads. b is the widest multiple of 16 that fits, or
// Resources.BlockColumns.
//
// # Determinism
//
// Rows do not depend on blocks, teams, threads or reading ahead.
package graph
