// Package steps describes the work that is left of a stage which is done step by step, and cuts it into tasks.
//
// # Model
//
// A stage has steps, and each step has numbered pieces. A [Piece] is a range of these. [Left] holds the first step that is not complete and
// the pieces that it lacks. A stage finds them from the committed files; [Left.Cut] joins them to tasks for a number of workers.
//
// # Determinism
//
// The same work and the same number of workers give the same tasks. Committed bytes do not depend on them.
package steps
