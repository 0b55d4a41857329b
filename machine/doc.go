// Package machine measures how fast the machine is at what runs are made of, in less than
// a second, and describes it by what its kernel tells.
//
// # Model
//
// A plan knows how much work each stage has: edges past rows, operations of matrix
// products, values that a thread handles, bytes read and written. The seconds that follow
// depend on the machine, by a factor of four among those that were tried. [Measure] times
// one short loop for each kind of work, with the kernels that the stages use, on all
// threads at the same time. Package estimate divides work by these speeds.
//
// # Memory
//
// control.FarBytes of rows, or a quarter of what the budget has free if that is less, a sixteenth of that
// for edges, 2 MiB for each thread, and FileBytes in a file that is removed at the end.
//
// # Determinism
//
// Speeds differ from one call to the next. They decide seconds of plans, and nothing else:
// neither bytes of a run nor whether it fits. What [Host] describes decides nothing.
package machine
