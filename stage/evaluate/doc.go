// Package evaluate holds the stage evaluate, which reports accuracies.
//
// # Model
//
// [Stage] adds up the tallies and scores of all intervals, before and after label smoothing, and reports each model, each class, and the
// predictions that are written. It warns of models that trained too briefly, of predictions of one class, and of neighbours that differ.
// [Validated] reports the validation nodes alone, for trials.
//
// # Memory
//
// Some counts for each class and model; sorting scores takes what is free. Counting neighbours takes 4 bytes for each node.
//
// # Determinism
//
// Sums are added in order of interval and model.
package evaluate
