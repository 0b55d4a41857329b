// Package invariants turns on checks that are too slow for users: built with the tag
// invariants, a program stops with a panic as soon as data that it made itself breaks a
// rule; built without, the checks are not in the program at all.
//
// A check stands inside "if invariants.Enabled", a constant, so that the compiler removes
// it with its arguments. A check is about errors of the programmer. What a user, a disk or
// a network can cause is an error in every build.
package invariants

import "fmt"

// Check panics unless ok; the text says what was expected and found.
func Check(ok bool, format string, args ...any) {
	if !ok {
		panic("invariant broken: " + fmt.Sprintf(format, args...))
	}
}
