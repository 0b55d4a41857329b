// Package models holds the stages train and predict.
//
// # Model
//
// [Train] fits one model for each run and split, by package train, to the smoothed rows of the run or of other run directories, and commits
// an index of them ([Index]). [Predict] writes the soft labels of the chosen model and the tallies of all.
//
// # Memory
//
// train takes the sampled rows, or a window of record batches. predict takes two record batches, the models, 32 KiB for each class, and 5·n
// of labels.
//
// # Determinism
//
// Models do not depend on the number of workers or on where rows are held.
package models
