// Package trial executes what a trial of a search executes: training and label smoothing, on rows that several trials share.
//
// # Model
//
// [Hold] holds the smoothed rows of a run in memory. [HoldSmoothed] makes the rows of several plans in one pass over the same hops. [Try]
// executes the stages of trials on them, in temporary files, and reports the validation nodes.
//
// # Memory
//
// [HeldBytes], [HoldingBytes] and [KindBytes] say what held rows take.
//
// # Determinism
//
// Held rows and models equal those of a run with the same plan.
package trial
