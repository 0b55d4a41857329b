// Package column reads labels and splits: one value for each node, from text or from
// a vector.
//
// # Model
//
// A [Column] gives a node and its value, as text. [OpenLabels] reads it once, and
// numbers its values: [Labels] streams classes. [SplitColumn] maps values to training,
// validation and test; [Lists] reads masks, and lists of nodes.
//
// # Memory
//
// The names of classes are kept, at most [MaxClasses].
package column
