// Package graph defines what every reader of a dataset gives, and how it speaks to
// the user.
//
// # Model
//
// A reader returns a [Dataset]: a stream each of edges, feature rows, labels and split
// membership, by input id. [Info] says what is known before the edges are read. Errors
// are [ErrData], about files, or [ErrURI], about what the user typed; both say what to
// do. A [Note] says what was read as what, or what was left out.
//
// A [Share] of the edges may be read alone, and of features where [Info] says so. Edges that can
// only be read from their beginning are all in the first share.
//
// # Memory
//
// Nothing here grows with a file.
package graph
