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
// An edge list that can be read from the middle implements CanCut and OpenShare, and
// [OpenShare] then reads a [Share] of it; another list is all in the first share.
//
// # Memory
//
// Nothing here grows with a file.
package graph
