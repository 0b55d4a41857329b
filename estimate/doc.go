// Package estimate works out what the stages of a run take, from counts alone and
// with the formulas of the packages that carry the stages out, and refuses what
// does not fit before work starts.
//
// # Model
//
// Memory, disk, bytes, passes and columns follow from the same choices that the
// stages make (how column blocks are laid out, what is spilled), given the same
// counts. What is not known beforehand is how many hops the nodes need: until the
// K table says so, the Hops of [Counts] stand for it ([Counts.ExpectedHops]).
//
// Seconds are work at the rates of one machine, which rates.go lists with what measured
// each: edges, rows, values and float operations, which all threads share, rows of tables,
// which one thread reads, and bytes. On other machines they scale, no more.
//
// Bytes read and written are those of the run directory and of scratch files,
// without the dataset's own files.
//
// # Not supported
//
// Rows that settle are streamed as if they did not, so that bytes and seconds of
// --active settled are upper bounds. The numbers of target rows in a file and of
// input ids with gaps are not known; all nodes, and none, are taken instead.
package estimate
