// Package estimate plans what the stages of a run need, from counts alone and with the formulas of
// the packages that run the stages. It refuses what does not fit before work starts.
//
// # Model
//
// Memory, disk, bytes, passes and columns follow from the choices that the stages make for the same
// counts (how column blocks are laid out, what is spilled). The number of hops is unknown until the
// K table gives it: the field Hops of [Counts] is Kmax until then, or what the user expects.
//
// Seconds are amounts of work divided by the measured speeds of a machine ([control.Speeds]): edges past
// rows, keys that are put in order, float operations, bytes read and written. All threads share
// them; one thread reads the rows of tables. Usual speeds stand for those that were not measured.
//
// Bytes read and written count the run directory and scratch files, without the dataset's own
// files.
//
// # Not supported
//
// The number of target rows in a file is unknown; the plan counts all nodes. The number of input ids
// with gaps is unknown; the plan counts none.
package estimate
