// Package features holds the stage smooth, which makes the rows of features that models read.
//
// # Model
//
// [Stage] smooths columns by a rule ([RuleOf]), writes tiles, and assembles Arrow rows of them. Labels of training nodes can be columns,
// too. Hops can be kept beside the sums, or rows made of them: by nafs (blend.go) or fastrp (embed.go). [OpenRows] opens the rows for
// models.
//
// # Memory
//
// As package graph says while columns are smoothed; then one record batch, or two where rows have several lists or label columns. nafs
// takes 8·n (4·n more with weights, 2·n with K hops of each node) and 8·C·f for f features and C components beside the batch.
//
// # Determinism
//
// Rows do not depend on how panels and intervals are divided among tasks.
package features
