// Package trees has the Python program that trains random forests and gradient boosted trees on
// smoothed rows, so that `ndls reproduce` can run it wherever its program lies.
package trees

import _ "embed"

// Script is trees.py. Its first lines say what it takes and writes.
//
//go:embed trees.py
var Script string
