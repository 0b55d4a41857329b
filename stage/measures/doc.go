// Package measures compares what models say with labels.
//
// # Model
//
// [Labelled] holds the labels of rows and their places in splits, or their answers. Tallies count rows by class and split, [Scores] are
// probabilities in order, from which areas under curves follow, and a [Breakdown] counts test nodes by degree, K and class. Files of them
// are written interval by interval, and added up by readers.
//
// # Memory
//
// Labels take 4 bytes for each row and one for each split; answers 4 bytes for each value. Sorting scores takes what is free.
//
// # Determinism
//
// Sums are added in order of interval.
package measures
