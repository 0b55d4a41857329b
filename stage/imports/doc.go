// Package imports holds the stages that import and describe a graph, and copies rows that users give by input id into tiles.
//
// # Model
//
// [Partition] imports a dataset by package partition. Where nodes have several labels, or numbers, these follow as tiles ([Answers]).
// [DegreesStage] reports the distributions of degrees and of sizes of components. [Rows] are rows by input id in any order: answers of a
// dataset, or the soft labels of another model.
//
// # Memory
//
// partition takes what package partition says. degrees takes 8 bytes for each component. Given rows take 17·n to find nodes by id, and a
// block of their tiles.
//
// # Determinism
//
// Tiles do not depend on the order of given rows, or on how much memory holds at a time.
package imports
