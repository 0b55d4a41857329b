// Package reproduce makes the tables and figures of the paper, each by a name.
//
// # Model
//
// An [Experiment] is one table or figure. [All] is the registry: a new one is one entry. It says
// which data it takes; where these are missing, the error says how to get them and which line then
// makes the experiment. What an experiment gives is a [Result]: pictures and tables, which the
// caller writes.
//
// Figures are functions. Tables are data: sets lists data sets, recipes methods as options of ndls
// run, with what is chosen by validation, and grids tables, each with its rows, data sets and
// conditions. One function runs the experiments of a table and prints it.
//
// Experiments make run directories by package ndls, and read what is there by it, so that they go
// on after an interruption and make nothing twice. What came of a row of a table is a file,
// [Outcome], named by a hash of all that decides it. It appears when it is complete.
//
// # Memory
//
// That of the runs, one after the other. Trees are trained in a process of their own, outside of
// the memory of the job.
//
// # Determinism
//
// Accuracies and choices depend on the data, the job's numbers and options alone; those of programs
// on the versions of the Python packages, too. Seconds are measured.
package reproduce
