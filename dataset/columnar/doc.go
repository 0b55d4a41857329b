// Package columnar has what the readers of Parquet and Arrow have in common: the types of columns,
// and the values of some rows.
//
// # Model
//
// A [File] has [Column]s, each of a [Type], which says what its values are whatever way they are stored
// in: a decimal is the number that it stands for, a dictionary is its values, a time is no number.
// What is not read is of the kind [Other], and has a name. [File.Read] streams the [Values] of some
// columns.
//
// # Memory
//
// Values of some rows, at most 64 MiB of text.
//
// # Determinism
//
// Values do not depend on how a file cuts its rows.
package columnar
