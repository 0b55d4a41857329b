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
// # Memory
//
// One small struct for each live meter.
package progress
