// Package peers has the Python program that trains graph networks of other papers on what `ndls` has
// exported, so that `ndls reproduce --peers` can run it wherever its program lies.
package peers

import _ "embed"

// Script is peers.py. Its first lines say what it takes and writes.
//
//go:embed peers.py
var Script string
