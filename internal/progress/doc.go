// Package progress lets long work say how far it is without knowing who looks:
// packages start a [Meter] from their context and add to it; whoever owns the
// process decides how meters are shown.
//
// # Model
//
// A [Sink] in the context receives every meter. Without one, meters count and
// show nothing. [Display] is the sink of the command line: one redrawn line on
// a terminal, plain lines otherwise.
//
// Who runs a job says with [Begin] which stage begins, and how long it and those behind it
// should take. Who does the work of a stage says with [Enter] which part of it is under way; the
// meters of that part ([StartPart]) then tell how much of the stage is done.
//
// # Algorithm
//
// The time that a stage still takes is at first that of the plan minus what has passed. Once a
// hundredth of the stage was measured, it is more and more, and from a fifth on alone, the time that
// this took in proportion to the rest. What an earlier attempt has done is not taken for work of this one. A
// stage that takes longer than its plan, and of which nothing is measured, has no time left: none
// is shown.
//
// # Memory
//
// One small struct for each live meter and stage.
package progress
