// Package e2e holds the tests that run the built program as its users do: killed
// and resumed, inside a memory limit of the kernel, and read by other programs.
package e2e
