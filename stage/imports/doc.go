// Package imports holds the stages that import and describe a graph, and copies rows that users give by input id into tiles.
//
// # Model
//
// [Partition] imports a dataset by package partition. Where nodes have several labels, or numbers, these follow as tiles ([Answers]).
// [DegreesStage] reports the distributions of degrees and of sizes of components. [Rows] are rows by input id in any order: answers of a
// dataset, or the soft labels of another model.
//
// # Missing features filled by neighbours
//
// With --fill neighbours the tiles of package partition have means of columns in place of missing numbers, and masks. Once the hop streams
// are there, a hop of Ã = A + I over x∘m and m, m being 1 where a node has a number, gives both sums of (A(x∘m))/(A m): where m is 0, a
// node adds nothing to its own sum. The divisor d̃ of a hop cancels. A and d̃ have the weights of edges. Columns with missing numbers alone
// take part, two columns of a panel for each, so that a block of one panel is enough. Then the features of an interval are written, with
// the ratios where the mask is 1 and a neighbour has a number.
//
// This is part of the import, because every reader of features then finds them filled, and nothing but options of the import decides their
// bytes: rows are float32 whatever --precision is. It needs no more than smoothing: any memory, panels for several workers, saved states.
// Tiles of means have a kind of their own (graph/unfilled), since a committed tile is never written again; they are the input and hold the
// masks. They and the sums (graph/neighbours) are removed interval by interval. All features are float32 then. Refused are edges with
// directions, where it is open which end fills the other, and rows that are divided by norms before their numbers are known.
//
// # Memory
//
// partition takes what package partition says, and filling what package graph says. degrees takes 8 bytes for each component. Given rows
// take 17·n to find nodes by id, and a block of their tiles.
//
// # Determinism
//
// Filled features do not depend on memory, threads or workers, as hops do not. Tiles do not depend on the order of
// given rows, or on how much memory holds at a time.
package imports
