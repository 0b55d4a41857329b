// Package labels holds the stages label-depth and smooth-labels (NDLS-L), which smooth soft labels and write predictions.
//
// # Model
//
// [Depth] chooses the number of hops by the validation nodes. [Smooth] smooths the soft labels of all models, or those that the user gave,
// counts them, picks the best, and writes predictions. Under the rules cs and cs-nd both correct soft labels first (correct.go). If the
// best class alone is wanted, tiles hold best classes, which are merged as they come (best.go).
//
// # Memory
//
// With n nodes: label-depth takes what package graph says, with sums for v validation nodes alone and 8·v for each depth and panel of the
// block; beside that, as predict with one model. The correction takes 64 bytes more for each training node and panel of the block where the
// scale is a number; then 4 bytes for each node of an interval, and 4 for each training node. smooth-labels takes what package graph says;
// beside that, as predict with one model, then 9·n of ids and labels. Where the best class alone is stored, merging tiles takes 1.5 MiB
// beside a block: 32 bytes for each of 2^13 rows, and for two pieces of these rows 9 bytes for each of 8 panels.
//
// # Determinism
//
// Panels are merged and means added in ascending order, losses by interval in order of node.
package labels
