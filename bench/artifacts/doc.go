// Package artifacts measures what it takes to write and read the files of a run, and to train
// on them, beside plain reads of the same bytes: edge shards and rows of features
// ([Shards]), and minibatches, predictions and epochs ([Training]).
package artifacts
