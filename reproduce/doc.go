// Package reproduce makes the tables and figures of the paper, each by a name.
//
// # Model
//
// An [Experiment] is one table or figure. [All] is the registry: a new one is one entry. It says
// which data it takes; where these are missing, the error says how to get them and which line then
// makes the experiment. What an experiment gives is a [Result]: pictures and tables, which the
// caller writes.
//
// Experiments make run directories by package ndls, and read what is there by it, so that they go
// on after an interruption and make nothing twice.
package reproduce
