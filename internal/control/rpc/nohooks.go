//go:build !hooks

package rpc

// pass does nothing: the points at which tests stop a process are in programs that were built with the tag hooks alone.
func pass(string) {}
