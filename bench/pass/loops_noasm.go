//go:build !amd64 || noasm

package pass

// loopsOf returns the loops of this build.
func loopsOf(string) table { return goLoops }
