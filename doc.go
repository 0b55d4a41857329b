// Package ndls smooths the features and labels of a graph, each node over as many hops
// as it takes to come near the stationary state (node dependent local smoothing), and
// trains a classifier in between. Edges and wide rows stay on disk: memory is a budget
// that the caller gives.
//
// # Runs
//
// A run turns a dataset into a run directory, stage by stage: partition, lsi, smooth,
// train, predict, smooth-labels, evaluate. [Run] executes them in the calling process,
// or with worker processes on this host. [Serve] leaves the work to processes that call
// [Work], on any hosts that see the run directory. Each of them continues what an
// earlier call with the same options has left.
//
// # Options and resources
//
// [Options] decide the bytes of a run directory and are recorded there. [Resources]
// decide how much memory, disk and processors are used and never change a byte.
// Errors name options as the command ndls spells them, such as --epsilon.
//
// # Reading
//
// [Open] opens a run directory. [Directory.Record] and [Directory.Report] say what was
// done and found. [Directory.Records] streams an artifact as Arrow record batches, and
// [Directory.Export] writes one as a file in order of input id. [Directory.Infer] computes
// nodes that the run does not have, and [Directory.Explain] says why a node has its K. [List] finds run
// directories, and [Diff] compares two of them.
//
// # Errors
//
// Every function returns errors whose kinds are the Err variables of this package.
// [Exits] is the table from which the command ndls takes its exit statuses.
//
// # Determinism
//
// The same dataset and options give the same bytes, whatever the resources, the
// number of workers and the interruptions.
//
// # Not supported
//
// Two runs in one process at the same time share its memory limit; give each its own
// process.
package ndls
